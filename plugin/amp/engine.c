/* Running plans, and the step around them. */
#include "engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PLANS = 16 }; /* random=1 has ten sizes, validation adds a few */

/* Statistics as they were after the last step that happened. */
typedef struct statistics { float *array, *committed; size_t count; } statistics;

struct amp_engine {
    amp_engine_settings settings;
    amp_backend *backend;
    amp_host host;
    amp_plan *plans[MAX_PLANS], *active;
    int plan_count, layer_count;
    unsigned long uses;
    void *block;          /* memory of the active plan's arena */
    size_t block_bytes;
    int weights_stale, training;
    amp_anomaly anomaly;

    amp_param *params;
    char *decays;         /* per parameter: SGD decays it */
    int param_count;
    float *gradient_block, *moment_block;
    size_t gradient_count;
    amp_gradients *gradients;
    statistics *statistics;
    float *committed_block;
    int statistics_count;
};

static amp_step step_of(amp_engine *engine, const amp_plan_key *key)
{
    return (amp_step){ .backend = engine->backend, .host = &engine->host, .training = engine->training,
                       .keeps_state = key->keeps_state };
}

/* ---- parameters ---- */

static void map_gradients(amp_gradients *gradients, const amp_layer_desc *layer, int k, float *gradient)
{
    const float *master = layer->params[k].master;
    gradients->all[k] = gradient;
    if (master == layer->weights) gradients->weights = gradient;
    if (master == layer->biases) gradients->biases = gradient;
    if (master == layer->scales) gradients->scales = gradient;
}

static amp_status collect_parameters(amp_engine *engine, const amp_network_desc *network, amp_error *error)
{
    amp_backend *b = engine->backend;
    size_t elements = 0, committed = 0;
    int params = 0, arrays = 0;
    for (int i = 0; i < network->count; i++) {
        const amp_layer_desc *layer = &network->layers[i];
        params += layer->param_count;
        arrays += layer->statistics_count;
        for (int k = 0; k < layer->param_count; k++) elements += layer->params[k].count;
        for (int k = 0; k < layer->statistics_count; k++) committed += layer->statistics[k].count;
    }
    engine->params = calloc((size_t)params + 1, sizeof *engine->params);
    engine->decays = calloc((size_t)params + 1, 1);
    engine->gradients = calloc((size_t)network->count + 1, sizeof *engine->gradients);
    engine->statistics = calloc((size_t)arrays + 1, sizeof *engine->statistics);
    engine->committed_block = calloc(committed + 1, sizeof(float));
    if (!engine->params || !engine->decays || !engine->gradients || !engine->statistics || !engine->committed_block)
        return amp_fail(error, AMP_NO_MEMORY, "amp: out of memory for the records of %d parameters", params);
    AMP_TRY(b->allocate(b, elements * sizeof(float), (void **)&engine->gradient_block, error));
    AMP_TRY(b->zero(b, engine->gradient_block, elements * sizeof(float), error));
    if (engine->settings.adam) {
        AMP_TRY(b->allocate(b, 2 * elements * sizeof(float), (void **)&engine->moment_block, error));
        AMP_TRY(b->zero(b, engine->moment_block, 2 * elements * sizeof(float), error));
    }

    size_t at = 0, saved = 0;
    for (int i = 0; i < network->count; i++) {
        const amp_layer_desc *layer = &network->layers[i];
        for (int k = 0; k < layer->param_count; k++) {
            const amp_param_desc *d = &layer->params[k];
            amp_param *p = &engine->params[engine->param_count];
            *p = (amp_param){ .master = d->master, .grad = engine->gradient_block + at, .count = d->count, .layer = i,
                              .name = d->name, .rate_scale = layer->rate_scale,
                              .clip = d->clip, .momentum = *d->gradient_slot };
            if (engine->moment_block) {
                p->m = engine->moment_block + at;
                p->v = engine->moment_block + elements + at;
            }
            engine->decays[engine->param_count++] = (char)d->decays;
            map_gradients(&engine->gradients[i], layer, k, p->grad);
            at += d->count;
        }
        for (int k = 0; k < layer->statistics_count; k++) {
            statistics *s = &engine->statistics[engine->statistics_count++];
            *s = (statistics){ layer->statistics[k].array, engine->committed_block + saved, layer->statistics[k].count };
            saved += s->count;
        }
    }
    engine->gradient_count = elements;
    return AMP_OK;
}

