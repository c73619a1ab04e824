/* The [yolo] layer. In training, forward computes the loss and writes its delta, times the loss scale,
 * directly into the input's delta. The output is written only if Darknet's functions or another layer read
 * it. */
#include "layer.h"

static amp_status write_output(amp_node *node, amp_step *step, const amp_tensor *x, amp_error *error)
{
    amp_tensor y = amp_value_write(node->output);
    AMP_TRY(step->backend->cast(step->backend, x, &y, 0, error));
    return step->backend->yolo_activate(step->backend, &y, node->desc.yolo.classes, error);
}

static amp_status forward(amp_node *node, amp_step *step, amp_error *error)
{
    amp_value *input = node->inputs[0];
    amp_tensor x, dx;
    int accumulate = 0;
    AMP_TRY(amp_value_read(step, input, node->form, &x, error));
    if (node->output->data[AMP_FORM_HOST]) AMP_TRY(write_output(node, step, &x, error));
    if (!step->training) return AMP_OK;
    int learns = input->wants_delta && node->computes_backward;
    if (learns) dx = amp_value_delta_target(input, node->form, &accumulate);
    return step->backend->yolo_loss(step->backend, &x, step->host->labels(step->host->context, node->index),
                                    &node->desc.yolo, step->loss_scale, learns ? &dx : NULL, accumulate,
                                    step->results + node->result, error);
}

/* The delta of layers that read the output is passed on unchanged, as in Darknet. */
static amp_status backward(amp_node *node, amp_step *step, amp_error *error)
{
    int accumulate;
    if (!node->inputs[0]->wants_delta) return AMP_OK;
    amp_tensor dy = amp_value_delta(node->output, AMP_FORM_HOST);
    amp_tensor dx = amp_value_delta_target(node->inputs[0], node->form, &accumulate);
    return step->backend->cast(step->backend, &dy, &dx, accumulate, error);
}

const amp_layer_ops amp_yolo_ops = { .forward = forward, .backward = backward, .makes_loss = 1 };
