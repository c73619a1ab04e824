/* Is half precision worth it here? In sentences, with the numbers they rest on.
 *
 * As to time: worth it from 1.1 times the speed of the engine's own fp32 on. Nobody can tell where the
 * interval in which the true ratio lies holds 1.1, nor where that interval is so wide that it tells nothing,
 * nor where fewer than 5 steps were measured, nor where a step takes less than a millisecond: then it is the
 * turns and the cold caches after them that are measured.
 * Below 1.1, the causes are named, each by a rule:
 *
 *   no native half   the backend stores this dtype, and computes in fp32
 *   fixed costs      a layer's forward or backward takes less than 50 microseconds: what a call costs besides
 *                    arithmetic shows
 *   update           half of a step is the update, which is fp32 for all
 *   fp32 layers      half of the layers' time is in layers that run in fp32
 *   memory-bound     half of it is in layers that do fewer than 32 additions and multiplications per byte
 *                    they read and write
 *   misaligned       half of it is in products whose channels, in or out, are no multiple of 8
 *
 * As to memory: it is saved if the peak is at most 0.95 times fp32's, and 8 MB below it: the same program
 * differs by less from run to run. */
#include "bench.h"

#include "../table.h"

const char *const amp_bench_reason_names[AMP_BENCH_REASONS] = {
    "no native half", "fixed costs", "update", "fp32 layers", "memory-bound", "misaligned" };

static const double worth_from = 1.1, memory_below = .95, memory_mb = 8, short_call_us = 50, most_of = .5,
                    short_step_ms = 1;
enum { FEWEST_STEPS = 5 };

const char *amp_bench_number(char text[16], double value)
{
    snprintf(text, 16, value >= 1000 ? "%.0f" : value >= 1 ? "%.4g" : "%.3g", value);
    return text;
}

static double step_ms(const amp_bench_side *s) { return s->spread[AMP_BENCH_STEP].typical; }
static double update_share(const amp_bench_side *s)
{
    return s->spread[AMP_BENCH_UPDATE].typical / step_ms(s);
}

#define add(to, ...) amp_append(to, AMP_BENCH_TEXT, __VA_ARGS__)

static void find_reasons(const amp_bench_evidence *e, int reason[AMP_BENCH_REASONS])
{
    reason[AMP_BENCH_NO_NATIVE_HALF] = e->half->support != AMP_SUPPORT_NATIVE;
    reason[AMP_BENCH_FIXED_COSTS] = e->call_us > 0 && e->call_us < short_call_us;
    reason[AMP_BENCH_UPDATE_COSTS] = update_share(e->half) >= most_of;
    reason[AMP_BENCH_FP32_LAYERS] = e->fp32_share >= most_of;
    reason[AMP_BENCH_MEMORY_BOUND] = e->moving_share >= most_of;
    reason[AMP_BENCH_MISALIGNED] = e->misaligned_share >= most_of;
}

static void add_reason(char *w, const amp_bench_evidence *e, int reason)
{
    switch (reason) {
    case AMP_BENCH_NO_NATIVE_HALF:
        if (e->half->note[0]) add(w, "%s", e->half->note);
        else
            add(w, "this machine does not compute in %s: it stores it, and computes in fp32", e->half->dtype);
        break;
    case AMP_BENCH_FIXED_COSTS:
        add(w, "the network is small: a layer's forward or backward takes %.1f microseconds on average, so "
            "that fixed costs show; a larger batch may gain", e->call_us);
        break;
    case AMP_BENCH_UPDATE_COSTS:
        add(w, "%.0f %% of a step is the update, which is fp32 for all; more images or subdivisions to a "
            "step make it rarer", 100 * update_share(e->half));
        break;
    case AMP_BENCH_FP32_LAYERS:
        add(w, "%.0f %% of the layers' time is in layers that run in fp32", 100 * e->fp32_share);
        break;
    case AMP_BENCH_MEMORY_BOUND:
        add(w, "memory-bound: %.0f %% of the layers' time is in layers that do fewer than 32 operations per "
            "byte they move", 100 * e->moving_share);
        break;
    default:
        add(w, "misaligned: %.0f %% of the layers' time is in convolutions and products with channels that "
            "are no multiple of 8", 100 * e->misaligned_share);
    }
}

