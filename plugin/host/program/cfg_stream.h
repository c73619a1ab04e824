/* The .cfg's settings for AMP, for the network whose layers a thread's parser makes. Darknet opens the file
 * with amp_cfg_open, which reads AMP's settings and gives Darknet a stream in which AMP's own lines are
 * blank, so that line numbers do not change. */
#pragma once

#include "../../amp/config.h"

/* For darknet_amp_open_cfg: reads the settings, and opens that stream. */
FILE *amp_cfg_open(const char *file);

/* Ends the program with Darknet's own words for why it ends. While this thread's parser makes a network, the
 * .cfg's name is put before them, and after them the first mistake that `amp check` finds in it, with its
 * line. */
void amp_cfg_refuse(const char *reason);

/* Whether the network that this thread's parser is making will be under AMP. */
int amp_host_parser_uses_amp(void);

/* In a walk over a .cfg's lines: the kind of the current section. */
typedef enum amp_cfg_part { AMP_PART_LAYER, AMP_PART_NET, AMP_PART_AMP } amp_cfg_part;

/* Whether only AMP reads a line: every line of [amp], and AMP's keys under [net] and in a layer. If AMP is
 * off, a key of [net] that Darknet reads too is left to Darknet. *part is the previous line's on entry and
 * this line's on return. */
int amp_cfg_line_is_ours(const cfg_item *line, amp_cfg_part *part, int enabled);

/* The settings of the .cfg that this thread's parser has read, now owned by the caller; NULL: there are
 * none. */
amp_config *amp_host_take_config(void);
