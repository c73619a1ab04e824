/* What the numbers say, in sentences that hold the numbers. The thresholds are in compare.h. */
#include "compare.h"

#include <math.h>
#include <stdlib.h>

enum { SENTENCE = 700 };

/* Student's t for 95 %, two-sided, with 1 to 30 degrees of freedom; normal from there on. */
double amp_confidence_factor(int count)
{
    static const double t[] = { 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042 };
    if (count < 2) return NAN;
    return count - 2 < (int)(sizeof t / sizeof *t) ? t[count - 2] : 1.96;
}

__attribute__((format(printf, 3, 4)))
static amp_status say(amp_comparison *c, amp_error *error, const char *format, ...)
{
    char text[SENTENCE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    char **grown = realloc(c->verdict, ((size_t)c->verdict_count + 1) * sizeof *grown);
    if (grown) c->verdict = grown;
    char *copy = grown ? strdup(text) : NULL;
    if (!copy) return amp_fail(error, AMP_NO_MEMORY, "no memory for the verdict");
    c->verdict[c->verdict_count++] = copy;
    return AMP_OK;
}

/* ---- accuracy ---- */

static double points_allowed(const amp_comparison *c)
{
    return c->kind == AMP_COMPARED_CLASSIFIER ? AMP_CLASSIFIER_POINTS : AMP_DETECTOR_POINTS;
}

/* What a network that has learnt nothing, or next to it, gets: %. */
static double chance_of(const amp_comparison *c)
{
    return c->kind == AMP_COMPARED_CLASSIFIER && c->classes > 0 ? 120. / c->classes : 1;
}

/* Seeds that are done in both, and the means over them. */
static int pairs_of(const amp_comparison *c, int d, double *score, double *reference)
{
    int count = 0;
    *score = *reference = 0;
    for (int s = 0; s < c->seed_count; ++s) {
        const amp_run *a = amp_comparison_run(c, d, s), *b = amp_comparison_run(c, c->reference, s);
        if (a->state != AMP_RUN_DONE || b->state != AMP_RUN_DONE) continue;
        *score += a->score[0];
        *reference += b->score[0];
        ++count;
    }
    if (count) *score *= 100. / count;
    if (count) *reference *= 100. / count;
    return count;
}

/* "1 point", "0.5 points". */
static const char *points_text(double points, char text[32])
{
    snprintf(text, 32, "%g point%s", points, points >= 1 && points <= 1 ? "" : "s");
    return text;
}

/* What `count` seeds tell of a mean difference of this many points, between low and high with 95 %. */
static void judge(char *text, size_t size, int count, double difference, double low, double high, double allowed)
{
    char points[32];
    points_text(allowed, points);
    if (difference > allowed && low > 0)
        snprintf(text, size, "better");
    else if (difference > allowed)
        snprintf(text, size, "nothing is lost on average, and %d seeds cannot tell the gain from chance", count);
    else if (difference >= -allowed && low >= -allowed)
        snprintf(text, size, "as good, with a loss of more than %s ruled out", points);
    else if (difference >= -allowed)
        snprintf(text, size, "within %s, though %d seeds do not rule out a larger loss", points, count);
    else if (high < -allowed)
        snprintf(text, size, "worse by more than %s", points);
    else
        snprintf(text, size, "more than %s lower, though %d seeds do not settle it", points, count);
}

static amp_status judge_accuracy(amp_comparison *c, int d, amp_error *error)
{
    const amp_dtype_summary *s = &c->summaries[d];
    const char *name = amp_score_name(c, 0), *reference = c->dtypes[c->reference];
    char judgement[200], points[32];
    double score, other, allowed = points_allowed(c);
    int count = pairs_of(c, d, &score, &other);
    if (!count)
        return say(c, error, "%s: no %s to compare: no seed is done in both %s and %s.", s->dtype, name, s->dtype,
                   reference);
    double difference = s->score_difference[0], chance = chance_of(c);
    if (score <= chance && other <= chance)
        return say(c, error, "%s: %s %.2f %% against %.2f %% in %s: neither has learnt enough to compare; train longer.",
                   s->dtype, name, score, other, reference);
    if (count == 1)
        return say(c, error, "%s: %s %.2f %% against %.2f %% in %s (%+.2f points; the threshold is %s). One seed cannot "
                   "tell whether that is precision or chance: take -seeds 3 or more.", s->dtype, name, score, other,
                   reference, difference, points_text(allowed, points));
    double reach = amp_confidence_factor(count) * s->score_error[0];
    judge(judgement, sizeof judgement, count, difference, difference - reach, difference + reach, allowed);
    return say(c, error, "%s: %s %.2f %% against %.2f %% in %s, %+.2f points (95 %% interval of %d seeds %+.2f to %+.2f): %s.",
               s->dtype, name, score, other, reference, difference, count, difference - reach, difference + reach, judgement);
}

/* ---- speed and memory ---- */

/* Why it is no faster, as far as it can be told. */
static void why_slow(const amp_dtype_summary *s, const char *note, char *text, size_t size)
{
    text[0] = 0;
    if (s->speedup >= AMP_WORTHWHILE_SPEEDUP) return;
    if (s->compute_speedup >= AMP_WORTHWHILE_SPEEDUP) snprintf(text, size, "; loading the images holds it back");
    else if (note) snprintf(text, size, "; %s", note);
}

static void memory_text(const amp_dtype_summary *s, const amp_dtype_summary *reference, char *text, size_t size)
{
    text[0] = 0;
    if (amp_is_number(s->memory_ratio))
        snprintf(text, size, ", with %.2f times the peak memory (%.0f against %.0f MB)", s->memory_ratio, s->peak_memory_mb.mean,
                 reference->peak_memory_mb.mean);
}

/* Those that the rates of a training rest on, in the shortest of both dtypes' trainings. */
static size_t fewest_steps(const amp_comparison *c, int d)
{
    size_t fewest = SIZE_MAX;
    for (int i = 0; i < 2 * c->seed_count; ++i) {
        const amp_run *run = amp_comparison_run(c, i % 2 ? d : c->reference, i / 2);
        size_t steps = run->count - run->count / 10;
        if (run->state != AMP_RUN_FAILED && steps && steps < fewest) fewest = steps;
    }
    return fewest;
}

static amp_status judge_speed(amp_comparison *c, int d, const char *note, amp_error *error)
{
    const amp_dtype_summary *s = &c->summaries[d], *r = &c->summaries[c->reference];
    char why[300], memory[120], judgement[80] = "faster";
    if (!amp_is_number(s->speedup)) return AMP_OK;
    if (s->speedup < AMP_WORTHWHILE_SPEEDUP)
        snprintf(judgement, sizeof judgement, "not worth it for speed, below %.1f times", AMP_WORTHWHILE_SPEEDUP);
    if (s->speedup < 1 / AMP_WORTHWHILE_SPEEDUP) snprintf(judgement, sizeof judgement, "slower");
    why_slow(s, note, why, sizeof why);
    size_t steps = fewest_steps(c, d);
    if (steps < AMP_SPEED_STEPS) {
        snprintf(judgement, sizeof judgement, "too few steps to judge its speed (%zu; from %d on)", steps, AMP_SPEED_STEPS);
        why[0] = 0;
    }
    memory_text(s, r, memory, sizeof memory);
    return say(c, error, "%s: %s: %.2f times the images/s of %s (%.1f against %.1f; without loading %.2f times, %.1f "
               "against %.1f)%s%s.", s->dtype, judgement, s->speedup, r->dtype, s->images_per_second.mean,
               r->images_per_second.mean, s->compute_speedup, s->compute_images_per_second.mean,
               r->compute_images_per_second.mean, memory, why);
}

/* ---- what went wrong ---- */

static amp_status tell_failures(amp_comparison *c, int d, amp_error *error)
{
    const amp_dtype_summary *s = &c->summaries[d];
    for (int k = 0; s->failed && k < c->seed_count; ++k) {
        const amp_run *run = amp_comparison_run(c, d, k);
        if (run->state != AMP_RUN_FAILED) continue;
        return say(c, error, "%s: %d of %d trainings failed and are left out; seed %u: %s", s->dtype, s->failed,
                   c->seed_count, run->seed, run->failure);
    }
    return AMP_OK;
}

static amp_status tell_skips(amp_comparison *c, int d, amp_error *error)
{
    const amp_dtype_summary *s = &c->summaries[d];
    if (!s->skipped.count || !(s->skipped.mean > 0)) return AMP_OK;
    return say(c, error, "%s: %.1f steps of a training were skipped on average, as a gradient was inf or NaN; none of "
               "them counts.", s->dtype, s->skipped.mean);
}

static amp_status judge_dtype(amp_comparison *c, int d, const char *note, amp_error *error)
{
    AMP_TRY(tell_failures(c, d, error));
    if (d != c->reference) {
        AMP_TRY(judge_accuracy(c, d, error));
        AMP_TRY(judge_speed(c, d, note, error));
    }
    return tell_skips(c, d, error);
}

amp_status amp_compare_verdict(amp_comparison *c, const char *const *notes, amp_error *error)
{
    int done = 0, all = c->dtype_count * c->seed_count;
    for (int i = 0; i < all; ++i) done += c->runs[i].state == AMP_RUN_DONE;
    if (c->interrupted) AMP_TRY(say(c, error, "Interrupted: %d of %d trainings are done; the same command goes on.", done, all));
    if (c->dtype_count == 1) AMP_TRY(say(c, error, "Only %s was trained: there is nothing to compare it with.", c->dtypes[0]));
    for (int d = 0; d < c->dtype_count; ++d) AMP_TRY(judge_dtype(c, d, notes ? notes[d] : NULL, error));
    return AMP_OK;
}
