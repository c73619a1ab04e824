/* The [upsample] layer: nearest neighbour, times scale. With a negative stride it is a host layer. */
#include "layer.h"

static amp_status forward(amp_node *node, amp_call *call, amp_error *error)
{
    amp_tensor x, y;
    AMP_TRY(amp_value_read(call, node->inputs[0], node->form, &x, error));
    y = amp_value_write(node->output);
    return call->backend->upsample_forward(call->backend, &x, &y, node->desc.upsample.stride,
                                           node->desc.upsample.scale, error);
}

static amp_status backward(amp_node *node, amp_call *call, amp_error *error)
{
    if (!node->inputs[0]->wants_delta) return AMP_OK;
    amp_tensor dy = amp_value_delta(node->output, node->form);
    int accumulate;
    amp_tensor dx = amp_value_delta_target(node->inputs[0], node->form, &accumulate);
    return call->backend->upsample_backward(call->backend, &dy, &dx, node->desc.upsample.stride,
                                            node->desc.upsample.scale, accumulate, error);
}

const amp_layer_ops amp_upsample_ops = { .class = AMP_CLASS_FOLLOWS, .forward = forward,
                                         .backward = backward, .repeats = AMP_RECOMPUTE_ALL };
