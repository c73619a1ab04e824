/* The plans of an engine: one per shape and mode, built on first use and kept while there is room. One of
 * them at a time is active. */
#include "engine.h"

/* Whether the plan folds weights that have changed since it was made. */
static int is_outdated(const amp_engine *engine, const amp_plan *plan)
{
    return plan->key.folds && plan->planned_version != engine->weights_version;
}

amp_plan *amp_engine_find_plan(const amp_engine *engine, const amp_plan_key *key)
{
    for (int i = 0; i < engine->plan_count; i++) {
        const amp_plan_key *k = &engine->plans[i]->key;
        if (is_outdated(engine, engine->plans[i])) continue;
        if (k->batch == key->batch && k->w == key->w && k->h == key->h && k->keeps_state == key->keeps_state
            && k->image_delta == key->image_delta && k->frozen == key->frozen && k->folds == key->folds)
            return engine->plans[i];
    }
    return NULL;
}

static void free_plan(amp_engine *engine, int i)
{
    if (engine->active == engine->plans[i]) engine->active = NULL;
    amp_plan_free(engine->plans[i], engine->backend);
    engine->plans[i] = engine->plans[--engine->plan_count];
}

/* Frees outdated plans, and the least recently used one if there is no room for another. */
static void free_stale_plans(amp_engine *engine)
{
    int oldest = 0;
    for (int i = engine->plan_count - 1; i >= 0; i--)
        if (is_outdated(engine, engine->plans[i])) free_plan(engine, i);
    for (int i = 1; i < engine->plan_count; i++)
        if (engine->plans[i]->last_use < engine->plans[oldest]->last_use) oldest = i;
    if (engine->plan_count == AMP_MAX_PLANS) free_plan(engine, oldest);
}

void amp_engine_free_plans(amp_engine *engine)
{
    while (engine->plan_count) free_plan(engine, engine->plan_count - 1);
}

static amp_status make_plan(amp_engine *engine, const amp_plan_key *key, amp_dtype dtype,
                            const amp_recompute_settings *settings, int outline, amp_plan **out,
                            amp_error *error)
{
    amp_network_desc network;
    engine->host.describe(engine->host.context, key->batch, &network);
    amp_recompute *recompute = amp_allocated(calloc((size_t)network.count + 1, sizeof *recompute));
    amp_plan_request request = { &network, key, dtype, engine->parameters.gradients,
                                 amp_engine_call(engine, key), recompute };
    request.call.outline = outline;
    amp_status status = settings ? amp_recompute_choose(&request, settings, recompute, error) : AMP_OK;
    if (status == AMP_OK) status = amp_plan_create(&request, out, error);
    free(recompute);
    amp_network_desc_free(&network);
    return status;
}

amp_status amp_engine_plan_for(amp_engine *engine, const amp_plan_key *key, const amp_plan **out,
                               amp_error *error)
{
    amp_plan *plan = amp_engine_find_plan(engine, key);
    *out = plan;
    if (plan) return AMP_OK;
    free_stale_plans(engine);
    if (key->keeps_state) {
        AMP_TRY(amp_engine_prepare_training(engine, error));
        engine->trains = 1;
    }
    AMP_TRY(make_plan(engine, key, engine->settings.dtype, &engine->settings.recompute, 0, &plan, error));
    plan->last_use = engine->uses;
    plan->planned_version = engine->weights_version;
    engine->plans[engine->plan_count++] = plan;
    *out = plan;
    return AMP_OK;
}

amp_status amp_engine_outline(amp_engine *engine, const amp_plan_key *key, amp_dtype dtype,
                              const amp_recompute_settings *recompute, amp_plan **out, amp_error *error)
{
    return make_plan(engine, key, dtype, recompute, 1, out, error);
}

/* All plans share one block of memory, since only one at a time is between forward and backward. */
amp_status amp_engine_activate(amp_engine *engine, amp_plan *plan, amp_error *error)
{
    if (engine->active == plan) return AMP_OK;
    amp_parallel_plan_changes(&engine->parallel);
    amp_recording_drop(&engine->recording, engine->backend);
    for (int i = 0; i < engine->plan_count; i++) {
        amp_plan *other = engine->plans[i];
        for (int k = 0; other != plan && k < other->count; k++)
            amp_node_drop_weights(&other->nodes[k], engine->backend);
        if (other != plan) other->weights_version = 0;
    }
    engine->active = NULL;
    if (engine->block_bytes < plan->arena.total) {
        engine->backend->release(engine->backend, engine->block);
        engine->block = NULL;
        engine->block_bytes = 0;
        AMP_TRY(engine->backend->allocate(engine->backend, plan->arena.total, &engine->block, error));
        engine->block_bytes = plan->arena.total;
    }
    amp_arena_bind(&plan->arena, engine->block);
    AMP_TRY(engine->host.prepare_buffers(engine->host.context, plan->needs_output, plan->needs_delta, error));
    for (int i = 0; i < plan->count; i++) {
        plan->values[i].data[AMP_FORM_PLAIN] = plan->needs_output[i]
            ? engine->host.output(engine->host.context, i) : NULL;
        plan->values[i].delta[AMP_FORM_PLAIN] = plan->needs_delta[i]
            ? engine->host.delta(engine->host.context, i) : NULL;
    }
    engine->active = plan;
    return AMP_OK;
}

amp_status amp_engine_refresh_weights(amp_engine *engine, amp_plan *plan, amp_error *error)
{
    if (plan->weights_version == engine->weights_version) return AMP_OK;
    AMP_TRY(amp_nodes_load_weights(plan->nodes, plan->count, engine->backend, error));
    plan->weights_version = engine->weights_version;
    return AMP_OK;
}
