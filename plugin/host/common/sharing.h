/* How ranks share the images of a step, so that together they train as one rank does.
 *
 * batch= of the .cfg is the batch of a step of all ranks, and a network's counters (batch, subdivisions,
 * seen) are the training's, the same on every rank: what follows from them, as the learning rate,
 * max_batches, the number of images in a line and `seen` in a .weights file, needs no rule. Of a step's S
 * subdivisions rank r of N makes those from r·S/N up to (r+1)·S/N, and so it loads their images alone. Where
 * N does not divide S, the step is cut into more of them.
 *
 * Alone, all of this does nothing. */
#pragma once

#include <stddef.h>

#include "../../tensor/status.h"

struct network;
struct amp_comm;

/* Into how many subdivisions so many ranks cut a step: of the .cfg's images a subdivision, each gets
 * subdivisions / cut. */
long amp_sharing_cut(int ranks, int subdivisions);
/* For a .cfg that is about to be parsed: into how many subdivisions the ranks cut a step, with a line if
 * batch norm then sees other numbers of images than the .cfg says; 0: it stays as it is. Ends the program
 * where no number will do. */
int amp_sharing_subdivisions(const char *cfg_file, int sync_batchnorm);

/* ---- images ---- */

/* A loading job cuts `images` into as many parts as it has threads; each draws from a stream of its own, and
 * the last one's images come first in the step. begin: for the job as a whole. part: what a thread of it
 * loads for this rank: the number of a part and how many images that has (0: nothing); of these, those from
 * `first`, `kept` of them, are this rank's. Where they are not all, the others are loaded nevertheless: the
 * stream goes on behind them. The last thread always has a part, since Darknet asks it for the size of
 * images. */
void amp_sharing_begin_job(int images, int parts);
typedef struct amp_shared_part { int number, images, first, kept; } amp_shared_part;
amp_shared_part amp_sharing_part(int thread);

/* ---- a pass ---- */

/* Around the forward of a training pass, before which Darknet has counted its images. Between the two `seen`
 * is what it would be in one rank's pass, and so are the main thread's random numbers (dropout); behind them
 * the images of all ranks are counted, and after the last pass of a step the generators of all ranks agree
 * again. begin returns the pass's number among this rank's of the step, from 0, which end takes. */
int amp_sharing_begin_pass(struct network *);
void amp_sharing_end_pass(struct network *, int pass);

/* A step was made, in threads of this program's networks if it has several: the main thread's generator goes
 * on behind what they drew. In the main thread. */
void amp_sharing_end_step(const struct network *);

/* For a training's start: weights that were saved by a training with another batch may have been seen in the
 * middle of a step of this one, which ranks cannot share: the step begins anew. */
void amp_sharing_align(struct network *);

/* ---- what ranks tell each other ---- */

/* All ranks call these, in the same order, with the same `what` they do it for ("saving x.weights"), which a
 * message may name. */

/* What each rank has at `mine`, in their order: the caller's. */
void *amp_sharing_gather(struct amp_comm *, const void *mine, size_t bytes);
/* *value becomes rank 0's, for which the others wait. */
void amp_sharing_tell(void *value, size_t bytes, const char *what);
void amp_sharing_sum(size_t *numbers, int count, const char *what);
/* The mean. */
float amp_sharing_mean(float number, const char *what);
/* The status and the error of the first rank that failed, if any did. */
amp_status amp_sharing_outcome(amp_status mine, const char *what, amp_error *error);
/* *rows, malloc'ed, *count of them of row_bytes: becomes the rows of all ranks, in the order of ranks. */
void amp_sharing_join(void **rows, size_t *count, size_t row_bytes, const char *what);
