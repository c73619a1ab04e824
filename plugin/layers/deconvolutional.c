/* Deconvolutional layers: y = act(batchnorm(wᵀ * x)) or act(wᵀ * x + b), where wᵀ * is the transposed
 * convolution.
 *
 * Forward is the backward of a convolution from y's shape to x's, for which Darknet's weights
 * [channels in][filters][size][size] are in OIHW layout. That convolution turns height `out` into exactly
 * height `in`, because out = (in - 1)·stride + size - 2·pad. */
#include "epilogue.h"

static amp_conv_desc conv_of(const amp_node *node, const amp_call *call)
{
    const amp_layer_desc *d = &node->desc;
    return (amp_conv_desc){ .x = node->output->shape, .k = node->inputs[0]->shape.c,
                            .size_h = d->convolution.size, .size_w = d->convolution.size,
                            .stride = d->convolution.stride, .pad = d->convolution.pad, .groups = 1,
                            .dtype = node->dtype, .training = call->keeps_state, .wants_dx = call->keeps_state
                            && node->inputs[0]->wants_delta, .transposed = 1 };
}

static int output_of(int in, const amp_layer_desc *d)
{
    return (in - 1) * d->convolution.stride + d->convolution.size - 2 * d->convolution.pad;
}

static amp_status check_shapes(const amp_node *node, amp_error *error)
{
    const amp_layer_desc *d = &node->desc;
    amp_shape x = node->inputs[0]->shape;
    int h = output_of(x.h, d), w = output_of(x.w, d);
    if (h < 1 || w < 1)
        return amp_fail(error, AMP_BAD_NETWORK,
                        "layer %d [%s]: size=%d, stride=%d and a padding of %d give an output of %dx%d for "
                        "its input of %dx%d (w x h); both must be at least 1x1", node->index, d->type,
                        d->convolution.size, d->convolution.stride, d->convolution.pad, w, h, x.w, x.h);
    return amp_node_check_shape(node, (amp_shape){ x.n, d->convolution.filters, h, w },
                                "the layer before it", error);
}

static amp_status plan(amp_node *node, amp_call *call, amp_arena *arena, int forward_time, int backward_time,
                       amp_error *error)
{
    amp_conv_desc conv = conv_of(node, call);
    const amp_value *input = node->inputs[0];
    AMP_TRY(check_shapes(node, error));
    if (!call->outline) AMP_TRY(call->backend->conv_create(call->backend, &conv, &node->conv, error));
    if (conv.wants_dx && input->delta_parts > 1)
        amp_arena_request_bytes(arena, amp_shape_count(input->shape) * amp_dtype_size(node->dtype),
                                backward_time, backward_time, &node->delta_part);
    return AMP_OK;
}

static amp_status forward(amp_node *node, amp_call *call, amp_error *error)
{
    amp_backend *b = call->backend;
    amp_tensor x, sums;
    AMP_TRY(amp_value_read(call, node->inputs[0], node->form, &x, error));
    amp_value_write(node->output);
    sums = amp_epilogue_sums(node);
    AMP_TRY(b->conv_backward_data(b, node->conv, x.data, sums.data, 0, error));
    if (!node->desc.batch_normalize) AMP_TRY(b->add_bias(b, &sums, node->desc.biases, error));
    return amp_epilogue_forward(node, call, error);
}

/* Computes the input's delta with the backend's conv_forward, which cannot accumulate: if the delta already
 * has parts, the result goes to a separate buffer and is then added. */
static amp_status give_delta(amp_node *node, amp_call *call, const amp_tensor *dy, amp_error *error)
{
    amp_backend *b = call->backend;
    int accumulate;
    amp_tensor dx = amp_value_delta_target(node->inputs[0], node->form, &accumulate), part = dx;
    if (accumulate) part.data = node->delta_part;
    AMP_TRY(b->conv_forward(b, node->conv, dy->data, NULL, part.data, error));
    return accumulate ? b->cast(b, &part, &dx, 1, error) : AMP_OK;
}

static amp_status backward(amp_node *node, amp_call *call, amp_error *error)
{
    amp_backend *b = call->backend;
    amp_tensor x, dy;
    AMP_TRY(amp_epilogue_backward(node, call, &dy, error));
    AMP_TRY(amp_value_read(call, node->inputs[0], node->form, &x, error));
    float *dw = amp_gradient_of(node, node->desc.weights);
    AMP_TRY(b->conv_backward_weights(b, node->conv, dy.data, x.data, dw, error));
    return node->inputs[0]->wants_delta ? give_delta(node, call, &dy, error) : AMP_OK;
}

static amp_products products(const amp_node *node)
{
    amp_shape x = node->inputs[0]->shape;
    size_t size = (size_t)node->desc.convolution.size;
    return (amp_products){ 1, x.c, node->desc.convolution.filters, size * size, (size_t)x.n * x.h * x.w,
                           .out_key = "filters", .turned = 1 };
}

const amp_layer_ops amp_deconvolutional_ops = {
    .class = AMP_CLASS_LOWER, .plan = plan, .forward = forward, .backward = backward, .products = products,
    .epilogue = AMP_EPILOGUE_WHOLE, .normalizes = 1, .repeats = AMP_RECOMPUTE_OUTPUT,
    .backward_reads_input = AMP_READS, .backward_reads_output = AMP_READS_FOR_GRADIENT };
