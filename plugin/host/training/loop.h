/* What AMP adds to the loops of `detector train` and `classifier train`: the line and the log row of a step,
 * taking turns with other programs, and stopping early. The hooks in darknet_amp.h call these functions. */
#pragma once

#include <stdarg.h>

#include "../../tensor/status.h"

struct network;

/* Whether a loop is running. */
int amp_training_runs(void);
/* The loop begins. average_loss, loop_count: the loop's own variables, valid until amp_training_end. */
void amp_training_begin(struct network **nets, int count, float *average_loss, int *loop_count);
/* Called before each step. enough=1: the training must stop. Returns 1 if the loop must go on (it ends by
 * itself if all steps are done). If it must stop, saves a backup (not at the first step) and returns 0. */
int amp_training_goes_on(struct network **nets, int enough, const char *backup_folder, const char *base);
/* Called when the loop takes the step's images, before it requests the next step's images. Returns 1 if the
 * loaders met a fatal fault. *error then describes the fault and names the backup, if one was saved. */
int amp_training_takes_batch(amp_error *error);
/* Called after each step, to print its line (format, args) and to log it. */
void amp_training_step(float loss, float average_loss, const char *format, va_list args);
/* The loop has ended. Returns 1 if the latest save failed. */
int amp_training_end(struct network **nets);

/* The size of the network's input in its .cfg, even while random=1 has resized it. */
void amp_training_input(int *w, int *h);

/* Excludes `seconds` from the summary line's time, because the loop has spent them on something else. */
void amp_training_exclude_seconds(double seconds);
