/* What a user could change, from the plan's facts. */
#define _GNU_SOURCE /* vasprintf */
#include "plan_report.h"

#include <stdlib.h>

enum { MULTIPLE = 8 };

/* Less of all matrix products is not worth a line. */
static const double worth_telling = 0.01;

__attribute__((format(printf, 5, 6)))
static amp_status advise(amp_plan_report *r, amp_error *error, const char *kind, int layer,
                         const char *format, ...)
{
    amp_plan_advice *grown = realloc(r->advice, ((size_t)r->advice_count + 1) * sizeof *grown);
    char *text = NULL;
    va_list args;
    if (grown) r->advice = grown;
    va_start(args, format);
    int failed = !grown || vasprintf(&text, format, args) < 0;
    va_end(args);
    if (failed) return amp_fail(error, AMP_NO_MEMORY, "%s: out of memory for advice", r->cfg);
    r->advice[r->advice_count++] = (amp_plan_advice){ kind, layer, text };
    return AMP_OK;
}

static double share(const amp_plan_report *r, int i)
{
    return r->operations > 0 ? r->rows[i].training_operations / r->operations : 0;
}

/* ---- alignment ---- */

/* The loss that layer i's output goes to with no weights between: its classes give the filters, and only
 * others would change them. -1: there is none. */
static int loss_behind(const amp_plan_report *r, int i)
{
    char reached[r->count + 1];
    for (int k = 0; k < r->count; k++) {
        const amp_layer_desc *d = &r->plan->nodes[k].desc;
        int reads = 0;
        for (int m = 0; m < d->input_count; m++) reads |= d->inputs[m] >= i && reached[d->inputs[m]];
        if (reads && d->is_loss) return k;
        reached[k] = k == i || (reads && !d->param_count);
    }
    return -1;
}

static int above(int n) { return (n + MULTIPLE - 1) / MULTIPLE * MULTIPLE; }
static int nearest(int n)
{
    int below = n / MULTIPLE * MULTIPLE;
    return below && n - below < above(n) - n ? below : above(n);
}

static amp_status advise_alignment(amp_plan_report *r, int i, amp_error *error)
{
    const amp_plan_row *row = &r->rows[i];
    const amp_layer_desc *d = &r->plan->nodes[i].desc;
    if (!row->is_convolution || !amp_plan_multiplies_half(row) || row->out % MULTIPLE == 0) return AMP_OK;
    const char *key = d->kind == AMP_LAYER_CONNECTED ? "output" : "filters";
    int loss = loss_behind(r, i);
    if (loss >= 0)
        return advise(r, error, "misaligned", i, "layer %d [%s]: %s=%d is no multiple of 8 (%.1f %% of the "
                      "matrix products). Layer %d [%s] needs that many, so leave it", i, row->type, key,
                      d->filters, 100 * share(r, i), loss, r->rows[loss].type);
    if (d->groups > 1)
        return advise(r, error, "misaligned", i, "layer %d [%s]: %s=%d in %d groups is %d a group, no "
                      "multiple of 8 (%.1f %% of the matrix products): %s=%d would be", i, row->type, key,
                      d->filters, d->groups, row->out, 100 * share(r, i), key, nearest(row->out) * d->groups);
    return advise(r, error, "misaligned", i, "layer %d [%s]: %s=%d is no multiple of 8 (%.1f %% of the "
                  "matrix products); the nearest is %s=%d", i, row->type, key, d->filters, 100 * share(r, i),
                  key, nearest(d->filters));
}

/* ---- what runs in fp32 ---- */

static amp_status advise_fp32(amp_plan_report *r, int i, amp_error *error)
{
    const amp_plan_row *row = &r->rows[i];
    double part = share(r, i);
    if (row->autocast.reason == AMP_WHY_PINNED)
        return advise(r, error, "pinned", i, "layer %d [%s]: amp=0 pins it to fp32, with %.1f %% of the "
                      "matrix products; take the line out to run it in %s", i, row->type, 100 * part,
                      amp_dtype_name(r->dtype));
    if (part < worth_telling || r->dtype == AMP_FP32) return AMP_OK;
    if (!amp_plan_multiplies_half(row))
        return advise(r, error, "fp32", i, "layer %d [%s]: runs in fp32 (%s), with %.1f %% of the matrix "
                      "products: AMP makes nothing of it faster", i, row->type, row->why, 100 * part);
    if (row->computes == AMP_FP32 && r->machine.support[r->dtype] == AMP_SUPPORT_NATIVE)
        return advise(r, error, "no_kernel", i, "layer %d [%s]: stored in %s but computed in fp32, with %.1f "
                      "%% of the matrix products: the library has no good kernel in %s for %d -> %d channels "
                      "a group", i, row->type,
                      amp_dtype_name(r->dtype), 100 * part, amp_dtype_name(r->dtype), row->in, row->out);
    return AMP_OK;
}

