/* Connects networks as ranks, and divides passes among them. program/ranks.h explains ranks. */
#pragma once

#include "state.h"

/* For a network that several programs train together: sets amp->comm. If this program trains alone, amp->comm
 * stays NULL. */
amp_status amp_ranks_use(struct darknet_amp *, amp_error *);

/* For -gpus: makes `count` networks of this program ranks that train together. The caller owns the array
 * `nets`. The array must outlive the networks, because amp->united of each network points to it. */
void amp_ranks_unite(struct network **nets, int count);
/* For a network of amp_ranks_unite: connects it with the others, and copies rank 0's weights to it. Called at
 * the network's first training pass, in the thread of that pass, while the other networks' threads do the
 * same. Does nothing for any other network. */
void amp_ranks_join(struct darknet_amp *);
/* Call it before a network of amp_ranks_unite is freed. */
void amp_ranks_forget(struct darknet_amp *);
/* Whether this network prints a step's messages: true for rank 0, and without ranks. */
int amp_ranks_prints_for(const struct darknet_amp *);

/* Checks that the network has the same settings, weights, loss scale and step on all ranks (amp_ranks_agree).
 * If not, ends the program. */
void amp_ranks_agree_to_train(struct network *);

/* ---- passes: `seen` and the random numbers are as if one rank made all passes ----
 *
 * Without ranks these functions do nothing. program/sharing.h explains how passes are divided. */

/* Call amp_sharing_begin_pass before the forward of a training pass, but after Darknet has added the pass's
 * images to `seen`. Call amp_sharing_end_pass after the forward. Between the two calls, `seen` and the main
 * thread's random numbers (dropout) have the values that they would have for this subdivision in a training
 * with one rank. After the second call, `seen` counts the images of all ranks. After a step's last pass, the
 * random number generators of all ranks are in the same state. amp_sharing_begin_pass returns the number of
 * the pass within this rank's passes of the step, from 0. The caller passes this number to
 * amp_sharing_end_pass. */
int amp_sharing_begin_pass(struct network *);
void amp_sharing_end_pass(struct network *, int pass);

/* Call it in the main thread after a step with -gpus. During the step, the networks drew random numbers in
 * their own threads. Advances the main thread's generator by as many numbers as all of them drew together. */
void amp_sharing_end_step(const struct network *);

/* Call it when a training starts. If the weights were saved with another batch, `seen` may be in the middle
 * of one of this training's steps. Ranks cannot share part of a step, so this function rounds `seen` down to
 * a whole number of steps. */
void amp_sharing_align(struct network *);
