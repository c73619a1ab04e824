/* Runs plans, and the training step around them. Read this file first.
 *
 * A step trains one batch, in one or more subdivisions. The host calls forward and backward for each
 * subdivision, and then update once:
 *
 * amp_engine_forward finds the plan for this shape (plan.c) and makes it the active one. If the masters have
 * changed since the plan's half copies of the weights were made (weights_version), it makes them anew. Then
 * each layer runs. It reads its inputs in the form that it computes in: LOW is fp16 or bf16, WIDE is fp32,
 * HOST is Darknet's own fp32 buffer. A value is cast to a form once, for all layers that read it so. A loss
 * layer also writes its delta, multiplied by step->loss_scale: nothing else brings the loss scale into a step
 * (layers/host_layer.c for Darknet's losses, layers/yolo.c for the one that AMP computes).
 *
 * amp_engine_backward runs the layers from last to first. With activation checkpointing (recompute.c), it
 * first repeats the forward of layers whose activations the plan gave up in between. Before a layer runs, the
 * parts of its delta that its consumers have written are added up. Gradients of parameters are summed in fp32
 * over all subdivisions, and still contain the loss scale.
 *
 * amp_engine_update calls the backend's finish_step for all parameters at once (parameters.c). If every
 * gradient, running statistic and loss is finite, gradients are unscaled and clipped, SGD or Adam updates the
 * fp32 masters, and the scaler counts a good step: after growth_interval of them the scale grows (scaler.c).
 * Otherwise it is an overflow and the step is skipped: gradients are zeroed, statistics return to their
 * values after the last good step, masters and momentum stay as they are, and the scale shrinks. The report
 * names the layer and the tensor where inf or NaN was first. AMP_DIVERGED ends the training: the scale cannot
 * shrink any more, or the weights themselves are inf or NaN.
 *
 * Observers (observer.h) and anomaly detection (anomaly.h) look at tensors in between, only when asked to. */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

#include "../tensor/half.h"

enum { MAX_PLANS = 16 }; /* random=1 has ten sizes, validation adds a few */

struct amp_engine {
    amp_engine_settings settings;
    amp_backend *backend;
    amp_host host;
    amp_plan *plans[MAX_PLANS], *active;
    int plan_count, layer_count;
    unsigned long uses;
    void *block;          /* memory of the active plan's arena */
    size_t block_bytes;
    int training;         /* the pass under way is one of a training */
    int trains;           /* amp_engine_trains */
    unsigned long weights_version; /* from 1, counts the changes of the masters; a copy made at another count
                                      is stale */

    amp_observer observer;
    int in_step;          /* a training forward has run since the last update */
    int watched_step;     /* anomaly detection is on for this step */
    int watching;         /* ... and for the pass that runs */
    amp_anomaly anomaly;  /* the first non-finite tensor of a watched step */
    amp_anomaly rejected; /* why this step must be skipped, whatever its gradients are */
    amp_parallel parallel; /* with the other ranks that train this network */

    amp_parameters parameters;
    amp_scaler first_scaler; /* as the settings have it, before any step */
};

/* The pass that a plan of this key makes now. The only place where the loss scale enters a step. */
static amp_step step_of(amp_engine *engine, const amp_plan_key *key)
{
    return (amp_step){ .backend = engine->backend, .host = &engine->host, .training = engine->training,
                       .keeps_state = key->keeps_state, .loss_scale = engine->settings.scaler.scale,
                       .ranks = engine->training ? amp_parallel_batchnorm(&engine->parallel) : NULL };
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
    engine->first_scaler = settings->scaler;
    engine->backend = backend;
    engine->host = *host;
    engine->layer_count = network->count;
    engine->weights_version = 1;
    amp_status status = network->count > 0 ? amp_parameters_collect(&engine->parameters, network, error)
                                           : amp_fail(error, AMP_BAD_NETWORK,
                                                      "amp: the network has no layers");
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
    amp_parameters_free(&engine->parameters, b);
    b->destroy(b);
    free(engine);
}

