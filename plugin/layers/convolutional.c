/* Convolutional and connected layers: y = act(batchnorm(w * x)) or act(w * x + b).
 *
 * A connected layer is a convolution whose window covers the whole input: Darknet's weights [outputs][c·h·w]
 * are already in OIHW layout. */
#include "epilogue.h"

static amp_conv_desc conv_of(const amp_node *node, const amp_call *call)
{
    const struct amp_convolution_settings *s = &node->desc.convolution;
    amp_shape x = node->inputs[0]->shape;
    return (amp_conv_desc){ .x = x, .k = s->filters, .size_h = s->size ? s->size : x.h,
                            .size_w = s->size ? s->size : x.w, .stride = s->stride, .pad = s->pad,
                            .groups = s->groups, .dtype = node->dtype, .training = call->keeps_state,
                            .wants_dx = call->keeps_state && node->inputs[0]->wants_delta,
                            .stride_x = s->stride_x, .dilation = s->dilation,
                            .leaky = amp_epilogue_is_fused(node),
                            .direct = call->direct, .masters_stay = !node->folded };
}

static amp_products products(const amp_node *node)
{
    const struct amp_convolution_settings *s = &node->desc.convolution;
    amp_shape x = node->inputs[0]->shape, y = node->output->shape;
    size_t size = s->size ? (size_t)s->size : 1, places = (size_t)y.n * y.h * y.w;
    return (amp_products){ s->groups, s->size ? x.c / s->groups : (int)amp_shape_image(x),
                           s->filters / s->groups, size * size, places,
                           .out_key = s->size ? "filters" : "output" };
}

static amp_status plan(amp_node *node, amp_call *call, amp_arena *arena, int forward_time, int backward_time,
                       amp_error *error)
{
    amp_conv_desc conv = conv_of(node, call);
    AMP_TRY(amp_node_check_shape(node, amp_conv_output(&conv), "the layer before it", error));
    return call->outline ? AMP_OK : call->backend->conv_create(call->backend, &conv, &node->conv, error);
}

static amp_status forward(amp_node *node, amp_call *call, amp_error *error)
{
    amp_backend *b = call->backend;
    const amp_layer_desc *d = &node->desc;
    amp_tensor x, sums;
    AMP_TRY(amp_value_read(call, node->inputs[0], node->form, &x, error));
    amp_value_write(node->output);
    sums = amp_epilogue_sums(node);
    const float *bias = node->folded ? node->folded_bias : d->batch_normalize ? NULL : d->biases;
    AMP_TRY(b->conv_forward(b, node->conv, x.data, bias, sums.data, error));
    return amp_epilogue_forward(node, call, error);
}

static amp_status backward(amp_node *node, amp_call *call, amp_error *error)
{
    amp_backend *b = call->backend;
    amp_tensor x, dy;
    AMP_TRY(amp_epilogue_backward(node, call, &dy, error));
    AMP_TRY(amp_value_read(call, node->inputs[0], node->form, &x, error));
    float *dw = amp_gradient_of(node, node->desc.weights);
    AMP_TRY(b->conv_backward_weights(b, node->conv, x.data, dy.data, dw, error));
    if (!node->inputs[0]->wants_delta) return AMP_OK;
    int accumulate;
    amp_tensor dx = amp_value_delta_target(node->inputs[0], node->form, &accumulate);
    return b->conv_backward_data(b, node->conv, dy.data, dx.data, accumulate, error);
}

const amp_layer_ops amp_convolutional_ops = {
    .class = AMP_CLASS_LOWER, .plan = plan, .forward = forward, .backward = backward, .products = products,
    .epilogue = AMP_EPILOGUE_WHOLE, .normalizes = 1, .folds = 1, .repeats = AMP_RECOMPUTE_OUTPUT,
    .backward_reads_input = AMP_READS, .backward_reads_output = AMP_READS_FOR_GRADIENT };
