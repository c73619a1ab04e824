/* The standalone [batchnorm] layer: statistics over n, h, w per channel. */
#include "epilogue.h"

static amp_status plan(amp_node *node, amp_call *call, amp_arena *arena, int forward_time, int backward_time,
                       amp_error *error)
{
    amp_batchnorm_plan(node, arena, forward_time, backward_time);
    return AMP_OK;
}

static amp_status map(amp_node *node, amp_call *call, const amp_tensor *x, const amp_tensor *y,
                      amp_error *error)
{
    return amp_batchnorm_forward(node, call, x, y, AMP_LINEAR, error);
}

/* The backend's batch norm backward cannot accumulate. So it runs in place on this layer's own delta, which
 * is not read again. The result is then written to the input's delta, or added to it. */
static amp_status backward(amp_node *node, amp_call *call, amp_error *error)
{
    amp_backend *b = call->backend;
    amp_value *input = node->inputs[0];
    amp_tensor x, dy = amp_value_delta(node->output, node->form),
               y = amp_value_data(node->output, node->form);
    AMP_TRY(amp_value_read(call, input, node->form, &x, error));
    AMP_TRY(amp_batchnorm_backward(node, call, &x, &y, &dy, &dy, AMP_LINEAR, error));
    if (!input->wants_delta) return AMP_OK;
    int accumulate;
    amp_tensor dx = amp_value_delta_target(input, node->form, &accumulate);
    return b->cast(b, &dy, &dx, accumulate, error);
}

const amp_layer_ops amp_batchnorm_ops = {
    .class = AMP_CLASS_FOLLOWS, .plan = plan, .map = map, .backward = backward, .normalizes = 1,
    .repeats = AMP_RECOMPUTE_ALL, .backward_reads_input = AMP_READS, .backward_reads_output = AMP_READS };
