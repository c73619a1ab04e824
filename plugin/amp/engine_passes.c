/* Forward and backward of one subdivision, layer by layer: see engine.c. */
#include "engine.h"

#include <float.h>
#include <string.h>

#include "../tensor/half.h"

/* ---- observers ---- */

static int observed(const amp_engine *engine) { return engine->watching || engine->observer.see; }

static amp_status show(amp_engine *engine, amp_seen_kind kind, int layer, const char *name, amp_tensor tensor,
                       amp_error *error)
{
    amp_seen seen = { kind, layer, name, tensor };
    if (engine->observer.see)
        AMP_TRY(engine->observer.see(engine->observer.context, engine->backend, &seen, error));
    return engine->watching ? amp_anomaly_look(&engine->anomaly, engine->backend, &seen, error) : AMP_OK;
}

/* Casts the layer's inputs now, so that the observer sees the cast tensors before the layer reads them. */
static amp_status show_inputs(amp_engine *engine, amp_node *node, amp_call *call, amp_error *error)
{
    for (int k = 0; k < node->desc.input_count; k++) {
        amp_value *input = node->inputs[k];
        amp_tensor x;
        if (input->data_valid[node->form]) continue;
        AMP_TRY(amp_value_read(call, input, node->form, &x, error));
        AMP_TRY(show(engine, AMP_SEEN_INPUT, node->index, "input", x, error));
    }
    return AMP_OK;
}

/* Shows a layer's output if it was written. If the layer is a loss that AMP computes, also shows the delta
 * that it has written for its input. */
