/* Convolutional and connected layers: y = act(batchnorm(w * x)) or act(w * x + b).
 *
 * A connected layer is the convolution whose window covers its whole input: Darknet's weights [outputs][c·h·w] are then
 * OIHW as they stand, and no flattening copy is needed. */
#include "layer.h"

static amp_conv_desc describe(const amp_node *node, const amp_step *step)
{
    const amp_layer_desc *d = &node->desc;
    amp_shape x = node->inputs[0]->shape;
    amp_conv_desc conv = { .x = x, .k = d->filters, .size_h = d->size, .size_w = d->size, .stride = d->stride,
                           .pad = d->pad, .groups = d->groups, .dtype = node->dtype, .training = step->keeps_state,
                           .wants_dx = step->keeps_state && node->inputs[0]->wants_delta };
    if (d->kind == AMP_LAYER_CONNECTED) {
        conv.size_h = x.h;
        conv.size_w = x.w;
        conv.stride = conv.groups = 1;
        conv.pad = 0;
    }
    return conv;
}

static amp_status plan(amp_node *node, amp_step *step, amp_arena *arena, int forward_time, int backward_time, amp_error *error)
{
    amp_conv_desc conv = describe(node, step);
    amp_shape y = amp_conv_output(&conv), expected = node->output->shape;
    if (y.n != expected.n || y.c != expected.c || y.h != expected.h || y.w != expected.w)
        return amp_fail(error, AMP_BAD_NETWORK, "layer %d [%s]: its input of %dx%dx%d gives %dx%dx%d, not %dx%dx%d (w x h x c); "
                        "check the layer before it", node->index, node->desc.type, conv.x.w, conv.x.h, conv.x.c, y.w, y.h, y.c,
                        expected.w, expected.h, expected.c);
    if (!step->outline) AMP_TRY(step->backend->conv_create(step->backend, &conv, &node->conv, error));
    if (!node->desc.batch_normalize) return AMP_OK;

    int end = backward_time < 0 ? forward_time : backward_time;
    size_t statistics = (size_t)y.c * sizeof(float);
    AMP_TRY(amp_arena_request_bytes(arena, amp_shape_count(y) * amp_dtype_size(node->dtype), forward_time, end, &node->pre_activation, error));
    AMP_TRY(amp_arena_request_bytes(arena, statistics, forward_time, end, (void **)&node->mean, error));
    return amp_arena_request_bytes(arena, statistics, forward_time, end, (void **)&node->variance, error);
}

static amp_tensor pre_activation(const amp_node *node)
{
    amp_tensor z = amp_value_data(node->output, node->form);
    z.data = node->pre_activation;
    return z;
}

static amp_status forward(amp_node *node, amp_step *step, amp_error *error)
{
    amp_backend *b = step->backend;
    const amp_layer_desc *d = &node->desc;
    amp_tensor x, y, z;
    AMP_TRY(amp_value_read(step, node->inputs[0], node->form, &x, error));
    y = amp_value_write(node->output);
    if (d->batch_normalize) {
        z = pre_activation(node);
        AMP_TRY(b->conv_forward(b, node->conv, x.data, NULL, z.data, error));
        if (step->training)
            return b->batchnorm_forward_train(b, &z, &y, d->scales, d->biases, node->mean, node->variance,
                                              d->rolling_mean, d->rolling_variance, d->activation, error);
        return b->batchnorm_forward_infer(b, &z, &y, d->scales, d->biases, d->rolling_mean, d->rolling_variance,
                                          d->activation, error);
    }
    AMP_TRY(b->conv_forward(b, node->conv, x.data, d->biases, y.data, error));
    if (d->activation == AMP_LINEAR) return AMP_OK;
    return b->activation_forward(b, &y, &y, d->activation, error);
}

static amp_status backward(amp_node *node, amp_step *step, amp_error *error)
{
    amp_backend *b = step->backend;
    const amp_layer_desc *d = &node->desc;
    amp_tensor x, y = amp_value_data(node->output, node->form), dy = amp_value_delta(node->output, node->form);
    if (d->batch_normalize) {
        amp_tensor z = pre_activation(node);
        AMP_TRY(b->batchnorm_backward(b, &z, &y, &dy, &dy, d->scales, d->biases,
                                      step->training ? node->mean : d->rolling_mean,
                                      step->training ? node->variance : d->rolling_variance,
                                      node->gradients->scales, node->gradients->biases, d->activation, error));
    } else {
        if (d->activation != AMP_LINEAR) AMP_TRY(b->activation_backward(b, &y, &dy, &dy, d->activation, 0, error));
        AMP_TRY(b->bias_gradient(b, &dy, node->gradients->biases, error));
    }
    AMP_TRY(amp_value_read(step, node->inputs[0], node->form, &x, error));
    AMP_TRY(b->conv_backward_weights(b, node->conv, x.data, dy.data, node->gradients->weights, error));
    if (!node->inputs[0]->wants_delta) return AMP_OK;
    int accumulate;
    amp_tensor dx = amp_value_delta_target(node->inputs[0], node->form, &accumulate);
    return b->conv_backward_data(b, node->conv, dy.data, dx.data, accumulate, error);
}

const amp_layer_ops amp_convolutional_ops = { 1, 1, plan, forward, backward };
const amp_layer_ops amp_connected_ops = { 1, 1, plan, forward, backward };
