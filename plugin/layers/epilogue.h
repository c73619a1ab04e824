/* The epilogue of a layer. In a convolutional, connected or deconvolutional layer it follows the matrix
 * products, and is batch norm or a bias, then the activation. In other layers it is only the activation.
 * "Sums" are the results of the products, before the epilogue; they have the output's shape and form. */
#pragma once

#include "layer.h"

/* A layer's batch norm, followed by an activation. amp_batchnorm_plan requests memory for the batch
 * statistics, which are used in training. Outside of training the rolling statistics are used. docs/design.md
 * has a table of the code that reads and writes both kinds of statistics. backward: dx is the delta of x, and
 * may be the same buffer as dy. */
void amp_batchnorm_plan(amp_node *, amp_arena *, int forward_time, int backward_time);
amp_status amp_batchnorm_forward(amp_node *, amp_call *, const amp_tensor *x, const amp_tensor *y,
                                 amp_activation, amp_error *);
amp_status amp_batchnorm_backward(amp_node *, amp_call *, const amp_tensor *x, const amp_tensor *y,
                                  const amp_tensor *dy, const amp_tensor *dx, amp_activation, amp_error *);

/* Call it after amp_layer_ops.plan. Requests memory for the values that batch norm keeps for backward, or for
 * the activation's input if the activation's gradient needs it. */
void amp_epilogue_plan(amp_node *, amp_arena *, int forward_time, int backward_time);

/* Whether the backend's convolution applies the activation, which then needs no separate pass. */
int amp_epilogue_is_fused(const amp_node *);

/* Returns where forward writes the sums: a separate buffer if amp_node_keeps_sums, otherwise the output. */
amp_tensor amp_epilogue_sums(const amp_node *);
/* Computes the output from the sums. If there is no batch norm, the sums already contain the bias. If
 * node->leaves_norm is set, only marks the output as not valid: a shortcut calls amp_epilogue_add later. */
amp_status amp_epilogue_forward(amp_node *, amp_call *, amp_error *);
/* Computes y = output + add. The output is computed from the node's sums and rounded before the addition, but
 * not stored. */
amp_status amp_epilogue_add(amp_node *, amp_call *, const amp_tensor *add, const amp_tensor *y, amp_error *);
/* Whether a shortcut (y = x + add) may call amp_epilogue_add for this layer. The caller must make sure that
 * nothing else reads the output, and that the backend supports the addition (adds_to_batchnorm). */
int amp_epilogue_can_add(const amp_node *);
/* Computes the gradients of scales and biases, and the delta of the sums, from the output's delta. *sums:
 * receives the tensor with the delta of the sums. */
amp_status amp_epilogue_backward(amp_node *, amp_call *, amp_tensor *sums, amp_error *);
/* Whether the delta of the sums differs from the output's delta, because of batch norm or an activation. */
int amp_epilogue_changes_delta(const amp_node *);
/* The tensor to which amp_epilogue_backward writes the delta of the sums. If node->keeps_delta is set, it is
 * a separate buffer; otherwise it is the output's delta, which is overwritten. */
amp_tensor amp_epilogue_sums_delta(const amp_node *);
/* Computes dx, the delta of the activation's input, from the output's delta. dx may be the buffer of the
 * output's delta itself (in place). With a linear activation, dx must be that buffer, because this function
 * then does nothing. */
amp_status amp_epilogue_activation_backward(amp_node *, amp_call *, const amp_tensor *dx, amp_error *);

/* fold.c: if a network only predicts, batch norm is folded into the weights and bias of the layer's
 * convolution. Call amp_fold_choose before the node is planned. It sets node->folded if the kind can fold
 * and all folded numbers are within the dtype's range. To check the range, it reads all weights: where a
 * variance is 0, folding can multiply weights by 10^6, and the products may exceed fp16's range.
 * amp_fold_load makes the folded copies of the weights, and the folded bias. */
amp_status amp_fold_choose(amp_node *, amp_backend *, amp_error *);
amp_status amp_fold_load(amp_node *, amp_backend *, amp_error *);
