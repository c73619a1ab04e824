/* Max pooling and global average pooling. */
#include "layer.h"

static amp_status maxpool_plan(amp_node *node, amp_call *call, amp_arena *arena, int forward_time,
                               int backward_time, amp_error *error)
{
    if (node->desc.maxpool.size < 1 || node->desc.maxpool.size > 15)
        return amp_fail(error, AMP_UNSUPPORTED, "layer %d [maxpool]: size = %d; AMP runs sizes 1 to 15; "
                        "set amp=off to train it in stock fp32",
                        node->index, node->desc.maxpool.size);
    amp_arena_keep_bytes(arena, amp_shape_count(node->output->shape), forward_time, backward_time,
                         &node->kept);
    return AMP_OK;
}

static amp_status maxpool_forward(amp_node *node, amp_call *call, amp_error *error)
{
    amp_tensor x, y;
    AMP_TRY(amp_value_read(call, node->inputs[0], node->form, &x, error));
    y = amp_value_write(node->output);
    return call->backend->maxpool_forward(call->backend, &x, &y, node->kept, node->desc.maxpool.size,
                                          node->desc.maxpool.stride, node->desc.maxpool.pad, error);
}

static amp_status maxpool_backward(amp_node *node, amp_call *call, amp_error *error)
{
    if (!node->inputs[0]->wants_delta) return AMP_OK;
    amp_tensor dy = amp_value_delta(node->output, node->form);
    int accumulate;
    amp_tensor dx = amp_value_delta_target(node->inputs[0], node->form, &accumulate);
    return call->backend->maxpool_backward(call->backend, &dy, node->kept, &dx, node->desc.maxpool.size,
                                           node->desc.maxpool.stride, node->desc.maxpool.pad, accumulate,
                                           error);
}

static amp_status avgpool_forward(amp_node *node, amp_call *call, amp_error *error)
{
    amp_tensor x, y;
    AMP_TRY(amp_value_read(call, node->inputs[0], node->form, &x, error));
    y = amp_value_write(node->output);
    return call->backend->avgpool_forward(call->backend, &x, &y, error);
}

static amp_status avgpool_backward(amp_node *node, amp_call *call, amp_error *error)
{
    if (!node->inputs[0]->wants_delta) return AMP_OK;
    amp_tensor dy = amp_value_delta(node->output, node->form);
    int accumulate;
    amp_tensor dx = amp_value_delta_target(node->inputs[0], node->form, &accumulate);
    return call->backend->avgpool_backward(call->backend, &dy, &dx, accumulate, error);
}

const amp_layer_ops amp_maxpool_ops = { .class = AMP_CLASS_FOLLOWS, .plan = maxpool_plan,
                                        .forward = maxpool_forward, .backward = maxpool_backward,
                                        .repeats = AMP_RECOMPUTE_ALL, .chooses = 1 };
const amp_layer_ops amp_avgpool_ops = { .class = AMP_CLASS_FOLLOWS, .forward = avgpool_forward,
                                        .backward = avgpool_backward };
