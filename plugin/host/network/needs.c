/* Adds up the memory that a training takes: see needs.h. */
#include "needs.h"

#include "../program/memory.h"
#include "state.h"

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

/* For an outline, whose nodes have no convolutions, the upper limit: one layout for forward and one for
 * backward. */
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
    /* A layer of Darknet's own whose products the backend computes: each array has one copy for all its
     * uses. */
    if (!node->desc.lends_products || node->products == AMP_FP32 || dtype == AMP_FP32) return 0;
    return weights_of(node) * amp_dtype_size(backend->gemm_computes(backend, node->products));
}

static size_t parameter_bytes(const amp_engine *engine)
{
    const amp_parameters *all = amp_engine_parameters(engine);
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
    return most + amp_fork_own_workspace(net);
}

amp_status amp_host_needs(struct network *net, const amp_plan *plan, int batch, int images, amp_dtype dtype,
                          amp_needs *out, amp_error *error)
{
    amp_view v = amp_fork_view(net);
    amp_engine *engine = amp_fork_state(net)->engine;
    const amp_backend *backend = amp_engine_backend(engine);
    double area = amp_largest_area(&v);
    *out = (amp_needs){ .parameters = parameter_bytes(engine), .workspace = workspace_of(net, plan, backend),
                        .loaded = (size_t)((double)amp_fork_loaded_bytes(net, images) * area),
                        .program = v.on_gpu ? 0 : amp_host_program_bytes(), .area = area };
    for (int i = 0; i < plan->count; i++) out->copies += amp_node_copies(&plan->nodes[i], backend, dtype);
    AMP_TRY(amp_fork_footprint(net, batch, dtype, &out->pass, error));
    out->pass.arena = (size_t)((double)out->pass.arena * area);
    out->pass.buffers = (size_t)((double)out->pass.buffers * area);
    out->pass.input = (size_t)((double)out->pass.input * area);
    return AMP_OK;
}
