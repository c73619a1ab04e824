/* How ranks share the images of a step, so that together they train as one rank would.
 *
 * batch= of the .cfg is the batch of a step of all ranks together. A network's counters (batch, subdivisions,
 * seen) have the same values on every rank, those of the whole training. So everything that is computed from
 * them (learning rate, max_batches, the images in a printed line, `seen` in a .weights file) is right without
 * a rule for ranks.
 *
 * A step has S subdivisions. Rank r of N computes subdivisions r·S/N to (r+1)·S/N - 1, and loads only their
 * images. Where N does not divide S, the step is cut into more subdivisions, so that it does.
 *
 * In a program without ranks these functions do nothing. */
#pragma once

#include <stddef.h>

#include "../../tensor/status.h"

struct network;
struct amp_comm;

/* The smallest multiple of the .cfg's subdivisions that `ranks` divides: into so many they cut a step. */
long amp_sharing_cut(int ranks, int subdivisions);
/* The number of subdivisions that the parser is to use instead of the .cfg's; 0: the .cfg's own. wanted: how
 * many one rank would use instead of the .cfg's, or 0. Prints a
 * line if batch norm then sees fewer images at a time than the .cfg says. Ends the program if the batch
 * cannot be divided among the ranks. */
int amp_sharing_subdivisions(const char *cfg_file, int wanted, int sync_batchnorm);

/* ---- images ---- */

/* Darknet loads a step's images in a job of several threads. The images are cut into as many parts as there
 * are threads. Each part has a stream of random numbers of its own, and the last part's images come first in
 * the step. A rank makes only those parts that hold images of its own. */

/* Called once for a job, before its threads start. */
void amp_sharing_begin_job(int images, int parts);

/* What a thread of the job is to load. The last thread always has a part, because Darknet asks it for the
 * size of the images. */
typedef struct amp_shared_part {
    int number;      /* of the part, which chooses its stream of random numbers */
    int images;      /* to load; 0: the thread loads nothing */
    int first, kept; /* of these, the ones from `first` on, `kept` of them, are this rank's. The others before
                        and after are loaded and dropped, so that the stream advances as in one rank */
} amp_shared_part;
amp_shared_part amp_sharing_part(int thread);

/* ---- a pass ---- */

/* Called before and after the forward of a training pass, when Darknet has added the pass's images to `seen`.
 * Between the two calls `seen` and the main thread's random numbers (dropout) are what they would be for this
 * subdivision in a training of one rank. After `end`, `seen` counts the images of all ranks, and after a
 * step's last pass the random number generators of all ranks are in the same state. begin returns the pass's
 * number among this rank's passes of the step, from 0; end takes it. */
int amp_sharing_begin_pass(struct network *);
void amp_sharing_end_pass(struct network *, int pass);

/* Called in the main thread after a step of -gpus, whose networks drew random numbers in threads of their
 * own: advances the main thread's generator by as many. */
void amp_sharing_end_step(const struct network *);

/* Called at a training's start. Weights that were saved by a training with another batch can have a `seen` in
 * the middle of one of this training's steps. Ranks cannot share part of a step, so `seen` is rounded
 * down. */
void amp_sharing_align(struct network *);

/* ---- numbers that ranks exchange ---- */

/* Collective: all ranks call these, in the same order. what: what the call is for, such as "saving
 * x.weights"; a time limit's message names it. An error of the communicator ends the program. */

/* The ranks' blocks of `bytes` bytes one after the other, in the order of ranks. The caller frees it. */
void *amp_sharing_gather(struct amp_comm *, const void *mine, size_t bytes);
/* Broadcast: *value becomes rank 0's. */
void amp_sharing_broadcast(void *value, size_t bytes, const char *what);
/* Each of the numbers becomes its sum over the ranks. */
void amp_sharing_sum(size_t *numbers, int count, const char *what);
/* The mean over the ranks. */
float amp_sharing_mean(float number, const char *what);
/* Returns the status of the first rank that failed, with its error; AMP_OK where none did. */
amp_status amp_sharing_outcome(amp_status mine, const char *what, amp_error *error);
/* *rows, an array from malloc of *count rows of row_bytes each, is replaced by the rows of all ranks, in the
 * order of ranks. */
void amp_sharing_join(void **rows, size_t *count, size_t row_bytes, const char *what);
