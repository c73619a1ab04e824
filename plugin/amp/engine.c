/* The training step. Read this file first.
 *
 * A step trains on one batch, in one or more subdivisions. For each subdivision the host calls
 * amp_engine_plan_for, amp_engine_forward and amp_engine_backward. After the final subdivision it calls
 * amp_engine_update.
 *
 * amp_engine_plan_for returns the plan for this shape (plan.c), and builds it on first use.
 *
 * amp_engine_forward (engine_passes.c) makes it the active plan. If the masters have changed since the
 * plan's half copies of the weights were made (weights_version), it makes new copies. Then each layer runs.
 * A layer reads its inputs in the form in which it computes: HALF is fp16 or bf16, WIDE is fp32, PLAIN is
 * Darknet's own fp32 buffer. A value is cast to a form once, for all layers that read that form. A loss
 * layer also writes its delta, multiplied by call->loss_scale (layers/host_layer.c for Darknet's losses,
 * layers/yolo.c for AMP's). The loss scale enters a step only there.
 *
 * amp_engine_backward (engine_passes.c) runs the layers from last to first. With activation checkpointing
 * (recompute.c), it repeats the forward of layers whose activations were not kept, just before they are
 * needed. Before a layer runs, the parts of its delta that its consumers have written are added up.
 * Gradients of parameters are summed in fp32 over all subdivisions, and still contain the loss scale.
 *
 * amp_engine_update (engine_update.c) calls the backend's finish_step for all parameters at once
 * (parameters.c). If every gradient and rolling statistic is finite, gradients are unscaled and clipped, SGD
 * or Adam updates the fp32 masters, and the scaler counts a clean step (scaler.c). Otherwise the step has
 * overflowed and is skipped: gradients are zeroed, statistics return to the values that they had before this
 * step, masters and momentum do not change, and the scale backs off. The report names a layer and a tensor
 * that contains inf or NaN. AMP_DIVERGED ends the training: the scale cannot shrink any more, or the weights
 * themselves are inf or NaN. As in GradScaler, a loss that is inf or NaN does not skip the step: if a
 * probability underflows, softmax's loss is inf, but its gradients are finite.
 *
 * A step whose gradients are finite may be a spike (spikes.h). With spike=skip it is dropped: weights,
 * momentum and scale stay unchanged. The backend compares the norm with norm_limit, so that a device can
 * decide without waiting for the CPU.
 *
 * On request, observers (observer.h) and anomaly detection (anomaly.h) see each tensor as it is computed. */
#include "engine.h"

#include <string.h>

/* ---- create and free ---- */

amp_engine *amp_engine_create(const amp_engine_settings *settings, amp_backend *backend, const amp_host *host,
                              const amp_network_desc *network)
{
    amp_engine *engine = amp_allocated(calloc(1, sizeof *engine));
    engine->settings = *settings;
    engine->recording.on = settings->graphs;
    engine->scaler = settings->scaler;
    engine->spikes = settings->spikes;
    engine->backend = backend;
    engine->host = *host;
    engine->weights_version = 1;
    engine->parameters = (amp_parameters){ .backend = backend, .adam = settings->adam,
                                           .adamw = settings->adamw };
    amp_parameters_collect(&engine->parameters, network);
    return engine;
}

void amp_engine_free(amp_engine *engine)
{
    if (!engine) return;
    amp_backend *b = engine->backend;
    amp_recording_drop(&engine->recording, b);
    for (int i = 0; i < engine->plan_count; i++) amp_plan_free(engine->plans[i], b);
    if (engine->block) b->release(b, engine->block);
    amp_parameters_free(&engine->parameters);
    b->destroy(b);
    free(engine);
}

void amp_engine_invalidate(amp_engine *engine)
{
    engine->active = NULL;
    engine->backend->gemm_drop_copies(engine->backend);
}

/* Commits the current rolling statistics too: if they were loaded with the weights, a skipped step must
 * restore them. */
void amp_engine_weights_changed(amp_engine *engine)
{
    engine->weights_version++;
    amp_parameters_keep(&engine->parameters, NULL);
}

amp_status amp_engine_start_anew(amp_engine *engine, amp_error *error)
{
    engine->scaler = engine->settings.scaler;
    engine->spikes = engine->settings.spikes;
    return amp_parameters_reset(&engine->parameters, error);
}

/* ---- passes, ranks ---- */

amp_call amp_engine_call(amp_engine *engine, const amp_plan_key *key)
{
    return (amp_call){ .backend = engine->backend, .host = &engine->host, .training = engine->training,
                       .keeps_state = key->keeps_state, .loss_scale = engine->scaler.scale,
                       .direct = engine->settings.direct,
                       .ranks = engine->training ? amp_parallel_batchnorm(&engine->parallel) : NULL };
}

int amp_engine_ranks(const amp_engine *engine)
{
    return engine->parallel.comm ? engine->parallel.comm->size : 1;
}

void amp_engine_note_first(amp_engine *engine, const amp_anomaly *bad)
{
    if (engine->anomaly.found) return;
    engine->anomaly = *bad;
    engine->anomaly.is_first = 1;
}

void amp_engine_reject_step(amp_engine *engine, const amp_anomaly *why)
{
    if (!engine->rejected.found) engine->rejected = *why;
    if (engine->in_step && engine->watched_step) amp_engine_note_first(engine, why);
}

/* ---- plans: one per shape and mode, built on first use and kept while there is room ---- */

/* Whether the plan folds batch norm into weights that have changed since the plan was built. */
static int is_outdated(const amp_engine *engine, const amp_plan *plan)
{
    return plan->key.folds && plan->planned_version != engine->weights_version;
}

/* Returns the plan for this key, or NULL if it has not been built or is outdated. */
static amp_plan *find_plan(const amp_engine *engine, const amp_plan_key *key)
{
    for (int i = 0; i < engine->plan_count; i++)
        if (!is_outdated(engine, engine->plans[i]) && !memcmp(&engine->plans[i]->key, key, sizeof *key))
            return engine->plans[i];
    return NULL;
}

static void free_plan(amp_engine *engine, int i)
{
    if (engine->active == engine->plans[i]) engine->active = NULL;
    amp_plan_free(engine->plans[i], engine->backend);
    engine->plans[i] = engine->plans[--engine->plan_count];
}

/* Frees outdated plans and, if there is still no room for another, the least recently used one. */
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
    if (status == AMP_OK) (*out)->network = network;
    else amp_network_desc_free(&network);
    free(recompute);
    return status;
}

amp_status amp_engine_plan_for(amp_engine *engine, const amp_plan_key *key, amp_plan **out, amp_error *error)
{
    amp_plan *plan = find_plan(engine, key);
    *out = plan;
    if (plan) return AMP_OK;
    free_stale_plans(engine);
    if (key->keeps_state) {
        AMP_TRY(amp_parameters_take(&engine->parameters, error));
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
