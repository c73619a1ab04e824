/* The [shortcut] layer: y = act(alpha·x + beta·(from + from2 + ...)). A single `from` may have another shape
 * than x: then only the channels that both have are added, at corresponding pixels. If there are several, all
 * must have x's shape. */
#include "../backend/activate.h"
#include "epilogue.h"

/* Computes the previous layer's batch norm and the sum in one pass. */
static amp_status forward_from_sums(amp_node *node, amp_call *call, amp_error *error)
{
    amp_tensor from, y = amp_value_write(node->output);
    AMP_TRY(amp_value_read(call, node->inputs[1], node->form, &from, error));
    return amp_epilogue_add(node->norm_of, call, &from, &y, error);
}

static amp_status forward(amp_node *node, amp_call *call, amp_error *error)
{
    if (node->norm_of && !call->shown) return forward_from_sums(node, call, error);
    amp_backend *b = call->backend;
    const amp_layer_desc *d = &node->desc;
    int kept = amp_gradient_wants_input(d->activation), last = d->input_count - 1;
    amp_tensor x, from, y;
    AMP_TRY(amp_value_read(call, node->inputs[0], node->form, &x, error));
    y = amp_value_write(node->output);
    amp_tensor sums = amp_epilogue_sums(node);
    for (int k = 1; k <= last; k++) {
        amp_activation activation = k == last && !kept ? d->activation : AMP_LINEAR;
        AMP_TRY(amp_value_read(call, node->inputs[k], node->form, &from, error));
        AMP_TRY(b->shortcut_forward(b, &x, &from, &sums, k == 1 ? d->shortcut.alpha : 1, d->shortcut.beta,
                                    activation, error));
        x = sums;
    }
    return kept ? b->activation_forward(b, &sums, &y, d->activation, error) : AMP_OK;
}

static amp_status backward(amp_node *node, amp_call *call, amp_error *error)
{
    amp_backend *b = call->backend;
    amp_value *input = node->inputs[0];
    amp_tensor d = amp_value_delta(node->output, node->form);
    int accumulate;
    AMP_TRY(amp_epilogue_activation_backward(node, call, &d, error));
    if (input->wants_delta) { /* as in Darknet, alpha applies to all pixels, although forward applies it only
                                 to pixels that correspond */
        amp_tensor dx = amp_value_delta_target(input, node->form, &accumulate);
        if (dx.data != d.data) /* here and below: skip if the deltas share a buffer (plan.c, share_deltas) */
            AMP_TRY(b->channels(b, &d, 0, &dx, 0, d.shape.c, node->desc.shortcut.alpha, accumulate, error));
    }
    for (int k = 1; k < node->desc.input_count; k++) {
        if (!node->inputs[k]->wants_delta) continue;
        amp_tensor dfrom = amp_value_delta_target(node->inputs[k], node->form, &accumulate);
        if (dfrom.data != d.data)
            AMP_TRY(b->shortcut_backward(b, &d, &dfrom, node->desc.shortcut.beta, accumulate, error));
    }
    return AMP_OK;
}

static int is_plain_sum(const amp_node *node)
{
    const amp_layer_desc *d = &node->desc;
    if (d->input_count != 2 || d->shortcut.beta != 1 || d->activation != AMP_LINEAR) return 0;
    for (int k = 0; k < 2; k++)
        if (!amp_shape_equal(node->inputs[k]->shape, node->output->shape)) return 0;
    return 1;
}

static int passes_delta(const amp_node *node)
{
    return node->desc.shortcut.alpha != 1 ? 0 : is_plain_sum(node) ? 2 : 1;
}

const amp_layer_ops amp_shortcut_ops = {
    .class = AMP_CLASS_PROMOTES, .forward = forward, .backward = backward,
    .passes_delta = passes_delta, .epilogue = AMP_EPILOGUE_ACTIVATION,
    .backward_reads_output = AMP_READS_FOR_GRADIENT };
