/* Builds a plan. amp_plan_create chooses, in this order: each layer's form (autocast); where batch norm is
 * folded into weights; which layers compute backward; which outputs and host fp32 buffers are needed; where
 * backward repeats a layer's forward (activation checkpointing); which shortcuts are added in batch norm's
 * pass; which deltas share a buffer. Finally it finds each buffer's lifetime, so that buffers can share
 * memory.
 *
 * Time is counted in layers: with n layers, layer i's forward is at time i, its backward at 2n-1-i. A
 * repeated forward is at node->again_time: just before the first backward that reads its results, directly or
 * through other repeated layers. The layer's output then has a second lifetime, from again_time on. */
#include "plan.h"

#include "../layers/epilogue.h"

void amp_network_desc_free(amp_network_desc *network)
{
    for (int i = 0; i < network->count; i++) {
        amp_layer_desc *d = &network->layers[i];
        free(d->inputs);
        free((void *)d->yolo);
        free(d->params);
        free(d->statistics);
    }
    free(network->layers);
    *network = (amp_network_desc){ 0 };
}

static int larger(int a, int b) { return a > b ? a : b; }

static int backward_time(const amp_plan *plan, int layer)
{
    return plan->key.keeps_state ? 2 * plan->count - 1 - layer : -1;
}

/* Points each node to the values that it reads and writes, and copies its description. */
static void link_nodes(amp_plan *plan, const amp_network_desc *network, const amp_gradients *gradients)
{
    int links = 0;
    for (int i = 0; i < plan->count; i++) links += network->layers[i].input_count;
    amp_value **next = plan->links = amp_allocated(calloc((size_t)links + 1, sizeof *plan->links));
    for (int i = 0; i < plan->count; i++) {
        amp_node *node = &plan->nodes[i];
        node->desc = network->layers[i];
        node->index = i;
        node->gradients = &gradients[i];
        node->inputs = next;
        node->output = &plan->values[i];
        for (int k = 0; k < node->desc.input_count; k++) {
            int from = node->desc.inputs[k];
            *next++ = from < 0 ? &plan->image : &plan->values[from];
        }
    }
}

static void choose_forms(amp_plan *plan, amp_dtype low)
{
    int most = 1;
    for (int i = 0; i < plan->count; i++) most = larger(most, plan->nodes[i].desc.input_count);
    amp_form *homes = amp_allocated(malloc((size_t)most * sizeof *homes));
    plan->image.home = AMP_FORM_PLAIN;
    plan->image.index = -1;
    plan->image.low_dtype = low;
    for (int i = 0; i < plan->count; i++) {
        amp_node *node = &plan->nodes[i];
        for (int k = 0; k < node->desc.input_count; k++) homes[k] = node->inputs[k]->home;
        plan->autocast[i] = amp_autocast_of(&node->desc, low, homes);
        node->form = plan->autocast[i].form;
        node->dtype = node->form == AMP_FORM_HALF ? low : AMP_FP32;
        node->products = node->desc.lends_products && !node->desc.keep_fp32 ? low : node->dtype;
        *node->output = (amp_value){ .index = i, .shape = node->desc.output, .low_dtype = low,
                                     .home = node->desc.kind->makes_loss ? AMP_FORM_PLAIN : node->form };
    }
    free(homes);
}

/* A layer computes backward if it has parameters to train, or if one of its inputs wants a delta. The output
 * of a layer that computes backward wants a delta, and so does the image if the caller asks for its delta. */
static void choose_gradients(amp_plan *plan)
{
    int stop = -1;
    for (int i = 0; i < plan->count; i++) if (plan->nodes[i].desc.stops_backward) stop = i;
    plan->image.wants_delta = plan->key.keeps_state && plan->key.image_delta;
    for (int i = 0; i < plan->count; i++) {
        amp_node *node = &plan->nodes[i];
        int wanted = node->desc.param_count > 0;
        if (!node->desc.no_backward)
            for (int k = 0; k < node->desc.input_count; k++) wanted |= node->inputs[k]->wants_delta;
        wanted &= plan->key.keeps_state && i > stop && !node->desc.no_backward;
        node->computes_backward = node->output->wants_delta = wanted;
        for (int k = 0; k < node->desc.input_count; k++)
            node->inputs[k]->delta_parts += wanted && node->inputs[k]->wants_delta;
    }
}

