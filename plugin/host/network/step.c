/* The hooks of a step (forward, backward and update of one network), and the lines that are printed about
 * it. */
#include <math.h>
#include <string.h>

#include "../../files/checksum.h"
#include "../../tensor/half.h"
#include "../data/images.h"
#include "../program/clock.h"
#include "../program/memory.h"
#include "../program/ranks.h"
#include "ranks_join.h"
#include "resume.h"
#include "state.h"

/* ---- lines about a step that went wrong ----
 *
 * good_steps: the number of steps before this one, without skipped ones. */

static const char *where(struct darknet_amp *amp, const amp_anomaly *a, char text[AMP_ANOMALY_TEXT])
{
    const amp_plan *plan = amp->engine->active;
    return amp_anomaly_text(a, a->layer >= 0 && plan ? plan->nodes[a->layer].desc.type : "", text);
}

static const char *found(const amp_anomaly *a)
{
    return a->is_first ? "the first inf or NaN was" : "inf or NaN was found";
}

/* Returns "images: a.jpg" for image number `one`. If `one` is below 0, lists all images: "images: a.jpg,
 * b.jpg, ... and 3 more". The caller frees the text. NULL: the files are not known. */
static char *files_of(const amp_view *view, int one)
{
    enum { LISTED = 8 };
    int first = one < 0 ? 0 : one, count = one < 0 ? view->batch : 1, known = 1;
    char *text = NULL;
    size_t length;
    FILE *out = amp_allocated(open_memstream(&text, &length));
    fprintf(out, "images: ");
    for (int i = 0; i < count && i < LISTED; i++) {
        char *path = amp_images_path(view->images, view->batch, first + i);
        known &= path != NULL;
        fprintf(out, "%s%s", i ? ", " : "", path ? path : "");
        free(path);
    }
    if (count > LISTED) fprintf(out, " and %d more", count - LISTED);
    fclose(out);
    if (known) return text;
    free(text);
    return NULL;
}

/* Call it with debug=1 after each forward and backward. If the step's first inf or NaN was just found,
 * records the names of the images in the network's input, before the next pass replaces them. */
static void note_images(struct darknet_amp *amp, const struct network *net)
{
    amp_view view = amp_fork_view(net);
    const amp_anomaly *a = &amp->engine->anomaly;
    if (!a->found || amp->anomaly_noted) return;
    amp->anomaly_noted = 1;
    amp->anomaly_subdivision = amp->subdivision;
    amp->anomaly_images = files_of(&view, a->bad_images == 1 ? a->image : -1);
}

/* With debug=1: prints which tensor had the step's first inf or NaN, if there was one. */
static void print_anomaly(struct darknet_amp *amp, const amp_step_report *report, size_t good_steps)
{
    char text[AMP_ANOMALY_TEXT];
    if (report->anomaly.found && amp->config->debug)
        amp_host_print("amp: debug: step after %zu: %s %s, subdivision %d of %d; %s",
                       good_steps, found(&report->anomaly), where(amp, &report->anomaly, text),
                       amp->anomaly_subdivision, amp_fork_view(amp->net).subdivisions,
                       amp->anomaly_images ? amp->anomaly_images : "the image files are not known");
    free(amp->anomaly_images);
    amp->anomaly_images = NULL;
    amp->anomaly_noted = 0;
}

static void print_bad_loss(struct darknet_amp *amp, const amp_step_report *report, size_t good_steps)
{
    const amp_anomaly *bad = &report->bad_loss;
    if (!bad->found || amp->bad_loss_printed || !amp_ranks_prints_for(amp)) return;
    amp->bad_loss_printed = 1;
    fprintf(stderr, "amp: step %zu: the loss of layer %d [%s] is inf or NaN, but its gradients are finite: "
                    "the step is taken, and the average loss leaves it out\n", good_steps + 1, bad->layer,
            amp->engine->active->nodes[bad->layer].desc.type);
}

static void print_skip(struct darknet_amp *amp, const amp_step_report *report, size_t good_steps)
{
    char text[AMP_ANOMALY_TEXT];
    char scale[64] = "";
    if (report->scale_after != report->scale_before)
        snprintf(scale, sizeof scale, "; loss scale %g -> %g", (double)report->scale_before,
                 (double)report->scale_after);
    fprintf(stderr, "amp: skipped the step after step %zu: %s %s%s\n", good_steps, found(&report->bad),
            where(amp, &report->bad, text), scale);
}

