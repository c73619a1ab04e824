/* Chooses what to recompute: an outline (a plan without backend objects) of each choice shows the size of the
 * arena and the arithmetic that backward would repeat. */
#include "recompute.h"

#include <string.h>

/* ---- cost ---- */

/* A forward without matrix products counts as four operations per output element. */
static double operations_of(const amp_node *node)
{
    return node->desc.kind->products ? amp_products_operations(node->desc.kind->products(node))
                                     : 4 * (double)amp_shape_count(node->output->shape);
}

amp_recompute_cost amp_recompute_cost_of(const amp_plan *plan)
{
    amp_recompute_cost cost = { 0, 0 };
    for (int i = 0; i < plan->count; i++) cost.forward += operations_of(&plan->nodes[i]);
    for (int k = 0; k < plan->again_count; k++) {
        const amp_node *node = &plan->nodes[plan->again[k]];
        cost.again += node->recompute == AMP_RECOMPUTE_ALL ? operations_of(node)
                                                           : 4 * (double)amp_shape_count(node->output->shape);
    }
    return cost;
}

/* ---- choices ---- */

typedef struct layer_facts {
    int last;                 /* the last layer that reads this layer's output; if none does, this layer */
    int segment;
    size_t crossing;          /* bytes of the activations that would cross a cut just before this layer */
} layer_facts;

typedef struct chooser {
    amp_plan_request request; /* the request that outlines are made from */
    amp_plan *whole;          /* the plan that recomputes nothing */
    layer_facts *layers;
    amp_recompute *best;      /* the best choice so far, per layer */
    size_t bytes;             /* the arena's size with `best` */
    double again;             /* the operations that `best` repeats */
} chooser;

static amp_recompute cheap_recompute(const amp_node *node)
{
    amp_recompute repeats = node->desc.kind->repeats;
    return repeats == AMP_RECOMPUTE_OUTPUT && !amp_node_keeps_sums(node) ? AMP_RECOMPUTE_NOTHING : repeats;
}

static size_t bytes_of(const amp_node *node)
{
    return amp_shape_count(node->output->shape) * amp_dtype_size(node->dtype);
}

static void find_readers(chooser *c)
{
    const amp_plan *plan = c->whole;
    for (int i = 0; i < plan->count; i++) {
        const amp_layer_desc *d = &plan->nodes[i].desc;
        c->layers[i].last = i;
        for (int k = 0; k < d->input_count; k++)
            if (d->inputs[k] >= 0) c->layers[d->inputs[k]].last = i;
    }
    for (int i = 0; i < plan->count; i++)
        for (int at = i + 1; at <= c->layers[i].last; at++)
            c->layers[at].crossing += bytes_of(&plan->nodes[i]);
}

/* Cuts the network into segments whose activations have about the same number of bytes. Each cut is moved to
 * a nearby layer where few bytes cross it. */
static void cut(const chooser *c, int segments)
{
    const amp_plan *plan = c->whole;
    double all = 0, before = 0;
    for (int i = 0; i < plan->count; i++) {
        all += (double)bytes_of(&plan->nodes[i]);
        c->layers[i].segment = 0;
    }
    for (int s = 1, at = 0; s < segments; s++) {
        int best = -1;
        size_t least = 0;
        for (; at < plan->count && before <= all * (s + .5) / segments;
             before += (double)bytes_of(&plan->nodes[at++])) {
            size_t bytes = c->layers[at].crossing;
            if (before < all * (s - .5) / segments || (best >= 0 && bytes >= least)) continue;
            best = at;
            least = bytes;
        }
        for (int i = best; best > 0 && i < plan->count; i++) c->layers[i].segment = s;
    }
}

/* Fills `chosen`. A layer of the first `repeated` segments recomputes everything, unless a later segment
 * reads its output; any other layer recomputes what is cheap. Layers without backward (frozen ones) recompute
 * nothing, because all frozen layers before them would have to be repeated. A layer with checkpoint=1 always
 * recomputes everything. */
