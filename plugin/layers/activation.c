/* The [activation] layer. */
#include "../backend/activate.h"
#include "layer.h"

static amp_status forward(amp_node *node, amp_call *call, amp_error *error)
{
    amp_tensor x, y;
    AMP_TRY(amp_value_read(call, node->inputs[0], node->form, &x, error));
    y = amp_value_write(node->output);
    return call->backend->activation_forward(call->backend, &x, &y, node->desc.activation, error);
}

static amp_status backward(amp_node *node, amp_call *call, amp_error *error)
{
    if (!node->inputs[0]->wants_delta) return AMP_OK;
    amp_tensor y = amp_value_data(node->output, node->form), dy = amp_value_delta(node->output, node->form);
    int accumulate;
    if (amp_gradient_wants_input(node->desc.activation))
        AMP_TRY(amp_value_read(call, node->inputs[0], node->form, &y, error));
    amp_tensor dx = amp_value_delta_target(node->inputs[0], node->form, &accumulate);
    return call->backend->activation_backward(call->backend, &y, &dy, &dx, node->desc.activation, accumulate,
                                              error);
}

const amp_layer_ops amp_activation_ops = {
    .class = AMP_CLASS_FOLLOWS, .forward = forward, .backward = backward, .repeats = AMP_RECOMPUTE_ALL,
    .backward_reads_input = AMP_READS_FOR_GRADIENT, .backward_reads_output = AMP_READS_FOR_GRADIENT };
