/* The comparison that a training on a new GPU begins with. */
#pragma once

/* Exit statuses of `amp selftest CFG`: AMP's fp32 is plainly not Darknet's, not finite or off by more than a
 * hundredth; or something is further off than rounding explains. 0: neither; 1: the pass could not be
 * made. */
enum { AMP_SELFTEST_WRONG = 3, AMP_SELFTEST_OFF = 4 };

struct network;
/* Before the first step of a training. On a GPU, with a combination of GPU, driver, libraries and plugin that
 * this user's cache folder has no note of, runs `amp selftest CFG` and ends the program where AMP's fp32 is
 * plainly not Darknet's. Not in a training of several ranks. */
void amp_first_check(struct network *);