void amp_engine_invalidate(amp_engine *engine)
{
    engine->active = NULL;
    engine->backend->gemm_drop_copies(engine->backend);
}

/* Running statistics were loaded with the weights: these are now what a skipped step returns to. */
void amp_engine_weights_changed(amp_engine *engine)
{
    engine->weights_version++;
    amp_parameters_keep(&engine->parameters, engine->backend, NULL);
}

int amp_engine_trains(const amp_engine *engine) { return engine->trains; }

amp_status amp_engine_prepare_training(amp_engine *engine, amp_error *error)
{
    return amp_parameters_take(&engine->parameters, engine->settings.adam, engine->backend, error);
}

amp_status amp_engine_start_anew(amp_engine *engine, amp_error *error)
{
    engine->settings.scaler = engine->first_scaler;
    return amp_parameters_forget(&engine->parameters, engine->backend, error);
}

void amp_engine_hold(amp_engine *engine, const char *held) { engine->parameters.held = held; }

const amp_scaler *amp_engine_scaler(const amp_engine *engine) { return &engine->settings.scaler; }
void amp_engine_set_scaler(amp_engine *engine, const amp_scaler *scaler)
{
    engine->settings.scaler = *scaler;
}
amp_backend *amp_engine_backend(amp_engine *engine) { return engine->backend; }
const amp_plan *amp_engine_plan(const amp_engine *engine) { return engine->active; }

const amp_param *amp_engine_params(const amp_engine *engine, int *count)
{
    *count = engine->parameters.param_count;
    return engine->parameters.params;
}

amp_engine_state amp_engine_state_of(const amp_engine *engine)
{
    const amp_parameters *p = &engine->parameters;
    return (amp_engine_state){ .backend = engine->backend, .adam = engine->settings.adam,
                               .adamw = engine->settings.adamw, .layer_count = engine->layer_count,
                               .param_count = p->param_count,
                               .statistics_count = p->statistics_count, .layer_types = p->layer_types,
                               .params = p->params, .params_unsaved = p->unsaved, .statistics = p->statistics,
                               .statistics_unsaved = p->statistics_unsaved };
}

/* ---- plans ---- */

/* Whether it folds weights that have changed since it was planned. */
static int is_outdated(const amp_engine *engine, const amp_plan *plan)
{
    return plan->key.folds && plan->planned_version != engine->weights_version;
}

static amp_plan *find_plan(const amp_engine *engine, const amp_plan_key *key)
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

unsigned long amp_engine_weights_version(const amp_engine *engine) { return engine->weights_version; }

const amp_plan *amp_engine_find_plan(const amp_engine *engine, const amp_plan_key *key)
{
    return find_plan(engine, key);
}

static void forget_plan(amp_engine *engine, int i)
{
    if (engine->active == engine->plans[i]) engine->active = NULL;
    amp_plan_free(engine->plans[i], engine->backend);
    engine->plans[i] = engine->plans[--engine->plan_count];
}

/* Those that are outdated, and the oldest where there is no room for another. */
static void forget_plans(amp_engine *engine)
{
    int oldest = 0;
    for (int i = engine->plan_count - 1; i >= 0; i--)
        if (is_outdated(engine, engine->plans[i])) forget_plan(engine, i);
    for (int i = 1; i < engine->plan_count; i++)
        if (engine->plans[i]->last_use < engine->plans[oldest]->last_use) oldest = i;
    if (engine->plan_count == MAX_PLANS) forget_plan(engine, oldest);
}

void amp_engine_forget_plans(amp_engine *engine)
{
    while (engine->plan_count) forget_plan(engine, engine->plan_count - 1);
}

