/* The hooks of a step: forward, backward and update of one network. */
#include <math.h>
#include <string.h>

#include "../../files/checksum.h"
#include "../../tensor/half.h"
#include "../program/clock.h"
#include "../program/ranks.h"
#include "ranks_join.h"
#include "resume.h"
#include "step_messages.h"

/* ---- which plan a pass runs: see state.h ---- */

amp_plan_key amp_host_plan_key(const struct network *net, int batch, int training)
{
    const struct darknet_amp *amp = amp_fork_state(net);
    amp_view view = amp_fork_view(net);
    int image_delta = amp_fork_image_delta(net) != NULL, keeps_state = training || image_delta;
    return (amp_plan_key){ .batch = batch, .w = view.w, .h = view.h, .keeps_state = keeps_state,
                           .image_delta = image_delta, .frozen = training ? amp_fork_frozen(net) : 0,
                           .folds = !keeps_state && !amp->measures && !amp->engine->trains };
}

amp_status amp_host_training_plan(struct network *net, const amp_plan **out, amp_error *error)
{
    struct darknet_amp *amp = amp_fork_state(net);
    amp_plan_key key = amp_host_plan_key(net, amp_fork_view(net).batch, 1);
    amp_plan *plan;
    amp->net = net; /* the engine asks for the layers of this network */
    amp_status status = amp_engine_plan_for(amp->engine, &key, &plan, error);
    *out = plan;
    return status;
}

/* ---- forward ---- */

/* If the weights have changed since the previous prediction, tells the engine to copy them again: a program
 * that uses the library may change weights. Compares only 16 numbers of each array, because reading all
 * numbers would take a tenth of a prediction's time. In a network that trains, the engine knows when the
 * weights change. */
static void notice_weights(struct darknet_amp *amp, const amp_view *view)
{
    enum { SAMPLES = 16 };
    const amp_parameters *p = &amp->engine->parameters;
    amp_checksum checksum;
    if (view->on_gpu || amp->engine->trains) return;
    amp_checksum_start(&checksum);
    for (int i = 0; i < p->param_count + p->statistics_count; i++) {
        int is_master = i < p->param_count;
        const amp_statistics *s = is_master ? NULL : &p->statistics[i - p->param_count];
        const float *array = is_master ? p->params[i].master : s->array;
        size_t count = is_master ? p->params[i].count : s->count;
        for (size_t k = 0; k < SAMPLES; k++)
            amp_checksum_add(&checksum, &array[k * count / SAMPLES], sizeof *array);
    }
    uint64_t sum = amp_checksum_value(&checksum);
    if (amp->weights_seen && amp->weights_seen != sum) amp_engine_weights_changed(amp->engine);
    amp->weights_seen = sum;
}

static amp_status forward(struct darknet_amp *amp, struct network *net, const amp_view *view,
                          amp_error *error)
{
    if (view->layers != amp->layer_count)
        return amp_fail(error, AMP_BAD_NETWORK,
                        "amp: this command cuts the network to %d of its %d layers; run it with -amp off",
                        view->layers, amp->layer_count);
    if (view->on_gpu && view->batch > amp->batch)
        return amp_fail(error, AMP_BAD_NETWORK,
                        "amp: the batch grew from %d to %d images, but Darknet's input on the GPU has room "
                        "for only %d; set batch in the .cfg to the larger number",
                        amp->batch, view->batch, amp->batch);
    amp_plan_key key = amp_host_plan_key(net, view->batch, view->training);
    amp_plan *plan;
    if (!key.keeps_state) notice_weights(amp, view);
    AMP_TRY(amp_engine_plan_for(amp->engine, &key, &plan, error));
    AMP_TRY(amp_host_print_recompute(amp, plan, error));
    AMP_TRY(amp_fork_begin_forward(amp, net, error));
    AMP_TRY(amp_engine_forward(amp->engine, plan, amp_fork_image(net), view->training, error));
    return amp_fork_end_forward(amp, net, error);
}

/* Looks for labels that are inf or NaN, which Darknet's losses would use as indices. Sets all labels of such
 * an image to 0 and skips the step. */
static void check_labels(struct darknet_amp *amp, const amp_view *view)
{
    amp_anomaly bad = { .found = 1, .layer = -1, .pass = "forward", .tensor = "labels" };
    for (int i = 0; view->labels && i < view->batch; i++) {
        float *labels = view->labels + (size_t)i * (size_t)view->truths;
        if (amp_all_finite(labels, (size_t)view->truths)) continue;
        memset(labels, 0, (size_t)view->truths * sizeof *labels);
        if (!bad.bad_images++) bad.image = i;
    }
    if (bad.bad_images) amp_engine_reject_step(amp->engine, &bad);
}

