/* What follows the matrix products of a convolutional, connected or deconvolutional layer: batch norm or a
 * bias, then the activation; after other layers only the activation. "Sums" are the results of the products,
 * before the epilogue; they have the output's shape and form. */
#pragma once

#include "layer.h"

/* A layer's batch norm, followed by an activation. plan requests memory for the batch statistics, which are
 * used in training; otherwise the rolling ones are (docs/design.md has a table of what reads and writes
 * them). backward: dx is x's delta; it may be dy. */
void amp_batchnorm_plan(amp_node *, amp_arena *, int forward_time, int backward_time);
amp_status amp_batchnorm_forward(amp_node *, amp_call *, const amp_tensor *x, const amp_tensor *y,
                                 amp_activation, amp_error *);
amp_status amp_batchnorm_backward(amp_node *, amp_call *, const amp_tensor *x, const amp_tensor *y,
                                  const amp_tensor *dy, const amp_tensor *dx, amp_activation, amp_error *);

/* Call after amp_layer_ops.plan: requests memory for what batch norm keeps, or for the input of an activation
 * whose gradient needs it. */
void amp_epilogue_plan(amp_node *, amp_arena *, int forward_time, int backward_time);

/* Whether the backend's convolution applies the activation, so that it needs no pass of its own. */
int amp_epilogue_is_fused(const amp_node *);

/* Where forward writes its products: into the output, or, if backward needs them, into a separate buffer. */
amp_tensor amp_epilogue_sums(const amp_node *);
/* Turns the sums (with their bias, if there is no batch norm) into the output. If the node leaves_norm,
 * amp_epilogue_add does it later. */
amp_status amp_epilogue_forward(amp_node *, amp_call *, amp_error *);
/* y = output, rounded, + add. */
amp_status amp_epilogue_add(amp_node *, amp_call *, const amp_tensor *add, const amp_tensor *y, amp_error *);
/* Whether a shortcut (y = x + add) may call amp_epilogue_add for this layer, if the backend supports it: only
 * if nothing else reads the output. */
int amp_epilogue_can_add(const amp_node *);
/* Computes *sums, the delta of the sums, from the output's delta, and the gradients of scales and biases. */
amp_status amp_epilogue_backward(amp_node *, amp_call *, amp_tensor *sums, amp_error *);
/* Whether amp_epilogue_backward changes the delta, because of batch norm or an activation. */
int amp_epilogue_changes_delta(const amp_node *);
/* The tensor that amp_epilogue_backward writes *sums to: the output's delta, which it overwrites, unless the
 * node keeps that delta. */
amp_tensor amp_epilogue_sums_delta(const amp_node *);
/* Computes dx, the delta of the activation's input, from the output's delta. dx may be that delta itself; if
 * the activation is linear, it must be. */
amp_status amp_epilogue_activation_backward(amp_node *, amp_call *, const amp_tensor *dx, amp_error *);

/* fold.c: batch norm is folded into the weights and the bias before it, if a network only predicts. choose,
 * before the node is planned, sets node->folded if its kind can fold, and all resulting numbers are within
 * the dtype's range (a gain reaches 10^6 where the variance is 0). It reads all weights. load makes the
 * folded copies of the weights, and the bias. */
amp_status amp_fold_choose(amp_node *, amp_backend *, amp_error *);
amp_status amp_fold_load(amp_node *, amp_backend *, amp_error *);
