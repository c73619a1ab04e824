/* How much memory checkpoint=auto may give to activations: what is allowed, less all that a
 * training takes besides. */
#include "recompute.h"

#include "memory.h"
#include "ranks.h"

/* Masters, momentum and gradients, Adam's two moments, copies of weights in the dtype; running statistics as
 * they are, and as they were after the last good step. */
static size_t parameter_bytes(const struct darknet_amp *amp, const amp_network_desc *described)
{
    amp_engine_state state = amp_engine_state_of(amp->engine);
    size_t each = (3 + 2 * (size_t)(state.adam != 0)) * sizeof(float) + amp_dtype_size(amp->config->dtype),
        bytes = 0;
    for (int i = 0; i < described->count; i++) {
        const amp_layer_desc *d = &described->layers[i];
        for (int k = 0; k < d->param_count; k++) bytes += d->params[k].count * each;
        for (int k = 0; k < d->statistics_count; k++) bytes += d->statistics[k].count * 2 * sizeof(float);
    }
    return bytes;
}

static amp_status bytes_beside_arena(struct darknet_amp *amp, const struct network *net,
                                     const amp_network_desc *described, size_t *bytes, amp_error *error)
{
    amp_view v = amp_fork_view(net);
    amp_plan_key key = { .batch = v.batch, .w = v.w, .h = v.h, .keeps_state = 1 };
    amp_plan *plan;
    size_t input = ((size_t)v.inputs + (size_t)v.truths) * (size_t)v.batch * sizeof(float);
    int images = v.batch / (v.time_steps > 0 ? v.time_steps : 1) * (v.subdivisions / amp_ranks_count());
    AMP_TRY(amp_engine_outline(amp->engine, described, &key, amp->config->dtype, NULL, &plan, error));
    *bytes = parameter_bytes(amp, described) + input + amp_fork_loaded_bytes(net, images)
           + amp_fork_own_workspace(net);
    for (int i = 0; i < v.layers; i++) *bytes += amp_fork_buffer_bytes(net, i, v.batch, plan);
    amp_plan_free(plan, amp_engine_backend(amp->engine));
    return AMP_OK;
}

amp_status amp_host_choose_recompute(struct darknet_amp *amp, const struct network *net,
                                     const amp_network_desc *described, amp_error *error)
{
    const amp_config *config = amp->config;
    amp_recompute_settings settings = { .on = config->checkpoint != AMP_CHECKPOINT_OFF };
    if (settings.on && config->checkpoint != AMP_CHECKPOINT_AUTO) settings.segments = config->checkpoint;
    if (settings.on && config->checkpoint == AMP_CHECKPOINT_AUTO) {
        size_t taken, allowed = (size_t)config->memory;
        AMP_TRY(bytes_beside_arena(amp, net, described, &taken, error));
        /* What is free counts as if the weights were not there yet, as they are counted in `taken`. */
        if (!allowed) allowed = amp_host_available_memory().bytes + parameter_bytes(amp, described);
        settings.budget = allowed > taken ? allowed - taken : 0;
    }
    amp_engine_set_recompute(amp->engine, &settings);
    return AMP_OK;
}

amp_status amp_host_tell_recompute(struct darknet_amp *amp, const amp_network_desc *described,
                                   const amp_plan_key *key, amp_error *error)
{
    const amp_recompute_settings *settings = amp_engine_recompute(amp->engine);
    const amp_plan *plan = amp_engine_find_plan(amp->engine, key);
    amp_plan *whole;
    if (amp->recompute_told || !key->keeps_state || (!settings->on && !plan->again_count)) return AMP_OK;
    amp->recompute_told = 1;
    AMP_TRY(amp_engine_outline(amp->engine, described, key, amp->config->dtype, NULL, &whole, error));
    amp_recompute_cost cost = amp_recompute_cost_of(plan);
    fprintf(stderr, "amp: checkpoint: backward computes %d of %d layers again, %.0f %% of a forward's "
            "arithmetic; activations take %.1f MB instead of %.1f\n", plan->again_count, plan->count,
            100 * cost.again / cost.forward, (double)plan->arena.total / 0x1p20,
            (double)whole->arena.total / 0x1p20);
    if (settings->on && !settings->segments && plan->arena.total > settings->budget)
        fprintf(stderr, "amp: checkpoint=auto: that is %.1f MB more than there is room for; more "
                "subdivisions, or a smaller width and height, take less\n",
                (double)(plan->arena.total - settings->budget) / 0x1p20);
    amp_plan_free(whole, amp_engine_backend(amp->engine));
    return AMP_OK;
}
