/* What is printed about the passes and steps of a training. */
#pragma once

#include "state.h"

/* Prints, once, what the first plan recomputes (checkpointing) and how much memory that saves. */
amp_status amp_host_print_recompute(struct darknet_amp *, const amp_plan *, amp_error *);
/* With graphs=1: prints the engine's line about recording passes, if that line is new. */
void amp_host_print_recording(struct darknet_amp *);

/* Call it with debug=1 after each forward and backward. If the step's first inf or NaN was just found,
 * records the names of the images in the network's input, before the next pass replaces them. */
void amp_host_note_images(struct darknet_amp *);

/* Prints a line about a step that was skipped, was a spike or had a bad loss, and the summary after the final
 * step. diverged=1: the training has collapsed; ends the program. good_steps: the number of earlier steps
 * that were not skipped. All ranks call it. */
void amp_host_print_step(struct darknet_amp *, const amp_step_report *, int diverged, size_t good_steps);
