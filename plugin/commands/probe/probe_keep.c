/* Measures how much it helps to keep layers in fp32. Each trial sets amp=0 for the 1, 2, 4 or 8 layers that
 * add most to the error, and compares all gradients with fp32's. */
#include "probe_comparison.h"

#include <math.h>

#include "../../host/program/failure.h"

/* A trial is recommended only if the best trial reduces the gradient's error to at most this fraction. */
#define WORTHWHILE .5
/* The good trial with the fewest layers in fp32 is recommended. A trial is good if its error is at most
 * AMP_PROBE_LITTLE, or at most the best trial's error divided by AS_GOOD. */
#define AS_GOOD .8

amp_difference amp_probe_gradient(amp_differences *d, int layers, amp_trace_flags *excused)
{
    amp_difference sum = { 0 };
    for (int i = 0; i < layers; i++)
        for (int kind = AMP_TRACE_WEIGHTS; kind <= AMP_TRACE_SCALES; kind++) {
            const amp_difference *one = &d[i][kind];
            if (!one->compared || (excused && excused[i][kind])) continue;
            sum.compared = 1;
            sum.xx += one->xx;
            sum.yy += one->yy;
            sum.xy += one->xy;
            sum.dd += one->dd;
        }
    return sum;
}

/* ---- which layers add most ---- */

static double added_at(const amp_probe_run *r, int layer, amp_trace_kind kind)
{
    double error = amp_difference_error(&r->added[layer][kind]);
    return isnan(error) ? 0 : error * error;
}

/* Sums the squared errors that a layer adds to its output, weights' gradient and inputs' deltas. */
static double added_by(const amp_probe_comparison *c, const amp_probe_run *r, int i)
{
    const amp_layer_desc *d = &c->network.layers[i];
    double sum = added_at(r, i, AMP_TRACE_OUTPUT) + added_at(r, i, AMP_TRACE_WEIGHTS);
    for (int k = 0; k < d->input_count; k++)
        if (d->inputs[k] >= 0) sum += added_at(r, d->inputs[k], AMP_TRACE_DELTA);
    return sum;
}

/* Fills r->order with the layers whose matrix products run in half precision, sorted by added error, largest
 * first. Layers with equal errors stay in network order. */
static void order_layers(const amp_probe_comparison *c, amp_probe_run *r)
{
    r->order = amp_allocated(calloc((size_t)c->network.count + 1, sizeof *r->order));
    for (int i = 0; i < c->network.count; i++) {
        const amp_layer_desc *d = &c->network.layers[i];
        if (d->keep_fp32 || (!d->kind->products && !d->lends_products)) continue;
        int at = r->order_count++;
        for (; at > 0 && added_by(c, r, r->order[at - 1]) < added_by(c, r, i); at--)
            r->order[at] = r->order[at - 1];
        r->order[at] = i;
    }
}

/* ---- trials ---- */

static amp_status try_first(amp_probe_comparison *c, amp_dtype dtype, int count, const amp_trace *fp32,
                            amp_error *error)
{
    amp_subject subject;
    amp_differences *found = NULL;
    const amp_subject_pass pass = { .reference = fp32, .found = &found };
    amp_probe_run *r = &c->runs[dtype];
    amp_keep_trial *trial = &r->trials[r->trial_count];
    char name[AMP_MEMORY_FILE], *kept = amp_allocated(calloc((size_t)c->network.count + 1, 1));
    trial->count = count;
    for (int k = 0; k < count; k++) kept[r->order[k]] = 1;
    fprintf(stderr, "amp probe: running %s with amp=0 in %d of the layers\n", amp_dtype_name(dtype), count);
    amp_status status = amp_cfg_keep_in_memory(c->copy, kept, c->network.count, name, error);
    free(kept);
    if (status == AMP_OK)
        status = amp_subject_open(&subject, name, amp_dtype_name(dtype), &c->source, error);
    if (status != AMP_OK) return status;
    status = amp_subject_run(&subject, &pass, error);
    amp_difference gradient = amp_probe_gradient(found, c->network.count, NULL);
    free(found);
    trial->cosine = amp_difference_cosine(&gradient);
    trial->error = amp_difference_error(&gradient);
    if (status == AMP_OK) status = amp_subject_time(&subject, &trial->seconds, error);
    r->trial_count += status == AMP_OK;
    amp_subject_close(&subject);
    return status;
}

static int best_of(const amp_probe_run *r)
{
    double least = HUGE_VAL;
    for (int k = 0; k < r->trial_count; k++) least = fmin(least, r->trials[k].error);
    if (!(least <= WORTHWHILE * r->error)) return -1;
    int best = 0;
    while (!(r->trials[best].error * AS_GOOD <= fmax(least, AS_GOOD * AMP_PROBE_LITTLE))) best++;
    return best;
}

amp_status amp_probe_try_keeping(amp_probe_comparison *c, amp_dtype dtype, const amp_trace *fp32,
                                 amp_error *error)
{
    amp_probe_run *r = &c->runs[dtype];
    order_layers(c, r);
    /* If fp32 is wrong, a comparison with it is useless. */
    if (c->tries_nothing || amp_probe_is_wrong(c)) return AMP_OK;
    for (int count = 1; r->trial_count < AMP_KEEP_TRIALS && count <= r->order_count; count *= 2)
        AMP_TRY(try_first(c, dtype, count, fp32, error));
    r->best = best_of(r);
    return AMP_OK;
}