static amp_status choose_folding(amp_plan *plan, amp_backend *backend, amp_error *error)
{
    for (int i = 0; plan->key.folds && i < plan->count; i++) {
        plan->nodes[i].predicts = 1;
        AMP_TRY(amp_fold_choose(&plan->nodes[i], backend, error));
    }
    return AMP_OK;
}

/* Returns how many inputs of later layers read this layer's output. */
static int reads_of(const amp_plan *plan, int layer)
{
    int reads = 0;
    for (int i = layer + 1; i < plan->count; i++) reads += amp_layer_reads(&plan->nodes[i].desc, layer);
    return reads;
}

/* Yolo layers have the network's largest outputs, which Darknet reads only at inference. In training they are
 * not kept (except with image_delta). */
static void choose_outputs(amp_plan *plan)
{
    int trains = plan->key.keeps_state && !plan->key.image_delta;
    for (int i = 0; i < plan->count; i++) {
        int yolo = plan->nodes[i].desc.kind->makes_loss;
        plan->host_reads[i] = yolo ? !trains : i == plan->output_layer;
        if (yolo && reads_of(plan, i)) plan->needs_output[i] = plan->needs_delta[i] = 1;
        if (yolo) plan->nodes[i].result = plan->result_count++;
        plan->loss_count += plan->nodes[i].desc.is_loss || yolo;
    }
}

/* Chooses which host buffers are needed: outputs that the host reads, and outputs and deltas of host layers
 * and of layers that feed them. */
static void choose_host_buffers(amp_plan *plan)
{
    for (int i = 0; i < plan->count; i++) {
        amp_node *node = &plan->nodes[i];
        if (node->desc.is_truth || plan->host_reads[i]) plan->needs_output[i] = 1;
        if (node->form != AMP_FORM_PLAIN) continue;
        plan->needs_output[i] = 1;
        plan->needs_delta[i] = !node->desc.no_backward;
        for (int k = 0; k < node->desc.input_count; k++) {
            int from = node->desc.inputs[k];
            if (from < 0) continue;
            plan->needs_output[from] = 1;
            if (plan->key.keeps_state) plan->needs_delta[from] = 1;
        }
    }
}

/* ---- activation checkpointing ---- */

/* Returns what the layer recomputes if `wanted` is asked for. Host layers and losses recompute nothing: host
 * buffers keep their data, and a loss is computed once per pass. Recomputing only the output needs the sums
 * before the activation; a layer that has not kept these sums recomputes everything. */
static amp_recompute what_can_be_recomputed(const amp_node *node, amp_recompute wanted)
{
    if (node->form == AMP_FORM_PLAIN || node->desc.kind->makes_loss) return AMP_RECOMPUTE_NOTHING;
    return wanted == AMP_RECOMPUTE_OUTPUT && !amp_node_keeps_sums(node) ? AMP_RECOMPUTE_ALL : wanted;
}

/* Makes the results of a layer's forward available at `time`, when backward reads them. If the layer discards
 * them, and no repeat is scheduled yet, schedules one, and does the same for the outputs that the repeat
 * reads. */
static void repeat_forward(amp_plan *plan, int layer, int time)
{
    amp_node *node = layer < 0 ? NULL : &plan->nodes[layer];
    if (!node || node->recompute == AMP_RECOMPUTE_NOTHING || node->again_time >= 0) return;
    node->again_time = time;
    for (int k = 0; node->recompute == AMP_RECOMPUTE_ALL && k < node->desc.input_count; k++)
        repeat_forward(plan, node->desc.inputs[k], time);
    plan->again[plan->again_count++] = layer;
}

