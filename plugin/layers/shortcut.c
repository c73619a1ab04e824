/* The [shortcut] layer: y = act(alpha·x + beta·from), over the channels that both have. Different widths and heights go
 * the host's way. */
#include "layer.h"

static amp_status forward(amp_node *node, amp_step *step, amp_error *error)
{
    amp_tensor x, from, y;
    AMP_TRY(amp_value_read(step, node->inputs[0], node->form, &x, error));
    AMP_TRY(amp_value_read(step, node->inputs[1], node->form, &from, error));
    y = amp_value_write(node->output);
    return step->backend->shortcut_forward(step->backend, &x, &from, &y, node->desc.alpha, node->desc.beta,
                                           node->desc.activation, error);
}

/* input's delta (+)= factor · d over the first `channels` channels; the others get none. */
static amp_status pass_on(amp_node *node, amp_step *step, amp_value *input, const amp_tensor *d, int channels, float factor,
                          amp_error *error)
{
    if (!input->wants_delta) return AMP_OK;
    int accumulate;
    amp_tensor dx = amp_value_delta_target(input, node->form, &accumulate);
    if (!accumulate && channels < dx.shape.c) {
        AMP_TRY(step->backend->zero(step->backend, dx.data, amp_tensor_bytes(&dx), error));
        accumulate = 1;
    }
    return step->backend->channels(step->backend, d, 0, &dx, 0, channels, factor, accumulate, error);
}

static amp_status backward(amp_node *node, amp_step *step, amp_error *error)
{
    amp_tensor y = amp_value_data(node->output, node->form), d = amp_value_delta(node->output, node->form);
    if (node->desc.activation != AMP_LINEAR)
        AMP_TRY(step->backend->activation_backward(step->backend, &y, &d, &d, node->desc.activation, 0, error));
    int own = d.shape.c, others = node->inputs[1]->shape.c, shared = own < others ? own : others;
    AMP_TRY(pass_on(node, step, node->inputs[0], &d, own, node->desc.alpha, error));
    return pass_on(node, step, node->inputs[1], &d, shared, node->desc.beta, error);
}

const amp_layer_ops amp_shortcut_ops = { 0, 1, NULL, forward, backward };
