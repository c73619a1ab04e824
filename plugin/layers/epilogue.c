/* Batch norm and activation behind matrix products: see epilogue.h. */
#include "epilogue.h"

amp_status amp_epilogue_plan(amp_node *node, amp_arena *arena, int forward_time, int backward_time, amp_error *error)
{
    amp_shape y = node->output->shape;
    int end = backward_time < 0 ? forward_time : backward_time;
    size_t statistics = (size_t)y.c * sizeof(float);
    if (!node->desc.batch_normalize) return AMP_OK;
    AMP_TRY(amp_arena_request_bytes(arena, amp_shape_count(y) * amp_dtype_size(node->dtype), forward_time, end,
                                    &node->pre_activation, error));
    AMP_TRY(amp_arena_request_bytes(arena, statistics, forward_time, end, (void **)&node->mean, error));
    return amp_arena_request_bytes(arena, statistics, forward_time, end, (void **)&node->variance, error);
}

amp_tensor amp_epilogue_sums(const amp_node *node)
{
    amp_tensor sums = amp_value_data(node->output, node->form);
    if (node->desc.batch_normalize) sums.data = node->pre_activation;
    return sums;
}

amp_status amp_epilogue_forward(amp_node *node, amp_step *step, amp_error *error)
{
    amp_backend *b = step->backend;
    const amp_layer_desc *d = &node->desc;
    amp_tensor sums = amp_epilogue_sums(node), y = amp_value_data(node->output, node->form);
    if (!d->batch_normalize)
        return d->activation == AMP_LINEAR ? AMP_OK : b->activation_forward(b, &y, &y, d->activation, error);
    if (step->training)
        return b->batchnorm_forward_train(b, &sums, &y, d->scales, d->biases, node->mean, node->variance, d->rolling_mean,
                                          d->rolling_variance, d->activation, error);
    return b->batchnorm_forward_infer(b, &sums, &y, d->scales, d->biases, d->rolling_mean, d->rolling_variance, d->activation,
                                      error);
}

amp_status amp_epilogue_backward(amp_node *node, amp_step *step, amp_error *error)
{
    amp_backend *b = step->backend;
    const amp_layer_desc *d = &node->desc;
    amp_tensor sums = amp_epilogue_sums(node);
    amp_tensor y = amp_value_data(node->output, node->form), dy = amp_value_delta(node->output, node->form);
    if (d->batch_normalize)
        return b->batchnorm_backward(b, &sums, &y, &dy, &dy, d->scales, d->biases,
                                     step->training ? node->mean : d->rolling_mean,
                                     step->training ? node->variance : d->rolling_variance, node->gradients->scales,
                                     node->gradients->biases, d->activation, error);
    if (d->activation != AMP_LINEAR) AMP_TRY(b->activation_backward(b, &y, &dy, &dy, d->activation, 0, error));
    return b->bias_gradient(b, &dy, node->gradients->biases, error);
}