static void choose_recomputation(amp_plan *plan, const amp_recompute *recompute)
{
    for (int i = 0; i < plan->count; i++) {
        amp_node *node = &plan->nodes[i];
        node->again_time = -1;
        if (recompute && plan->key.keeps_state) node->recompute = what_can_be_recomputed(node, recompute[i]);
    }
    for (int i = plan->count - 1; i >= 0; i--) {
        const amp_node *node = &plan->nodes[i];
        if (!node->computes_backward) continue;
        for (int k = 0; amp_node_reads_input(node) && k < node->desc.input_count; k++)
            repeat_forward(plan, node->desc.inputs[k], backward_time(plan, i));
        if (amp_node_reads_output(node)
            || (node->recompute == AMP_RECOMPUTE_ALL && amp_node_keeps_sums(node)))
            repeat_forward(plan, i, backward_time(plan, i));
    }
}

/* ---- batch norm and shortcut in one pass over memory ---- */

/* Returns how many inputs, from the first on, have the same delta as the output. */
static int passed_deltas(const amp_node *node)
{
    return node->desc.kind->passes_delta ? node->desc.kind->passes_delta(node) : 0;
}

static int is_plain_sum(const amp_node *node) { return passed_deltas(node) == 2; }

/* Finds batch norms whose output is never written to memory, because only a shortcut reads it: the shortcut's
 * forward normalizes and adds in one pass. The backend must be able to do this (adds_to_batchnorm). */
static void choose_joint_norms(amp_plan *plan, const amp_backend *backend)
{
    for (int i = 0; backend->adds_to_batchnorm && i < plan->count; i++) {
        amp_node *node = &plan->nodes[i];
        int from = is_plain_sum(node) ? node->desc.inputs[0] : -1;
        if (from < 0 || plan->needs_output[from] || reads_of(plan, from) != 1) continue;
        amp_node *x = &plan->nodes[from];
        if (x->form != node->form || node->recompute != AMP_RECOMPUTE_NOTHING || !amp_epilogue_can_add(x))
            continue;
        x->leaves_norm = 1;
        node->norm_of = x;
    }
}

/* ---- shared deltas ---- */

/* Returns when a layer adds to the deltas of its inputs: in forward if it is a loss that AMP computes, else
 * in backward. */
static int delta_time(const amp_plan *plan, const amp_node *node)
{
    return node->desc.kind->makes_loss ? node->index : backward_time(plan, node->index);
}

/* Whether, before y's backward, only this shortcut (s = y + x) adds to x's delta. */
static int is_only_delta_until(const amp_plan *plan, const amp_node *shortcut, const amp_value *x, int y)
{
    for (int i = 0; i < plan->count; i++) {
        const amp_node *node = &plan->nodes[i];
        for (int k = 0; node != shortcut && node->computes_backward && k < node->desc.input_count; k++)
            if (node->inputs[k] == x && delta_time(plan, node) < backward_time(plan, y)) return 0;
    }
    return 1;
}

/* In a plain sum s = y + x, the deltas of y and x equal that of s. If only the sum reads y, all three share
 * one buffer, to which x's other readers add. y's node then gets keeps_delta: its backward must not change
 * the buffer. */
static void choose_kept_deltas(amp_plan *plan)
{
    for (int i = 0; i < plan->count; i++) {
        const amp_node *node = &plan->nodes[i];
        if (!node->computes_backward || !is_plain_sum(node)) continue;
        const amp_value *y = node->inputs[0], *x = node->inputs[1];
        if (y->index <= x->index || x->index < 0 || y->delta_parts != 1 || !x->wants_delta
            || y->home != node->form || x->home != node->form) continue;
        plan->nodes[y->index].keeps_delta = amp_epilogue_changes_delta(&plan->nodes[y->index])
            && is_only_delta_until(plan, node, x, y->index);
    }
}

