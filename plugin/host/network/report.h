/* Lines on stderr about a step that went wrong. */
#pragma once

#include "state.h"

/* Called with debug=1 after each forward and backward: if the step's first inf or NaN was just found, records
 * the names of the images in the network's input before later batches replace them. */
void amp_host_note_images(struct darknet_amp *, const struct network *);

/* With debug=1: prints which tensor of the step that just ended had the first inf or NaN, if any. good_steps:
 * the steps taken before it, without skipped ones. */
void amp_host_print_anomaly(struct darknet_amp *, const amp_step_report *, size_t good_steps);

/* Prints, once per training, that a step was made although a loss was inf or NaN. */
void amp_host_print_bad_loss(struct darknet_amp *, const amp_step_report *, size_t good_steps);

/* Prints that the step was skipped, and the new loss scale. */
void amp_host_print_skip(struct darknet_amp *, const amp_step_report *, size_t good_steps);

/* The loss scale has reached min_scale and gradients still overflow: prints the layer and what to do, and
 * ends the program. */
_Noreturn void amp_host_collapse(struct darknet_amp *, const amp_step_report *, size_t good_steps);
