/* The [activation] layer. */
#include "../backend/activate.h"
#include "layer.h"

static amp_status map(amp_node *node, amp_call *call, const amp_tensor *x, const amp_tensor *y,
                      amp_error *error)
{
    return call->backend->activation_forward(call->backend, x, y, node->desc.activation, error);
}

static amp_status map_delta(amp_node *node, amp_call *call, const amp_tensor *dy, const amp_tensor *dx,
                            int accumulate, amp_error *error)
{
    amp_tensor y = amp_value_data(node->output, node->form);
    if (amp_gradient_wants_input(node->desc.activation))
        AMP_TRY(amp_value_read(call, node->inputs[0], node->form, &y, error));
    return call->backend->activation_backward(call->backend, &y, dy, dx, node->desc.activation, accumulate,
                                              error);
}

const amp_layer_ops amp_activation_ops = {
    .class = AMP_CLASS_FOLLOWS, .map = map, .map_delta = map_delta, .repeats = AMP_RECOMPUTE_ALL,
    .backward_reads_input = AMP_READS_FOR_GRADIENT, .backward_reads_output = AMP_READS_FOR_GRADIENT };
