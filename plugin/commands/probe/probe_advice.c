/* What to keep. A number is kept in fp32 only where both its producer and the layers that read it are: a
 * consumer in fp16 makes an fp16 copy of what it reads, and returns its delta in fp16. So keeping is
 * worked out on values, with autocast's own rules. */
#include "probe.h"

#include "../../amp/autocast.h"
#include "../../host/program/failure.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* Why a layer's numbers must not be in fp16. */
typedef enum reason {
    FINE, NOT_FINITE, OUTPUT_OVERFLOWS, SUMS_OVERFLOW, OUTPUT_VANISHES, SUMS_VANISH, DELTA_OVERFLOWS,
    DELTA_VANISHES
} reason;

/* a dynamic scale's, unless the .cfg has others: scaler.h */
enum { LEAST_SCALE = -14, USUAL_SCALE = 16, MOST_SCALE = 126 };

typedef struct advisor {
    amp_probe_result *r;
    int count;
    reason *reasons;
    amp_form *forms, *inputs; /* inputs: room for those of one layer */
    char *kept;               /* the .cfg's and the advised */
    int settled;              /* the scale, as an exponent, that deltas were judged at */
} advisor;

static const amp_layer_desc *desc_of(const advisor *a, int i) { return &a->r->network.layers[i]; }
static const amp_layer_numerics *numerics_of(const advisor *a, int i) { return &a->r->layers[i].numerics; }

/* ---- forms ---- */

static void choose_forms(advisor *a)
{
    for (int i = 0; i < a->count; i++) {
        amp_layer_desc d = *desc_of(a, i);
        d.keep_fp32 = a->kept[i];
        for (int k = 0; k < d.input_count; k++)
            a->inputs[k] = d.inputs[k] < 0 ? AMP_FORM_PLAIN : a->forms[d.inputs[k]];
        a->forms[i] = amp_autocast_of(&d, AMP_FP16, a->inputs).form;
    }
}

/* Whether it computes in fp16: on tensors in it, or on copies of fp32 ones that its matrix products round. */
static int in_half(const advisor *a, int i)
{
    return a->forms[i] == AMP_FORM_HALF || (desc_of(a, i)->lends_products && !a->kept[i]);
}

static int is_advised(const advisor *a, int i) { return a->kept[i] && !desc_of(a, i)->keep_fp32; }

static int low_consumer(const advisor *a, int value, int after)
{
    for (int i = after + 1; i < a->count; i++)
        if (in_half(a, i) && amp_layer_reads(desc_of(a, i), value)) return i;
    return -1;
}

/* Its delta is in fp16 somewhere. */
static int delta_is_low(const advisor *a, int value)
{
    return in_half(a, value) || low_consumer(a, value, value) >= 0;
}

/* Sums before batch normalization lie within the layer; all else is read by others. */
static int is_inner(reason why) { return why == SUMS_OVERFLOW || why == SUMS_VANISH; }

/* Pins until what must not be in fp16 is nowhere. Pins of one round may take others along: layers that follow
 * their input. */
static void keep(advisor *a)
{
    for (int changed = 1; changed;) {
        changed = 0;
        choose_forms(a);
        for (int i = 0; i < a->count && !changed; i++) {
            if (a->reasons[i] == FINE || a->reasons[i] == NOT_FINITE) continue;
            int which = in_half(a, i) ? i : is_inner(a->reasons[i]) ? -1 : low_consumer(a, i, i);
            if (which < 0) continue;
            a->kept[which] = 1;
            changed = 1;
        }
    }
}

/* ---- outputs ---- */

static reason judge_output(const advisor *a, int i)
{
    const amp_layer_numerics *n = numerics_of(a, i);
    amp_lost output = amp_numerics_lost(&n->output, AMP_FP16, 1),
        sums = amp_numerics_lost(&n->inner_output, AMP_FP16, 1);
    if (n->output.not_finite || n->inner_output.not_finite || n->delta.not_finite) return NOT_FINITE;
    if (!in_half(a, i) && low_consumer(a, i, i) < 0) return FINE;
    if (output.overflows) return OUTPUT_OVERFLOWS;
    if (a->forms[i] == AMP_FORM_HALF && sums.overflows) return SUMS_OVERFLOW;
    if (output.error > a->r->share) return OUTPUT_VANISHES;
    return a->forms[i] == AMP_FORM_HALF && sums.error > a->r->share ? SUMS_VANISH : FINE;
}

