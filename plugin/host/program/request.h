/* What the user asks of the networks that this program makes, on the command line and in the .cfg. */
#pragma once

#include "../fork.h"

#include "../../amp/cfg_check.h"

/* The place of a word in argv; 0: it is not there. */
int amp_host_find_argument(int argc, char **argv, const char *name);
/* Removes `count` words from argv, beginning at place `at`; the places freed at its end become NULL. */
void amp_host_remove_arguments(int *argc, char **argv, int at, int count);

/* Takes a word out of argv. Returns its place, where the word after it stands then; 0: it is not there. Where
 * it is given twice the program ends with a line. */
int amp_host_take_flag(int *argc, char **argv, const char *name);
/* The same for `name value`; NULL: name is absent. Where the value is missing the program ends too; allowed:
 * what the line says of the value. */
const char *amp_host_take_argument(int *argc, char **argv, const char *name, const char *allowed);

/* AMP's own options, in the order of amp_fork_options; the last has no name. */
extern const amp_fork_option amp_host_own_options[];

/* Looks for options that the command, `detector train` or `classifier train`, does not know: Darknet takes
 * such a word for a file's name, or overlooks it behind the weights. A line names it, with the nearest option
 * that there is, or one that is given twice or lacks its value. refuses: the line ends the program; else, and
 * for a word that is like no option, it is a warning. A number or the name of a file is no option. */
void amp_host_check_options(int argc, char **argv, int classifier, int refuses);

/* The first words of the command line without Darknet's options, such as "detector", "train", "my.data": at
 * most `most`. Returns how many there are. Options may stand anywhere, before the command too. */
int amp_host_command_words(int argc, char **argv, const char **words, int most);

/* The dtype of networks made from here on, in the words of `-amp` on the command line: "off", "fp32", "fp16",
 * "bf16", or NULL for what the .cfg says. The string is not copied: it must live until those networks are
 * made. For commands that make networks of their own; not thread-safe. */
void amp_host_request_dtype(const char *dtype);
const char *amp_host_requested_dtype(void);

/* Called before Darknet runs its command: remembers whether this command can run networks under AMP, whether
 * it measures accuracy, and whether -clear was given. */
void amp_host_note_command(int argc, char **argv);
/* Whether -clear was given: then no sidecar (NAME.amp) is read beside the weights. */
int amp_host_has_clear(void);
/* Whether the command measures accuracy: valid and its variants, map, recall. */
int amp_host_command_measures(void);
int amp_host_command_maps(void); /* `detector map` */
/* NULL, or why the program's command cannot run a network under AMP: the middle of a message. */
const char *amp_host_refusal(void);

/* Looks at the whole .cfg (cfg_check.h). AMP_BAD_CONFIG: its first mistake. Warnings are printed for the
 * first .cfg that has some: later ones are copies of it. */
amp_status amp_host_look_at_cfg(const char *cfg, cfg_use use, cfg_summary *, amp_error *error);
amp_status amp_host_check_cfg(const char *cfg, cfg_use use, amp_error *error);

/* Whether a network of this .cfg would be under AMP, the command line considered; *summary is set if so. A
 * broken .cfg ends the program; use: what it is then for. */
int amp_host_cfg_uses_amp(const char *cfg, cfg_use use, cfg_summary *summary);
