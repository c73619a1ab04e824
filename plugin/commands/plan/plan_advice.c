/* What a user could change, from the plan's facts. */
#include "plan_report.h"

#include "../../host/program/failure.h"

enum { MULTIPLE = 8 };

/* Less of all matrix products is not worth a line. */
static const double worth_telling = 0.01;

__attribute__((format(printf, 4, 5)))
static void advise(amp_plan_report *r, const char *kind, int layer, const char *format, ...)
{
    amp_plan_advice *a;
    va_list args;
    r->advice = amp_allocated(realloc(r->advice, ((size_t)r->advice_count + 1) * sizeof *r->advice));
    a = &r->advice[r->advice_count++];
    *a = (amp_plan_advice){ .kind = kind, .layer = layer };
    va_start(args, format);
    vsnprintf(a->text, sizeof a->text, format, args);
    va_end(args);
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

static void advise_alignment(amp_plan_report *r, int i)
{
    const amp_plan_row *row = &r->rows[i];
    const amp_node *node = &r->plan->nodes[i];
    if (!row->is_convolution || row->products == AMP_FP32 || row->out % MULTIPLE == 0) return;
    const amp_products p = node->desc.kind->products(node);
    const char *key = p.out_key;
    int outputs = p.groups * p.out, loss = loss_behind(r, i);
    if (loss >= 0)
        advise(r, "misaligned", i, "layer %d [%s]: %s=%d is no multiple of 8 (%.1f %% of the "
               "matrix products). Layer %d [%s] needs that many, so leave it", i, row->type, key,
               outputs, 100 * share(r, i), loss, r->rows[loss].type);
    else if (p.groups > 1)
        advise(r, "misaligned", i, "layer %d [%s]: %s=%d in %d groups is %d a group, no "
               "multiple of 8 (%.1f %% of the matrix products): %s=%d would be", i, row->type, key,
               outputs, p.groups, row->out, 100 * share(r, i), key, nearest(row->out) * p.groups);
    else
        advise(r, "misaligned", i, "layer %d [%s]: %s=%d is no multiple of 8 (%.1f %% of the matrix "
               "products); the nearest is %s=%d", i, row->type, key, outputs, 100 * share(r, i), key,
               nearest(outputs));
}

/* ---- what runs in fp32 ---- */

static void advise_fp32(amp_plan_report *r, int i)
{
    const amp_plan_row *row = &r->rows[i];
    double part = share(r, i);
    if (row->autocast.reason == AMP_WHY_KEPT)
        advise(r, "keep_fp32", i, "layer %d [%s]: amp=0 keeps it in fp32, with %.1f %% of the "
               "matrix products; take the line out to run it in %s", i, row->type, 100 * part,
               amp_dtype_name(r->dtype));
    else if (part < worth_telling || r->dtype == AMP_FP32) return;
    else if (row->products == AMP_FP32)
        advise(r, "fp32", i, "layer %d [%s]: runs in fp32 (%s), with %.1f %% of the matrix "
               "products: AMP makes nothing of it faster", i, row->type, row->why, 100 * part);
    else if (row->computes == AMP_FP32 && !row->winograd[0]
             && r->machine.support[r->dtype] == AMP_SUPPORT_NATIVE)
        advise(r, "no_kernel", i, "layer %d [%s]: stored in %s but computed in fp32, with %.1f "
               "%% of the matrix products: the library has no good kernel in %s for %d -> %d channels "
               "a group", i, row->type,
               amp_dtype_name(r->dtype), 100 * part, amp_dtype_name(r->dtype), row->in, row->out);
}

/* Layers that could run in half but follow one of Darknet's own, or a kept one, into fp32: a kept
 * shortcut leaves all that are added up behind it in fp32. */
static void advise_islands(amp_plan_report *r)
{
    for (int i = 0; i < r->count; i++) {
        char follows[r->count + 1];
        int followers = 0;
        if (r->rows[i].autocast.class != AMP_CLASS_FP32 && r->rows[i].autocast.reason != AMP_WHY_KEPT)
            continue;
        for (int k = 0; k < r->count; k++) {
            const amp_autocast *a = &r->rows[k].autocast;
            int from = a->reason == AMP_WHY_INPUT && a->form == AMP_FORM_WIDE
                ? r->plan->nodes[k].desc.inputs[a->input] : -1;
            follows[k] = from >= 0 && (from == i || follows[from]);
            followers += follows[k];
        }
        if (!followers) continue;
        advise(r, "follows_fp32", i, "layer %d [%s] runs in fp32 (%s), and %d layer%s behind it follow%s it "
               "into fp32, with casts between them and the half layers (%d casts a pass in all)", i,
               r->rows[i].type, r->rows[i].why, followers, followers == 1 ? "" : "s",
               followers == 1 ? "s" : "", r->cast_count);
    }
}

/* ---- the machine ---- */

static void advise_dtype(amp_plan_report *r)
{
    amp_dtype half = r->dtype, other = half == AMP_FP16 ? AMP_BF16 : AMP_FP16;
    int other_native = r->machine.support[other] == AMP_SUPPORT_NATIVE;
    if (half == AMP_FP32 || r->machine.support[half] == AMP_SUPPORT_NATIVE) return;
    char instead[80] = "no half dtype is native here";
    if (other_native) snprintf(instead, sizeof instead, "dtype=%s is native here", amp_dtype_name(other));
    advise(r, "dtype", -1, "%s is not native on this machine: it is stored, and computed in "
           "fp32. That saves memory, not time; %s", amp_dtype_name(half), instead);
}

static void advise_batch(amp_plan_report *r)
{
    if (r->fits_amp < 0) return;
    if (r->fits_amp < r->images) {
        advise(r, "batch", -1, "%d images a pass do not fit in the free %s under AMP, %d "
               "would: raise subdivisions to at least %d", r->images, r->memory.what, r->fits_amp,
               r->fits_amp ? (r->batch + r->fits_amp - 1) / r->fits_amp : r->batch);
        return;
    }
    int fewest = r->subdivisions;
    while (fewest > 1 && r->batch / (fewest - 1) <= r->fits_amp) fewest--;
    while (fewest < r->subdivisions && r->batch % fewest) fewest++;
    if (fewest == r->subdivisions) return;
    advise(r, "batch", -1, "up to %d images a pass fit in the free %s under AMP (stock: %d): "
           "subdivisions=%d will do, instead of "
           "%d", r->fits_amp, r->memory.what, r->fits_stock, fewest, r->subdivisions);
}

void amp_plan_advise(amp_plan_report *r)
{
    advise_dtype(r);
    for (int i = 0; i < r->count; i++) {
        advise_fp32(r, i);
        advise_alignment(r, i);
    }
    advise_islands(r);
    advise_batch(r);
}
