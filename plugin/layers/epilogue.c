/* Batch norm and activation after matrix products: see epilogue.h. */
#include "epilogue.h"

#include "../backend/activate.h"

void amp_batchnorm_plan(amp_node *node, amp_arena *arena, int forward_time, int backward_time)
{
    size_t statistics = (size_t)node->output->shape.c * sizeof(float);
    amp_arena_keep_bytes(arena, statistics, forward_time, backward_time, (void **)&node->mean);
    amp_arena_keep_bytes(arena, statistics, forward_time, backward_time, (void **)&node->variance);
}

static amp_batchnorm norm_of(const amp_node *node, const amp_call *call, amp_activation activation)
{
    const amp_layer_desc *d = &node->desc;
    int repeats = call->again && call->training; /* 1: reuse the first forward's statistics */
    return (amp_batchnorm){ .rule = d->batchnorm_rule, .activation = activation,
                            .scale = d->scales, .bias = d->biases,
                            .mean = call->training ? node->mean : d->rolling_mean,
                            .variance = call->training ? node->variance : d->rolling_variance,
                            .rolling_mean = repeats ? node->mean : d->rolling_mean,
                            .rolling_variance = repeats ? node->variance : d->rolling_variance,
                            .ranks = call->ranks };
}

static amp_status normalize(amp_call *call, const amp_tensor *x, const amp_tensor *y,
                            const amp_batchnorm *norm, amp_error *error)
{
    amp_backend *b = call->backend;
    return (call->training && !call->again ? b->batchnorm_forward_train
                                            : b->batchnorm_forward_infer)(b, x, y, norm, error);
}

amp_status amp_batchnorm_forward(amp_node *node, amp_call *call, const amp_tensor *x, const amp_tensor *y,
                                 amp_activation activation, amp_error *error)
{
    amp_batchnorm norm = norm_of(node, call, activation);
    return normalize(call, x, y, &norm, error);
}

amp_status amp_batchnorm_backward(amp_node *node, amp_call *call, const amp_tensor *x, const amp_tensor *y,
                                  const amp_tensor *dy, const amp_tensor *dx, amp_activation activation,
                                  amp_error *error)
{
    amp_batchnorm norm = norm_of(node, call, activation);
    norm.dscale = amp_gradient_of(node, node->desc.scales);
    norm.dbias = amp_gradient_of(node, node->desc.biases);
    return call->backend->batchnorm_backward(call->backend, x, y, dy, dx, &norm, error);
}

int amp_node_keeps_sums(const amp_node *node)
{
    const amp_layer_desc *d = &node->desc;
    if (d->kind->epilogue == AMP_EPILOGUE_NONE) return 0;
    if (d->batch_normalize) return !node->folded;
    return amp_gradient_wants_input(d->activation) && !node->predicts;
}

void amp_epilogue_plan(amp_node *node, amp_arena *arena, int forward_time, int backward_time)
{
    amp_shape y = node->output->shape;
    size_t bytes = amp_shape_count(y) * amp_dtype_size(node->dtype);
    int repeated = node->recompute == AMP_RECOMPUTE_ALL;
    if (node->keeps_delta)
        amp_arena_request_bytes(arena, bytes, backward_time, backward_time, &node->sums_delta);
    if (!amp_node_keeps_sums(node)) return;
    amp_arena_keep_bytes(arena, bytes, forward_time, repeated ? -1 : backward_time, &node->pre_activation);
    if (repeated && node->again_time >= 0)
        amp_arena_request_bytes(arena, bytes, node->again_time, backward_time, &node->pre_activation_again);
    if (node->desc.batch_normalize) amp_batchnorm_plan(node, arena, forward_time, backward_time);
}

int amp_epilogue_is_fused(const amp_node *node)
{
    const amp_layer_desc *d = &node->desc;
    return node->predicts && d->kind->folds && d->activation == AMP_LEAKY
        && (node->folded || !d->batch_normalize);
}

amp_tensor amp_epilogue_sums(const amp_node *node)
{
    amp_tensor sums = amp_value_data(node->output, node->form);
    if (amp_node_keeps_sums(node)) sums.data = node->pre_activation;
    return sums;
}

amp_status amp_epilogue_forward(amp_node *node, amp_call *call, amp_error *error)
{
    amp_backend *b = call->backend;
    const amp_layer_desc *d = &node->desc;
    amp_tensor sums = amp_epilogue_sums(node), y = amp_value_data(node->output, node->form);
    if (node->leaves_norm && !call->shown) {
        node->output->data_valid[node->form] = 0;
        return AMP_OK;
    }
    if (d->batch_normalize && !node->folded)
        return amp_batchnorm_forward(node, call, &sums, &y, d->activation, error);
    if (d->activation == AMP_LINEAR || amp_epilogue_is_fused(node)) return AMP_OK;
    return b->activation_forward(b, &sums, &y, d->activation, error);
}

amp_status amp_epilogue_add(amp_node *node, amp_call *call, const amp_tensor *add, const amp_tensor *y,
                            amp_error *error)
{
    amp_tensor sums = amp_epilogue_sums(node);
    amp_batchnorm norm = norm_of(node, call, node->desc.activation);
    norm.add = add->data;
    return normalize(call, &sums, y, &norm, error);
}

/* The sums must exist when the shortcut runs, so this layer must keep them. And backward must not read the
 * output, which is never written: with the activations below, backward reads only the sums. */
int amp_epilogue_can_add(const amp_node *node)
{
    amp_activation a = node->desc.activation;
    return node->desc.kind->epilogue == AMP_EPILOGUE_WHOLE && node->desc.batch_normalize
        && node->computes_backward && node->recompute == AMP_RECOMPUTE_NOTHING
        && (amp_gradient_wants_input(a) || a == AMP_LINEAR || a == AMP_LEAKY || a == AMP_RELU);
}

int amp_epilogue_changes_delta(const amp_node *node)
{
    const amp_layer_desc *d = &node->desc;
    return d->kind->epilogue == AMP_EPILOGUE_WHOLE
        && (d->batch_normalize || d->activation != AMP_LINEAR);
}

amp_tensor amp_epilogue_sums_delta(const amp_node *node)
{
    amp_tensor delta = amp_value_delta(node->output, node->form);
    if (node->keeps_delta) delta.data = node->sums_delta;
    return delta;
}

amp_status amp_epilogue_activation_backward(amp_node *node, amp_call *call, const amp_tensor *dx,
                                            amp_error *error)
{
    amp_backend *b = call->backend;
    amp_tensor sums = amp_epilogue_sums(node), dy = amp_value_delta(node->output, node->form);
    if (node->desc.activation == AMP_LINEAR) return AMP_OK;
    return b->activation_backward(b, &sums, &dy, dx, node->desc.activation, 0, error);
}

amp_status amp_epilogue_backward(amp_node *node, amp_call *call, amp_tensor *sums, amp_error *error)
{
    amp_backend *b = call->backend;
    const amp_layer_desc *d = &node->desc;
    amp_tensor x = amp_epilogue_sums(node);
    amp_tensor y = amp_value_data(node->output, node->form), dy = amp_value_delta(node->output, node->form);
    *sums = amp_epilogue_sums_delta(node);
    if (d->batch_normalize)
        return amp_batchnorm_backward(node, call, &x, &y, &dy, sums, d->activation, error);
    AMP_TRY(amp_epilogue_activation_backward(node, call, sums, error));
    return b->bias_gradient(b, sums, amp_gradient_of(node, d->biases), error);
}
