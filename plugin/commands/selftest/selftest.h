/* `darknet amp selftest`: whether AMP computes on this machine what Darknet's own code does, by the
 * comparison of probe/probe_compare.h on built-in networks (networks.c). */
#pragma once

#include "../../tensor/status.h"

typedef struct amp_selftest_network {
    const char *name;     /* what it has, for the user; NULL ends the list */
    const char *section;  /* is left out where Darknet does not know this section; NULL: all know it */
    const char *layers;   /* a .cfg, with a blank for each line's end */
} amp_selftest_network;

extern const amp_selftest_network amp_selftest_networks[];