static amp_status make_plan(amp_engine *engine, const amp_network_desc *network, const amp_plan_key *key,
                            amp_dtype dtype, const amp_recompute_settings *settings, int outline,
                            amp_plan **out, amp_error *error)
{
    amp_step step = step_of(engine, key);
    step.outline = outline;
    amp_recompute *recompute = calloc((size_t)network->count + 1, sizeof *recompute);
    if (!recompute)
        return amp_fail(error, AMP_NO_MEMORY, "amp: out of memory while planning %d layers", network->count);
    const amp_gradients *gradients = engine->parameters.gradients;
    amp_status status = AMP_OK;
    if (settings)
        status = amp_recompute_choose(network, key, dtype, gradients, &step, settings, recompute, error);
    if (status == AMP_OK)
        status = amp_plan_create(network, key, dtype, gradients, recompute, &step, out, error);
    free(recompute);
    return status;
}

amp_status amp_engine_add_plan(amp_engine *engine, const amp_network_desc *network, const amp_plan_key *key,
                               amp_error *error)
{
    forget_plans(engine);
    if (key->keeps_state) {
        AMP_TRY(amp_engine_prepare_training(engine, error));
        engine->trains = 1;
    }
    amp_plan *plan;
    AMP_TRY(make_plan(engine, network, key, engine->settings.dtype, &engine->settings.recompute, 0, &plan,
                      error));
    plan->last_use = engine->uses;
    plan->planned_version = engine->weights_version;
    engine->plans[engine->plan_count++] = plan;
    return AMP_OK;
}

amp_status amp_engine_outline(amp_engine *engine, const amp_network_desc *network, const amp_plan_key *key,
                              amp_dtype dtype, const amp_recompute_settings *recompute, amp_plan **out,
                              amp_error *error)
{
    return make_plan(engine, network, key, dtype, recompute, 1, out, error);
}

const amp_recompute_settings *amp_engine_recompute(const amp_engine *engine)
{
    return &engine->settings.recompute;
}
void amp_engine_set_recompute(amp_engine *engine, const amp_recompute_settings *settings)
{
    engine->settings.recompute = *settings;
}

static void drop_weights(amp_engine *engine, amp_plan *plan)
{
    for (int i = 0; i < plan->count; i++) amp_node_drop_weights(&plan->nodes[i], engine->backend);
    plan->weights_version = 0;
}

/* All plans share one block of memory, since only one at a time is between forward and backward. */
static amp_status activate(amp_engine *engine, amp_plan *plan, amp_error *error)
{
    if (engine->active == plan) return AMP_OK;
    for (int i = 0; i < engine->plan_count; i++)
        if (engine->plans[i] != plan) drop_weights(engine, engine->plans[i]);
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
        plan->values[i].data[AMP_FORM_HOST] = plan->needs_output[i]
            ? engine->host.output(engine->host.context, i) : NULL;
        plan->values[i].delta[AMP_FORM_HOST] = plan->needs_delta[i] ? engine->host.delta(engine->host.context,
                i) : NULL;
    }
    engine->active = plan;
    return AMP_OK;
}

static amp_status refresh_weights(amp_engine *engine, amp_plan *plan, amp_error *error)
{
    if (plan->weights_version == engine->weights_version) return AMP_OK;
    AMP_TRY(amp_nodes_load_weights(plan->nodes, plan->count, engine->backend, error));
    plan->weights_version = engine->weights_version;
    return AMP_OK;
}

/* ---- observers and the step's verdict ---- */

void amp_engine_set_observer(amp_engine *engine, const amp_observer *observer)
{
    engine->observer = observer ? *observer : (amp_observer){ 0 };
}

const amp_anomaly *amp_engine_anomaly(const amp_engine *engine) { return &engine->anomaly; }

void amp_engine_reject_step(amp_engine *engine, const amp_anomaly *why)
{
    if (!engine->rejected.found) engine->rejected = *why;
    if (engine->in_step && engine->watched_step && !engine->anomaly.found) engine->anomaly = *why;
}

static int observed(const amp_engine *engine) { return engine->watching || engine->observer.see; }

static amp_status show(amp_engine *engine, amp_seen_kind kind, int layer, const char *name, amp_tensor tensor,
                       amp_error *error)
{
    amp_seen seen = { kind, layer, name, tensor };
    if (engine->observer.see)
        AMP_TRY(engine->observer.see(engine->observer.context, engine->backend, &seen, error));
    return engine->watching ? amp_anomaly_look(&engine->anomaly, engine->backend, &seen, error) : AMP_OK;
}

