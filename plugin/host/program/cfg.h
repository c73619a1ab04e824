/* The .cfg and .data files of this program: read once, checked, and the .cfg as Darknet's parser reads it.
 *
 * The first .cfg and the first .data file that `darknet` reads are kept in amp_program, for the checks, the
 * settings, Darknet's parser and the loaders. In a program that uses libdarknet none is kept: it may load
 * another network from a file of the same name. */
#pragma once

#include "../../amp/cfg_check.h"
#include "../../amp/config.h"

/* Reads a file as this Darknet does. The caller gives the document back. AMP_BAD_CONFIG: the file cannot be
 * read. */
amp_status amp_cfg_document(const char *file, cfg_document **out, amp_error *error);
amp_status amp_data_document(const char *file, cfg_document **out, amp_error *error);
void amp_document_give_back(cfg_document *); /* NULL is fine */

/* ---- settings and mistakes ---- */

/* Reads the settings of a .cfg with amp_config_read. dtype: as in amp_program. */
amp_status amp_host_read_config(const char *cfg, const char *dtype, amp_config **out, amp_error *error);
/* Sets *on to whether the settings of this .cfg turn AMP on. */
amp_status amp_host_is_on(const char *cfg, const char *dtype, int *on, amp_error *error);
/* Checks the whole .cfg (cfg_check.h). AMP_BAD_CONFIG: it has mistakes; *error is the first. Warnings are
 * printed only for the first .cfg that has some, because later ones are copies of it. The summary may be
 * NULL. */
amp_status amp_host_check_cfg(const char *cfg, cfg_use use, cfg_summary *, amp_error *error);

/* Whether a network of this .cfg would be under AMP with this command line. If so, checks the .cfg for the
 * purpose `use` and sets *summary, unless summary is NULL. A mistake ends the program. */
int amp_host_cfg_uses_amp(const char *cfg, cfg_use use, cfg_summary *summary);

/* ---- the .cfg as Darknet's parser reads it ---- */

/* For darknet_amp_open_cfg: reads the settings and keeps them for the network that this thread's parser is
 * about to make. Returns the .cfg as a stream in which AMP's own lines are blank, so that line numbers do not
 * change. */
FILE *amp_cfg_open(const char *file);
/* Whether the network that this thread's parser makes will be under AMP. */
int amp_host_parser_uses_amp(void);
/* Returns that network's settings, which the caller then owns; NULL: there are none. */
amp_config *amp_host_take_config(void);

/* Ends the program with Darknet's own error message, `reason`. While this thread's parser makes a network,
 * the .cfg's name precedes the message. If `amp check` finds mistakes in the .cfg, the first one, with its
 * line number, follows the message. */
void amp_cfg_refuse(const char *reason);

/* In a walk over a .cfg's lines: the kind of the current section. */
typedef enum amp_cfg_part { AMP_PART_LAYER, AMP_PART_NET, AMP_PART_AMP } amp_cfg_part;

/* Whether only AMP reads a line: every line of [amp], and AMP's keys under [net] and in a layer. If AMP is
 * off, a key of [net] that Darknet reads too is left to Darknet. *part is the section of the previous line on
 * entry and the section of this line on return. */
int amp_cfg_line_is_ours(const cfg_item *line, amp_cfg_part *part, int enabled);
