/* Activation checkpointing: which layers give up the results of their forward and recompute them in backward.
 *
 * Backward reads most of what forward computed, so a training keeps all activations at once. A layer can give
 * up its own: its forward is repeated just in time. That costs arithmetic but no accuracy, since the same
 * numbers come out: batch norm reuses its first statistics, and dropout its mask.
 *
 * There are two kinds, with very different costs. A layer with batch norm keeps its sums for backward anyway,
 * and its output follows from them by one pass over memory (AMP_RECOMPUTE_OUTPUT). To give up the sums too,
 * the matrix product must be repeated (AMP_RECOMPUTE_ALL). For that the network is cut into segments: only
 * what crosses a cut is kept, and a whole segment is repeated when backward reaches it, as
 * torch.utils.checkpoint does. */
#pragma once

#include "plan.h"

typedef struct amp_recompute_settings {
    int on;         /* 0: only layers whose section has checkpoint=1 */
    int segments;   /* number of segments the network is cut into. 1: give up only outputs after batch norm
                       and others that need no matrix product. 0: the cheapest choice with which the arena
                       fits into the budget */
    size_t budget;  /* bytes, for segments = 0 */
} amp_recompute_settings;

/* Fills chosen, an entry per layer, for amp_plan_create. If nothing fits the budget, this is the choice that
 * takes the least memory. */
amp_status amp_recompute_choose(const amp_plan_request *, const amp_recompute_settings *,
                                amp_recompute *chosen, amp_error *);

/* Operations (multiplications and additions) of one forward of the plan, and of what its backward repeats. */
typedef struct amp_recompute_cost { double forward, again; } amp_recompute_cost;

amp_recompute_cost amp_recompute_cost_of(const amp_plan *);
