/* The words and options of the command line. */
#pragma once

#include "../fork.h"
#include "program.h"

/* The position of a word in argv; 0: it is not there. */
int amp_host_find_argument(int argc, char **argv, const char *name);
/* Removes `count` words from argv, starting at index `at`; the entries freed at its end become NULL. */
void amp_host_remove_arguments(int *argc, char **argv, int at, int count);

/* Removes a word from argv. Returns its index, which is now the following word's; 0: it is not there. If it
 * is given twice, ends the program with a line. */
int amp_host_take_flag(int *argc, char **argv, const char *name);
/* The same for `name value`; NULL: name is absent. If the value is missing, ends the program too; allowed:
 * the line's description of valid values. */
const char *amp_host_take_argument(int *argc, char **argv, const char *name, const char *allowed);

/* AMP's own options, in the format of amp_fork_options; the last entry has no name. */
extern const amp_fork_option amp_host_own_options[];

/* Looks for options that the command, `detector train` or `classifier train`, does not know: Darknet takes an
 * unknown option for a file name, or ignores it after the weights. A line names it with the most similar
 * option; options that are repeated or lack their value are reported too. refuses: the line ends the program;
 * otherwise, and for a word that is not similar to any option, it is a warning. A number or a file name is
 * not an option. */
void amp_host_check_options(int argc, char **argv, int classifier, int refuses);

/* The first words of the command line without Darknet's options, such as "detector", "train", "my.data": at
 * most `most`. Returns their number. Options may be anywhere, also before the command. */
int amp_host_command_words(int argc, char **argv, const char **words, int most);

/* Sets what amp_program says of the command: refusal, measures, maps, clear. */
void amp_host_note_command(int argc, char **argv);

/* Sets amp_program's options of `detector train` and `classifier train`, and removes AMP's own from the
 * arguments; other commands' arguments stay. A mistake ends the program. */
void amp_host_take_options(int *argc, char **argv, int under_amp);

/* Where decoded images are kept: the value of -cache, and of cache= in a .data file. amp_cache_word: -1 for
 * any other word. */
typedef enum amp_cache_kind { AMP_CACHE_OFF, AMP_CACHE_RAM, AMP_CACHE_DISK } amp_cache_kind;
#define AMP_CACHE_WORDS "ram, disk, off"
#define AMP_CACHE_HELPS "cache=disk" /* against slow loading */
int amp_cache_word(const char *word);

/* The dtype of networks made from here on (amp_program.dtype). The string is not copied: it must live until
 * those networks are made. For commands that make their own networks; not thread-safe. */
void amp_host_request_dtype(const char *dtype);
