/* Checks whether a training fits into the available memory, before anything large is allocated. needs.h
 * computes how much memory the training takes. */
#pragma once

#include "needs.h"

/* What a message says if not even one image per pass fits. */
#define AMP_NOTHING_FITS "no number of subdivisions is enough: use a smaller width and height, a smaller " \
                         "batch, random=0, or checkpoint=auto in [amp] (if not set)"

/* Sets *largest to the largest number of images per pass, up to `most`, with which a training takes at most
 * `there` bytes; -1 if `there` is 0 (unknown). Under AMP, each step of the bisection makes an outline.
 * stock=1: for stock Darknet. */
amp_status amp_host_largest_pass(const amp_training *, size_t there, int most, int stock, int *largest,
                                 amp_error *);

/* Checks that a training of the network, at its largest input size, fits into the free memory. AMP_NO_MEMORY:
 * it does not; the error names the smallest number of subdivisions that would fit. If it barely fits, warns
 * on stderr.
 *
 * A training calls it twice. The first call, with roughly=1, comes before the backend allocates anything,
 * because libraries crash when an allocation fails. It estimates or leaves out what only a library knows
 * (workspaces, layouts of weights) and, with checkpoint=auto, the activations. The second call, with
 * roughly=0, measures the engine's plan for a training pass (on a CPU), and offers the remaining memory to
 * the cache of decoded images (cache=ram). */
amp_status amp_host_check_fits(struct network *, int roughly, amp_error *);

/* Sets the engine's recompute settings from checkpoint= and memory= of [amp]. With checkpoint=auto, backward
 * then recomputes only as much as a training needs to fit into memory= or, if that is not set, into the free
 * memory; making this choice frees the engine's plans. */
amp_status amp_host_choose_recompute(struct network *, amp_error *);

/* ---- -fit of `detector train` and `classifier train` ----
 *
 * Chooses subdivisions and activation checkpointing so that the training fits into memory and is fastest by
 * the planner's estimate. The results stay the same, except that batch norm computes its statistics over the
 * images of one pass. */

/* Call it before Darknet reads the .cfg of a training. Does nothing without -fit. Ends the program if no
 * choice fits. */
void amp_fitting_choose(const char *cfg_file);
