/* `darknet amp selftest`: whether AMP computes on this machine what Darknet's own code does, by the
 * comparison of probe/probe_comparison.h on built-in networks (networks.c). */
#pragma once

#include "../../tensor/status.h"

typedef struct amp_selftest_network {
    const char *name;     /* what it has, for the user; NULL ends the list */
    const char *section;  /* is left out where Darknet does not know this section; NULL: all know it */
    const char *layers;   /* a .cfg, with a blank for each line's end */
} amp_selftest_network;

extern const amp_selftest_network amp_selftest_networks[];

/* Exit statuses of `amp selftest CFG`: AMP's fp32 is plainly not Darknet's, not finite or off by more than a
 * hundredth; or something is further off than rounding explains. 0: neither; 1: the pass could not be
 * made. */
enum { AMP_SELFTEST_WRONG = 3, AMP_SELFTEST_OFF = 4 };

struct network;
/* first_check.c: before the first step of a training. On a GPU, with a combination of GPU, driver, libraries
 * and plugin that this user's cache folder has no note of, runs `amp selftest CFG` and ends the program where
 * AMP's fp32 is plainly not Darknet's. Not in a training of several ranks. */
void amp_first_check(struct network *);