/* ---- the hooks ---- */

/* Called at the start of every hook of a step. */
static struct darknet_amp *enter(struct network *net)
{
    struct darknet_amp *amp = amp_fork_state(net);
    amp->net = net;
    amp_fork_use_device(net);
    return amp;
}

void darknet_amp_forward(struct network *net)
{
    amp_error error;
    double began = amp_clock_seconds();
    struct darknet_amp *amp = enter(net);
    if (amp_fork_view(net).training) {
        if (amp->started == 0) amp->started = began;
        amp_resume_before_forward(amp, net); /* may load the weights again and change the input size */
        amp_ranks_join(amp);
    }
    amp_view view = amp_fork_view(net);
    if (view.training) check_labels(amp, &view);
    int pass = view.training ? amp_sharing_begin_pass(net) : 0;
    if (view.training) amp_spikes_begin_pass(amp);
    amp_host_check(forward(amp, net, &view, &error), &error);
    amp_host_print_recording(amp);
    if (!view.training) return;
    amp->subdivision = (int)(amp_fork_counters(net).seen / (size_t)view.batch - 1) % view.subdivisions + 1;
    if (amp->config->debug) amp_host_note_images(amp);
    amp_sharing_end_pass(net, pass);
    amp->computed += amp_clock_seconds() - began;
    amp->images += (double)view.batch * amp_engine_ranks(amp->engine);
}

void darknet_amp_backward(struct network *net)
{
    amp_error error;
    double began = amp_clock_seconds();
    struct darknet_amp *amp = enter(net);
    amp_view view = amp_fork_view(net);
    /* `seen` already counts this pass, so after the final subdivision `seen` is a multiple of the step's
     * images */
    if (amp_fork_counters(net).seen / (size_t)view.batch % (size_t)view.subdivisions == 0)
        amp->engine->parallel.is_last_pass = 1;
    amp_host_check(amp_engine_backward(amp->engine, amp_fork_image_delta(net), &error), &error);
    amp_host_print_recording(amp);
    if (amp->config->debug && view.training) amp_host_note_images(amp);
    if (view.training) amp_spikes_end_pass(amp);
    amp->computed += amp_clock_seconds() - began;
}

/* Advances the counters after a step. A skipped step does not advance the schedule: the number of its images
 * is subtracted from `seen`. (If `seen` is smaller than this number, the caller never counted the images.) */
static void count_step(struct network *net, int images, int skipped)
{
    amp_counters counters = amp_fork_counters(net);
    if (!skipped) counters.t++;
    else if (counters.seen >= (size_t)images) counters.seen -= (size_t)images;
    amp_fork_set_counters(net, counters);
}

void darknet_amp_update(struct network *net)
{
    amp_error error;
    amp_step_report report;
    double began = amp_clock_seconds();
    struct darknet_amp *amp = enter(net);
    amp_view view = amp_fork_view(net);
    amp_update_args args = { .learning_rate = amp_fork_rate(net), .momentum = view.momentum,
                             .batch = view.batch * view.subdivisions, .t = amp_fork_counters(net).t + 1,
                             .beta1 = view.beta1, .beta2 = view.beta2, .eps = view.eps };
    amp->engine->parameters.held = amp_fork_held(net);
    amp_status status = amp_engine_update(amp->engine, &args, view.decay, &report, &error);
    if (status != AMP_DIVERGED) amp_host_check(status, &error);
    amp->computed += amp_clock_seconds() - began;
    count_step(net, args.batch, report.skipped);
    size_t good_steps = (size_t)amp_fork_view(net).batch_number - !report.skipped;
    amp->step_skipped = report.skipped;
    amp->step_spike = report.spike;
    amp->step_scale = report.scale_before;
    amp->step_gradient_norm = report.skipped && !report.spike.found ? NAN : report.gradient_norm;
    amp->skipped += report.skipped != 0;
    amp->steps += !report.skipped;
    if (report.skipped && !report.spike.dropped) amp_fork_forget_overflow(amp);
    amp_host_print_step(amp, &report, status == AMP_DIVERGED, good_steps);
    amp_spikes_end_step(amp);
}

int darknet_amp_skipped(const struct network *net) { return amp_fork_state(net)->step_skipped; }
