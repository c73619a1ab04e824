/* What the user is told of a step that went wrong: one line each on stderr. */
#pragma once

#include "state.h"

/* After each forward and backward, with debug=1: while they are still known, the images that lie in the
 * network's input are written down if the step's first inf or NaN was just found. */
void amp_host_note_images(struct darknet_amp *, const struct network *);

/* debug=1: what was found in the step that just ended, if anything. good_steps: how many steps happened
 * before it. */
void amp_host_tell_anomaly(struct darknet_amp *, const amp_step_report *, size_t good_steps);

void amp_host_tell_skip(struct darknet_amp *, const amp_step_report *, size_t good_steps);

/* Training cannot go on: ends the program. */
_Noreturn void amp_host_collapse(struct darknet_amp *, const amp_step_report *, size_t good_steps);
