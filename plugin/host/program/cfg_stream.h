/* What the .cfg asks of AMP, for the network whose layers a thread's parser makes. Darknet opens the file by
 * amp_cfg_open, which reads AMP's settings and gives Darknet a stream in which AMP's own lines are
 * blank: the numbers of all other lines stay. */
#pragma once

#include "../../amp/config.h"

/* For darknet_amp_open_cfg: reads the settings, and opens that stream. */
FILE *amp_cfg_open(const char *file);

/* Ends the program with Darknet's own words for why it ends. While this thread's parser makes a network, the .cfg's name comes before
 * them, and behind them the first mistake that `amp check` finds in it, with its line. */
void amp_cfg_refuse(const char *reason);

/* What networks under AMP have instead of what their .cfg says (-fit); 0: the .cfg's own. */
typedef struct amp_cfg_instead {
    int subdivisions; /* which all ranks can share */
    int recompute;    /* checkpoint=auto, where the .cfg has checkpoint=off */
    size_t memory;    /* memory= */
} amp_cfg_instead;

/* From here on. */
void amp_cfg_read_instead(const amp_cfg_instead *);

/* Whether the network that this thread's parser makes will be under AMP. */
int amp_host_parser_uses_amp(void);

/* Reading a .cfg line by line: which section it is in. */
typedef enum amp_cfg_part { AMP_PART_LAYER, AMP_PART_NET, AMP_PART_AMP } amp_cfg_part;

/* Whether a line is for AMP alone: every line of [amp], and AMP's keys under [net] and in a layer. Where AMP
 * is off, a key of [net] that Darknet reads too is left to Darknet. Cuts `text`, the line, down to the name
 * of its section or key. *part, of the line before, becomes that of this line. */
int amp_cfg_line_is_ours(char *text, amp_cfg_part *part, int enabled);

/* The settings of the .cfg that this thread's parser has read, now the caller's; NULL: there are none. */
amp_config *amp_host_take_config(void);
