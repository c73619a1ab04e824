/* Runs a node's operations. The backend does not know which layer it works for. So this file adds the layer
 * to error messages, and puts the work into profiler ranges that are named after the layer and the phase. */
#include <string.h>

#include "../backend/activate.h"
#include "epilogue.h"

/* Begins a profiler range for a phase, if the backend has a profiler. */
static void begin(const amp_node *node, amp_backend *backend, const char *phase)
{
    char name[64];
    if (!backend->range_push) return;
    snprintf(name, sizeof name, "layer %d %s %s", node->index, node->desc.type, phase);
    backend->range_push(backend, name);
}

static amp_status name(const amp_node *node, const char *phase, amp_status status, amp_error *error)
{
    if (status == AMP_OK || !error || !strncmp(error->message, "layer ", 6)) return status;
    amp_error why = *error;
    return amp_fail(error, status, "layer %d [%s], %s: %s", node->index, node->desc.type, phase, why.message);
}

static amp_status end(const amp_node *node, amp_backend *backend, const char *phase, amp_status status,
                      amp_error *error)
{
    if (backend->range_pop) backend->range_pop(backend);
    return name(node, phase, status, error);
}

amp_status amp_node_plan(amp_node *node, amp_call *call, amp_arena *arena, int forward_time,
                         int backward_time, amp_error *error)
{
    const amp_layer_ops *kind = node->desc.kind;
    amp_status status = AMP_OK;
    begin(node, call->backend, "planning");
    if (kind->plan) status = kind->plan(node, call, arena, forward_time, backward_time, error);
    if (kind->epilogue != AMP_EPILOGUE_NONE) amp_epilogue_plan(node, arena, forward_time, backward_time);
    return end(node, call->backend, "planning", status, error);
}

int amp_node_reads_input(const amp_node *node)
{
    amp_backward_reads reads = node->desc.kind->backward_reads_input;
    return reads == AMP_READS_FOR_GRADIENT ? amp_gradient_wants_input(node->desc.activation) : (int)reads;
}

int amp_node_reads_output(const amp_node *node)
{
    amp_backward_reads reads = node->desc.kind->backward_reads_output;
    return reads == AMP_READS_FOR_GRADIENT ? !amp_gradient_wants_input(node->desc.activation) : (int)reads;
}

amp_status amp_node_check_shape(const amp_node *node, amp_shape made, const char *check, amp_error *error)
{
    amp_shape x = node->inputs[0]->shape, y = node->output->shape;
    if (amp_shape_equal(made, y)) return AMP_OK;
    return amp_fail(error, AMP_BAD_NETWORK,
                    "layer %d [%s]: its input of %dx%dx%d gives %dx%dx%d, not %dx%dx%d (w x h x c); check %s",
                    node->index, node->desc.type, x.w, x.h, x.c, made.w, made.h, made.c, y.w, y.h, y.c,
                    check);
}

amp_status amp_node_make_table(amp_node *node, amp_call *call, const void *table, size_t bytes,
                               amp_error *error)
{
    AMP_TRY(call->backend->allocate(call->backend, bytes, &node->table, error));
    return call->backend->upload(call->backend, node->table, table, bytes, error);
}

static int loads_masters(const amp_node *node) { return node->conv && !node->folded; }

/* Returns the node of convolution number `at`, from 0, of those that load their masters. */
static const amp_node *with_conv(const amp_node *nodes, int at)
{
    while (!loads_masters(nodes) || at-- > 0) nodes++;
    return nodes;
}

static amp_status load_convs(const amp_node *nodes, int count, amp_backend *backend, amp_error *error)
{
    int convs = 0, failed;
    amp_conv_weights *all = amp_allocated(malloc(((size_t)count + 1) * sizeof *all));
    for (int i = 0; i < count; i++)
        if (loads_masters(&nodes[i]))
            all[convs++] = (amp_conv_weights){ nodes[i].conv, nodes[i].desc.weights };
    if (backend->range_push) backend->range_push(backend, "weights");
    amp_status status = backend->conv_load_weights(backend, all, convs, &failed, error);
    if (backend->range_pop) backend->range_pop(backend);
    free(all);
    return status == AMP_OK || failed < 0 ? status : name(with_conv(nodes, failed), "weights", status, error);
}

amp_status amp_nodes_load_weights(amp_node *nodes, int count, amp_backend *backend, amp_error *error)
{
    AMP_TRY(load_convs(nodes, count, backend, error));
    for (int i = 0; i < count; i++) {
        if (!nodes[i].folded) continue;
        begin(&nodes[i], backend, "weights");
        AMP_TRY(end(&nodes[i], backend, "weights", amp_fold_load(&nodes[i], backend, error), error));
    }
    return AMP_OK;
}

void amp_node_drop_weights(amp_node *node, amp_backend *backend)
{
    if (node->conv) backend->conv_drop_weights(backend, node->conv);
    if (node->folded_bias) backend->release(backend, node->folded_bias);
    node->folded_bias = NULL;
}

static amp_status forward(amp_node *node, amp_call *call, amp_error *error)
{
    amp_tensor x, y;
    if (node->desc.kind->forward) return node->desc.kind->forward(node, call, error);
    AMP_TRY(amp_value_read(call, node->inputs[0], node->form, &x, error));
    y = amp_value_write(node->output);
    return node->desc.kind->map(node, call, &x, &y, error);
}

static amp_status backward(amp_node *node, amp_call *call, amp_error *error)
{
    int accumulate;
    if (node->desc.kind->backward) return node->desc.kind->backward(node, call, error);
    if (!node->inputs[0]->wants_delta) return AMP_OK;
    amp_tensor dy = amp_value_delta(node->output, node->form);
    amp_tensor dx = amp_value_delta_target(node->inputs[0], node->form, &accumulate);
    return node->desc.kind->map_delta(node, call, &dy, &dx, accumulate, error);
}

amp_status amp_node_forward(amp_node *node, amp_call *call, amp_error *error)
{
    begin(node, call->backend, "forward");
    return end(node, call->backend, "forward", forward(node, call, error), error);
}

void amp_node_exchange(amp_node *node)
{
    amp_value_exchange(node->output);
    if (node->recompute != AMP_RECOMPUTE_ALL) return;
    void *other = node->pre_activation_again;
    node->pre_activation_again = node->pre_activation;
    node->pre_activation = other;
}

amp_status amp_node_forward_again(amp_node *node, amp_call *call, amp_error *error)
{
    amp_call again = *call;
    again.again = 1;
    begin(node, call->backend, "forward again");
    amp_node_exchange(node);
    amp_status status = AMP_OK;
    if (node->recompute == AMP_RECOMPUTE_ALL) {
        status = forward(node, &again, error);
    } else {
        amp_value_write(node->output);
        status = amp_epilogue_forward(node, &again, error);
    }
    return end(node, call->backend, "forward again", status, error);
}

amp_status amp_node_backward(amp_node *node, amp_call *call, amp_error *error)
{
    begin(node, call->backend, "backward");
    return end(node, call->backend, "backward", backward(node, call, error), error);
}

void amp_node_release(amp_node *node, amp_backend *backend)
{
    if (node->conv) backend->conv_destroy(backend, node->conv);
    if (node->folded_bias) backend->release(backend, node->folded_bias);
    if (node->table) backend->release(backend, node->table);
    node->conv = NULL;
    node->folded_bias = NULL;
    node->table = NULL;
}