static amp_status show_made(amp_engine *engine, const amp_node *node, amp_error *error)
{
    amp_form home = node->output->home;
    if (node->output->data_valid[home])
        AMP_TRY(show(engine, AMP_SEEN_OUTPUT, node->index, "output", amp_value_data(node->output, home),
                     error));
    if (!node->desc.kind->makes_loss || !node->inputs[0]->delta_valid[node->form]) return AMP_OK;
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

/* Decides whether anomaly detection watches this pass. It watches either all training passes of a step or
 * none, and never a validation between steps. Without debug=1 it watches a step only if one more overflow
 * would end training, so that the final error message can name the tensor in which the overflow began. */
static void begin_pass(amp_engine *engine, const amp_plan *plan, int training)
{
    int of_step = training && plan->key.keeps_state;
    engine->training = training;
    engine->parallel.passes += of_step;
    if (of_step && !engine->in_step) {
        engine->in_step = 1;
        engine->watched_step = engine->settings.debug || amp_scaler_would_diverge(&engine->scaler);
    }
    engine->watching = of_step && engine->watched_step;
    if (engine->watching && engine->parallel.comm)
        engine->parallel.comm->settled = 0; /* because anomaly detection allocates memory */
    if (engine->watching && engine->rejected.found) amp_engine_note_first(engine, &engine->rejected);
}

/* Adds a layer's loss to the step's loss, which is the mean over the loss layers. A loss that is inf or NaN
 * is recorded; for spike detection it counts as the largest float. */
static void take_loss(amp_engine *engine, const amp_plan *plan, const amp_node *node)
{
    if (!engine->training) return;
    float loss = engine->host.loss(engine->host.context, node->index);
    int is_finite = amp_is_finite(loss);
    if (plan->key.keeps_state)
        engine->spikes.loss += (double)(is_finite ? loss : FLT_MAX) / plan->loss_count;
    if (is_finite) return;
    amp_anomaly bad = { .found = 1, .layer = node->index, .pass = "forward", .tensor = "loss" };
    if (!engine->bad_loss.found) engine->bad_loss = bad;
    if (engine->watching) amp_engine_note_first(engine, &bad);
}

/* ---- forward ---- */

/* Makes `plan` the active plan. All plans share one block of memory, because only the active plan holds data
 * between forward and backward. */
static amp_status activate(amp_engine *engine, amp_plan *plan, amp_error *error)
{
    if (engine->active == plan) return AMP_OK;
    if (engine->parallel.comm) engine->parallel.comm->settled = 0; /* because the new plan's first passes
                                                                      allocate memory */
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

static void invalidate_values(amp_plan *plan)
{
    for (int i = -1; i < plan->count; i++) {
        amp_value *value = i < 0 ? &plan->image : &plan->values[i];
        memset(value->data_valid, 0, sizeof value->data_valid);
        memset(value->delta_valid, 0, sizeof value->delta_valid);
    }
}

static amp_status forward_layer(amp_engine *engine, const amp_plan *plan, amp_node *node, amp_call *call,
                                amp_error *error)
{
    int shown = observed(engine);
    if (shown) AMP_TRY(show_inputs(engine, node, call, error));
    AMP_TRY(amp_node_forward(node, call, error));
    if (shown) AMP_TRY(show_made(engine, node, error));
    if (node->desc.is_loss && !node->desc.kind->makes_loss) take_loss(engine, plan, node);
    return AMP_OK;
}

/* Casts an output to fp32 NCHW for the host. */
static amp_status cast_for_host(amp_engine *engine, amp_node *node, amp_call *call, amp_error *error)
{
    amp_tensor out;
    if (node->output->data_valid[AMP_FORM_PLAIN]) return AMP_OK;
    AMP_TRY(amp_value_read(call, node->output, AMP_FORM_PLAIN, &out, error));
    return observed(engine) ? show(engine, AMP_SEEN_OUTPUT, node->index, "output", out, error) : AMP_OK;
}

/* Waits until the losses that AMP computes are downloaded, and passes them to the host. */
static amp_status take_due_losses(amp_engine *engine, amp_error *error)
{
    amp_plan *plan = engine->active;
    amp_yolo_result *results = engine->losses_due;
    AMP_TRY(engine->backend->uploads_done(engine->backend, error));
    engine->losses_due = NULL;
    for (int i = 0; results && plan && i < plan->count; i++) {
        const amp_node *node = &plan->nodes[i];
        if (!node->desc.kind->makes_loss) continue;
        engine->host.found(engine->host.context, i, &results[node->result],
                           amp_plan_image_costs(plan, results) + node->result * plan->key.batch);
        take_loss(engine, plan, node);
    }
    return AMP_OK;
}

/* Ends a forward. In training, all losses are downloaded together. Usually the CPU waits only for the
 * uploads, so that it can queue backward during this forward, and amp_engine_backward passes the losses to
 * the host. But if layers are observed, or no backward followed the previous forward, the CPU waits for the
 * losses here. */
static amp_status end_forward(amp_engine *engine, amp_plan *plan, amp_error *error)
{
    amp_backend *b = engine->backend;
    int waits = !engine->backward_follows || !plan->key.keeps_state || observed(engine);
    if (!engine->training || !plan->result_count) return b->uploads_done(b, error);
    engine->backward_follows = 0;
    if (!waits) AMP_TRY(b->uploads_done(b, error));
    AMP_TRY(b->download_later(b, plan->results, amp_plan_result_bytes(plan), &engine->losses_due, error));
    return waits ? take_due_losses(engine, error) : AMP_OK;
}

static amp_status forward_layers(amp_engine *engine, amp_plan *plan, float *image, amp_error *error)
{
    amp_call call = amp_engine_call(engine, &plan->key);
    call.results = plan->results;
    call.image_costs = amp_plan_image_costs(plan, plan->results);
    call.shown = observed(engine);
    invalidate_values(plan);
    plan->image.data[AMP_FORM_PLAIN] = image;
    plan->image.data_valid[AMP_FORM_PLAIN] = 1;
    if (observed(engine))
        AMP_TRY(show(engine, AMP_SEEN_IMAGE, -1, "image", amp_value_data(&plan->image, AMP_FORM_PLAIN),
                     error));
    for (int i = 0; i < plan->count; i++) {
        amp_node *node = &plan->nodes[i];
        AMP_TRY(forward_layer(engine, plan, node, &call, error));
        if (plan->host_reads[i] || node->desc.is_truth) AMP_TRY(cast_for_host(engine, node, &call, error));
    }
    return AMP_OK;
}

typedef amp_status pass_layers(amp_engine *, amp_plan *, float *, amp_error *);

/* If *pass is a recording, replays it and sets *repeated to 1. Else runs the pass with `layers`, and sets
 * *pass to a recording of it. */
static amp_status record(amp_engine *engine, amp_plan *plan, pass_layers *layers, float *image,
                         amp_recorded_pass **pass, int *repeated, amp_error *error)
{
    amp_backend *b = engine->backend;
    amp_error ignored;
    AMP_TRY(b->pass_begin(b, pass, repeated, error));
    if (*repeated) return AMP_OK;
    amp_status status = layers(engine, plan, image, error);
    amp_status ended = b->pass_end(b, pass, status == AMP_OK, status == AMP_OK ? error : &ignored);
    return status == AMP_OK ? ended : status;
}

static amp_status forward_recorded(amp_engine *engine, amp_plan *plan, float *image, amp_error *error)
{
    amp_recording *r = &engine->recording;
    const char *looks = engine->settings.debug ? "debug=1" : engine->observer.see ? "an observer" : NULL;
    int repeated = 0;
    amp_error why;
    r->current = NULL;
    if (engine->training && plan->key.keeps_state
        && !amp_recording_is_off(r, plan, engine->backend, looks, engine->parallel.comm != NULL)
        && !engine->watching) {
        amp_call call = amp_engine_call(engine, &plan->key);
        amp_recording_choose(r, plan, &call, image);
    }
    if (!r->current) return forward_layers(engine, plan, image, error);
    amp_status status = record(engine, plan, forward_layers, image, &r->current->forward, &repeated, &why);
    if (status != AMP_OK) {
        amp_recording_fail(r, engine->backend, &why);
        return forward_layers(engine, plan, image, error);
    }
    if (repeated) amp_recording_put_values(r, plan);
    else amp_recording_keep_values(r, plan);
    return AMP_OK;
}

/* Makes the plan's copies of the weights from the current masters, unless they are up to date. */
static amp_status refresh_weights(amp_engine *engine, amp_plan *plan, amp_error *error)
{
    if (plan->weights_version == engine->weights_version) return AMP_OK;
    AMP_TRY(amp_nodes_load_weights(plan->nodes, plan->count, engine->backend, error));
    plan->weights_version = engine->weights_version;
    return AMP_OK;
}

amp_status amp_engine_forward(amp_engine *engine, amp_plan *plan, float *image, int training,
                              amp_error *error)
{
    plan->last_use = ++engine->uses;
    if (engine->losses_due) AMP_TRY(take_due_losses(engine, error));
    begin_pass(engine, plan, training);
    AMP_TRY(activate(engine, plan, error));
    AMP_TRY(refresh_weights(engine, plan, error));
    AMP_TRY(forward_recorded(engine, plan, image, error));
    return end_forward(engine, plan, error);
}

/* ---- backward ---- */

/* Activation checkpointing: repeats the forwards that are due before layer i's backward, and adds their
 * number to *repeated. */
static amp_status repeat_forward(amp_plan *plan, int i, amp_call *call, int *repeated, amp_error *error)
{
    while (*repeated < plan->again_count) {
        amp_node *node = &plan->nodes[plan->again[*repeated]];
        if (node->again_time > 2 * plan->count - 1 - i) break;
        ++*repeated;
        AMP_TRY(amp_node_forward_again(node, call, error));
    }
    return AMP_OK;
}

static amp_status backward_layer(amp_engine *engine, amp_plan *plan, int i, amp_call *call, int *repeated,
                                 amp_error *error)
{
    amp_node *node = &plan->nodes[i];
    int any = 0, shown = observed(engine);
    if (!node->computes_backward) return AMP_OK;
    AMP_TRY(repeat_forward(plan, i, call, repeated, error));
    AMP_TRY(amp_value_settle_delta(call, node->output, &any, error));
    if (!any) return AMP_OK;
    if (shown)
        AMP_TRY(show(engine, AMP_SEEN_DELTA, i, "delta", amp_value_delta(node->output, node->output->home),
                     error));
    AMP_TRY(amp_node_backward(node, call, error));
    if (shown) AMP_TRY(show_gradients(engine, node, error));
    return amp_parallel_layer_done(&engine->parallel, &engine->parameters, i, error);
}

/* Multiplies the host's image delta, which has no loss scale, by `factor`. Before backward adds to the delta,
 * `factor` is the loss scale; afterwards it is 1 / loss scale. Does nothing in a network without losses,
 * because its deltas come from the host without a loss scale. */
static amp_status scale_image_delta(amp_engine *engine, const amp_plan *plan, float *image_delta,
                                    float factor, amp_error *error)
{
    if (!image_delta || !plan->image.wants_delta || !plan->loss_count || factor == 1) return AMP_OK;
    return engine->backend->scale(engine->backend, image_delta, amp_shape_count(plan->image.shape), factor,
                                  error);
}

static amp_status backward_layers(amp_engine *engine, amp_plan *plan, float *image_delta, amp_error *error)
{
    amp_call call = amp_engine_call(engine, &plan->key);
    plan->image.delta[AMP_FORM_PLAIN] = image_delta;
    plan->image.delta_valid[AMP_FORM_PLAIN] = image_delta != NULL;
    int repeated = 0;
    amp_status status = scale_image_delta(engine, plan, image_delta, call.loss_scale, error);
    for (int i = plan->count - 1; i >= 0 && status == AMP_OK; i--)
        status = backward_layer(engine, plan, i, &call, &repeated, error);
    for (int k = 0; k < repeated; k++) amp_node_exchange(&plan->nodes[plan->again[k]]);
    int any;
    if (status != AMP_OK || !plan->image.wants_delta || !image_delta) return status;
    AMP_TRY(amp_value_settle_delta(&call, &plan->image, &any, error));
    return scale_image_delta(engine, plan, image_delta, 1 / call.loss_scale, error);
}

static amp_status backward_recorded(amp_engine *engine, amp_plan *plan, float *image_delta, amp_error *error)
{
    amp_recording *r = &engine->recording;
    int repeated = 0;
    amp_error why;
    if (!r->current || observed(engine)) {
        AMP_TRY(backward_layers(engine, plan, image_delta, error));
        r->warm |= !observed(engine);
        return AMP_OK;
    }
    if (record(engine, plan, backward_layers, NULL, &r->current->backward, &repeated, &why) == AMP_OK)
        return AMP_OK;
    amp_recording_put_values(r, plan);
    amp_recording_fail(r, engine->backend, &why);
    return backward_layers(engine, plan, NULL, error);
}

amp_status amp_engine_backward(amp_engine *engine, float *image_delta, amp_error *error)
{
    amp_plan *plan = engine->active;
    if (!plan || !plan->key.keeps_state)
        return amp_fail(error, AMP_BAD_NETWORK, "amp: backward without a training forward before it");
    AMP_TRY(backward_recorded(engine, plan, image_delta, error));
    engine->backward_follows = 1;
    return engine->losses_due ? take_due_losses(engine, error) : AMP_OK;
}
