/* Activation checkpointing: which layers give up what their forward made, and make it again in backward.
 *
 * Backward reads most of what forward has computed, so a training's activations all live at once. Those of a
 * layer need not: its forward can be repeated in time. That costs arithmetic and no accuracy, since the same
 * numbers come out; batch norm takes the statistics of the first time, and dropout its mask.
 *
 * Two kinds of saving differ much in price. A layer with batch norm keeps its sums for backward anyway,
 * from which its output follows by one pass over memory (AMP_RECOMPUTE_OUTPUT). To give up the sums too,
 * the matrix product is repeated (AMP_RECOMPUTE_ALL). Then the network is cut into segments: only what
 * crosses a cut is kept, and a segment is repeated as a whole when backward comes to it, as
 * torch.utils.checkpoint does. */
#pragma once

#include "plan.h"

typedef struct amp_recompute_settings {
    int on;         /* else only layers whose section has checkpoint=1 */
    int segments;   /* how many the network is cut into; 1: only outputs behind batch norm are given up, and
                       others that cost no product; 0: whatever costs least of what makes the arena fit into
                       the budget */
    size_t budget;  /* bytes, for segments = 0 */
} amp_recompute_settings;

/* Fills chosen, an entry a layer, for amp_plan_create. Whatever the budget is, something is chosen: at worst
 * what takes the least memory. */
amp_status amp_recompute_choose(const amp_network_desc *, const amp_plan_key *, amp_dtype low,
                                const amp_gradients *, amp_call *, const amp_recompute_settings *,
                                amp_recompute *chosen, amp_error *);

/* Multiplications and additions of one forward of the plan, and of those that its backward repeats. */
typedef struct amp_recompute_cost { double forward, again; } amp_recompute_cost;

amp_recompute_cost amp_recompute_cost_of(const amp_plan *);
