/* The epilogue of a layer. In a convolutional, connected or deconvolutional layer it follows the matrix
 * products, and is batch norm or a bias, then the activation. In other layers it is only the activation.
 * "Sums" are the results of the products, before the epilogue; they have the output's shape and form. */
#pragma once

#include "layer.h"

/* Batch norm, then an activation. In training it uses the batch statistics, for which amp_batchnorm_plan
 * requests memory; outside training, the rolling statistics (docs/design.md: who reads and writes them). dx
 * is the delta of x, and may be the same buffer as dy. */
void amp_batchnorm_plan(amp_node *, amp_arena *, int forward_time, int backward_time);
amp_status amp_batchnorm_forward(amp_node *, amp_call *, const amp_tensor *x, const amp_tensor *y,
                                 amp_activation, amp_error *);
amp_status amp_batchnorm_backward(amp_node *, amp_call *, const amp_tensor *x, const amp_tensor *y,
                                  const amp_tensor *dy, const amp_tensor *dx, amp_activation, amp_error *);

/* Call it after amp_layer_ops.plan. Requests memory for what the epilogue needs in backward. */
void amp_epilogue_plan(amp_node *, amp_arena *, int forward_time, int backward_time);

/* Whether the backend's convolution applies the activation, which then needs no separate pass. */
int amp_epilogue_is_fused(const amp_node *);

/* Returns where forward writes the sums: a separate buffer if amp_node_keeps_sums, else the output. */
amp_tensor amp_epilogue_sums(const amp_node *);
/* Computes the output from the sums, which contain the bias if there is no batch norm. With
 * node->leaves_norm, only marks the output as not valid: a shortcut calls amp_epilogue_add later. */
amp_status amp_epilogue_forward(amp_node *, amp_call *, amp_error *);
/* Computes y = output + add, where the output is rounded but not stored. */
amp_status amp_epilogue_add(amp_node *, amp_call *, const amp_tensor *add, const amp_tensor *y, amp_error *);
/* Whether a shortcut (y = x + add) may call amp_epilogue_add for this layer. The caller makes sure that
 * nothing else reads the output, and that the backend can do it (adds_to_batchnorm). */
int amp_epilogue_can_add(const amp_node *);
/* From the output's delta, computes the gradients of scales and biases, and *sums, the delta of the sums. */
amp_status amp_epilogue_backward(amp_node *, amp_call *, amp_tensor *sums, amp_error *);
/* Whether the delta of the sums differs from the output's delta, because of batch norm or an activation. */
int amp_epilogue_changes_delta(const amp_node *);
/* Returns where amp_epilogue_backward writes the sums' delta: over the output's delta or, with
 * node->keeps_delta, to a separate buffer. */
amp_tensor amp_epilogue_sums_delta(const amp_node *);
/* Computes dx, the delta of the activation's input, from the output's delta. dx may be the buffer of the
 * output's delta. With a linear activation it must be that buffer, and nothing is done. */
amp_status amp_epilogue_activation_backward(amp_node *, amp_call *, const amp_tensor *dx, amp_error *);

/* fold.c: if a network only predicts, batch norm is folded into the convolution's weights and bias. Call
 * amp_fold_choose before the node is planned: it sets node->folded if the kind can fold, and reads all
 * weights to check that the folded numbers are within the dtype's range (where a variance is 0, folding can
 * multiply weights by 10^6). amp_fold_load makes the folded copies. */
amp_status amp_fold_choose(amp_node *, amp_backend *, amp_error *);
amp_status amp_fold_load(amp_node *, amp_backend *, amp_error *);
