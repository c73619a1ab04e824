/* The functions of plan_facts.h: a plan's bytes and casts. */
#include "plan_facts.h"

amp_plan_bytes amp_plan_bytes_of(const amp_plan *plan, int layer)
{
    const amp_value *value = layer < 0 ? &plan->image : &plan->values[layer];
    const amp_node *node = layer < 0 ? NULL : &plan->nodes[layer];
    amp_plan_bytes sum = { 0, 0, 0, 0 };
    for (int i = 0; i < plan->arena.count; i++) {
        const amp_arena_request *request = &plan->arena.requests[i];
        const void *slot = request->slot;
        for (int form = 0; form < AMP_FORMS; form++) {
            if (slot == &value->data[form])
                *(form == (int)value->home ? &sum.output : &sum.copies) += request->bytes;
            if (slot == &value->delta[form]) sum.deltas += request->bytes;
        }
        int is_own = node && slot >= (const void *)node && slot < (const void *)(node + 1);
        if (is_own && slot != &node->pre_activation_again)
            *(request->is_kept ? &sum.kept : &sum.deltas) += request->bytes;
        if (node && node->desc.kind->makes_loss && slot == &plan->results)
            sum.kept += request->bytes / (size_t)plan->result_count;
    }
    return sum;
}

/* ---- casts ---- */

static int is_read_by_host(const amp_plan *plan, const amp_value *value)
{
    return value->index >= 0 && (value->index == plan->output_layer
                                 || plan->nodes[value->index].desc.is_truth);
}

/* Whether input k of node i is the first to read its value in this node's form. The host reads before all
 * nodes. */
static int is_first_reader(const amp_plan *plan, int i, int k)
{
    const amp_value *value = plan->nodes[i].inputs[k];
    amp_form form = plan->nodes[i].form;
    if (form == AMP_FORM_PLAIN && is_read_by_host(plan, value)) return 0;
    for (int other = value->index + 1; other <= i; other++) {
        const amp_node *node = &plan->nodes[other];
        int before = other == i ? k : node->desc.input_count;
        for (int m = 0; m < before; m++) if (node->inputs[m] == value && node->form == form) return 0;
    }
    return 1;
}

static int comes_back(const amp_plan *plan, const amp_value *value, amp_form form)
{
    if (!value->wants_delta) return 0;
    for (int i = value->index + 1; i < plan->count; i++) {
        const amp_node *node = &plan->nodes[i];
        if (node->form != form || !node->computes_backward) continue;
        for (int k = 0; k < node->desc.input_count; k++) if (node->inputs[k] == value) return 1;
    }
    return 0;
}

typedef struct cast_list { amp_plan_cast *casts; int room, count; } cast_list;

static void add(cast_list *list, const amp_plan *plan, const amp_value *value, int reader, amp_form to)
{
    if (value->home == to) return;
    if (list->count < list->room)
        list->casts[list->count] = (amp_plan_cast){ .producer = value->index, .reader = reader,
                                                    .from = value->home, .to = to,
                                                    .backward = comes_back(plan, value, to),
                                                    .elements = amp_shape_count(value->shape) };
    list->count++;
}

int amp_plan_casts(const amp_plan *plan, amp_plan_cast *casts, int room)
{
    cast_list list = { casts, room, 0 };
    for (int i = 0; i < plan->count; i++) {
        const amp_node *node = &plan->nodes[i];
        for (int k = 0; k < node->desc.input_count; k++)
            if (is_first_reader(plan, i, k)) add(&list, plan, node->inputs[k], i, node->form);
        if (is_read_by_host(plan, node->output)) add(&list, plan, node->output, -1, AMP_FORM_PLAIN);
    }
    return list.count;
}
