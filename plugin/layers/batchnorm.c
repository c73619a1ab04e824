/* The standalone [batchnorm] layer: statistics over n, h, w per channel. */
#include "layer.h"

static amp_status plan(amp_node *node, amp_step *step, amp_arena *arena, int forward_time, int backward_time, amp_error *error)
{
    (void)step;
    int end = backward_time < 0 ? forward_time : backward_time;
    size_t statistics = (size_t)node->output->shape.c * sizeof(float);
    AMP_TRY(amp_arena_request_bytes(arena, statistics, forward_time, end, (void **)&node->mean, error));
    return amp_arena_request_bytes(arena, statistics, forward_time, end, (void **)&node->variance, error);
}

static amp_status forward(amp_node *node, amp_step *step, amp_error *error)
{
    amp_backend *b = step->backend;
    const amp_layer_desc *d = &node->desc;
    amp_tensor x, y;
    AMP_TRY(amp_value_read(step, node->inputs[0], node->form, &x, error));
    y = amp_value_write(node->output);
    if (step->training)
        return b->batchnorm_forward_train(b, &x, &y, d->scales, d->biases, node->mean, node->variance, d->rolling_mean,
                                          d->rolling_variance, AMP_LINEAR, error);
    return b->batchnorm_forward_infer(b, &x, &y, d->scales, d->biases, d->rolling_mean, d->rolling_variance, AMP_LINEAR, error);
}

/* The backend's batch-norm backward overwrites; where the input's delta has parts already, it runs in place on our own
 * delta, which nobody reads after us, and the result is added. */
static amp_status backward(amp_node *node, amp_step *step, amp_error *error)
{
    amp_backend *b = step->backend;
    const amp_layer_desc *d = &node->desc;
    amp_value *input = node->inputs[0];
    amp_tensor x, dy = amp_value_delta(node->output, node->form), y = amp_value_data(node->output, node->form);
    AMP_TRY(amp_value_read(step, input, node->form, &x, error));
    AMP_TRY(b->batchnorm_backward(b, &x, &y, &dy, &dy, d->scales, d->biases,
                                  step->training ? node->mean : d->rolling_mean,
                                  step->training ? node->variance : d->rolling_variance,
                                  node->gradients->scales, node->gradients->biases, AMP_LINEAR, error));
    if (!input->wants_delta) return AMP_OK;
    int accumulate;
    amp_tensor dx = amp_value_delta_target(input, node->form, &accumulate);
    return b->cast(b, &dy, &dx, accumulate, error);
}

const amp_layer_ops amp_batchnorm_ops = { .plan = plan, .forward = forward, .backward = backward,
                                          .backward_reads_input = 1, .backward_reads_output = 1 };
