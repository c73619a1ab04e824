/* See step_messages.h. */
#include "step_messages.h"

#include "../data/images.h"
#include "../program/clock.h"
#include "../program/memory.h"
#include "../program/ranks.h"
#include "ranks_join.h"
#include "resume.h"

/* In this file, good_steps is the number of earlier steps that were not skipped. */

/* ---- a step that went wrong ---- */

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

void amp_host_note_images(struct darknet_amp *amp)
{
    amp_view view = amp_fork_view(amp->net);
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

/* Ends the program: the weights are inf, NaN or beyond 1e19, or gradients still overflow although the loss
 * scale cannot fall any more. */
_Noreturn static void collapse(struct darknet_amp *amp, const amp_step_report *report, size_t good_steps)
{
    const amp_scaler *scaler = &amp->engine->scaler;
    const char *saved = amp->resume->last_file;
    char place[AMP_ANOMALY_TEXT], why[96], advice[ADVICE];
    if (!amp_ranks_prints_for(amp)) amp_ranks_await_end(); /* rank 0 knows the latest saved file */
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

/* ---- a pass ---- */

amp_status amp_host_print_recompute(struct darknet_amp *amp, const amp_plan *plan, amp_error *error)
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

void amp_host_print_recording(struct darknet_amp *amp)
{
    amp_recording *r = &amp->engine->recording;
    if (r->line_is_new) fprintf(stderr, "amp: graphs=1: %s\n", r->line);
    r->line_is_new = 0;
}

/* ---- a step ---- */

/* Prints one line when the training is over, for people and for scripts. */
static void print_summary(struct darknet_amp *amp)
{
    if (amp->summary_printed || !amp_fork_is_over(amp->net)) return;
    amp->summary_printed = 1;
    fprintf(stderr, "amp: summary dtype=%s steps=%lu skipped=%lu scale=%g images_per_second=%.1f "
            "compute_images_per_second=%.1f peak_rss_mb=%.0f\n", amp_dtype_name(amp->config->dtype),
            amp->steps, amp->skipped, (double)amp->engine->scaler.scale,
            amp_clock_rate(amp->images, amp_clock_seconds() - amp->started),
            amp_clock_rate(amp->images, amp->computed),
            amp_host_peak_resident_mb());
}

void amp_host_print_step(struct darknet_amp *amp, const amp_step_report *report, int diverged,
                         size_t good_steps)
{
    print_anomaly(amp, report, good_steps);
    amp_spikes_report(amp, report, good_steps);
    if (report->spike.dropped) return;
    if (report->skipped) {
        if (amp_ranks_prints_for(amp)) print_skip(amp, report, good_steps);
        if (diverged) collapse(amp, report, good_steps);
        return;
    }
    print_bad_loss(amp, report, good_steps);
    if (amp_ranks_prints_for(amp)) print_summary(amp);
}