static amp_status keep_statistics(amp_engine *engine, amp_error *error)
{
    for (int i = 0; i < engine->statistics_count; i++) {
        statistics *s = &engine->statistics[i];
        AMP_TRY(engine->backend->upload(engine->backend, s->committed, s->array, s->count * sizeof(float), error));
    }
    return AMP_OK;
}

static amp_status restore_statistics(amp_engine *engine, amp_error *error)
{
    for (int i = 0; i < engine->statistics_count; i++) {
        statistics *s = &engine->statistics[i];
        AMP_TRY(engine->backend->upload(engine->backend, s->array, s->committed, s->count * sizeof(float), error));
    }
    return AMP_OK;
}

/* ---- life ---- */

amp_status amp_engine_create(const amp_engine_settings *settings, amp_backend *backend, const amp_host *host,
                             const amp_network_desc *network, amp_engine **out, amp_error *error)
{
    *out = NULL;
    amp_engine *engine = calloc(1, sizeof *engine);
    if (!engine) {
        backend->destroy(backend);
        return amp_fail(error, AMP_NO_MEMORY, "amp: out of memory");
    }
    engine->settings = *settings;
    engine->backend = backend;
    engine->host = *host;
    engine->layer_count = network->count;
    engine->weights_stale = 1;
    amp_status status = network->count > 0 ? collect_parameters(engine, network, error)
                                           : amp_fail(error, AMP_BAD_NETWORK, "amp: the network has no layers");
    if (status == AMP_OK) status = keep_statistics(engine, error);
    if (status != AMP_OK) amp_engine_free(engine);
    else *out = engine;
    return status;
}

void amp_engine_free(amp_engine *engine)
{
    if (!engine) return;
    amp_backend *b = engine->backend;
    for (int i = 0; i < engine->plan_count; i++) amp_plan_free(engine->plans[i], b);
    if (engine->block) b->release(b, engine->block);
    if (engine->gradient_block) b->release(b, engine->gradient_block);
    if (engine->moment_block) b->release(b, engine->moment_block);
    b->destroy(b);
    free(engine->params);
    free(engine->decays);
    free(engine->gradients);
    free(engine->statistics);
    free(engine->committed_block);
    free(engine);
}

void amp_engine_invalidate(amp_engine *engine) { engine->active = NULL; }

/* Statistics belong to the weights: what was loaded is the new committed state. */
void amp_engine_weights_changed(amp_engine *engine)
{
    engine->weights_stale = 1;
    keep_statistics(engine, NULL);
}

const amp_scaler *amp_engine_scaler(const amp_engine *engine) { return &engine->settings.scaler; }
void amp_engine_set_scaler(amp_engine *engine, const amp_scaler *scaler) { engine->settings.scaler = *scaler; }
amp_backend *amp_engine_backend(amp_engine *engine) { return engine->backend; }
const amp_plan *amp_engine_plan(const amp_engine *engine) { return engine->active; }

const amp_param *amp_engine_params(const amp_engine *engine, int *count)
{
    *count = engine->param_count;
    return engine->params;
}

/* ---- plans ---- */

static amp_plan *find_plan(const amp_engine *engine, const amp_plan_key *key)
{
    for (int i = 0; i < engine->plan_count; i++) {
        const amp_plan_key *k = &engine->plans[i]->key;
        if (k->batch == key->batch && k->w == key->w && k->h == key->h && k->keeps_state == key->keeps_state
            && k->image_delta == key->image_delta) return engine->plans[i];
    }
    return NULL;
}

int amp_engine_has_plan(const amp_engine *engine, const amp_plan_key *key) { return find_plan(engine, key) != NULL; }

static void forget_oldest_plan(amp_engine *engine)
{
    int oldest = 0;
    for (int i = 1; i < engine->plan_count; i++)
        if (engine->plans[i]->last_use < engine->plans[oldest]->last_use) oldest = i;
    if (engine->active == engine->plans[oldest]) engine->active = NULL;
    amp_plan_free(engine->plans[oldest], engine->backend);
    engine->plans[oldest] = engine->plans[--engine->plan_count];
}

