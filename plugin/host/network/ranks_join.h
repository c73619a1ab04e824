/* How a network becomes a rank, and what ranks of networks do: program/ranks.h says what ranks are. */
#pragma once

#include "state.h"

/* Sets amp->comm of a network that the programs train together; it stays NULL where this program is alone. */
amp_status amp_ranks_use(struct darknet_amp *, amp_error *);

/* -gpus: makes `count` networks of this program ranks of each other. The array `nets` is the caller's, and
 * must live as long as they do: each has it as amp->united. */
void amp_ranks_unite(struct network **nets, int count);
/* Sets amp->comm of such a network. Called at its first training pass, in the thread that makes this pass,
 * while the other networks' threads do the same. For any other network it does nothing. */
void amp_ranks_join(struct darknet_amp *);
/* Called before such a network is freed. */
void amp_ranks_forget(struct darknet_amp *);
/* Whether this network prints what happens in a step: rank 0's does, and one that trains alone. */
int amp_ranks_prints_for(const struct darknet_amp *);

/* As amp_ranks_agree, for the network: what it trains in, its weights, its loss scale and its step. */
void amp_ranks_agree_to_train(struct network *);

/* ---- shared_pass.c: how `seen` and the random numbers go on as if one rank made all passes ----
 *
 * Without ranks these functions do nothing. program/sharing.h says which passes are whose. */

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
