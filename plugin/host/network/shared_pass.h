/* A pass of one rank among those of others: how `seen` and the random numbers go on as if one rank made them
 * all. Without ranks these functions do nothing. program/sharing.h says which passes are whose. */
#pragma once

struct network;

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
