/* Connects networks as ranks, and divides passes among them. program/ranks.h explains ranks. */
#pragma once

#include "state.h"

/* Sets amp->comm for a network that several programs train together. */
amp_status amp_ranks_use(struct darknet_amp *, amp_error *);

/* For -gpus: turns `count` networks of this program into ranks that train together. The caller owns the
 * array, which must outlive the networks (amp->united). */
void amp_ranks_unite(struct network **nets, int count);
/* Connects a network of amp_ranks_unite with the others, and copies rank 0's weights to it. The threads of
 * all these networks call it at their first training pass. Does nothing for any other network. */
void amp_ranks_join(struct darknet_amp *);
/* Call it before a network of amp_ranks_unite is freed. */
void amp_ranks_forget(struct darknet_amp *);
/* Whether this network prints a step's messages: true for rank 0, and without ranks. */
int amp_ranks_prints_for(const struct darknet_amp *);

/* Ends the program unless all ranks have the same dtype, weights, loss scale and step (amp_ranks_agree). */
void amp_ranks_agree_to_train(struct network *);

/* ---- passes: `seen` and the random numbers are as if one rank made all passes ----
 *
 * Without ranks these functions do nothing. program/sharing.h explains how passes are divided. */

/* Call begin_pass before the forward of a training pass, after Darknet has added the pass's images to `seen`.
 * It returns the index, from 0, of the pass among this rank's passes in the step. Call end_pass with this
 * index after the forward. Between the two calls, `seen` and the main thread's random numbers (dropout) are
 * those that a training with one rank has in this subdivision. Afterwards, `seen` counts the images of all
 * ranks and, after a step's final pass, the generators of all ranks are in the same state. */
int amp_sharing_begin_pass(struct network *);
void amp_sharing_end_pass(struct network *, int pass);

/* Call it in the main thread after a step with -gpus. Advances the main thread's generator by the random
 * numbers that the networks drew in their own threads. */
void amp_sharing_end_step(const struct network *);

/* Call it when a training starts. Rounds `seen` down to whole steps, because ranks cannot share part of a
 * step. (`seen` may be in the middle of a step if the weights were saved with another batch.) */
void amp_sharing_align(struct network *);
