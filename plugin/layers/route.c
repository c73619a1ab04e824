/* The [route] layer: concatenates the channels of its inputs. `groups` divides each input's channels into
 * equal parts, of which only part group_id is used. With inputs of different sizes it is a host layer. */
#include "layer.h"

/* How many channels the layer takes from input i, beginning at group_id times this number. The check of the
 * .cfg has made sure that `groups` divides the channels. */
static int part_of(const amp_node *node, int i) { return node->inputs[i]->shape.c / node->desc.route.groups; }

static amp_status forward(amp_node *node, amp_call *call, amp_error *error)
{
    amp_tensor y = amp_value_write(node->output);
    int first = 0;
    for (int i = 0; i < node->desc.input_count; i++) {
        int part = part_of(node, i);
        amp_tensor x;
        AMP_TRY(amp_value_read(call, node->inputs[i], node->form, &x, error));
        AMP_TRY(call->backend->channels(call->backend, &x, node->desc.route.group_id * part, &y, first, part,
                                        1, 0, error));
        first += part;
    }
    return AMP_OK;
}

static amp_status backward(amp_node *node, amp_call *call, amp_error *error)
{
    amp_backend *b = call->backend;
    amp_tensor dy = amp_value_delta(node->output, node->form);
    int first = 0;
    for (int i = 0; i < node->desc.input_count; i++) {
        amp_value *input = node->inputs[i];
        int part = part_of(node, i);
        if (input->wants_delta) {
            int accumulate;
            amp_tensor dx = amp_value_delta_target(input, node->form, &accumulate);
            if (!accumulate && part < dx.shape.c) AMP_TRY(b->zero(b, dx.data, amp_tensor_bytes(&dx), error));
            AMP_TRY(b->channels(b, &dy, first, &dx, node->desc.route.group_id * part, part, 1, accumulate,
                                error));
        }
        first += part;
    }
    return AMP_OK;
}

const amp_layer_ops amp_route_ops = { .class = AMP_CLASS_PROMOTES, .forward = forward, .backward = backward };