static void mark(const chooser *c, int repeated, amp_recompute *chosen)
{
    for (int i = 0; i < c->whole->count; i++) {
        const amp_node *node = &c->whole->nodes[i];
        int segment = c->layers[i].segment, inside = c->layers[c->layers[i].last].segment == segment;
        chosen[i] = segment < repeated && inside ? AMP_RECOMPUTE_ALL : cheap_recompute(node);
        if (!node->computes_backward) chosen[i] = AMP_RECOMPUTE_NOTHING;
        if (node->desc.recompute) chosen[i] = AMP_RECOMPUTE_ALL;
    }
}

static amp_status judge(const chooser *c, const amp_recompute *chosen, size_t *bytes, double *again,
                        amp_error *error)
{
    amp_plan *plan;
    amp_plan_request request = c->request;
    request.recompute = chosen;
    AMP_TRY(amp_plan_create(&request, &plan, error));
    *bytes = plan->arena.total;
    *again = amp_recompute_cost_of(plan).again;
    amp_plan_free(plan, request.call.backend);
    return AMP_OK;
}

/* Cuts the network into `segments`, and recomputes more and more of them until the plan fits into the budget.
 * As long as no choice fits, c->best is the one that needs the least memory. Then it is, of the choices that
 * fit, the one that repeats the least arithmetic. */
static amp_status fit(chooser *c, int segments, size_t budget, amp_error *error)
{
    amp_status status = AMP_OK;
    amp_recompute *chosen = amp_allocated(calloc((size_t)c->whole->count + 1, sizeof *chosen));
    cut(c, segments);
    for (int repeated = 0, fits = 0; status == AMP_OK && !fits && repeated < segments; repeated++) {
        size_t bytes = 0;
        double again = 0;
        mark(c, repeated, chosen);
        status = judge(c, chosen, &bytes, &again, error);
        fits = bytes <= budget;
        int better = c->bytes <= budget ? fits && again < c->again : bytes < c->bytes;
        if (status != AMP_OK || !better) continue;
        c->bytes = bytes;
        c->again = again;
        memcpy(c->best, chosen, (size_t)c->whole->count * sizeof *chosen);
    }
    free(chosen);
    return status;
}

static amp_status choose(chooser *c, const amp_recompute_settings *settings, amp_error *error)
{
    static const int tried[] = { 2, 3, 4, 6, 8, 12, 16, 24 };
    c->bytes = c->whole->arena.total;
    for (int i = 0; i < c->whole->count; i++)
        c->best[i] = c->whole->nodes[i].desc.recompute ? AMP_RECOMPUTE_ALL : AMP_RECOMPUTE_NOTHING;
    if (!settings->on) return AMP_OK;
    if (settings->segments > 0) {
        cut(c, settings->segments);
        mark(c, settings->segments - 1, c->best); /* recomputing the final segment saves nothing */
        return AMP_OK;
    }
    if (c->bytes > settings->budget) AMP_TRY(fit(c, 1, settings->budget, error));
    /* If the plan fits without cuts, do not cut: this would repeat more operations. */
    if (c->bytes <= settings->budget) return AMP_OK;
    for (size_t k = 0; k < sizeof tried / sizeof *tried && tried[k] <= c->whole->count / 2; k++)
        AMP_TRY(fit(c, tried[k], settings->budget, error));
    return AMP_OK;
}

static int has_marks(const amp_network_desc *network)
{
    for (int i = 0; i < network->count; i++) if (network->layers[i].recompute) return 1;
    return 0;
}

amp_status amp_recompute_choose(const amp_plan_request *request, const amp_recompute_settings *settings,
                                amp_recompute *chosen, amp_error *error)
{
    if (!request->key->keeps_state || !(settings->on || has_marks(request->network))) return AMP_OK;
    chooser c = { .request = *request, .best = chosen };
    c.request.call.outline = 1;
    c.request.recompute = NULL;
    AMP_TRY(amp_plan_create(&c.request, &c.whole, error));
    c.layers = amp_allocated(calloc((size_t)c.whole->count + 1, sizeof *c.layers));
    find_readers(&c);
    amp_status status = choose(&c, settings, error);
    free(c.layers);
    amp_plan_free(c.whole, request->call.backend);
    return status;
}