/* Whether the first inf or NaN was found in forward, in the output of a layer that runs in fp16. */
static int overflows_fp16(const struct darknet_amp *amp, const amp_anomaly *bad)
{
    const amp_plan *plan = amp->engine->active;
    return bad->is_first && bad->layer >= 0 && plan && plan->nodes[bad->layer].dtype == AMP_FP16 &&
           !strcmp(bad->pass, "forward") && !strcmp(bad->tensor, "output");
}

enum { ADVICE = 200 };

static const char *what_to_try(const struct darknet_amp *amp, const amp_anomaly *bad, char text[ADVICE])
{
    const amp_config *config = amp->config;
    if (overflows_fp16(amp, bad)) {
        snprintf(text, ADVICE, "dtype=bf16, or amp=0 in layer %d, since fp16 holds no output above 65504; a "
                 "lower learning_rate, more burn_in, correct labels", bad->layer);
        return text;
    }
    if (bad->layer < 0 && !strcmp(bad->tensor, "labels")) return "correct the label files";
    if (bad->is_gradient && config->wire == AMP_FP16 && amp_engine_ranks(amp->engine) > 1)
        return "wire=bf16, since wire=fp16 cannot carry sums of gradients above 65504; a lower learning_rate";
    return config->dtype == AMP_FP16 ? "a lower learning_rate, more burn_in, dtype=bf16, correct labels"
                                     : "a lower learning_rate, more burn_in, correct labels";
}

/* Ends the program because the training has collapsed: the weights are inf, NaN or beyond 1e19, or
 * gradients still overflow although the loss scale cannot fall any more. The line names the layer and says
 * what to try. */
_Noreturn static void collapse(struct darknet_amp *amp, const amp_step_report *report, size_t good_steps)
{
    const amp_scaler *scaler = &amp->engine->scaler;
    const char *saved = amp->resume->last_file;
    char place[AMP_ANOMALY_TEXT], why[96], advice[ADVICE];
    if (!amp_ranks_prints_for(amp)) amp_ranks_await_end(); /* rank 0 prints the line, because it knows the
                                                              last saved file */
    if (report->bad_master) snprintf(why, sizeof why, "weights are inf, NaN or beyond 1e19");
    else
        snprintf(why, sizeof why, "gradients stay inf or NaN %s %g",
                 scaler->dynamic ? "at the smallest loss scale," : "step after step at loss scale",
                 (double)report->scale_before);
    darknet_amp_refuse(
        "amp: training has collapsed: %s; %s %s; last good step: %zu; last saved: %s%s; try %s%s",
        why, report->bad_master ? "found" : found(&report->bad), where(amp, &report->bad, place), good_steps,
        saved ? saved : "none yet",
        saved && !amp_file_exists(saved) ? ", which is gone" : "",
        what_to_try(amp, &report->bad, advice),
        amp->config->debug ? "" : "; set debug=1 to see which images");
}

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

/* Activation checkpointing: prints, once, what the training's first plan recomputes and how much memory that
 * saves. */
static amp_status print_recompute(struct darknet_amp *amp, const amp_plan *plan, amp_error *error)
{
    const amp_recompute_settings *settings = &amp->engine->settings.recompute;
    amp_plan *whole;
    if (amp->recompute_printed || !plan->key.keeps_state || (!settings->on && !plan->again_count))
        return AMP_OK;
    amp->recompute_printed = 1;
    AMP_TRY(amp_engine_outline(amp->engine, &plan->key, amp->config->dtype, NULL, &whole, error));
    amp_recompute_cost cost = amp_recompute_cost_of(plan);
    fprintf(stderr, "amp: checkpoint: backward recomputes %d of %d layers, %.0f %% of a forward's "
            "arithmetic; activations take %.1f MB instead of %.1f\n", plan->again_count, plan->count,
            100 * cost.again / cost.forward, (double)plan->arena.total / 0x1p20,
            (double)whole->arena.total / 0x1p20);
    if (settings->on && !settings->segments && plan->arena.total > settings->budget)
        fprintf(stderr, "amp: checkpoint=auto: activations take %.1f MB more than fits; use more "
                        "subdivisions, or a smaller width and height\n",
                (double)(plan->arena.total - settings->budget) / 0x1p20);
    amp_plan_free(whole, amp->engine->backend);
    return AMP_OK;
}

