/* Turns networks into ranks, and divides passes among them. program/ranks.h explains ranks. */
#pragma once

#include "state.h"

/* Sets amp->comm of a network that several programs train together. It stays NULL if this program trains
 * alone. */
amp_status amp_ranks_use(struct darknet_amp *, amp_error *);

/* For -gpus: makes `count` networks of this program ranks that train together. The caller owns the array
 * `nets`. It must live as long as the networks, because each refers to the array as amp->united. */
void amp_ranks_unite(struct network **nets, int count);
/* Joins one of these networks to the others, and copies rank 0's weights to it. Called at its first training
 * pass, in the thread of that pass, while the other networks' threads do the same. Does nothing for any other
 * network. */
void amp_ranks_join(struct darknet_amp *);
/* Called before one of these networks is freed. */
void amp_ranks_forget(struct darknet_amp *);
/* Whether this network prints a step's messages: true for rank 0, and without ranks. */
int amp_ranks_prints_for(const struct darknet_amp *);

/* Checks that the network has the same settings, weights, loss scale and step on all ranks (amp_ranks_agree).
 * Ends the program if not. */
void amp_ranks_agree_to_train(struct network *);

/* ---- passes: `seen` and the random numbers are the same as if one rank made all passes ----
 *
 * Without ranks these functions do nothing. program/sharing.h explains how passes are divided. */

/* Called before and after the forward of a training pass, after Darknet has added the pass's images to
 * `seen`. Between the two calls `seen` and the main thread's random numbers (dropout) are the same as for
 * this subdivision in a training with one rank. After `end`, `seen` counts the images of all ranks, and after
 * a step's last pass the random number generators of all ranks are in the same state. `begin` returns the
 * pass's number among this rank's passes of the step, from 0, which `end` takes as its argument. */
int amp_sharing_begin_pass(struct network *);
void amp_sharing_end_pass(struct network *, int pass);

/* Called in the main thread after a step with -gpus, in which the networks drew random numbers in their own
 * threads. Advances the main thread's generator by as many numbers. */
void amp_sharing_end_step(const struct network *);

/* Called when a training starts. Weights saved with another batch can have a `seen` in the middle of one of
 * this training's steps. Ranks cannot share part of a step, so `seen` is rounded down. */
void amp_sharing_align(struct network *);