/* ---- deltas ---- */

static int larger(int a, int b) { return a > b ? a : b; }
static int smaller(int a, int b) { return a < b ? a : b; }

/* Scales that suit a layer's deltas in fp16; without bounds where none is stored in it. */
static amp_probe_scales scales_of(const advisor *a, int i)
{
    const amp_layer_numerics *n = numerics_of(a, i);
    amp_probe_scales s = { INT_MIN, INT_MAX };
    if (!delta_is_low(a, i)) return s;
    s.least = amp_numerics_least_scale(&n->delta, AMP_FP16, a->r->share);
    s.most = amp_numerics_most_scale(&n->delta, AMP_FP16);
    if (a->forms[i] != AMP_FORM_HALF) return s;
    s.least = larger(s.least, amp_numerics_least_scale(&n->inner_delta, AMP_FP16, a->r->share));
    s.most = smaller(s.most, amp_numerics_most_scale(&n->inner_delta, AMP_FP16));
    return s;
}

static amp_probe_scales common_scales(const advisor *a)
{
    amp_probe_scales all = { INT_MIN, INT_MAX };
    for (int i = 0; i < a->count; i++) {
        if (a->reasons[i] != FINE) continue;
        amp_probe_scales s = scales_of(a, i);
        all.least = larger(all.least, s.least);
        all.most = smaller(all.most, s.most);
    }
    return all;
}

static int misfits(const advisor *a, int scale)
{
    int count = 0;
    for (int i = 0; i < a->count; i++) {
        amp_probe_scales s = scales_of(a, i);
        count += a->reasons[i] == FINE && (s.most < scale || s.least > scale);
    }
    return count;
}

/* No scale suits all: the one that suits the most layers, among those at which some layer is about to
 * overflow, as a dynamic scale settles at such a one; of several, the nearest to where it starts. */
static int best_scale(const advisor *a)
{
    int best = INT_MAX, fewest = INT_MAX;
    for (int i = 0; i < a->count; i++) {
        int scale = scales_of(a, i).most;
        if (a->reasons[i] != FINE || scale == INT_MAX) continue;
        int count = misfits(a, scale);
        if (count < fewest || (count == fewest && abs(scale - USUAL_SCALE) < abs(best - USUAL_SCALE)))
            best = scale, fewest = count;
    }
    return best;
}

static void judge_deltas(advisor *a, int scale)
{
    a->settled = scale;
    for (int i = 0; i < a->count; i++) {
        amp_probe_scales s = scales_of(a, i);
        if (a->reasons[i] != FINE) continue;
        if (s.most < scale) a->reasons[i] = DELTA_OVERFLOWS;
        else if (s.least > scale) a->reasons[i] = DELTA_VANISHES;
    }
}

/* ---- sentences ---- */

#define add(r, ...) amp_lines_add(&(r)->advice, __VA_ARGS__)

/* "3.1 %", and of few numbers how many: a share of 0.00 % would look like none. */
static const char *share_text(double share, unsigned long long count, char text[48])
{
    if (share >= .0005) snprintf(text, 48, "%.*f %%", share < .1 ? 2 : 1, 100 * share);
    else snprintf(text, 48, "%.0f of %llu", share * (double)count, count);
    return text;
}

const char *amp_probe_scale_text(int exponent, char text[32])
{
    if (exponent >= 0 && exponent < 24) snprintf(text, 32, "%ld", 1L << exponent);
    else if (exponent < 0 && exponent > -4) snprintf(text, 32, "%g", ldexp(1, exponent));
    else snprintf(text, 32, "2^%d", exponent);
    return text;
}

/* "layers 3, 4 and 7, which read them": those that are kept for the sake of what layer i makes. */
static void companions(const advisor *a, int i, char text[200])
{
    int found[64], count = 0;
    text[0] = 0;
    for (int k = i + 1; k < a->count && count < 64; k++)
        if (is_advised(a, k) && amp_layer_reads(desc_of(a, k), i)) found[count++] = k;
    for (int k = 0; k < count && strlen(text) < 155; k++)
        amp_append(text, 200, "%s%d", !k && count > 1 ? "layers " : !k ? "layer "
                   : k + 1 == count ? " and " : ", ", found[k]);
    if (count) amp_append(text, 200, ", which read%s", count > 1 ? "" : "s");
}

