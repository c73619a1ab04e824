/* Max pooling and global average pooling. */
#include "layer.h"

static amp_status maxpool_plan(amp_node *node, amp_call *call, amp_arena *arena, int forward_time,
                               int backward_time, amp_error *error)
{
    amp_arena_keep_bytes(arena, amp_shape_count(node->output->shape), forward_time, backward_time,
                         &node->kept);
    return AMP_OK;
}

static amp_status maxpool_map(amp_node *node, amp_call *call, const amp_tensor *x, const amp_tensor *y,
                              amp_error *error)
{
    return call->backend->maxpool_forward(call->backend, x, y, node->kept, node->desc.maxpool.size,
                                          node->desc.maxpool.stride, node->desc.maxpool.pad, error);
}

static amp_status maxpool_map_delta(amp_node *node, amp_call *call, const amp_tensor *dy,
                                    const amp_tensor *dx, int accumulate, amp_error *error)
{
    return call->backend->maxpool_backward(call->backend, dy, node->kept, dx, node->desc.maxpool.size,
                                           node->desc.maxpool.stride, node->desc.maxpool.pad, accumulate,
                                           error);
}

static amp_status avgpool_map(amp_node *node, amp_call *call, const amp_tensor *x, const amp_tensor *y,
                              amp_error *error)
{
    return call->backend->avgpool_forward(call->backend, x, y, error);
}

static amp_status avgpool_map_delta(amp_node *node, amp_call *call, const amp_tensor *dy,
                                    const amp_tensor *dx, int accumulate, amp_error *error)
{
    return call->backend->avgpool_backward(call->backend, dy, dx, accumulate, error);
}

const amp_layer_ops amp_maxpool_ops = { .class = AMP_CLASS_FOLLOWS, .plan = maxpool_plan,
                                        .map = maxpool_map, .map_delta = maxpool_map_delta,
                                        .repeats = AMP_RECOMPUTE_ALL, .chooses = 1 };
const amp_layer_ops amp_avgpool_ops = { .class = AMP_CLASS_FOLLOWS, .map = avgpool_map,
                                        .map_delta = avgpool_map_delta };