/* Makes the casts that the layer needs now, so that the observer sees them before the layer computes. */
static amp_status show_inputs(amp_engine *engine, amp_node *node, amp_step *step, amp_error *error)
{
    for (int k = 0; k < node->desc.input_count; k++) {
        amp_value *input = node->inputs[k];
        amp_tensor x;
        if (input->data_valid[node->form]) continue;
        AMP_TRY(amp_value_read(step, input, node->form, &x, error));
        AMP_TRY(show(engine, AMP_SEEN_INPUT, node->index, "input", x, error));
    }
    return AMP_OK;
}

/* Shows what forward made: the output, if one was written, and the delta of a loss that AMP computes. */
static amp_status show_made(amp_engine *engine, const amp_node *node, amp_error *error)
{
    amp_form home = node->output->home;
    if (node->output->data_valid[home])
        AMP_TRY(show(engine, AMP_SEEN_OUTPUT, node->index, "output", amp_value_data(node->output, home),
                     error));
    if (!node->ops->makes_loss || !node->inputs[0]->delta_valid[node->form]) return AMP_OK;
    return show(engine, AMP_SEEN_DELTA, node->index, "delta", amp_value_delta(node->inputs[0], node->form),
                error);
}

static amp_status show_gradients(amp_engine *engine, const amp_node *node, amp_error *error)
{
    for (int k = 0; k < node->desc.param_count; k++) {
        const amp_param_desc *p = &node->desc.params[k];
        amp_tensor gradient = { node->gradients->all[k], AMP_FP32, AMP_NHWC, { 1, (int)p->count, 1, 1 } };
        AMP_TRY(show(engine, AMP_SEEN_GRADIENT, node->index, p->name, gradient, error));
    }
    return AMP_OK;
}

/* Anomaly detection is on or off for a whole step, and ignores a validation between steps. Without debug=1 it
 * is on only when one more overflow would end training, so that the last message can name where it began. */
static void begin_pass(amp_engine *engine, const amp_plan_key *key, int training)
{
    int of_step = training && key->keeps_state;
    engine->training = training;
    engine->parallel.passes += of_step;
    if (of_step && !engine->in_step) {
        engine->in_step = 1;
        engine->watched_step = engine->settings.debug || amp_scaler_would_diverge(&engine->settings.scaler);
    }
    engine->watching = of_step && engine->watched_step;
    if (engine->watching && !engine->anomaly.found) engine->anomaly = engine->rejected;
}

