/* Batch norm folded into the weights and the bias in front of it, for a network that is only predicted with:
 *
 *     gain[k] = scale[k] / what x - mean is divided by    (the rule's; of the rolling variance)
 *     gain·(w * x - mean) + bias = (gain·w) * x + (bias - gain·mean)
 *
 * The masters stay as they are: only the backend's copies of the weights are made of gain·w. In fp32 that
 * differs from batch norm of its own by rounding, in half by one rounding less. */
#pragma once

#include "layer.h"

/* Sets node->folded, before the node is planned: where its kind can, and unless a number that comes of it
 * lies outside of the dtype's range (a gain is as large as 10^6 where the variance is 0). Reads all
 * weights. */
amp_status amp_fold_choose(amp_node *, amp_backend *, amp_error *);

/* Makes the copies of a folded node's weights, and its bias. */
amp_status amp_fold_load(amp_node *, amp_backend *, amp_error *);
