/* What AMP adds to the loops of `detector train` and `classifier train`: the line and the log row of a step,
 * taking turns with other programs, and stopping early. Darknet reaches it by the hooks in darknet_amp.h. */
#pragma once

#include <stdarg.h>

#include "../../tensor/status.h"

struct network;

/* Whether a loop is running. */
int amp_training_runs(void);
/* The loop begins. average_loss, loop_count: the loop's own variables, valid until amp_training_end. */
void amp_training_begin(struct network **nets, int count, float *average_loss, int *loop_count);
/* Called before each step. 0: the training stops here, and has saved a backup. enough: it is to stop. */
int amp_training_goes_on(struct network **nets, int enough, const char *backup_folder, const char *base);
/* The loop takes the step's images, and asks for the next step's after this. Returns 1 where their loaders
 * met a fault that no training survives. *error is then its line, which also names the backup that was
 * saved. */
int amp_training_takes_batch(amp_error *error);
/* Called after each step, to print its line (format, args) and to log it. */
void amp_training_step(float loss, float average_loss, const char *format, va_list args);
/* The loop has ended. Returns 1 if the last save failed. */
int amp_training_end(struct network **nets);

/* Takes `-log FILE` and, for the detector, `-map [N]` and `-patience N` out of the arguments of these two
 * commands. Other commands' arguments stay. A mistake ends the program. */
void amp_training_arguments(int *argc, char **argv, int under_amp);

/* What was given with -map. */
typedef struct amp_map_options {
    long every;             /* iterations; 0: -map without a number */
    long epochs;            /* of -map without a number: every this many (-mAP_epochs) */
    long patience;          /* how many measurements old the best mAP may become; 0: no -patience */
    double iou, confidence; /* -iou_thresh, -thresh */
} amp_map_options;
const amp_map_options *amp_training_map(void); /* NULL: -map was not given */

/* The size of the network's input in its .cfg, whatever random=1 has made of it. */
void amp_training_input(int *w, int *h);

/* Leaves these seconds, which the loop spent on something else than training, out of its summary. */
void amp_training_exclude_seconds(double seconds);