/* A loss may be inf or NaN although every gradient is finite. */
static void check_loss(amp_engine *engine, const amp_node *node)
{
    if (!engine->training || amp_is_finite(engine->host.loss(engine->host.context, node->index))) return;
    amp_engine_reject_step(engine, &(amp_anomaly){ .found = 1, .layer = node->index, .pass = "forward",
                                                   .tensor = "loss" });
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

static amp_status forward_layer(amp_engine *engine, amp_node *node, amp_step *step, amp_error *error)
{
    int shown = observed(engine);
    if (shown) AMP_TRY(show_inputs(engine, node, step, error));
    AMP_TRY(amp_node_forward(node, step, error));
    if (shown) AMP_TRY(show_made(engine, node, error));
    if (node->desc.is_loss && !node->ops->makes_loss) check_loss(engine, node);
    return AMP_OK;
}

/* Casts an output to fp32 NCHW, which the host reads. */
static amp_status hand_out(amp_engine *engine, amp_node *node, amp_step *step, amp_error *error)
{
    amp_tensor out;
    if (node->output->data_valid[AMP_FORM_HOST]) return AMP_OK;
    AMP_TRY(amp_value_read(step, node->output, AMP_FORM_HOST, &out, error));
    return observed(engine) ? show(engine, AMP_SEEN_OUTPUT, node->index, "output", out, error) : AMP_OK;
}

/* The losses that AMP computes itself, all with one download, for which a training forward waits. */
static amp_status download_losses(amp_engine *engine, amp_plan *plan, amp_error *error)
{
    if (!engine->training || !plan->result_count) return AMP_OK;
    AMP_TRY(engine->backend->download(engine->backend, plan->results_read, plan->results,
                                      (size_t)plan->result_count * sizeof *plan->results, error));
    for (int i = 0; i < plan->count; i++) {
        const amp_node *node = &plan->nodes[i];
        if (!node->ops->makes_loss) continue;
        engine->host.found(engine->host.context, i, &plan->results_read[node->result]);
        check_loss(engine, node);
    }
    return AMP_OK;
}

amp_status amp_engine_forward(amp_engine *engine, const amp_plan_key *key, float *image, int training,
                              amp_error *error)
{
    amp_plan *plan = find_plan(engine, key);
    if (!plan)
        return amp_fail(error, AMP_BAD_NETWORK, "amp: no plan for batch %d at %dx%d", key->batch, key->w,
                        key->h);
    plan->last_use = ++engine->uses;
    begin_pass(engine, key, training);
    AMP_TRY(activate(engine, plan, error));
    AMP_TRY(refresh_weights(engine, plan, error));
    amp_step step = step_of(engine, key);
    step.results = plan->results;
    step.shown = observed(engine);
    forget_values(plan);
    plan->image.data[AMP_FORM_HOST] = image;
    plan->image.data_valid[AMP_FORM_HOST] = 1;
    if (observed(engine))
        AMP_TRY(show(engine, AMP_SEEN_IMAGE, -1, "image", amp_value_data(&plan->image, AMP_FORM_HOST),
                     error));
    for (int i = 0; i < plan->count; i++) {
        amp_node *node = &plan->nodes[i];
        AMP_TRY(forward_layer(engine, node, &step, error));
        if (plan->hands_out[i] || node->desc.is_truth) AMP_TRY(hand_out(engine, node, &step, error));
    }
    AMP_TRY(download_losses(engine, plan, error));
    return engine->backend->uploads_done(engine->backend, error);
}

/* Activation checkpointing: the layers whose forward is due again before the backward of layer i. */
static amp_status repeat_forward(amp_plan *plan, int i, amp_step *step, int *repeated, amp_error *error)
{
    for (; *repeated < plan->again_count; ++*repeated) {
        amp_node *node = &plan->nodes[plan->again[*repeated]];
        if (node->again_time > 2 * plan->count - 1 - i) break;
        AMP_TRY(amp_node_forward_again(node, step, error));
    }
    return AMP_OK;
}

void amp_engine_join(amp_engine *engine, amp_comm *comm, amp_dtype wire, size_t bucket)
{
    amp_parallel_join(&engine->parallel, comm, wire, bucket, engine->settings.sync_batchnorm);
}

int amp_engine_ranks(const amp_engine *engine)
{
    return engine->parallel.comm ? engine->parallel.comm->size : 1;
}

void amp_engine_ends_step(amp_engine *engine) { engine->parallel.is_last_pass = 1; }

amp_status amp_engine_backward(amp_engine *engine, float *image_delta, amp_error *error)
{
    amp_plan *plan = engine->active;
    if (!plan || !plan->key.keeps_state)
        return amp_fail(error, AMP_BAD_NETWORK, "amp: backward without a training forward before it");
    amp_step step = step_of(engine, &plan->key);
    plan->image.delta[AMP_FORM_HOST] = image_delta;
    plan->image.delta_valid[AMP_FORM_HOST] = image_delta != NULL;
    int repeated = 0;
    for (int i = plan->count - 1; i >= 0; i--) {
        amp_node *node = &plan->nodes[i];
        int any = 0;
        if (!node->computes_backward) continue;
        AMP_TRY(repeat_forward(plan, i, &step, &repeated, error));
        AMP_TRY(amp_value_settle_delta(&step, node->output, &any, error));
        if (!any) continue;
        int shown = observed(engine);
        if (shown)
            AMP_TRY(show(engine, AMP_SEEN_DELTA, i, "delta",
                         amp_value_delta(node->output, node->output->home), error));
        AMP_TRY(amp_node_backward(node, &step, error));
        if (shown) AMP_TRY(show_gradients(engine, node, error));
        AMP_TRY(amp_parallel_layer_done(&engine->parallel, &engine->parameters, i, error));
    }
    for (int k = 0; k < repeated; k++) amp_node_exchange(&plan->nodes[plan->again[k]]);
    int any;
    return plan->image.wants_delta && image_delta ? amp_value_settle_delta(&step, &plan->image, &any, error)
        : AMP_OK;
}

int amp_engine_bad_master(amp_engine *engine, amp_anomaly *bad)
{
    return amp_parameters_bad_master(&engine->parameters, engine->backend, bad);
}

int amp_engine_bad_statistics(amp_engine *engine, amp_anomaly *bad)
{
    return amp_parameters_bad_statistics(&engine->parameters, engine->backend, bad);
}

/* Why a step is skipped: what was seen first, else the first gradient in .cfg order. */
static void find_cause(amp_engine *engine, amp_step_report *report)
{
    report->bad = report->anomaly;
    if (!report->bad.found) report->bad = engine->rejected;
    if (report->bad.found) return;
    if (amp_parameters_bad_gradient(&engine->parameters, engine->backend, &report->bad)) return;
    amp_parameters_bad_statistics(&engine->parameters, engine->backend, &report->bad);
}

/* Nothing changes but the scale. Weights that are inf or NaN themselves end the training at once. */
static amp_status skip_step(amp_engine *engine, amp_step_report *report, amp_error *error)
{
    amp_status verdict = amp_scaler_update(&engine->settings.scaler, 1);
    report->skipped = 1;
    report->scale_after = engine->settings.scaler.scale;
    find_cause(engine, report);
    AMP_TRY(amp_parameters_drop_gradients(&engine->parameters, engine->backend, error));
    AMP_TRY(amp_parameters_restore(&engine->parameters, engine->backend, error));
    report->bad_master = amp_engine_bad_master(engine, &report->bad);
    if (verdict == AMP_OK && !report->bad_master) return AMP_OK;
    return amp_fail(error, AMP_DIVERGED, "amp: %s stay inf or NaN, first in layer %d (%s)",
                    report->bad_master ? "weights" : "gradients", report->bad.layer, report->bad.tensor);
}

static amp_status take_step(amp_engine *engine, double gradient_norm, amp_step_report *report)
{
    engine->weights_version++;
    report->gradient_norm = gradient_norm;
    AMP_TRY(amp_scaler_update(&engine->settings.scaler, 0));
    report->scale_after = engine->settings.scaler.scale;
    return AMP_OK;
}

amp_status amp_engine_update(amp_engine *engine, amp_update_args *args, float decay, amp_step_report *report,
                             amp_error *error)
{
    const amp_scaler *scaler = &engine->settings.scaler;
    amp_step_outcome outcome = { 0 };
    *report = (amp_step_report){ .scale_before = scaler->scale };
    AMP_TRY(amp_engine_prepare_training(engine, error));
    report->anomaly = engine->anomaly;
    args->inverse_scale = amp_scaler_inverse(scaler);
    args->clip_norm = engine->settings.clip_norm;
    args->adam = engine->settings.adam;
    args->adamw = engine->settings.adamw;
    AMP_TRY(amp_parallel_finish(&engine->parallel, &engine->parameters, scaler, engine->backend,
                                &engine->rejected, error));
    if (!engine->rejected.found)
        AMP_TRY(amp_parameters_finish_step(&engine->parameters, engine->backend, args, decay, &outcome,
                                           error));
    amp_status status = outcome.taken ? take_step(engine, outcome.gradient_norm, report)
                                      : skip_step(engine, report, error);
    engine->in_step = 0;
    engine->anomaly = engine->rejected = (amp_anomaly){ 0 };
    return status;
}
