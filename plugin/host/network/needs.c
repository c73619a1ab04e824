/* Computes the memory that a training takes: see needs.h. */
#include "needs.h"

#include "../fork_commands.h"
#include "../program/memory.h"
#include "state.h"

amp_status amp_host_outline(struct network *net, int batch, amp_dtype dtype,
                            const amp_recompute_settings *recompute, amp_plan **out, amp_error *error)
{
    struct darknet_amp *amp = amp_fork_state(net);
    amp_plan_key key = amp_host_plan_key(net, batch, 1);
    amp->net = net; /* the engine asks for the layers of this network */
    return amp_engine_outline(amp->engine, &key, dtype, recompute, out, error);
}

static size_t input_bytes(const amp_view *v, int images)
{
    return ((size_t)v->inputs + (size_t)v->truths) * (size_t)images * sizeof(float);
}

amp_status amp_host_footprint(struct network *net, int batch, amp_dtype dtype, amp_footprint *out,
                              amp_error *error)
{
    amp_view v = amp_fork_view(net);
    amp_engine *engine = amp_fork_state(net)->engine;
    amp_plan *plan;
    AMP_TRY(amp_host_outline(net, batch, dtype, &engine->settings.recompute, &plan, error));
    amp_recompute_cost cost = amp_recompute_cost_of(plan);
    *out = (amp_footprint){ .arena = plan->arena.total, .again = cost.again / cost.forward,
                            .input = input_bytes(&v, batch) };
    for (int i = 0; i < plan->count; i++) out->buffers += amp_fork_buffer_bytes(net, i, batch, plan);
    amp_plan_free(plan, engine->backend);
    return AMP_OK;
}

size_t amp_host_stock_footprint(const struct network *net, int batch)
{
    amp_view v = amp_fork_view(net);
    size_t bytes = input_bytes(&v, batch);
    for (int i = 0; i < v.layers; i++) bytes += amp_fork_stock_bytes(net, i, batch);
    return bytes;
}

size_t amp_host_loaded_bytes(const struct network *net, int images)
{
    amp_view v = amp_fork_view(net);
    return v.on_gpu || !v.w || !v.h ? 0 : 2 * input_bytes(&v, images);
}

/* ---- a training ---- */

int amp_node_facts(const amp_node *node, const amp_backend *backend, amp_conv_facts *facts)
{
    if (!node->conv || !backend->conv_facts) return 0;
    backend->conv_facts(backend, node->conv, facts);
    return 1;
}

static size_t weights_of(const amp_node *node)
{
    size_t weights = 0;
    for (int k = 0; k < node->desc.param_count; k++)
        if (node->desc.params[k].decays) weights += node->desc.params[k].count;
    return weights;
}

/* For an outline, whose nodes have no convolutions, returns the upper limit: one copy in a layout for
 * forward, and one in a layout for backward. */
static size_t convolution_copies(const amp_node *node, const amp_backend *backend, amp_dtype dtype)
{
    amp_conv_facts facts;
    amp_dtype runs_in = dtype == AMP_FP32 ? AMP_FP32 : node->dtype;
    if (!amp_node_facts(node, backend, &facts)) return 2 * weights_of(node) * amp_dtype_size(runs_in);
    return dtype == AMP_FP32 ? facts.fp32_weight_bytes : facts.weight_bytes;
}

size_t amp_node_copies(const amp_node *node, const amp_backend *backend, amp_dtype dtype)
{
    if (node->desc.kind->products) return convolution_copies(node, backend, dtype);
    /* if the backend computes the products of a layer of Darknet's code, it keeps a copy of each weight
     * array */
    if (!node->desc.lends_products || node->products == AMP_FP32 || dtype == AMP_FP32) return 0;
    return weights_of(node) * amp_dtype_size(backend->gemm_computes(backend, node->products));
}

static size_t parameter_bytes(const amp_engine *engine)
{
    const amp_parameters *all = &engine->parameters;
    size_t params = 0, statistics = 0;
    for (int i = 0; i < all->param_count; i++) params += all->params[i].count;
    for (int i = 0; i < all->statistics_count; i++) statistics += all->statistics[i].count;
    return (params * (all->adam ? 5 : 3) + statistics * 2) * sizeof(float);
}

static size_t workspace_of(const struct network *net, const amp_plan *plan, const amp_backend *backend)
{
    size_t most = 0;
    for (int i = 0; i < plan->count; i++) {
        amp_conv_facts facts;
        if (amp_node_facts(&plan->nodes[i], backend, &facts) && facts.workspace_bytes > most)
            most = facts.workspace_bytes;
    }
    return most + amp_fork_workspace(net, 0);
}

/* Only the first rank draws charts, but this counts their memory for every rank. */
static size_t chart_bytes(struct network *net)
{
    int classes = amp_fork_box_classes(net);
    return classes < 0 ? 0 : ((size_t)classes + 1) * amp_fork_chart_bytes;
}

amp_status amp_host_needs(const amp_training *t, int pass, amp_needs *out, amp_error *error)
{
    amp_view v = amp_fork_view(t->net);
    amp_engine *engine = amp_fork_state(t->net)->engine;
    const amp_backend *backend = engine->backend;
    int images = pass > t->images ? pass : t->images;
    double area = amp_largest_area(&v);
    *out = (amp_needs){ .parameters = parameter_bytes(engine),
                        .workspace = workspace_of(t->net, t->plan, backend),
                        .loaded = (size_t)((double)amp_host_loaded_bytes(t->net, images) * area),
                        .program = v.on_gpu ? 0 : amp_host_program_bytes(),
                        .loop = v.on_gpu ? 0 : t->pictures + chart_bytes(t->net), .area = area };
    for (int i = 0; i < t->plan->count; i++)
        out->copies += amp_node_copies(&t->plan->nodes[i], backend, t->dtype);
    AMP_TRY(amp_host_footprint(t->net, pass * amp_time_steps(&v), t->dtype, &out->pass, error));
    out->pass.arena = (size_t)((double)out->pass.arena * area);
    out->pass.buffers = (size_t)((double)out->pass.buffers * area);
    out->pass.input = (size_t)((double)out->pass.input * area);
    return AMP_OK;
}

size_t amp_host_stock_needs(const amp_training *t, int pass)
{
    amp_view v = amp_fork_view(t->net);
    size_t floats = 0, each = v.adam ? 4 : 2; /* floats per weight: the weight and its gradient (in Darknet,
                                                 the gradient's array also keeps the momentum); with Adam, two
                                                 moments too */
    size_t grows = amp_fork_workspace(t->net, 1) + amp_host_stock_footprint(t->net, pass * amp_time_steps(&v))
                 + amp_host_loaded_bytes(t->net, pass > t->images ? pass : t->images);
    for (int i = 0; i < t->plan->count; i++) {
        const amp_layer_desc *d = &t->plan->nodes[i].desc;
        for (int k = 0; k < d->param_count; k++) floats += d->params[k].count * each;
        for (int k = 0; k < d->statistics_count; k++) floats += d->statistics[k].count;
    }
    return floats * sizeof(float) + (size_t)((double)grows * amp_largest_area(&v));
}
