/* The [route] layer: its inputs' channels side by side. With inputs of different sizes it is a host layer. */
#include "layer.h"

static amp_status forward(amp_node *node, amp_step *step, amp_error *error)
{
    amp_tensor y = amp_value_write(node->output);
    int first = 0;
    for (int i = 0; i < node->desc.input_count; i++) {
        amp_tensor x;
        AMP_TRY(amp_value_read(step, node->inputs[i], node->form, &x, error));
        AMP_TRY(step->backend->channels(step->backend, &x, 0, &y, first, x.shape.c, 1, 0, error));
        first += x.shape.c;
    }
    return AMP_OK;
}

static amp_status backward(amp_node *node, amp_step *step, amp_error *error)
{
    amp_tensor dy = amp_value_delta(node->output, node->form);
    int first = 0;
    for (int i = 0; i < node->desc.input_count; i++) {
        amp_value *input = node->inputs[i];
        if (input->wants_delta) {
            int accumulate;
            amp_tensor dx = amp_value_delta_target(input, node->form, &accumulate);
            AMP_TRY(step->backend->channels(step->backend, &dy, first, &dx, 0, dx.shape.c, 1, accumulate,
                                            error));
        }
        first += input->shape.c;
    }
    return AMP_OK;
}

const amp_layer_ops amp_route_ops = { .forward = forward, .backward = backward };
