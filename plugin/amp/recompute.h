/* Activation checkpointing: chooses layers that discard the results of their forward and recompute them in
 * backward.
 *
 * Backward reads most of what forward computed, so a training normally keeps all activations at once. A layer
 * can instead repeat its forward just before backward needs it. This costs arithmetic but no accuracy: batch
 * norm reuses the statistics of the first forward, and dropout its mask.
 *
 * A layer with batch norm keeps the sums of its matrix product for backward anyway, and can recompute its
 * output from them in one pass over memory (AMP_RECOMPUTE_OUTPUT). Without the sums, the matrix product must
 * be repeated (AMP_RECOMPUTE_ALL). For this the network is cut into segments, as in torch.utils.checkpoint:
 * only what crosses a cut is kept, and a segment is repeated when backward reaches it. */
#pragma once

#include "plan.h"

typedef struct amp_recompute_settings {
    int on;         /* 0: recompute only layers whose section has checkpoint=1 */
    int segments;   /* number of segments into which the network is cut. 1: recompute only what needs no
                       matrix product. 0: the cheapest choice with which the arena fits into the budget */
    size_t budget;  /* upper limit of the arena, in bytes; used only if `segments` is 0 */
} amp_recompute_settings;

/* Fills `chosen`, one entry per layer, for amp_plan_create. If no choice fits into the budget, uses the
 * choice that needs the least memory. */
amp_status amp_recompute_choose(const amp_plan_request *, const amp_recompute_settings *,
                                amp_recompute *chosen, amp_error *);

/* The operations (multiplications and additions) of one forward, and of what its backward repeats. */
typedef struct amp_recompute_cost { double forward, again; } amp_recompute_cost;

amp_recompute_cost amp_recompute_cost_of(const amp_plan *);