/* Layers that could run in half but follow one of Darknet's own, or a pinned one, into fp32: a pinned
 * shortcut leaves all that are added up behind it in fp32. */
static amp_status advise_islands(amp_plan_report *r, amp_error *error)
{
    for (int i = 0; i < r->count; i++) {
        char follows[r->count + 1];
        int followers = 0;
        if (r->rows[i].autocast.class != AMP_CLASS_FP32 && r->rows[i].autocast.reason != AMP_WHY_PINNED)
            continue;
        for (int k = 0; k < r->count; k++) {
            const amp_autocast *a = &r->rows[k].autocast;
            int from = a->reason == AMP_WHY_INPUT && a->form == AMP_FORM_WIDE
                ? r->plan->nodes[k].desc.inputs[a->input] : -1;
            follows[k] = from >= 0 && (from == i || follows[from]);
            followers += follows[k];
        }
        if (!followers) continue;
        AMP_TRY(advise(r, error, "follows_fp32", i, "layer %d [%s] runs in fp32 (%s), and %d layer%s behind "
                       "it follow%s it into fp32, with casts between them and the half layers (%d casts a "
                       "pass in all)", i, r->rows[i].type, r->rows[i].why, followers,
                       followers == 1 ? "" : "s", followers == 1 ? "s" : "", r->cast_count));
    }
    return AMP_OK;
}

/* ---- the machine ---- */

static amp_status advise_dtype(amp_plan_report *r, amp_error *error)
{
    amp_dtype half = r->dtype, other = half == AMP_FP16 ? AMP_BF16 : AMP_FP16;
    int other_native = r->machine.support[other] == AMP_SUPPORT_NATIVE;
    if (half == AMP_FP32 || r->machine.support[half] == AMP_SUPPORT_NATIVE) return AMP_OK;
    char instead[80] = "no half dtype is native here";
    if (other_native) snprintf(instead, sizeof instead, "dtype=%s is native here", amp_dtype_name(other));
    return advise(r, error, "dtype", -1, "%s is not native on this machine: it is stored, and computed in "
                  "fp32. That saves memory, not time; %s", amp_dtype_name(half), instead);
}

static amp_status advise_batch(amp_plan_report *r, amp_error *error)
{
    if (r->fits_amp < 0) return AMP_OK;
    if (r->fits_amp < r->images)
        return advise(r, error, "batch", -1, "%d images a pass do not fit in the free %s under AMP, %d "
                      "would: raise subdivisions to at least %d", r->images, r->memory.what, r->fits_amp,
                      r->fits_amp ? (r->batch + r->fits_amp - 1) / r->fits_amp : r->batch);
    int fewest = r->subdivisions;
    while (fewest > 1 && r->batch / (fewest - 1) <= r->fits_amp) fewest--;
    while (fewest < r->subdivisions && r->batch % fewest) fewest++;
    if (fewest == r->subdivisions) return AMP_OK;
    return advise(r, error, "batch", -1, "up to %d images a pass fit in the free %s under AMP (stock: %d): "
                  "subdivisions=%d will do, instead of "
                  "%d", r->fits_amp, r->memory.what, r->fits_stock, fewest, r->subdivisions);
}

amp_status amp_plan_advise(amp_plan_report *r, amp_error *error)
{
    AMP_TRY(advise_dtype(r, error));
    for (int i = 0; i < r->count; i++) {
        AMP_TRY(advise_fp32(r, i, error));
        AMP_TRY(advise_alignment(r, i, error));
    }
    AMP_TRY(advise_islands(r, error));
    return advise_batch(r, error);
}
