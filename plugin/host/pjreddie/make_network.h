/* Making a network for a command that has more to say than Darknet's parser, which ends the program with status 0, by an
 * assertion or by a crash where it cannot make one. */
#ifndef AMP_HOST_MAKE_NETWORK_H
#define AMP_HOST_MAKE_NETWORK_H

#include "darknet.h"

/* parse_network_cfg(cfg), or one line that names `name` (the file as the user knows it) and status 1. draws: the weights are
 * drawn as always; else the network is only looked at, and made in a tenth of the time: weights are 0, and a GPU's engines are
 * not timed. While no other thread runs. */
network *amp_host_make_network(const char *cfg, const char *name, int draws);

#endif