/* If the weights have changed since the last prediction, tells the engine to copy them again. This is needed
 * because plans predict with copies of the weights, and a program that uses the library may change the
 * weights between predictions. Compares only 16 numbers of each array: reading all weights would take a tenth
 * of a prediction's time. Does nothing for a network that trains, because there the engine knows when the
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
    AMP_TRY(print_recompute(amp, plan, error));
    AMP_TRY(amp_fork_begin_forward(amp, net, error));
    AMP_TRY(amp_engine_forward(amp->engine, plan, amp_fork_image(net), view->training, error));
    return amp_fork_end_forward(amp, net, error);
}

/* Finds labels that are inf or NaN, for example from a label file that contains "nan". Darknet's losses would
 * use them as indices. So all labels of the image are set to 0, and the step is skipped. */
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

static void print_note(struct darknet_amp *amp)
{
    amp_recording *r = &amp->engine->recording;
    if (r->line_is_new) fprintf(stderr, "amp: graphs=1: %s\n", r->line);
    r->line_is_new = 0;
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
    print_note(amp);
    if (!view.training) return;
    amp->subdivision = (int)(amp_fork_counters(net).seen / (size_t)view.batch - 1) % view.subdivisions + 1;
    if (amp->config->debug) note_images(amp, net);
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
    /* `seen` already counts this pass, so after the last subdivision it is a multiple of the step's images */
    if (amp_fork_counters(net).seen / (size_t)view.batch % (size_t)view.subdivisions == 0)
        amp->engine->parallel.is_last_pass = 1;
    amp_host_check(amp_engine_backward(amp->engine, amp_fork_image_delta(net), &error), &error);
    print_note(amp);
    if (amp->config->debug && view.training) note_images(amp, net);
    if (view.training) amp_spikes_end_pass(amp);
    amp->computed += amp_clock_seconds() - began;
}

/* Prints one line when the training is over, for people and for scripts. */
static void print_summary(struct darknet_amp *amp, const struct network *net)
{
    if (amp->summary_printed || !amp_fork_is_over(net)) return;
    amp->summary_printed = 1;
    fprintf(stderr, "amp: summary dtype=%s steps=%lu skipped=%lu scale=%g images_per_second=%.1f "
            "compute_images_per_second=%.1f peak_rss_mb=%.0f\n", amp_dtype_name(amp->config->dtype),
            amp->steps, amp->skipped, (double)amp->engine->scaler.scale,
            amp_clock_rate(amp->images, amp_clock_seconds() - amp->started),
            amp_clock_rate(amp->images, amp->computed),
            amp_host_peak_resident_mb());
}

/* Advances the counters after a step. A skipped step does not advance the schedule, so its images are
 * subtracted from `seen`. If `seen` is smaller than the number of these images, nothing is subtracted,
 * because the caller never counted them. Adam's t counts only the steps that were not skipped. */
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
    print_anomaly(amp, &report, good_steps);
    amp->step_skipped = report.skipped;
    amp->step_spike = report.spike;
    amp->step_scale = report.scale_before;
    amp->step_gradient_norm = report.skipped && !report.spike.found ? NAN : report.gradient_norm;
    amp->skipped += report.skipped != 0;
    amp_spikes_report(amp, &report, good_steps);
    amp_spikes_end_step(amp);
    if (report.spike.dropped) return;
    if (report.skipped) {
        amp_fork_forget_overflow(amp);
        if (amp_ranks_prints_for(amp)) print_skip(amp, &report, good_steps);
        if (status == AMP_DIVERGED) collapse(amp, &report, good_steps);
        return;
    }
    amp->steps++;
    print_bad_loss(amp, &report, good_steps);
    if (amp_ranks_prints_for(amp)) print_summary(amp, net);
}

int darknet_amp_skipped(const struct network *net) { return amp_fork_state(net)->step_skipped; }
