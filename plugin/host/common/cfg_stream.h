/* What the .cfg asks of AMP, for the network whose layers a thread's parser makes. Darknet opens the file by
 * darknet_amp_open_cfg, which reads AMP's settings and gives Darknet a stream in which AMP's own lines are
 * blank: the numbers of all other lines stay. */
#pragma once

#include "../../amp/config.h"

/* Whether the network that this thread's parser makes will be under AMP. */
int amp_host_parser_uses_amp(void);

/* The settings of the .cfg that this thread's parser has read, now the caller's; NULL: there are none. */
amp_config *amp_host_take_config(void);
