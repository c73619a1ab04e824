/* Running a node's operations: whatever goes wrong in one is reported with its layer, which a backend does not know, and a
 * profiler is told which layer and phase it looks at. */
#include <string.h>

#include "layer.h"

/* The range of one phase: nothing unless somebody profiles. */
static void begin(const amp_node *node, amp_backend *backend, const char *phase)
{
    char name[64];
    if (!backend->range_push) return;
    snprintf(name, sizeof name, "layer %d %s %s", node->index, node->desc.type, phase);
    backend->range_push(backend, name);
}

static amp_status end(const amp_node *node, amp_backend *backend, const char *phase, amp_status status, amp_error *error)
{
    if (backend->range_pop) backend->range_pop(backend);
    if (status == AMP_OK || !error || !strncmp(error->message, "layer ", 6)) return status;
    amp_error why = *error;
    return amp_fail(error, status, "layer %d [%s], %s: %s", node->index, node->desc.type, phase, why.message);
}

amp_status amp_node_plan(amp_node *node, amp_step *step, amp_arena *arena, int forward_time, int backward_time,
                         amp_error *error)
{
    if (!node->ops->plan) return AMP_OK;
    begin(node, step->backend, "planning");
    amp_status status = node->ops->plan(node, step, arena, forward_time, backward_time, error);
    return end(node, step->backend, "planning", status, error);
}

amp_status amp_node_load_weights(amp_node *node, amp_backend *backend, amp_error *error)
{
    if (!node->conv && !node->local) return AMP_OK;
    begin(node, backend, "weights");
    amp_status status = node->conv ? backend->conv_load_weights(backend, node->conv, node->desc.weights, error)
                                   : backend->local_load_weights(backend, node->local, node->desc.weights, error);
    return end(node, backend, "weights", status, error);
}

void amp_node_drop_weights(amp_node *node, amp_backend *backend)
{
    if (node->conv) backend->conv_drop_weights(backend, node->conv);
    if (node->local) backend->local_drop_weights(backend, node->local);
}

amp_status amp_node_forward(amp_node *node, amp_step *step, amp_error *error)
{
    begin(node, step->backend, "forward");
    return end(node, step->backend, "forward", node->ops->forward(node, step, error), error);
}

amp_status amp_node_backward(amp_node *node, amp_step *step, amp_error *error)
{
    begin(node, step->backend, "backward");
    return end(node, step->backend, "backward", node->ops->backward(node, step, error), error);
}