amp_status amp_engine_add_plan(amp_engine *engine, const amp_network_desc *network, const amp_plan_key *key, amp_error *error)
{
    if (engine->plan_count == MAX_PLANS) forget_oldest_plan(engine);
    amp_step step = step_of(engine, key);
    amp_plan *plan;
    AMP_TRY(amp_plan_create(network, key, engine->settings.dtype, engine->gradients, &step, &plan, error));
    plan->last_use = engine->uses;
    engine->plans[engine->plan_count++] = plan;
    return AMP_OK;
}

static void drop_weights(amp_engine *engine, amp_plan *plan)
{
    for (int i = 0; i < plan->count; i++)
        if (plan->nodes[i].conv) engine->backend->conv_drop_weights(engine->backend, plan->nodes[i].conv);
}

/* One block serves all plans, since only one is ever between forward and backward. */
static amp_status activate(amp_engine *engine, amp_plan *plan, amp_error *error)
{
    if (engine->active == plan) return AMP_OK;
    for (int i = 0; i < engine->plan_count; i++)
        if (engine->plans[i] != plan) drop_weights(engine, engine->plans[i]);
    engine->active = NULL;
    engine->weights_stale = 1;
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
        plan->values[i].data[AMP_FORM_HOST] = plan->needs_output[i] ? engine->host.output(engine->host.context, i) : NULL;
        plan->values[i].delta[AMP_FORM_HOST] = plan->needs_delta[i] ? engine->host.delta(engine->host.context, i) : NULL;
    }
    engine->active = plan;
    return AMP_OK;
}

static amp_status refresh_weights(amp_engine *engine, amp_error *error)
{
    if (!engine->weights_stale) return AMP_OK;
    const amp_plan *plan = engine->active;
    for (int i = 0; i < plan->count; i++) {
        amp_node *node = &plan->nodes[i];
        if (node->conv) AMP_TRY(engine->backend->conv_load_weights(engine->backend, node->conv, node->desc.weights, error));
    }
    engine->weights_stale = 0;
    return AMP_OK;
}

/* ---- the step ---- */

static void forget_values(amp_plan *plan)
{
    for (int i = -1; i < plan->count; i++) {
        amp_value *value = i < 0 ? &plan->image : &plan->values[i];
        memset(value->data_valid, 0, sizeof value->data_valid);
        memset(value->delta_valid, 0, sizeof value->delta_valid);
    }
}

amp_status amp_engine_forward(amp_engine *engine, const amp_plan_key *key, float *image, int training, amp_error *error)
{
    amp_plan *plan = find_plan(engine, key);
    if (!plan) return amp_fail(error, AMP_BAD_NETWORK, "amp: no plan for batch %d at %dx%d", key->batch, key->w, key->h);
    plan->last_use = ++engine->uses;
    engine->training = training;
    AMP_TRY(activate(engine, plan, error));
    AMP_TRY(refresh_weights(engine, error));
    amp_step step = step_of(engine, key);
    forget_values(plan);
    plan->image.data[AMP_FORM_HOST] = image;
    plan->image.data_valid[AMP_FORM_HOST] = 1;
    for (int i = 0; i < plan->count; i++) {
        amp_node *node = &plan->nodes[i];
        AMP_TRY(node->ops->forward(node, &step, error));
        if (engine->settings.debug) {
            amp_tensor y = amp_value_data(node->output, node->output->home);
            AMP_TRY(amp_anomaly_look(&engine->anomaly, engine->backend, &y, i, "forward", "output", error));
        }
        if (i != plan->output_layer && !node->desc.is_truth) continue;
        amp_tensor out;
        AMP_TRY(amp_value_read(&step, node->output, AMP_FORM_HOST, &out, error));
    }
    return AMP_OK;
}

/* The loss scale enters here and nowhere else. */
static amp_status scale_losses(amp_engine *engine, amp_plan *plan, amp_error *error)
{
    float scale = engine->settings.scaler.scale;
    if (scale == 1) return AMP_OK;
    for (int i = 0; i < plan->count; i++) {
        if (!plan->nodes[i].desc.is_loss) continue;
        amp_tensor delta = amp_value_delta(&plan->values[i], AMP_FORM_HOST);
        AMP_TRY(engine->backend->scale(engine->backend, delta.data, amp_shape_count(delta.shape), scale, error));
    }
    return AMP_OK;
}

