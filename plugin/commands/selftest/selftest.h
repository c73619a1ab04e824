/* `darknet amp selftest` tests whether AMP computes on this machine what Darknet's own code computes: it
 * makes the comparison of probe/probe_comparison.h on built-in networks. */
#pragma once

#include "../../tensor/status.h"

/* Exit statuses of `amp selftest CFG`. WRONG: AMP's fp32 is not finite, or off by more than a hundredth. OFF:
 * something is further off than rounding explains. 0: neither; 1: the pass could not be made. */
enum { AMP_SELFTEST_WRONG = 3, AMP_SELFTEST_OFF = 4 };

struct network;
/* Called before the first step of a training. On a GPU, if the user's cache folder has no note of this
 * combination of GPU, driver, libraries and plugin, runs `amp selftest CFG`, and ends the program if the
 * result is WRONG. Does nothing in a training of several ranks. */
void amp_first_check(struct network *);
