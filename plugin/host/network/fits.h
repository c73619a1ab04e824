/* Checks whether a training fits into the available memory, before anything large is allocated. needs.h
 * computes how much memory the training takes. */
#pragma once

#include "needs.h"

/* Sets *largest to the largest number of images per pass, up to `most`, with which a training takes at most
 * `there` bytes. Finds this number by bisection, since memory grows with the batch. Under AMP, each step of
 * the bisection makes an outline. Sets *largest to -1 if `there` is 0 (unknown). stock=1: for stock Darknet
 * instead of AMP. */
amp_status amp_host_largest_pass(const amp_training *, size_t there, int most, int stock, int *largest,
                                 amp_error *);

/* Compares the free memory with the memory that a training of the network takes at its largest input size.
 * AMP_NO_MEMORY: there is too little; the error gives both numbers and the smallest number of subdivisions
 * that would fit. If there is barely enough, prints a warning on stderr.
 *
 * A training calls this function twice. The first call, with roughly=1, comes before the backend allocates
 * anything, because libraries crash when an allocation fails. It estimates or leaves out the amounts that
 * only a library knows (workspaces, layouts of weights). With checkpoint=auto it also leaves out activations,
 * because checkpointing is decided later. The second call, with roughly=0, is exact: on a CPU it measures the
 * engine's plan for a training pass, after amp_host_prepare has built this plan. The second call also
 * offers the remaining memory to the cache of decoded images (cache=ram). */
amp_status amp_host_check_fits(struct network *, int roughly, amp_error *);

/* Sets the engine's recompute settings according to checkpoint= and memory= of [amp]. With checkpoint=auto,
 * backward will recompute as little as possible so that a training of this network fits into memory= or, if
 * memory= is not set, into the free memory. checkpoint=auto also frees the engine's existing plans. */
amp_status amp_host_choose_recompute(struct network *, amp_error *);

/* ---- -fit of `detector train` and `classifier train` ----
 *
 * Chooses subdivisions and activation checkpointing so that the training fits into memory and is fastest by
 * the planner's estimate. The batch of a step stays the same. So do the results, except that batch norm
 * computes its statistics over the images of one pass. */

/* Call it before Darknet reads the .cfg of a training. Does nothing without -fit. Ends the program if no
 * choice fits. */
void amp_fitting_choose(const char *cfg_file);
