/* Convolutional and connected layers: y = act(batchnorm(w * x)) or act(w * x + b).
 *
 * A connected layer is the convolution whose window covers its whole input: Darknet's weights
 * [outputs][c·h·w] are then OIHW as they stand, and no flattening copy is needed. */
#include "epilogue.h"

static amp_conv_desc describe(const amp_node *node, const amp_step *step)
{
    const amp_layer_desc *d = &node->desc;
    amp_shape x = node->inputs[0]->shape;
    amp_conv_desc conv = { .x = x, .k = d->filters, .size_h = d->size, .size_w = d->size, .stride = d->stride,
                           .pad = d->pad, .groups = d->groups, .dtype = node->dtype,
                           .training = step->keeps_state, .wants_dx = step->keeps_state
                           && node->inputs[0]->wants_delta, .stride_x = d->stride_x,
                           .dilation = d->dilation, .leaky = amp_epilogue_is_fused(node),
                           .direct = step->direct };
    if (d->kind == AMP_LAYER_CONNECTED) {
        conv.size_h = x.h;
        conv.size_w = x.w;
        conv.stride = conv.groups = 1;
        conv.pad = conv.stride_x = conv.dilation = 0;
    }
    return conv;
}

static amp_status plan(amp_node *node, amp_step *step, amp_arena *arena, int forward_time, int backward_time,
                       amp_error *error)
{
    amp_conv_desc conv = describe(node, step);
    AMP_TRY(amp_node_check_shape(node, amp_conv_output(&conv), "the layer before it", error));
    if (!step->outline) AMP_TRY(step->backend->conv_create(step->backend, &conv, &node->conv, error));
    return amp_epilogue_plan(node, arena, forward_time, backward_time, error);
}

static amp_status forward(amp_node *node, amp_step *step, amp_error *error)
{
    amp_backend *b = step->backend;
    const amp_layer_desc *d = &node->desc;
    amp_tensor x, sums;
    AMP_TRY(amp_value_read(step, node->inputs[0], node->form, &x, error));
    amp_value_write(node->output);
    sums = amp_epilogue_sums(node);
    const float *bias = node->folded ? node->folded_bias : d->batch_normalize ? NULL : d->biases;
    AMP_TRY(b->conv_forward(b, node->conv, x.data, bias, sums.data, error));
    return amp_epilogue_forward(node, step, error);
}

static amp_status backward(amp_node *node, amp_step *step, amp_error *error)
{
    amp_backend *b = step->backend;
    amp_tensor x, dy;
    AMP_TRY(amp_epilogue_backward(node, step, &dy, error));
    AMP_TRY(amp_value_read(step, node->inputs[0], node->form, &x, error));
    AMP_TRY(b->conv_backward_weights(b, node->conv, x.data, dy.data, node->gradients->weights, error));
    if (!node->inputs[0]->wants_delta) return AMP_OK;
    int accumulate;
    amp_tensor dx = amp_value_delta_target(node->inputs[0], node->form, &accumulate);
    return b->conv_backward_data(b, node->conv, dy.data, dx.data, accumulate, error);
}

const amp_layer_ops amp_convolutional_ops = { .plan = plan, .forward = forward, .backward = backward,
                                              .backward_reads_input = 1, .backward_reads_output = 1 };
const amp_layer_ops amp_connected_ops = { .plan = plan, .forward = forward, .backward = backward,
                                          .backward_reads_input = 1, .backward_reads_output = 1 };
