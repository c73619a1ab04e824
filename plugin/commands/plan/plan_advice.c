/* Derives from the plan what the user could change: rows of a table. */
#include "plan_report.h"

#include "../../host/network/fits.h"
#include "../../host/program/failure.h"

enum { MULTIPLE = 8 };

/* "fp32" and "no kernel" are advised only for layers with at least this share of the products' operations. */
static const double worth_telling = 0.01;

static double share(const amp_plan_report *r, int i)
{
    return r->operations > 0 ? r->rows[i].training_operations / r->operations : 0;
}

__attribute__((format(printf, 4, 5)))
static void advise(amp_plan_report *r, const char *kind, int layer, const char *format, ...)
{
    amp_plan_advice *a;
    va_list args;
    r->advice = amp_allocated(realloc(r->advice, ((size_t)r->advice_count + 1) * sizeof *r->advice));
    a = &r->advice[r->advice_count++];
    *a = (amp_plan_advice){ .kind = kind, .layer = layer, .percent = layer < 0 ? 0 : 100 * share(r, layer) };
    va_start(args, format);
    vsnprintf(a->text, sizeof a->text, format, args);
    va_end(args);
}

/* ---- alignment ---- */

/* The first loss that layer i's output reaches through layers without weights; -1: none. Its number of
 * classes determines the filters of layer i. */
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
        advise(r, "misaligned", i, "nothing: layer %d [%s] needs %s=%d", loss, r->rows[loss].type, key,
               outputs);
    else
        advise(r, "misaligned", i, "%s=%d instead of %d", key, nearest(row->out) * p.groups, outputs);
}

/* ---- what runs in fp32 ---- */

static void advise_fp32(amp_plan_report *r, int i)
{
    const amp_plan_row *row = &r->rows[i];
    if (row->autocast.reason == AMP_WHY_KEPT)
        advise(r, "kept", i, "remove amp=0 to run it in %s", amp_dtype_name(r->dtype));
    else if (share(r, i) < worth_telling || r->dtype == AMP_FP32) return;
    else if (row->products == AMP_FP32)
        advise(r, "fp32", i, "nothing: %s", row->why);
    else if (row->computes == AMP_FP32 && !row->winograd[0]
             && r->machine.support[r->dtype] == AMP_SUPPORT_NATIVE)
        advise(r, "no kernel", i, "change the number of channels of a group, now %d -> %d", row->in,
               row->out);
}

/* Advises on fp32 layers that force later layers into fp32. One shortcut kept in fp32, for example, forces
 * all shortcuts that add to its output. */
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
        advise(r, "followed", i, "%s: layers that follow this one into fp32: %d",
               r->rows[i].autocast.reason == AMP_WHY_KEPT ? "remove amp=0" : "replace it", followers);
    }
}

/* ---- the machine ---- */

static void advise_dtype(amp_plan_report *r)
{
    amp_dtype half = r->dtype, other = half == AMP_FP16 ? AMP_BF16 : AMP_FP16;
    int other_native = r->machine.support[other] == AMP_SUPPORT_NATIVE;
    if (half == AMP_FP32 || r->machine.support[half] == AMP_SUPPORT_NATIVE) return;
    if (other_native) advise(r, "not native", -1, "dtype=%s to save time", amp_dtype_name(other));
    else advise(r, "not native", -1, "nothing: %s saves memory here, not time", amp_dtype_name(half));
}

static void advise_batch(amp_plan_report *r)
{
    if (r->fits_amp < 0) return;
    if (r->fits_amp == 0) {
        advise(r, "too large", -1, "%s", AMP_NOTHING_FITS);
        return;
    }
    int fewest = 1; /* that divide the batch into passes that fit */
    while (fewest < r->batch && (r->batch % fewest || r->batch / fewest > r->fits_amp)) fewest++;
    if (r->fits_amp < r->images) {
        advise(r, "too large", -1, "subdivisions=%d instead of %d: images a pass that fit in the free %s: %d",
               fewest, r->subdivisions, r->memory.what, r->fits_amp);
        return;
    }
    if (fewest >= r->subdivisions) return;
    advise(r, "room", -1, "subdivisions=%d instead of %d: images a pass that fit in the free %s: %d (stock: "
           "%d)", fewest, r->subdivisions, r->memory.what, r->fits_amp, r->fits_stock);
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
