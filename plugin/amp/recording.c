/* Decides which passes are recorded, and when a recording is no longer valid. */
#include "recording.h"

#include <string.h>

/* Returns the first layer that prevents recording, because it does more than queue work on the device; NULL:
 * none. */
static const amp_node *layer_against(const amp_plan *plan)
{
    for (int i = 0; i < plan->count; i++) {
        const amp_layer_ops *kind = plan->nodes[i].desc.kind;
        if (kind == AMP_LAYER_HOST || kind->draws_numbers) return &plan->nodes[i];
    }
    return NULL;
}

int amp_recording_is_off(amp_recording *r, const amp_plan *plan, const amp_backend *b, const char *looks,
                         int ranks)
{
    const amp_node *node = layer_against(plan);
    char why[128];
    if (!r->on) return 1;
    if (!b->pass_begin)
        snprintf(why, sizeof why, "%s", b->range_push ? "a profiler marks each layer"
                                                      : "the backend does not support them");
    else if (looks) snprintf(why, sizeof why, "%s looks at each layer", looks);
    else if (ranks) snprintf(why, sizeof why, "ranks add up their gradients during backward");
    else if (node)
        snprintf(why, sizeof why, "layer %d [%s] %s", node->index, node->desc.type,
                 node->desc.kind == AMP_LAYER_HOST ? "is not computed by AMP" : "draws random numbers");
    else return plan->key.image_delta;
    if (r->line[0]) return 1;
    r->line_is_new = 1;
    snprintf(r->line, sizeof r->line, "no graphs: %s", why);
    return 1;
}

static void free_passes(amp_recorded *one, amp_backend *b)
{
    if (one->forward) b->pass_free(b, one->forward);
    if (one->backward) b->pass_free(b, one->backward);
    *one = (amp_recorded){ 0 };
}

void amp_recording_choose(amp_recording *r, const amp_plan *plan, const amp_call *call, const float *image)
{
    amp_recorded now = { .image = image, .scale = call->loss_scale };
    amp_recorded *one = &r->blocks[r->blocks[0].image && r->blocks[0].image != image];
    for (int i = 0; i < plan->count && !now.labels; i++)
        if (plan->nodes[i].desc.kind->makes_loss) now.labels = call->host->labels(call->host->context, i);
    if (!r->values) r->values = malloc((size_t)plan->count * sizeof *r->values);
    r->current = r->warm && r->values ? one : NULL;
    if (one->image == now.image && one->labels == now.labels && one->scale == now.scale) return;
    free_passes(one, call->backend);
    *one = now;
}

void amp_recording_keep_values(amp_recording *r, const amp_plan *plan)
{
    memcpy(r->values, plan->values, (size_t)plan->count * sizeof *r->values);
    r->image = plan->image;
}

void amp_recording_put_values(const amp_recording *r, amp_plan *plan)
{
    memcpy(plan->values, r->values, (size_t)plan->count * sizeof *r->values);
    plan->image = r->image;
    plan->image.data[AMP_FORM_PLAIN] = (void *)r->current->image;
}

void amp_recording_drop(amp_recording *r, amp_backend *b)
{
    for (int i = 0; i < 2; i++) free_passes(&r->blocks[i], b);
    free(r->values);
    r->values = NULL;
    r->current = NULL;
    r->warm = 0;
}

void amp_recording_fail(amp_recording *r, amp_backend *b, const amp_error *why)
{
    amp_recording_drop(r, b);
    r->on = 0;
    r->line_is_new = 1;
    snprintf(r->line, sizeof r->line, "graphs failed, and this training continues without them: %.300s",
             why->message);
}