/* ---- lifetimes ---- */

/* The first and the last time of use; both -1: never. */
typedef struct life { int first, last; } life;

static void extend(life *l, int time)
{
    if (time < 0) return;
    if (l->first < 0 || time < l->first) l->first = time;
    l->last = larger(l->last, time);
}

/* Finds when each form of a value is read. lives[0]: reads of what forward writes; lives[1]: reads of what a
 * repeated forward writes. */
static void find_reads(const amp_plan *plan, const amp_value *value, life lives[2][AMP_FORMS])
{
    int again = value->index < 0 ? -1 : plan->nodes[value->index].again_time;
    for (int i = value->index + 1; i < plan->count; i++) {
        const amp_node *node = &plan->nodes[i];
        int backward = amp_node_reads_input(node) && node->computes_backward ? backward_time(plan, i) : -1;
        int repeated = node->recompute == AMP_RECOMPUTE_ALL ? node->again_time : -1;
        for (int k = 0; k < node->desc.input_count; k++) {
            if (node->inputs[k] != value) continue;
            extend(&lives[0][node->form], i);
            extend(&lives[again >= 0][node->form], backward);
            extend(&lives[again >= 0][node->form], repeated);
        }
    }
}

/* Requests memory for a value's data in each form that is read. produced: the time of its computation. */
static void request_data(amp_plan *plan, amp_value *value, const life reads[AMP_FORMS], int produced,
                         void **slots)
{
    for (int form = 0; form < AMP_FORM_PLAIN; form++) {
        life l = reads[form];
        if (form == (int)value->home) {
            extend(&l, produced);
            /* A cast to another form reads the home form. It happens at the first use of the other form. */
            for (int other = 0; other < AMP_FORMS; other++) if (other != form) extend(&l, reads[other].first);
        }
        size_t size = form == AMP_FORM_HALF ? amp_dtype_size(value->low_dtype) : 4;
        if (l.first >= 0)
            amp_arena_request_bytes(&plan->arena, amp_shape_count(value->shape) * size, l.first, l.last,
                                    &slots[form]);
    }
}

static void request_delta(amp_plan *plan, amp_value *value)
{
    int end = backward_time(plan, value->index), first_write[AMP_FORMS] = { -1, -1, -1 };
    for (int i = value->index + 1; i < plan->count; i++) {
        const amp_node *node = &plan->nodes[i];
        int start = delta_time(plan, node);
        for (int k = 0; node->computes_backward && k < node->desc.input_count; k++)
            if (node->inputs[k] == value && (first_write[node->form] < 0 || start < first_write[node->form]))
                first_write[node->form] = start;
    }
    for (int form = 0; form < AMP_FORM_PLAIN; form++) {
        size_t size = form == AMP_FORM_HALF ? amp_dtype_size(value->low_dtype) : 4;
        if (form != (int)value->home && first_write[form] < 0) continue;
        amp_arena_request_bytes(&plan->arena, amp_shape_count(value->shape) * size,
                                first_write[form] >= 0 ? first_write[form] : end, end, &value->delta[form]);
    }
}

static void request_value(amp_plan *plan, amp_value *value)
{
    life lives[2][AMP_FORMS] = { { { -1, -1 }, { -1, -1 }, { -1, -1 } },
                                 { { -1, -1 }, { -1, -1 }, { -1, -1 } } };
    const amp_node *node = value->index < 0 ? NULL : &plan->nodes[value->index];
    int again = node ? node->again_time : -1;
    find_reads(plan, value, lives);
    if (node && node->computes_backward && amp_node_reads_output(node))
        extend(&lives[again >= 0][value->home], backward_time(plan, value->index));
    request_data(plan, value, lives[0], value->index, value->data);
    if (again >= 0) request_data(plan, value, lives[1], again, value->data_again);
    if (value->wants_delta) request_delta(plan, value);
}

/* A shortcut passes its delta unchanged to its first input. If nothing else reads that input, both deltas
 * share a buffer. If the first input's layer has keeps_delta, the second input's delta is in it too. */
