/* Whether a training fits into the available memory: asked before anything large is allocated. needs.h adds
 * up what it takes. */
#pragma once

#include "needs.h"

/* The most images per pass, up to `most`, with which a training takes at most `there` bytes; -1 if that is 0,
 * unknown. By planning: memory grows with the batch. stock: in stock Darknet. */
amp_status amp_host_largest_pass(const amp_training *, size_t there, int most, int stock, int *largest,
                                 amp_error *);

/* Compares the memory that a training of the network takes at its largest input size with the free memory.
 * Too little: AMP_NO_MEMORY, and the error gives both numbers and the fewest subdivisions that would fit.
 * Barely enough: a warning on stderr.
 *
 * It is called twice. First with roughly=1, before the backend allocates anything, because libraries crash
 * when an allocation fails: what only a library knows (workspaces, layouts of weights) is then estimated or
 * left out, and so are activations with checkpoint=auto, which is decided later. Then with roughly=0,
 * exactly; the remaining memory is offered to the cache of decoded images (cache=ram). */
amp_status amp_host_check_fits(struct network *, int roughly, amp_error *);

/* Tells the engine which layers backward recomputes, by checkpoint= and memory= of [amp]. checkpoint=auto
 * takes the cheapest choice with which a training of this network fits into memory=, or into the free memory.
 * The engine drops its existing plans. */
amp_status amp_host_choose_recompute(struct network *, amp_error *);

/* ---- -fit of `detector train` and `classifier train` ----
 *
 * The training runs with the subdivisions and the activation checkpointing with which it fits into memory and
 * is fastest by the planner's estimate. The batch of a step does not change, nor do any results, except those
 * of batch norm, whose statistics are of the images of one pass. */

/* Called before Darknet reads the .cfg of a training; does nothing without -fit. Ends the program if nothing
 * can fit. */
void amp_fitting_choose(const char *cfg_file);
