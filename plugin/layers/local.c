/* Locally connected layers: y = act(w * x + b), a convolution with weights and a bias of its own at every
 * place of its output.
 *
 * Darknet keeps biases in the order of its output, (filters, h, w); y is NHWC, and so is `per_output`, where
 * they are put for forward, and where their gradient is made. */
#include "epilogue.h"

static amp_local_desc describe(const amp_node *node, const amp_step *step)
{
    const amp_layer_desc *d = &node->desc;
    return (amp_local_desc){ .x = node->inputs[0]->shape, .y = node->output->shape, .size = d->size,
                             .stride = d->stride, .pad = d->pad, .dtype = node->dtype,
                             .training = step->keeps_state };
}

/* As Darknet's local_out_height: with pad, one place for each step of the stride. */
static int output_of(int in, const amp_layer_desc *d)
{
    int last = d->pad ? in - 1 : in - d->size;
    return last < 0 ? 0 : last / d->stride + 1;
}

static amp_status check_shapes(const amp_node *node, amp_error *error)
{
    const amp_layer_desc *d = &node->desc;
    amp_shape x = node->inputs[0]->shape;
    if (d->stride < 1)
        return amp_fail(error, AMP_BAD_NETWORK, "layer %d [%s]: stride = %d; it must be at least 1",
                        node->index, d->type, d->stride);
    amp_shape made = { x.n, d->filters, output_of(x.h, d), output_of(x.w, d) };
    return amp_node_check_shape(node, made, "size and the layer before it", error);
}

static amp_status plan(amp_node *node, amp_step *step, amp_arena *arena, int forward_time, int backward_time,
                       amp_error *error)
{
    amp_local_desc local = describe(node, step);
    AMP_TRY(check_shapes(node, error));
    if (!step->outline) AMP_TRY(step->backend->local_create(step->backend, &local, &node->local, error));
    AMP_TRY(amp_epilogue_plan(node, arena, forward_time, backward_time, error));
    return amp_arena_keep_bytes(arena, amp_shape_image(local.y) * sizeof(float), forward_time, backward_time,
                                (void **)&node->per_output, error);
}

/* An image's outputs, as an fp32 array of Darknet's or as per_output. */
static amp_tensor outputs(const amp_node *node, float *array, amp_layout layout)
{
    amp_shape y = node->output->shape;
    return (amp_tensor){ .data = array, .dtype = AMP_FP32, .layout = layout, .shape = { 1, y.c, y.h, y.w } };
}

/* Every output as a channel of its own, which a bias belongs to. */
static amp_tensor flat(amp_tensor t)
{
    t.shape = (amp_shape){ t.shape.n, (int)amp_shape_image(t.shape), 1, 1 };
    return t;
}

static amp_status forward(amp_node *node, amp_step *step, amp_error *error)
{
    amp_backend *b = step->backend;
    amp_tensor biases = outputs(node, node->desc.biases, AMP_NCHW),
        turned = outputs(node, node->per_output, AMP_NHWC), x;
    AMP_TRY(amp_value_read(step, node->inputs[0], node->form, &x, error));
    amp_value_write(node->output);
    amp_tensor sums = amp_epilogue_sums(node), rows = flat(sums);
    AMP_TRY(b->local_forward(b, node->local, x.data, sums.data, error));
    AMP_TRY(b->cast(b, &biases, &turned, 0, error));
    AMP_TRY(b->add_bias(b, &rows, node->per_output, error));
    return amp_epilogue_forward(node, step, error);
}

static amp_status add_bias_gradient(const amp_node *node, amp_backend *b, const amp_tensor *dy,
                                    amp_error *error)
{
    amp_tensor turned = outputs(node, node->per_output, AMP_NHWC),
        sum = outputs(node, node->gradients->biases, AMP_NCHW);
    amp_tensor rows = flat(*dy);
    AMP_TRY(b->zero(b, node->per_output, amp_tensor_bytes(&turned), error));
    AMP_TRY(b->bias_gradient(b, &rows, node->per_output, error));
    return b->cast(b, &turned, &sum, 1, error);
}

static amp_status backward(amp_node *node, amp_step *step, amp_error *error)
{
    amp_backend *b = step->backend;
    amp_tensor dy = amp_value_delta(node->output, node->form), x;
    AMP_TRY(amp_epilogue_activation_backward(node, step, error));
    AMP_TRY(add_bias_gradient(node, b, &dy, error));
    AMP_TRY(amp_value_read(step, node->inputs[0], node->form, &x, error));
    AMP_TRY(b->local_backward_weights(b, node->local, x.data, dy.data, node->gradients->weights, error));
    if (!node->inputs[0]->wants_delta) return AMP_OK;
    int accumulate;
    amp_tensor dx = amp_value_delta_target(node->inputs[0], node->form, &accumulate);
    return b->local_backward_data(b, node->local, dy.data, dx.data, accumulate, error);
}

const amp_layer_ops amp_local_ops = { .plan = plan, .forward = forward, .backward = backward,
                                      .backward_reads_input = 1, .backward_reads_output = 1 };
