/* Folds batch norm into the weights and the bias before it, for a network that only predicts:
 *
 *     gain[k] = scale[k] / (the divisor of x - mean, by the rule, from the rolling variance)
 *     gain·(w * x - mean) + bias = (gain·w) * x + (bias - gain·mean)
 *
 * The masters do not change: only the backend's copies of the weights are made from gain·w. Compared with
 * separate batch norm, the result differs by rounding in fp32, and in half has one rounding less. */
#pragma once

#include "layer.h"

/* Sets node->folded before the node is planned: if its kind can fold, and all resulting numbers are within
 * the dtype's range (a gain reaches 10^6 where the variance is 0). Reads all weights. */
amp_status amp_fold_choose(amp_node *, amp_backend *, amp_error *);

/* Makes the folded copies of a node's weights, and its bias. */
amp_status amp_fold_load(amp_node *, amp_backend *, amp_error *);
