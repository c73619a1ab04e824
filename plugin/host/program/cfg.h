/* Reads and checks the .cfg and .data files of this program, and gives Darknet's parser the .cfg without
 * AMP's lines.
 *
 * The program `darknet` reads its first .cfg and its first .data file only once, and keeps them in
 * amp_program. Other programs that use libdarknet read a file at each call: they may load another network
 * from a file of the same name. */
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
/* Checks the whole .cfg (cfg_check.h). AMP_BAD_CONFIG: *error describes its first mistake. Once a .cfg has
 * caused warnings, prints no more warnings: any later .cfg is a copy of it. `summary` may be NULL. */
amp_status amp_host_check_cfg(const char *cfg, cfg_use use, cfg_summary *, amp_error *error);

/* Whether a network of this .cfg would be under AMP with this command line. If so, checks the .cfg with
 * amp_host_check_cfg; a mistake ends the program. */
int amp_host_cfg_uses_amp(const char *cfg, cfg_use use, cfg_summary *summary);

/* ---- the .cfg as Darknet's parser reads it ---- */

/* For darknet_amp_open_cfg. Reads the settings with amp_host_read_config, and keeps them for the network that
 * this thread's parser makes next. Returns the .cfg as a stream in which AMP's own lines are blank and
 * `subdivisions` may be replaced. */
FILE *amp_cfg_open(const char *file);
/* Whether the network that this thread's parser makes will be under AMP. */
int amp_host_parser_uses_amp(void);
/* Returns the settings that amp_cfg_open has kept; the caller then owns them. NULL: there are none. */
amp_config *amp_host_take_config(void);

/* Ends the program with Darknet's own error message `reason`. If this thread's parser is making a network,
 * prints the .cfg's name before `reason`, and after `reason` the first mistake that `amp check` finds in that
 * .cfg. */
void amp_cfg_refuse(const char *reason);

/* The kind of a .cfg's section, used while its lines are read in order. */
typedef enum amp_cfg_part { AMP_PART_LAYER, AMP_PART_NET, AMP_PART_AMP } amp_cfg_part;

/* Whether a line is only for AMP: every line of [amp], and AMP's keys in [net] and in layers. But if AMP is
 * off, a key of [net] that Darknet also reads is not only for AMP. *part: on entry, the section of the
 * previous line; on return, the section of this line. */
int amp_cfg_line_is_ours(const cfg_item *line, amp_cfg_part *part, int enabled);
