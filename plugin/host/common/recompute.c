/* Makes the engine's settings of checkpoint= and memory=, and says what they save: see recompute.h. */
#include "recompute.h"

#include "fits.h"

amp_status amp_host_choose_recompute(struct network *net, amp_error *error)
{
    struct darknet_amp *amp = amp_fork_state(net);
    const amp_config *config = amp->config;
    amp_recompute_settings settings = { .on = config->checkpoint != AMP_CHECKPOINT_OFF };
    if (settings.on && config->checkpoint != AMP_CHECKPOINT_AUTO) settings.segments = config->checkpoint;
    if (settings.on && config->checkpoint == AMP_CHECKPOINT_AUTO)
        AMP_TRY(amp_host_arena_budget(net, (size_t)config->memory, &settings.budget, error));
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
