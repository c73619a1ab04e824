/* A layer that the host runs with its own fp32 code, on fp32 NCHW buffers. Inputs are cast to this form, and
 * their deltas are cast back from it. */
#include "layer.h"

static amp_status forward(amp_node *node, amp_call *call, amp_error *error)
{
    amp_tensor x = { 0 };
    for (int i = node->desc.input_count - 1; i >= 0; i--)
        AMP_TRY(amp_value_read(call, node->inputs[i], AMP_FORM_PLAIN, &x, error));
    amp_value_write(node->output);
    /* Set the layer's own delta to zero, as Darknet does before each layer: the layer's code adds to it. */
    amp_tensor delta = amp_value_delta(node->output, AMP_FORM_PLAIN);
    if (delta.data && call->keeps_state)
        AMP_TRY(call->backend->zero(call->backend, delta.data, amp_tensor_bytes(&delta), error));
    node->output->delta_valid[AMP_FORM_PLAIN] = delta.data && call->keeps_state;
    call->host->forward(call->host->context, node->index, x.data, call->training);
    if (!node->desc.is_loss || !call->keeps_state || call->loss_scale == 1) return AMP_OK;
    return call->backend->scale(call->backend, delta.data, amp_shape_count(delta.shape), call->loss_scale,
                                error);
}

/* The host's backward adds to its inputs' deltas, so these must be initialized first. */
static amp_status backward(amp_node *node, amp_call *call, amp_error *error)
{
    amp_backend *b = call->backend;
    for (int i = 0; i < node->desc.input_count; i++) {
        if (!node->inputs[i]->wants_delta) continue;
        int accumulate;
        amp_tensor dx = amp_value_delta_target(node->inputs[i], AMP_FORM_PLAIN, &accumulate);
        if (!accumulate) AMP_TRY(b->zero(b, dx.data, amp_tensor_bytes(&dx), error));
    }
    amp_value *input = node->inputs[0];
    amp_tensor x = amp_value_data(input, AMP_FORM_PLAIN), dx = amp_value_delta(input, AMP_FORM_PLAIN);
    /* With several inputs, the layer adds to all their deltas, wanted or not. The delta of a single input may
     * be NULL. */
    float *target = input->wants_delta || node->desc.input_count > 1 ? dx.data : NULL;

    float *momentum[AMP_MAX_PARAMS];
    for (int i = 0; i < node->desc.param_count; i++) {
        momentum[i] = *node->desc.params[i].gradient_slot;
        *node->desc.params[i].gradient_slot = node->gradients->all[i];
    }
    call->host->backward(call->host->context, node->index, x.data, target, call->training);
    for (int i = 0; i < node->desc.param_count; i++) *node->desc.params[i].gradient_slot = momentum[i];
    return AMP_OK;
}

const amp_layer_ops amp_host_ops = { .class = AMP_CLASS_FP32, .forward = forward, .backward = backward };
