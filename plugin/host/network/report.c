/* The lines of report.h. */
#include "report.h"

#include <string.h>

#include "../data/images.h"
#include "../program/ranks.h"
#include "ranks_join.h"
#include "resume.h"

static const char *where(struct darknet_amp *amp, const amp_anomaly *a, char text[AMP_ANOMALY_TEXT])
{
    const amp_plan *plan = amp->engine->active;
    return amp_anomaly_text(a, a->layer >= 0 && plan ? plan->nodes[a->layer].desc.type : "", text);
}

/* "images: a.jpg" for image number `one`; if `one` is below 0, all images: "images: a.jpg, b.jpg, ... and 3
 * more". The caller frees it; NULL if the files are not known. */
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

void amp_host_note_images(struct darknet_amp *amp, const struct network *net)
{
    amp_view view = amp_fork_view(net);
    const amp_anomaly *a = &amp->engine->anomaly;
    if (!a->found || amp->anomaly_noted) return;
    amp->anomaly_noted = 1;
    amp->anomaly_subdivision = amp->subdivision;
    amp->anomaly_images = files_of(&view, a->bad_images == 1 ? a->image : -1);
}

void amp_host_print_anomaly(struct darknet_amp *amp, const amp_step_report *report, size_t good_steps)
{
    char text[AMP_ANOMALY_TEXT];
    if (report->anomaly.found && amp->config->debug)
        amp_host_print("amp: debug: step after %zu: inf or NaN %s pass, subdivision %d of %d; %s",
                       good_steps, where(amp, &report->anomaly, text), amp->anomaly_subdivision,
                       amp_fork_view(amp->net).subdivisions,
                       amp->anomaly_images ? amp->anomaly_images : "its image files are not known");
    free(amp->anomaly_images);
    amp->anomaly_images = NULL;
    amp->anomaly_noted = 0;
}

void amp_host_print_bad_loss(struct darknet_amp *amp, const amp_step_report *report, size_t good_steps)
{
    const amp_anomaly *bad = &report->bad_loss;
    if (!bad->found || amp->bad_loss_printed || !amp_ranks_prints_for(amp)) return;
    amp->bad_loss_printed = 1;
    fprintf(stderr, "amp: step %zu: the loss of layer %d [%s] is inf or NaN, but its gradients are finite: "
                    "the step is made, but the average loss leaves it out\n", good_steps + 1, bad->layer,
            amp->engine->active->nodes[bad->layer].desc.type);
}

void amp_host_print_skip(struct darknet_amp *amp, const amp_step_report *report, size_t good_steps)
{
    char text[AMP_ANOMALY_TEXT];
    char scale[64] = "";
    if (report->scale_after != report->scale_before)
        snprintf(scale, sizeof scale, "; loss scale %g -> %g", (double)report->scale_before,
                 (double)report->scale_after);
    fprintf(stderr, "amp: step after %zu skipped: inf or NaN %s%s\n", good_steps,
            where(amp, &report->bad, text), scale);
}

/* Whether inf or NaN begins in forward, in the output of a layer that runs in fp16. */
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
                 "lower learning_rate, more burn_in, the labels", bad->layer);
        return text;
    }
    if (bad->layer < 0 && !strcmp(bad->tensor, "labels")) return "correct the label files";
    if (bad->is_gradient && config->wire == AMP_FP16 && amp_engine_ranks(amp->engine) > 1)
        return "wire=bf16, since wire=fp16 cannot carry sums of gradients above 65504; a lower learning_rate";
    return config->dtype == AMP_FP16 ? "a lower learning_rate, more burn_in, dtype=bf16, the labels"
                                     : "a lower learning_rate, more burn_in, the labels";
}

_Noreturn void amp_host_collapse(struct darknet_amp *amp, const amp_step_report *report, size_t good_steps)
{
    const amp_scaler *scaler = &amp->engine->scaler;
    const char *saved = amp->resume->last_file;
    char place[AMP_ANOMALY_TEXT], why[96], advice[ADVICE];
    if (!amp_ranks_prints_for(amp)) amp_ranks_await_end(); /* rank 0 knows what was saved last */
    if (report->bad_master) snprintf(why, sizeof why, "weights are inf, NaN or beyond 1e19");
    else
        snprintf(why, sizeof why, "gradients stay inf or NaN %s %g",
                 scaler->dynamic ? "at the smallest loss scale," : "step after step at loss scale",
                 (double)report->scale_before);
    darknet_amp_refuse(
        "amp: training has collapsed: %s; %s; last good step: %zu; last saved: %s%s; try %s%s",
        why, where(amp, &report->bad, place), good_steps, saved ? saved : "none yet",
        saved && !amp_file_exists(saved) ? ", which is gone" : "",
        what_to_try(amp, &report->bad, advice), amp->config->debug ? "" : ", and debug=1 to see the images");
}
