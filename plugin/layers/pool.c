/* Max pooling and global average pooling. */
#include "layer.h"

static amp_status maxpool_plan(amp_node *node, amp_step *step, amp_arena *arena, int forward_time,
                               int backward_time, amp_error *error)
{
    (void)step;
    if (node->desc.size < 1 || node->desc.size > 15)
        return amp_fail(error, AMP_UNSUPPORTED, "layer %d [maxpool]: size = %d; AMP runs sizes 1 to 15; "
                        "set amp=off to train it in stock fp32",
                        node->index, node->desc.size);
    return amp_arena_keep_bytes(arena, amp_shape_count(node->output->shape), forward_time, backward_time,
                                (void **)&node->bytes, error);
}

static amp_status maxpool_forward(amp_node *node, amp_step *step, amp_error *error)
{
    amp_tensor x, y;
    AMP_TRY(amp_value_read(step, node->inputs[0], node->form, &x, error));
    y = amp_value_write(node->output);
    return step->backend->maxpool_forward(step->backend, &x, &y, node->bytes, node->desc.size,
                                          node->desc.stride, node->desc.pad, error);
}

static amp_status maxpool_backward(amp_node *node, amp_step *step, amp_error *error)
{
    if (!node->inputs[0]->wants_delta) return AMP_OK;
    amp_tensor dy = amp_value_delta(node->output, node->form);
    int accumulate;
    amp_tensor dx = amp_value_delta_target(node->inputs[0], node->form, &accumulate);
    return step->backend->maxpool_backward(step->backend, &dy, node->bytes, &dx, node->desc.size,
                                           node->desc.stride, node->desc.pad, accumulate, error);
}

static amp_status avgpool_forward(amp_node *node, amp_step *step, amp_error *error)
{
    amp_tensor x, y;
    AMP_TRY(amp_value_read(step, node->inputs[0], node->form, &x, error));
    y = amp_value_write(node->output);
    return step->backend->avgpool_forward(step->backend, &x, &y, error);
}

static amp_status avgpool_backward(amp_node *node, amp_step *step, amp_error *error)
{
    if (!node->inputs[0]->wants_delta) return AMP_OK;
    amp_tensor dy = amp_value_delta(node->output, node->form);
    int accumulate;
    amp_tensor dx = amp_value_delta_target(node->inputs[0], node->form, &accumulate);
    return step->backend->avgpool_backward(step->backend, &dy, &dx, accumulate, error);
}

const amp_layer_ops amp_maxpool_ops = { .plan = maxpool_plan, .forward = maxpool_forward,
                                        .backward = maxpool_backward, };
const amp_layer_ops amp_avgpool_ops = { .forward = avgpool_forward, .backward = avgpool_backward };
