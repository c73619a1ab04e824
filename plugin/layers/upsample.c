/* The [upsample] layer: nearest neighbour, times `scale`. With a negative stride it is a host layer. */
#include "layer.h"

static amp_status map(amp_node *node, amp_call *call, const amp_tensor *x, const amp_tensor *y,
                      amp_error *error)
{
    return call->backend->upsample_forward(call->backend, x, y, node->desc.upsample.stride,
                                           node->desc.upsample.scale, error);
}

static amp_status map_delta(amp_node *node, amp_call *call, const amp_tensor *dy, const amp_tensor *dx,
                            int accumulate, amp_error *error)
{
    return call->backend->upsample_backward(call->backend, dy, dx, node->desc.upsample.stride,
                                            node->desc.upsample.scale, accumulate, error);
}

const amp_layer_ops amp_upsample_ops = { .class = AMP_CLASS_FOLLOWS, .map = map, .map_delta = map_delta,
                                         .repeats = AMP_RECOMPUTE_ALL };
