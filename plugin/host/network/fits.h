/* Checks whether a training fits into the available memory, before anything large is allocated. needs.h adds
 * up the memory that a training takes. */
#pragma once

#include "needs.h"

/* Sets *largest to the largest number of images per pass, up to `most`, with which a training takes at most
 * `there` bytes; to -1 if `there` is 0 (unknown). Found by bisection over outlines, since memory
 * grows with the batch. stock: for stock Darknet instead of AMP. */
amp_status amp_host_largest_pass(const amp_training *, size_t there, int most, int stock, int *largest,
                                 amp_error *);

/* Compares the memory that a training of the network takes at its largest input size with the free memory.
 * AMP_NO_MEMORY: there is too little; the error gives both numbers and the smallest number of subdivisions
 * that would fit. If there is barely enough, prints a warning on stderr.
 *
 * A training calls this function twice. The first call has roughly=1 and comes before the backend allocates
 * anything, because libraries crash when an allocation fails. What only a library knows (workspaces, layouts
 * of weights) is then estimated or left out. Activations are also left out with checkpoint=auto, which is
 * decided later. The second call has roughly=0 and is exact. It offers the remaining memory to the cache of
 * decoded images (cache=ram). */
amp_status amp_host_check_fits(struct network *, int roughly, amp_error *);

/* Sets in the engine which layers backward recomputes, according to checkpoint= and memory= of [amp].
 * checkpoint=auto takes the cheapest choice with which a training of this network fits into memory= or, if
 * that is not set, into the free memory. The engine then drops its existing plans. */
amp_status amp_host_choose_recompute(struct network *, amp_error *);

/* ---- -fit of `detector train` and `classifier train` ----
 *
 * Chooses subdivisions and activation checkpointing so that the training fits into memory and is fastest by
 * the planner's estimate. The batch of a step does not change. Nor do any results, except through batch norm,
 * whose statistics are those of the images of one pass. */

/* Called before Darknet reads the .cfg of a training; does nothing without -fit. Ends the program if nothing
 * can fit. */
void amp_fitting_choose(const char *cfg_file);