static void share_deltas(amp_plan *plan)
{
    for (int i = 0; i < plan->count; i++) {
        amp_node *node = &plan->nodes[i];
        if (!passed_deltas(node)) continue;
        amp_value *x = node->inputs[0];
        if (x->index < 0 || x->home != node->form || !node->computes_backward || x->delta_parts != 1)
            continue;
        void **delta = &node->output->delta[node->form];
        amp_arena_share(&plan->arena, delta, &x->delta[node->form]);
        if (plan->nodes[x->index].keeps_delta)
            amp_arena_share(&plan->arena, delta, &node->inputs[1]->delta[node->form]);
    }
}

size_t amp_plan_result_bytes(const amp_plan *plan)
{
    return (size_t)plan->result_count * (sizeof *plan->results + (size_t)plan->key.batch * sizeof(double));
}

double *amp_plan_image_costs(const amp_plan *plan, amp_yolo_result *results)
{
    return (double *)(results + plan->result_count);
}

static amp_status lay_out(amp_plan *plan, amp_call *call, amp_error *error)
{
    request_value(plan, &plan->image);
    for (int i = 0; i < plan->count; i++) {
        amp_node *node = &plan->nodes[i];
        request_value(plan, &plan->values[i]);
        int last_use = node->computes_backward ? backward_time(plan, i) : node->again_time;
        AMP_TRY(amp_node_plan(node, call, &plan->arena, i, last_use, error));
    }
    if (plan->result_count)
        amp_arena_request_bytes(&plan->arena, amp_plan_result_bytes(plan), 0, 2 * plan->count,
                                (void **)&plan->results);
    share_deltas(plan);
    amp_arena_solve(&plan->arena);
    return AMP_OK;
}

/* Allocates a zeroed array with one element per layer. */
static void *per_layer(const amp_network_desc *network, size_t size)
{
    return amp_allocated(calloc((size_t)network->count + 1, size));
}

amp_status amp_plan_create(const amp_plan_request *request, amp_plan **out, amp_error *error)
{
    const amp_network_desc *network = request->network;
    amp_call call = request->call;
    *out = NULL;
    amp_plan *plan = amp_allocated(calloc(1, sizeof *plan));
    plan->nodes = per_layer(network, sizeof *plan->nodes);
    plan->values = per_layer(network, sizeof *plan->values);
    plan->autocast = per_layer(network, sizeof *plan->autocast);
    plan->needs_output = per_layer(network, 1);
    plan->needs_delta = per_layer(network, 1);
    plan->host_reads = per_layer(network, 1);
    plan->again = per_layer(network, sizeof *plan->again);
    plan->key = *request->key;
    plan->count = network->count;
    plan->output_layer = network->output_layer;
    plan->image.shape = network->image;
    link_nodes(plan, network, request->gradients);
    choose_forms(plan, request->low);
    amp_status status = choose_folding(plan, call.backend, error);
    if (status == AMP_OK) {
        choose_gradients(plan);
        choose_outputs(plan);
        choose_host_buffers(plan);
        choose_recomputation(plan, request->recompute);
        choose_joint_norms(plan, call.backend);
        choose_kept_deltas(plan);
        status = lay_out(plan, &call, error);
    }
    if (status != AMP_OK) amp_plan_free(plan, call.backend);
    else *out = plan;
    return status;
}

void amp_plan_free(amp_plan *plan, amp_backend *backend)
{
    if (!plan) return;
    for (int i = 0; i < plan->count; i++) amp_node_release(&plan->nodes[i], backend);
    amp_arena_free(&plan->arena);
    amp_network_desc_free(&plan->network);
    free(plan->nodes);
    free(plan->values);
    free(plan->links);
    free(plan->autocast);
    free(plan->needs_output);
    free(plan->needs_delta);
    free(plan->host_reads);
    free(plan->again);
    free(plan);
}
