/* Reads and checks the .cfg and .data files of this program, and gives Darknet's parser the .cfg without
 * AMP's lines.
 *
 * The program `darknet` reads its first .cfg and its first .data file only once. It keeps them in
 * amp_program, where the checks, the settings, Darknet's parser and the loaders find them. Other programs
 * that use libdarknet read each file anew, because they may load another network from a file of the same
 * name. */
#pragma once

#include "../../amp/cfg_check.h"
#include "../../amp/config.h"

/* Reads a file with the syntax of this Darknet. The caller returns the document with amp_document_give_back.
 * AMP_BAD_CONFIG: the file cannot be read. */
amp_status amp_cfg_document(const char *file, cfg_document **out, amp_error *error);
amp_status amp_data_document(const char *file, cfg_document **out, amp_error *error);
void amp_document_give_back(cfg_document *); /* NULL is fine */

/* ---- settings and mistakes ---- */

/* Reads the AMP settings of a .cfg with amp_config_read. dtype: see amp_program. */
amp_status amp_host_read_config(const char *cfg, const char *dtype, amp_config **out, amp_error *error);
/* Sets *on to 1 if the settings of this .cfg turn AMP on, otherwise to 0. */
amp_status amp_host_is_on(const char *cfg, const char *dtype, int *on, amp_error *error);
/* Checks the whole .cfg (cfg_check.h). AMP_BAD_CONFIG: it has mistakes; *error describes the first. Prints
 * warnings only for the first .cfg that has any, because later .cfg files are copies of it. `summary` may be
 * NULL. */
amp_status amp_host_check_cfg(const char *cfg, cfg_use use, cfg_summary *, amp_error *error);

/* Returns whether a network of this .cfg would be under AMP with this command line. If so, checks the .cfg
 * for the purpose `use`, and sets *summary unless summary is NULL. Ends the program if the .cfg has a
 * mistake. */
int amp_host_cfg_uses_amp(const char *cfg, cfg_use use, cfg_summary *summary);

/* ---- the .cfg as Darknet's parser reads it ---- */

/* For darknet_amp_open_cfg. Reads the settings and keeps them for the network that this thread's parser is
 * about to make. Returns the .cfg as a stream in which AMP's own lines are blank, so that the line numbers
 * stay the same. */
FILE *amp_cfg_open(const char *file);
/* Whether the network that this thread's parser makes will be under AMP. */
int amp_host_parser_uses_amp(void);
/* Returns the settings of the network that this thread's parser makes. The caller then owns them. NULL: there
 * are no settings. */
amp_config *amp_host_take_config(void);

/* Ends the program with Darknet's own error message `reason`. If this thread's parser is making a network,
 * the .cfg's name precedes the message. The first mistake that `amp check` finds in that .cfg, if any,
 * follows the message, with its line number. */
void amp_cfg_refuse(const char *reason);

/* The kind of a .cfg's section, used while its lines are read in order. */
typedef enum amp_cfg_part { AMP_PART_LAYER, AMP_PART_NET, AMP_PART_AMP } amp_cfg_part;

/* Whether a line is only for AMP: every line of [amp], and AMP's keys in [net] and in layers. If AMP is off,
 * returns 0 for keys in [net] that both AMP and Darknet read. *part: on entry, the section of the previous
 * line; on return, the section of this line. */
int amp_cfg_line_is_ours(const cfg_item *line, amp_cfg_part *part, int enabled);
