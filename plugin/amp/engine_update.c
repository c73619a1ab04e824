/* The end of a step: all parameters are updated, or the step is skipped (see engine.c). */
#include "engine.h"

/* Sets report->bad to the reason of a skip: the first recorded inf or NaN, else the first bad array. */
static void find_cause(amp_engine *engine, amp_step_report *report)
{
    report->bad = report->anomaly;
    if (!report->bad.found) report->bad = engine->rejected;
    if (report->bad.found || amp_parameters_bad_statistics(&engine->parameters, &report->bad)) return;
    report->bad = report->bad_loss;
    if (!report->bad.found) amp_parameters_bad_gradient(&engine->parameters, &report->bad);
}

/* Discards the step's gradients, and restores the committed statistics. */
static amp_status drop_gradients(amp_engine *engine, amp_error *error)
{
    AMP_TRY(amp_parameters_zero_gradients(&engine->parameters, error));
    return amp_parameters_restore(&engine->parameters, error);
}

/* Ends an overflowed step: lowers the scale. AMP_DIVERGED: the scaler cannot continue, or the weights
 * themselves are inf or NaN. */
static amp_status skip_step(amp_engine *engine, amp_step_report *report, amp_error *error)
{
    amp_status verdict = amp_scaler_update(&engine->scaler, 1);
    report->skipped = 1;
    report->scale_after = engine->scaler.scale;
    find_cause(engine, report);
    AMP_TRY(drop_gradients(engine, error));
    report->bad_master = amp_parameters_bad_master(&engine->parameters, &report->bad);
    if (verdict == AMP_OK && !report->bad_master) return AMP_OK;
    return amp_fail(error, AMP_DIVERGED, "amp: %s stay inf or NaN, in layer %d (%s)",
                    report->bad_master ? "weights" : "gradients", report->bad.layer, report->bad.tensor);
}

/* Ends a step that is dropped as a spike; the scale stays. */
static amp_status drop_step(amp_engine *engine, amp_step_report *report, amp_error *error)
{
    engine->spikes.dropped++;
    report->skipped = 1;
    report->scale_after = report->scale_before;
    return drop_gradients(engine, error);
}

static amp_status take_step(amp_engine *engine, double loss, amp_step_report *report)
{
    engine->weights_version++;
    amp_spikes_take(&engine->spikes, report->gradient_norm, loss);
    AMP_TRY(amp_scaler_update(&engine->scaler, 0));
    report->scale_after = engine->scaler.scale;
    return AMP_OK;
}

amp_status amp_engine_update(amp_engine *engine, amp_update_args *args, float decay, amp_step_report *report,
                             amp_error *error)
{
    const amp_scaler *scaler = &engine->scaler;
    amp_spikes *spikes = &engine->spikes;
    amp_step_outcome outcome = { 0 };
    *report = (amp_step_report){ .scale_before = scaler->scale };
    AMP_TRY(amp_parameters_take(&engine->parameters, error));
    report->anomaly = engine->anomaly;
    args->inverse_scale = amp_scaler_inverse(scaler);
    args->clip_norm = engine->settings.clip_norm;
    args->adam = engine->parameters.adam;
    args->adamw = engine->parameters.adamw;
    AMP_TRY(amp_parallel_finish(&engine->parallel, &engine->parameters, scaler, &engine->rejected,
                                &engine->bad_loss, &spikes->loss, error));
    report->bad_loss = engine->bad_loss;
    double loss = spikes->loss / args->batch;
    args->norm_limit = amp_spikes_norm_limit(spikes, loss);
    if (!engine->rejected.found)
        AMP_TRY(amp_parameters_finish_step(&engine->parameters, args, decay, &outcome, error));
    report->gradient_norm = outcome.gradient_norm;
    if (outcome.taken || outcome.above_limit)
        report->spike = amp_spikes_judge(spikes, outcome.gradient_norm, loss);
    amp_status status = outcome.taken ? take_step(engine, loss, report)
        : outcome.above_limit ? drop_step(engine, report, error) : skip_step(engine, report, error);
    spikes->loss = 0;
    engine->in_step = 0;
    engine->anomaly = engine->rejected = engine->bad_loss = (amp_anomaly){ 0 };
    return status;
}
