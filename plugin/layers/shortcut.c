/* The [shortcut] layer: y = act(alpha·x + beta·from), over the channels that both have, and the pixels where
 * they meet. */
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

static amp_status backward(amp_node *node, amp_step *step, amp_error *error)
{
    amp_backend *b = step->backend;
    amp_value *input = node->inputs[0], *from = node->inputs[1];
    amp_tensor y = amp_value_data(node->output, node->form), d = amp_value_delta(node->output, node->form);
    int accumulate;
    if (node->desc.activation != AMP_LINEAR)
        AMP_TRY(b->activation_backward(b, &y, &d, &d, node->desc.activation, 0, error));
    if (input->wants_delta) { /* alpha everywhere, as Darknet: in forward it applies only where the two
                                 meet */
        amp_tensor dx = amp_value_delta_target(input, node->form, &accumulate);
        if (dx.data != d.data) /* one buffer (plan.c, share_deltas): nothing to copy */
            AMP_TRY(b->channels(b, &d, 0, &dx, 0, d.shape.c, node->desc.alpha, accumulate, error));
    }
    if (!from->wants_delta) return AMP_OK;
    amp_tensor dfrom = amp_value_delta_target(from, node->form, &accumulate);
    return b->shortcut_backward(b, &d, &dfrom, node->desc.beta, accumulate, error);
}

const amp_layer_ops amp_shortcut_ops = { .forward = forward, .backward = backward,
                                         .backward_reads_output = 1 };