static void add_reasons(char *w, const amp_bench_evidence *e, const int reason[AMP_BENCH_REASONS])
{
    int reasons = 0;
    add(w, " Why: ");
    for (int i = 0; i < AMP_BENCH_REASONS; i++) {
        if (!reason[i]) continue;
        add(w, "%s", reasons++ ? "; " : "");
        add_reason(w, e, i);
    }
    if (!reasons)
        add(w, "no single cause stands out (of the layers' time %.0f %% is in fp32 layers, %.0f %% waits for "
            "memory, %.0f %% is misaligned)",
            100 * e->fp32_share, 100 * e->moving_share, 100 * e->misaligned_share);
    add(w, ".");
}

static void add_memory(char *w, const amp_bench_evidence *e, const amp_bench_verdict *v)
{
    if (!(v->memory_ratio > 0)) return;
    add(w, " Memory: %.0f MB at the peak instead of %.0f (%.2fx), %s; a training with its loaded images "
        "takes about %.0f instead of %.0f (%.2fx), and what decodes them.",
        e->half->peak_memory_mb, e->fp32->peak_memory_mb, v->memory_ratio,
        !v->saves_memory ? "which is no saving to speak of" : v->worth == AMP_BENCH_WORTH_IT ? "saved as well"
                         : "which may be worth it by itself", e->half->training_mb, e->fp32->training_mb,
        e->half->training_mb / e->fp32->training_mb);
}

/* Whether the ratio has bounds that mean something. */
static int tells(const amp_bench_ratio *r) { return r->least <= r->most; }

/* Why there is no verdict; nothing is added where there is one. */
static void add_what_is_missing(char *w, const amp_bench_evidence *e)
{
    char ms[16];
    const amp_bench_ratio *speedup = &e->half->over_fp32;
    int steps = e->half->steps < e->fp32->steps ? e->half->steps : e->fp32->steps;
    if (steps < FEWEST_STEPS)
        add(w, " %d step%s of each tell little: give -iters %d or more.", steps, steps == 1 ? "" : "s",
            FEWEST_STEPS);
    else if (step_ms(e->half) < short_step_ms && step_ms(e->fp32) < short_step_ms)
        add(w, " Steps of %s ms are too short to be compared: give a larger -batch.",
            amp_bench_number(ms, step_ms(e->half)));
    else if (!tells(speedup))
        add(w, " Nothing can be said of its speed: the steps differ too much. A quieter machine or more "
            "-iters would tell.");
    else if (speedup->least < worth_from && speedup->most >= worth_from)
        add(w, " Worth it is from %.1fx on: a quieter machine or more -iters would tell.", worth_from);
}

void amp_bench_judge(const amp_bench_evidence *e, amp_bench_verdict *v)
{
    const amp_bench_ratio over = e->half->over_fp32;
    const double speedup = over.ratio, before_mb = e->fp32->peak_memory_mb, mb = e->half->peak_memory_mb;
    char missing[AMP_BENCH_TEXT] = "", rates[AMP_WAITS_TEXT], ms[16], reference_ms[16], *w = v->text;
    *v = (amp_bench_verdict){ .dtype = e->half->dtype, .speedup = over };
    v->memory_ratio = before_mb > 0 ? mb / before_mb : 0;
    v->saves_memory = v->memory_ratio > 0 && v->memory_ratio <= memory_below && before_mb - mb >= memory_mb;
    add_what_is_missing(missing, e);
    v->worth = missing[0] ? AMP_BENCH_CANNOT_TELL
             : speedup >= worth_from ? AMP_BENCH_WORTH_IT : AMP_BENCH_NOT_WORTH_IT;
    if (speedup < worth_from && tells(&over)) find_reasons(e, v->reason);

    add(w, v->worth == AMP_BENCH_WORTH_IT ? "%s is worth it" : v->worth == AMP_BENCH_NOT_WORTH_IT
        ? "%s is not worth it for speed" : "cannot tell whether %s is worth it", v->dtype);
    if (tells(&over)) {
        add(w, ": %.2fx the speed of fp32 (%.2fx to %.2fx ", speedup, over.least, over.most);
        if (over.rounds) add(w, "over %d rounds of turns; ", over.rounds);
        else add(w, "by the extremes of the steps; ");
    } else {
        add(w, " (");
    }
    add(w, "a step: %s ms, fp32 %s)", amp_bench_number(ms, step_ms(e->half)),
        amp_bench_number(reference_ms, step_ms(e->fp32)));
    if (amp_waits_is_slow(&e->half->loading))
        add(w, ", but %s", amp_waits_text(&e->half->loading, e->cores, rates));
    add(w, ".%s", missing);
    if (speedup < worth_from && tells(&over)) add_reasons(w, e, v->reason);
    add_memory(w, e, v);
}