amp_status amp_engine_backward(amp_engine *engine, float *image_delta, amp_error *error)
{
    amp_plan *plan = engine->active;
    if (!plan || !plan->key.keeps_state)
        return amp_fail(error, AMP_BAD_NETWORK, "amp: backward without a training forward before it");
    amp_step step = step_of(engine, &plan->key);
    plan->image.delta[AMP_FORM_HOST] = image_delta;
    plan->image.delta_valid[AMP_FORM_HOST] = image_delta != NULL;
    AMP_TRY(scale_losses(engine, plan, error));
    for (int i = plan->count - 1; i >= 0; i--) {
        amp_node *node = &plan->nodes[i];
        int any = 0;
        if (!node->computes_backward) continue;
        AMP_TRY(amp_value_settle_delta(&step, node->output, &any, error));
        if (!any) continue;
        if (engine->settings.debug) {
            amp_tensor dy = amp_value_delta(node->output, node->output->home);
            AMP_TRY(amp_anomaly_look(&engine->anomaly, engine->backend, &dy, i, "backward", "delta", error));
        }
        AMP_TRY(node->ops->backward(node, &step, error));
        for (int k = 0; engine->settings.debug && k < node->desc.param_count; k++)
            AMP_TRY(amp_anomaly_look_array(&engine->anomaly, engine->backend, node->gradients->all[k], node->desc.params[k].count,
                                           i, "backward", node->desc.params[k].name, error));
    }
    int any;
    return plan->image.wants_delta && image_delta ? amp_value_settle_delta(&step, &plan->image, &any, error) : AMP_OK;
}

/* The first array with a non-finite gradient, in .cfg order: only looked for when there is one. */
static void find_bad_gradient(amp_engine *engine, amp_step_report *report)
{
    for (int i = 0; i < engine->param_count; i++) {
        int found = 0;
        double squares;
        if (engine->backend->check_gradients(engine->backend, &engine->params[i], 1, 1, &found, &squares, NULL) != AMP_OK || !found) continue;
        report->bad_layer = engine->params[i].layer;
        report->bad_tensor = engine->params[i].name;
        return;
    }
}

static amp_status drop_step(amp_engine *engine, amp_error *error)
{
    AMP_TRY(engine->backend->zero(engine->backend, engine->gradient_block, engine->gradient_count * sizeof(float), error));
    return restore_statistics(engine, error);
}

amp_status amp_engine_update(amp_engine *engine, amp_update_args *args, float decay, amp_step_report *report, amp_error *error)
{
    amp_backend *b = engine->backend;
    amp_scaler *scaler = &engine->settings.scaler;
    int found_inf = 0;
    double squares = 0;
    *report = (amp_step_report){ .scale_before = scaler->scale, .bad_layer = -1, .bad_tensor = "", .anomaly = engine->anomaly };
    engine->anomaly = (amp_anomaly){ 0 };
    args->inverse_scale = amp_scaler_inverse(scaler);
    args->adam = engine->settings.adam;
    AMP_TRY(b->check_gradients(b, engine->params, engine->param_count, args->inverse_scale, &found_inf, &squares, error));
    if (found_inf) find_bad_gradient(engine, report);
    amp_status verdict = amp_scaler_update(scaler, found_inf);
    report->scale_after = scaler->scale;
    report->skipped = found_inf;
    if (found_inf) {
        AMP_TRY(drop_step(engine, error));
        if (verdict == AMP_OK) return AMP_OK;
        return amp_fail(error, AMP_DIVERGED, "amp: gradients stay inf or NaN, first in layer %d (%s), %s %g: training cannot go on; "
                        "lower learning_rate, raise burn_in, check the labels%s", report->bad_layer, report->bad_tensor,
                        scaler->dynamic ? "at the smallest loss scale," : "step after step at loss scale", (double)report->scale_before,
                        engine->settings.dtype == AMP_FP16 ? ", or set dtype=bf16" : "");
    }
    report->gradient_norm = sqrt(squares) / args->batch;
    if (engine->settings.clip_norm > 0 && report->gradient_norm > engine->settings.clip_norm)
        args->inverse_scale *= engine->settings.clip_norm / report->gradient_norm;
    for (int i = 0; i < engine->param_count; i++) engine->params[i].decay = args->adam || engine->decays[i] ? decay : 0;
    AMP_TRY(b->update(b, engine->params, engine->param_count, args, error));
    engine->weights_stale = 1;
    return keep_statistics(engine, error);
}
