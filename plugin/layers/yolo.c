/* The [yolo] layer. In training, forward computes the loss, and writes its delta, times the loss scale, to
 * the input's delta. The output is written only if Darknet's functions or another layer read it. */
#include "layer.h"

/* Copies the table of classes to the backend's memory. */
static amp_status plan(amp_node *node, amp_call *call, amp_arena *arena, int forward_time, int backward_time,
                       amp_error *error)
{
    const amp_yolo_desc *d = node->desc.yolo;
    size_t bytes = (size_t)d->classes * sizeof *d->class_table;
    if (!d->class_table) return AMP_OK;
    for (int c = 0; c < d->classes; c++)
        if (d->class_table[c].learnt < 0 || d->class_table[c].learnt >= d->classes)
            return amp_fail(error, AMP_BAD_NETWORK,
                            "layer %d [yolo]: the file given by map= turns class %d into class %d, but "
                            "classes=%d; correct that file", node->index, c, d->class_table[c].learnt,
                            d->classes);
    return call->outline ? AMP_OK : amp_node_make_table(node, call, d->class_table, bytes, error);
}

static amp_yolo_desc desc_of(const amp_node *node)
{
    amp_yolo_desc d = *node->desc.yolo;
    d.class_table = node->table;
    return d;
}

static amp_status write_output(amp_node *node, amp_call *call, const amp_tensor *x, const amp_yolo_desc *d,
                               amp_error *error)
{
    amp_tensor y = amp_value_write(node->output);
    AMP_TRY(call->backend->cast(call->backend, x, &y, 0, error));
    return call->backend->yolo_activate(call->backend, &y, d, error);
}

static amp_status forward(amp_node *node, amp_call *call, amp_error *error)
{
    amp_value *input = node->inputs[0];
    amp_yolo_desc d = desc_of(node);
    amp_tensor x, dx;
    int accumulate = 0;
    AMP_TRY(amp_value_read(call, input, node->form, &x, error));
    if (node->output->data[AMP_FORM_PLAIN]) AMP_TRY(write_output(node, call, &x, &d, error));
    if (!call->training) return AMP_OK;
    int learns = input->wants_delta && node->computes_backward;
    if (learns) dx = amp_value_delta_target(input, node->form, &accumulate);
    return call->backend->yolo_loss(call->backend, &x, call->host->labels(call->host->context, node->index),
                                    &d, call->loss_scale, learns ? &dx : NULL, accumulate,
                                    call->results + node->result,
                                    call->image_costs + node->result * x.shape.n, error);
}

/* If layers read the output, passes the output's delta on to the input. As in Darknet, this ignores the
 * activation's gradient. */
static amp_status backward(amp_node *node, amp_call *call, amp_error *error)
{
    int accumulate;
    if (!node->inputs[0]->wants_delta) return AMP_OK;
    amp_tensor dy = amp_value_delta(node->output, AMP_FORM_PLAIN);
    amp_tensor dx = amp_value_delta_target(node->inputs[0], node->form, &accumulate);
    return call->backend->cast(call->backend, &dy, &dx, accumulate, error);
}

const amp_layer_ops amp_yolo_ops = { .class = AMP_CLASS_FOLLOWS, .plan = plan, .forward = forward,
                                     .backward = backward, .makes_loss = 1 };
