/* What follows the matrix products of a convolutional, connected or deconvolutional layer: batch norm or a
 * bias, and the activation; behind other layers the activation alone. The sums, before any of that, have the
 * output's shape and form. */
#pragma once

#include "layer.h"

/* Where the statistics of batch norm lie, and who writes them (norm_of in epilogue.c):
 *   node->mean, variance: of the batch, in the arena. A training's forward writes them, backward reads them,
 *     and a forward that is repeated (call->again) normalizes by them.
 *   desc.rolling_mean, rolling_variance: the host's, which .weights files hold. The same forward moves them;
 *     a prediction normalizes by them. After a skipped step amp/parameters.c puts them back.
 * Those of batch norm inside the host's own layers are moved by its code. */

/* A layer's batch norm with an activation behind it. plan requests memory for its batch statistics. In
 * training those count, otherwise the rolling ones. backward: dx is x's delta; it may be dy. */
void amp_batchnorm_plan(amp_node *, amp_arena *, int forward_time, int backward_time);
amp_status amp_batchnorm_forward(amp_node *, amp_call *, const amp_tensor *x, const amp_tensor *y,
                                 amp_activation, amp_error *);
amp_status amp_batchnorm_backward(amp_node *, amp_call *, const amp_tensor *x, const amp_tensor *y,
                                  const amp_tensor *dy, const amp_tensor *dx, amp_activation, amp_error *);

/* After amp_layer_ops.plan: room for what batch norm keeps, or an activation whose gradient wants its
 * input. */
void amp_epilogue_plan(amp_node *, amp_arena *, int forward_time, int backward_time);

/* Whether the backend's convolution ends with the activation, so that there is no pass of its own for it. */
int amp_epilogue_is_fused(const amp_node *);

/* Where forward's products go: into the output, or, where they must be kept for backward, beside it. */
amp_tensor amp_epilogue_sums(const amp_node *);
/* The sums, with their bias if there is no batch norm, become the output: or wait for amp_epilogue_add, where
 * leaves_norm. */
amp_status amp_epilogue_forward(amp_node *, amp_call *, amp_error *);
/* The output, rounded, plus `add` goes to y. */
amp_status amp_epilogue_add(amp_node *, amp_call *, const amp_tensor *add, const amp_tensor *y, amp_error *);
/* Whether a shortcut (y = x + add) may do so for this layer, on a backend that can: if nobody else reads the
 * output. */
int amp_epilogue_can_add(const amp_node *);
/* Makes the delta of the sums, *sums, of the output's, with gradients of scales and biases. */
amp_status amp_epilogue_backward(amp_node *, amp_call *, amp_tensor *sums, amp_error *);
/* Whether the layer's backward does so, with batch norm or an activation. */
int amp_epilogue_changes_delta(const amp_node *);
/* Where: in place of the output's, unless the node keeps that one. */
amp_tensor amp_epilogue_sums_delta(const amp_node *);
/* The output's delta becomes that of the activation's input, in place. */
amp_status amp_epilogue_activation_backward(amp_node *, amp_call *, amp_error *);
