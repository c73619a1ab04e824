/* Judges whether half precision is worth it here. docs/commands.md explains the words. */
#include "bench.h"

const char *const amp_bench_reason_names[AMP_BENCH_REASONS] = {
    "no native half", "fixed costs", "update", "fp32 layers", "memory-bound", "misaligned" };

static const double worth_from = 1.1;                     /* smallest speed-up over fp32 that is worth it */
static const double memory_below = .95, memory_mb = 8;    /* a smaller saving may be chance */
static const double short_call_us = 50;                   /* shorter calls consist mostly of fixed costs */
static const double most_of = .5;                         /* a smaller share of the time is no reason */
/* The time of shorter steps is mostly due to changes of turns and cold caches. */
static const double short_step_ms = 1;
enum { FEWEST_STEPS = 5 };

const char *amp_bench_number(char text[16], double value)
{
    snprintf(text, 16, value >= 1000 ? "%.0f" : value >= 1 ? "%.4g" : "%.3g", value);
    return text;
}

static double step_ms(const amp_bench_side *s) { return s->spread[AMP_BENCH_STEP].typical; }

/* Sets the reasons that apply, and their figures: "update 50 %, misaligned 81 %". */
static void find_reasons(const amp_bench_side *half, amp_bench_verdict *v)
{
    const double share[AMP_BENCH_REASONS] = {
        [AMP_BENCH_UPDATE_COSTS] = half->spread[AMP_BENCH_UPDATE].typical / step_ms(half),
        [AMP_BENCH_FP32_LAYERS] = half->fp32_share, [AMP_BENCH_MEMORY_BOUND] = half->moving_share,
        [AMP_BENCH_MISALIGNED] = half->misaligned_share };
    for (int i = 0; i < AMP_BENCH_REASONS; i++) v->reason[i] = share[i] >= most_of;
    v->reason[AMP_BENCH_NO_NATIVE_HALF] = half->support != AMP_SUPPORT_NATIVE;
    v->reason[AMP_BENCH_FIXED_COSTS] = half->call_us > 0 && half->call_us < short_call_us;
    for (int i = 0; i < AMP_BENCH_REASONS; i++) {
        if (!v->reason[i]) continue;
        amp_append(v->why, sizeof v->why, "%s%s", v->why[0] ? ", " : "", amp_bench_reason_names[i]);
        if (share[i] > 0) amp_append(v->why, sizeof v->why, " %.0f %%", 100 * share[i]);
        if (i == AMP_BENCH_FIXED_COSTS) amp_append(v->why, sizeof v->why, " %.1f us", half->call_us);
    }
    if (!v->why[0]) amp_append(v->why, sizeof v->why, "no single cause");
}

/* Whether the ratio has bounds (not NaN). */
static int tells(const amp_bench_ratio *r) { return r->least <= r->most; }

#define add(to, ...) amp_append(to, AMP_BENCH_TEXT, __VA_ARGS__)

/* If no verdict is possible, adds advice on how to get one. */
static void add_what_is_missing(char *w, const amp_bench_side *fp32, const amp_bench_side *half)
{
    char ms[16];
    const amp_bench_ratio *speedup = &half->over_fp32;
    int steps = half->steps < fp32->steps ? half->steps : fp32->steps;
    if (steps < FEWEST_STEPS)
        add(w, "too few steps were measured (%d): give -iters %d or more.", steps, FEWEST_STEPS);
    else if (step_ms(half) < short_step_ms && step_ms(fp32) < short_step_ms)
        add(w, "steps of %s ms are too short to be compared: give a larger -batch.",
            amp_bench_number(ms, step_ms(half)));
    else if (!tells(speedup))
        add(w, "the steps differ too much: use a quieter machine, or more -iters.");
    else if (speedup->least < worth_from && speedup->most >= worth_from)
        add(w, "the bounds of the speed-up contain %.1fx: use a quieter machine, or more -iters.",
            worth_from);
}

void amp_bench_judge(const amp_bench_side *fp32, const amp_bench_side *half, int cores, amp_bench_verdict *v)
{
    const amp_bench_ratio over = half->over_fp32;
    const double before_mb = fp32->peak_memory_mb, mb = half->peak_memory_mb;
    char rates[AMP_WAITS_TEXT];
    *v = (amp_bench_verdict){ .dtype = half->dtype, .speedup = over };
    v->memory_ratio = before_mb > 0 ? mb / before_mb : 0;
    v->saves_memory = v->memory_ratio > 0 && v->memory_ratio <= memory_below && before_mb - mb >= memory_mb;
    add_what_is_missing(v->advice, fp32, half);
    v->worth = v->advice[0] ? AMP_BENCH_CANNOT_TELL
             : over.ratio >= worth_from ? AMP_BENCH_WORTH_IT : AMP_BENCH_NOT_WORTH_IT;
    if (over.ratio < worth_from && tells(&over)) find_reasons(half, v);
    if (v->reason[AMP_BENCH_NO_NATIVE_HALF] && half->note[0])
        add(v->advice, "%s%s.", v->advice[0] ? " " : "", half->note);
    if (amp_waits_is_slow(&half->loading))
        add(v->advice, "%s%s: try cache=disk, more cores or smaller photos.", v->advice[0] ? " " : "",
            amp_waits_text(&half->loading, cores, rates));
}
