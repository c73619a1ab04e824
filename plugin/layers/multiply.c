/* The [scale_channels] and [sam] layers of AlexeyAB's fork: y = act(from·x). x, the previous layer's output,
 * has the shape of `from` (sam), or one number per channel (squeeze-excite) or per pixel (scale_wh). */
#include "epilogue.h"

/* Reads x and `from` in the node's form. */
static amp_status read_both(amp_node *node, amp_call *call, amp_tensor *x, amp_tensor *from, amp_error *error)
{
    AMP_TRY(amp_value_read(call, node->inputs[0], node->form, x, error));
    return amp_value_read(call, node->inputs[1], node->form, from, error);
}

static amp_status forward(amp_node *node, amp_call *call, amp_error *error)
{
    amp_tensor x, from, sums;
    AMP_TRY(read_both(node, call, &x, &from, error));
    amp_value_write(node->output);
    sums = amp_epilogue_sums(node);
    AMP_TRY(call->backend->multiply(call->backend, &from, &x, &sums, 0, error));
    return amp_epilogue_forward(node, call, error);
}

static amp_status backward(amp_node *node, amp_call *call, amp_error *error)
{
    amp_backend *b = call->backend;
    amp_tensor x, from, dy = amp_value_delta(node->output, node->form);
    int accumulate;
    AMP_TRY(amp_epilogue_activation_backward(node, call, &dy, error));
    AMP_TRY(read_both(node, call, &x, &from, error));
    if (node->inputs[0]->wants_delta) {
        amp_tensor dx = amp_value_delta_target(node->inputs[0], node->form, &accumulate);
        AMP_TRY(b->multiply_sums(b, &dy, &from, &dx, accumulate, error));
    }
    if (!node->inputs[1]->wants_delta) return AMP_OK;
    amp_tensor dfrom = amp_value_delta_target(node->inputs[1], node->form, &accumulate);
    return b->multiply(b, &dy, &x, &dfrom, accumulate, error);
}

const amp_layer_ops amp_multiply_ops = {
    .class = AMP_CLASS_PROMOTES, .forward = forward, .backward = backward,
    .epilogue = AMP_EPILOGUE_ACTIVATION, .backward_reads_input = AMP_READS,
    .backward_reads_output = AMP_READS_FOR_GRADIENT };