/* ": keep it in fp32 with amp=0, or use dtype=bf16" */
static void remedy(const advisor *a, int i, char text[400])
{
    char others[200];
    int itself = is_advised(a, i);
    companions(a, i, others);
    if (is_inner(a->reasons[i])) others[0] = 0;
    if (itself && others[0])
        snprintf(text, 400, "keep it in fp32 with amp=0, and %s them, or use dtype=bf16", others);
    else if (itself) snprintf(text, 400, "keep it in fp32 with amp=0, or use dtype=bf16");
    else if (others[0]) snprintf(text, 400, "keep %s them, in fp32 with amp=0, or use dtype=bf16", others);
    else snprintf(text, 400, "it runs in fp32 once the layers before it do");
}

/* What fp16 does to a layer's deltas at a scale: to those that others see, or within it, whichever is
 * worse. */
static amp_lost worst_of_deltas(const amp_layer_numerics *n, int over, float scale)
{
    amp_lost delta = amp_numerics_lost(&n->delta, AMP_FP16, scale),
        inner = amp_numerics_lost(&n->inner_delta, AMP_FP16, scale);
    return (over ? inner.overflow > delta.overflow : inner.error > delta.error) ? inner : delta;
}

/* "31.2 % of its deltas become 0 and 4.0 % subnormal in fp16": what is too small. */
static void too_small(amp_lost lost, const char *what, char text[200])
{
    char zero[48], subnormal[48];
    share_text(lost.zero, lost.count, zero);
    share_text(lost.subnormal, lost.count, subnormal);
    if (lost.zero == 0) snprintf(text, 200, "%s of its %s are subnormal in fp16", subnormal, what);
    else if (lost.subnormal == 0) snprintf(text, 200, "%s of its %s become 0 in fp16", zero, what);
    else snprintf(text, 200, "%s of its %s become 0 and %s subnormal in fp16", zero, what, subnormal);
}

static void advise_output(const advisor *a, int i, const char *what)
{
    const amp_layer_numerics *n = numerics_of(a, i);
    const amp_exponents *numbers = is_inner(a->reasons[i]) ? &n->inner_output : &n->output;
    const char *type = desc_of(a, i)->type,
        *name = is_inner(a->reasons[i]) ? "sums before batch normalization" : "outputs";
    amp_lost lost = amp_numerics_lost(numbers, AMP_FP16, 1);
    char share[48], small[200];
    if (lost.overflows) {
        add(a->r, "layer %d [%s]: %s of its %s exceed fp16's 65504 (the largest is %.3g): %s", i, type,
            share_text(lost.overflow, lost.count, share), name, (double)numbers->largest, what);
        return;
    }
    too_small(lost, name, small);
    add(a->r, "layer %d [%s]: %s (rounding moves them by %.2g %%): %s", i, type, small,
        100 * lost.error, what);
}

static void advise_delta(const advisor *a, int i, const char *what)
{
    int over = a->reasons[i] == DELTA_OVERFLOWS;
    const char *type = desc_of(a, i)->type;
    amp_lost lost = worst_of_deltas(numerics_of(a, i), over, (float)ldexp(1, a->settled));
    char share[48], at[32], small[200];
    amp_probe_scale_text(a->settled, at);
    if (over) {
        add(a->r, "layer %d [%s]: %s of its deltas overflow fp16 at a loss scale of %s, which other layers "
            "need: %s", i, type, share_text(lost.overflow, lost.count, share), at, what);
        return;
    }
    too_small(lost, "deltas", small);
    add(a->r, "layer %d [%s]: %s at a loss scale of %s (rounding moves them by %.2g %%), beyond which "
        "other layers' overflow: %s", i, type, small, at, 100 * lost.error, what);
}

static void advise_layer(const advisor *a, int i)
{
    char what[400];
    reason why = a->reasons[i];
    if (why == FINE) return;
    if (why == NOT_FINITE) {
        add(a->r, "layer %d [%s]: it held inf or NaN in fp32 already: no precision will help; lower "
            "learning_rate, or check the labels", i, desc_of(a, i)->type);
        return;
    }
    remedy(a, i, what);
    if (why == DELTA_OVERFLOWS || why == DELTA_VANISHES) advise_delta(a, i, what);
    else advise_output(a, i, what);
}

/* "=2048", or " from 256 to 2048" */
static const char *range_text(amp_probe_scales s, char text[80])
{
    char low[32], high[32];
    int least = larger(s.least, LEAST_SCALE), most = smaller(s.most, MOST_SCALE);
    if (least >= most) snprintf(text, 80, "=%s", amp_probe_scale_text(most, high));
    else snprintf(text, 80, " from %s to %s", amp_probe_scale_text(least, low),
                  amp_probe_scale_text(most, high));
    return text;
}

/* At the scale that the user has, though another would do. */
static void advise_present_scale(const advisor *a, int i)
{
    const amp_probe_result *r = a->r;
    amp_probe_scales s = scales_of(a, i);
    int present = ilogbf(r->scale), over = s.most < present;
    if (s.least <= present && !over) return;
    if (over && r->scale_moves) return; /* it falls by itself */
    amp_lost lost = worst_of_deltas(numerics_of(a, i), over, r->scale);
    char share[48], range[80], what[200];
    if (over)
        snprintf(what, sizeof what, "%s of its deltas overflow fp16",
                 share_text(lost.overflow, lost.count, share));
    else too_small(lost, "deltas", what);
    add(a->r, "layer %d [%s]: %s at the present loss scale of %g: set %s%s%s, or keep the layer in fp32 with "
        "amp=0", i, desc_of(a, i)->type, what, (double)r->scale,
        r->scale_moves ? "init_scale" : "loss_scale", range_text(r->scales, range),
        r->scale_moves ? "" : ", or loss_scale=dynamic");
}

static void conclude(advisor *a)
{
    char range[80];
    amp_probe_result *r = a->r;
    if (r->keep_count || r->advice.count) return;
    int any = 0;
    for (int i = 0; i < a->count; i++) any |= delta_is_low(a, i);
    if (!any) add(r, "nothing needs to be kept in fp32: no layer would compute in fp16");
    else
        add(r, "nothing needs to be kept in fp32: no output overflows fp16, no delta does at loss scales%s; "
            "rounding moves each layer's by %g %% at most", range_text(r->scales, range), 100 * r->share);
}

/* ---- */

static void advise(advisor *a)
{
    amp_probe_result *r = a->r;
    for (int i = 0; i < a->count; i++) a->kept[i] = desc_of(a, i)->keep_fp32 != 0;
    choose_forms(a);
    for (int i = 0; i < a->count; i++) {
        r->layers[i].low = in_half(a, i);
        r->layers[i].scales = scales_of(a, i);
        a->reasons[i] = judge_output(a, i);
    }
    keep(a); /* what is in fp32 for its outputs' sake is so with its deltas too */
    r->scales = common_scales(a);
    if (r->scales.least > r->scales.most) judge_deltas(a, best_scale(a));
    keep(a);
    for (int i = 0; i < a->count; i++) {
        r->layers[i].keep = is_advised(a, i);
        r->keep_count += r->layers[i].keep;
    }
    amp_probe_scales left = common_scales(a);
    int suits_all = r->scales.least <= r->scales.most;
    r->scales = left;
    if (r->scale_source == AMP_SCALE_HIGHEST)
        r->scale = left.most == INT_MAX ? 1 : (float)ldexp(1, smaller(left.most, MOST_SCALE));
    for (int i = 0; i < a->count; i++) {
        advise_layer(a, i);
        if (suits_all && a->reasons[i] == FINE) advise_present_scale(a, i);
    }
    conclude(a);
}

void amp_probe_advise(amp_probe_result *r)
{
    int most_inputs = 1;
    advisor a = { .r = r, .count = r->network.count };
    for (int i = 0; i < a.count; i++) most_inputs = larger(most_inputs, r->network.layers[i].input_count);
    a.reasons = amp_allocated(calloc((size_t)a.count + 1, sizeof *a.reasons));
    a.forms = amp_allocated(calloc((size_t)a.count + 1, sizeof *a.forms));
    a.inputs = amp_allocated(calloc((size_t)most_inputs, sizeof *a.inputs));
    a.kept = amp_allocated(calloc((size_t)a.count + 1, 1));
    advise(&a);
    free(a.reasons);
    free(a.forms);
    free(a.inputs);
    free(a.kept);
}
