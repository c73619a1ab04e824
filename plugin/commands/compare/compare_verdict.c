/* The verdict: sentences that quote the numbers behind them. The thresholds are in comparison.h. */
#include "comparison.h"

#include "../table.h"

#include <math.h>

enum { SENTENCE = 1200 };
#define add(c, ...) amp_lines_add(&(c)->verdict, __VA_ARGS__)
#define append(text, ...) amp_append(text, SENTENCE, __VA_ARGS__)

/* ---- accuracy ---- */

amp_accuracy amp_compare_judge(const amp_interval *i, double allowed)
{
    if (!i->count) return AMP_ACCURACY_UNKNOWN;
    if (i->least >= -allowed) return AMP_ACCURACY_AS_GOOD;
    return i->most < -allowed ? AMP_ACCURACY_WORSE : AMP_ACCURACY_UNDECIDED;
}

/* The usual estimate of a sample's size (Chow, Shao and Wang, Sample Size Calculations in Clinical
 * Research, 2nd edition (2008), 3.1): the mean lies `distance` off the border, and n seeds show it with a
 * probability of 80 % where distance is at least (t + z) deviation / sqrt(n), z = 0.8416 being the normal
 * distribution's quantile of 80 %. With Student's t for the level's normal quantile, as the deviation too
 * is estimated. */
int amp_compare_more_seeds(const amp_interval *i, double allowed, double alpha)
{
    static const double normal_quantile = .8416;
    double distance = fabs(i->mean + allowed), deviation = i->error * sqrt(i->count);
    if (i->count < 2) return 0;
    for (int n = i->count + 1; n <= AMP_COMPARE_MOST_SEEDS; n++)
        if ((amp_student(n, alpha) + normal_quantile) * deviation <= distance * sqrt(n)) return n - i->count;
    return 0;
}

/* As good needs both scores; a loss in one of them is a loss. */
static amp_accuracy accuracy_of(const amp_dtype_summary *s)
{
    amp_accuracy a = s->accuracy[0], b = s->accuracy[1];
    if (a == AMP_ACCURACY_WORSE || b == AMP_ACCURACY_WORSE) return AMP_ACCURACY_WORSE;
    return a < b ? a : b;
}

int amp_compare_is_settled(const amp_comparison *c)
{
    for (int d = 0; d < c->dtype_count; d++)
        if (accuracy_of(&c->summaries[d]) == AMP_ACCURACY_UNDECIDED) return 0;
    return 1;
}

/* The mean of a score over the seeds that are done in both dtypes, in percent. */
static double paired_score(const amp_comparison *c, int d, int of, int k)
{
    double sum = 0;
    int count = 0;
    for (int s = 0; s < c->seed_count; s++) {
        if (amp_comparison_run(c, d, s)->state != AMP_RUN_DONE
            || amp_comparison_run(c, c->reference, s)->state != AMP_RUN_DONE) continue;
        sum += amp_comparison_run(c, of, s)->score[k];
        ++count;
    }
    return 100 * sum / count;
}

/* "mAP@0.5 59.67 % against 60.00 %, -0.33 points (95 % interval of 3 seeds -3.20 to +2.54)" */
static void append_score(const amp_comparison *c, int d, int k, char text[SENTENCE])
{
    const amp_interval *i = &c->summaries[d].difference[k];
    append(text, "%s %.2f %% against %.2f %%, %+.2f points", amp_score_name(c, k), paired_score(c, d, d, k),
           paired_score(c, d, c->reference, k), i->mean);
    if (i->count > 1)
        append(text, " (%.4g %% interval of %d seeds %+.2f to %+.2f)", 100 - 100 * c->alpha, i->count,
               i->least, i->most);
}

static void append_more_seeds(const amp_comparison *c, const amp_dtype_summary *s, char text[SENTENCE])
{
    int count = s->difference[0].count;
    if (count < 2)
        append(text, ": one seed cannot tell precision from chance: take -seeds 3 or more, or -until %g",
               c->points_allowed);
    else if (s->more_seeds)
        append(text, ": about %d more seeds would tell (-seeds %d, or -until %g)", s->more_seeds,
               count + s->more_seeds, c->points_allowed);
    else
        append(text, ": more than %d seeds would be needed to tell", AMP_COMPARE_MOST_SEEDS);
}

static void judge_accuracy(amp_comparison *c, int d)
{
    const amp_dtype_summary *s = &c->summaries[d];
    const char *reference = c->dtypes[c->reference];
    const double allowed = c->points_allowed;
    char text[SENTENCE] = "", points[32];
    if (!s->difference[0].count) {
        add(c, "%s: no %s to compare: no seed is done in both %s and %s.", s->dtype, amp_score_name(c, 0),
            s->dtype, reference);
        return;
    }
    snprintf(points, sizeof points, "%g point%s", allowed, allowed >= 1 && allowed <= 1 ? "" : "s");
    switch (accuracy_of(s)) {
    case AMP_ACCURACY_UNKNOWN:
        append(text, "neither it nor %s has learnt enough to compare; train longer", reference);
        break;
    case AMP_ACCURACY_AS_GOOD:
        append(text, "as good as %s, a loss of more than %s is ruled out", reference, points);
        break;
    case AMP_ACCURACY_WORSE: append(text, "worse than %s by more than %s", reference, points); break;
    default: append(text, "cannot tell yet whether it loses more than %s to %s", points, reference);
    }
    append(text, ": ");
    append_score(c, d, 0, text);
    append(text, "; ");
    append_score(c, d, 1, text);
    if (accuracy_of(s) == AMP_ACCURACY_UNDECIDED) append_more_seeds(c, s, text);
    add(c, "%s: %s.", s->dtype, text);
}

/* ---- speed and memory ---- */

/* Those that the rates of a training rest on, in the shortest of both dtypes' trainings. */
static size_t fewest_steps(const amp_comparison *c, int d)
{
    size_t fewest = SIZE_MAX;
    for (int i = 0; i < 2 * c->seed_count; i++) {
        const amp_run *run = amp_comparison_run(c, i % 2 ? d : c->reference, i / 2);
        int counts = run->state != AMP_RUN_FAILED && run->count;
        if (counts && run->speed_steps < fewest) fewest = run->speed_steps;
    }
    return fewest;
}

/* Seconds of the steps that the dtype's rates rest on, over all seeds. */
static double seconds_measured(const amp_comparison *c, int d)
{
    double seconds = 0;
    for (int s = 0; s < c->seed_count; s++) {
        const amp_run *run = amp_comparison_run(c, d, s);
        if (run->state != AMP_RUN_FAILED) seconds += run->speed_seconds;
    }
    return seconds;
}

/* A word that holds for every single seed, or why nobody can tell its speed. Returns whether there is such a
 * word. */
static int append_speed_word(const amp_comparison *c, int d, char text[SENTENCE])
{
    const amp_times *t = &c->summaries[d].speedup;
    size_t steps = fewest_steps(c, d);
    double seconds = fmin(seconds_measured(c, d), seconds_measured(c, c->reference));
    int seeds = c->summaries[d].images_per_second.count;
    if (steps < AMP_SPEED_STEPS)
        append(text, "cannot tell its speed from %zu step%s (from %d on)", steps, steps == 1 ? "" : "s",
               AMP_SPEED_STEPS);
    else if (seeds < AMP_SPEED_SEEDS)
        append(text, "cannot tell its speed from one seed (from %d on)", AMP_SPEED_SEEDS);
    else if (seconds < AMP_SPEED_SECONDS)
        append(text, "cannot tell its speed from %.0f seconds of steps (from %d on)", seconds,
               AMP_SPEED_SECONDS);
    else if (t->least >= AMP_WORTHWHILE_SPEEDUP)
        append(text, "faster");
    else if (t->most < 1 / AMP_WORTHWHILE_SPEEDUP)
        append(text, "slower");
    else if (t->most < AMP_WORTHWHILE_SPEEDUP)
        append(text, "not worth it for speed, below %.1f times", AMP_WORTHWHILE_SPEEDUP);
    else
        append(text, "cannot tell whether it is %.1f times as fast, as the seeds differ",
               AMP_WORTHWHILE_SPEEDUP);
    return steps >= AMP_SPEED_STEPS && seeds >= AMP_SPEED_SEEDS && seconds >= AMP_SPEED_SECONDS;
}

/* note: the machine's, of why the dtype is no faster; or NULL. */
static void judge_speed(amp_comparison *c, int d, const char *note)
{
    const amp_dtype_summary *s = &c->summaries[d], *r = &c->summaries[c->reference];
    char text[SENTENCE] = "";
    if (!isfinite(s->speedup.ratio)) return;
    int known = append_speed_word(c, d, text);
    append(text, ": %.2f times the images/s of %s (%.1f against %.1f", s->speedup.ratio, r->dtype,
           s->images_per_second.mean, r->images_per_second.mean);
    if (s->images_per_second.count > 1)
        append(text, "; by seed %.2f to %.2f", s->speedup.least, s->speedup.most);
    append(text, "; without loading %.2f times, %.1f against %.1f)", s->compute_speedup.ratio,
           s->compute_images_per_second.mean, r->compute_images_per_second.mean);
    if (isfinite(s->memory_ratio.ratio))
        append(text, ", with %.2f times the peak memory (%.0f against %.0f MB)", s->memory_ratio.ratio,
               s->peak_memory_mb.mean, r->peak_memory_mb.mean);
    if (s->speedup.ratio < AMP_WORTHWHILE_SPEEDUP) {
        if (s->compute_speedup.ratio >= AMP_WORTHWHILE_SPEEDUP)
            append(text, "; loading the images holds it back");
        else if (known && note)
            append(text, "; %s", note);
    }
    add(c, "%s: %s.", s->dtype, text);
}

/* When speeds were measured. */
static void add_window(amp_comparison *c)
{
    if (c->apart)
        add(c, "Speeds: not all dtypes of a seed trained at the same time, so the machine may have been "
            "busier for one than for another.");
    else if (c->together_seconds > 0)
        add(c, "Speeds are of %.*f seconds of work, while all dtypes of a seed trained, in turns.",
            c->together_seconds < 10, c->together_seconds);
}

/* ---- what went wrong ---- */

static void add_failures(amp_comparison *c, int d)
{
    const amp_dtype_summary *s = &c->summaries[d];
    for (int k = 0; s->failed && k < c->seed_count; k++) {
        const amp_run *run = amp_comparison_run(c, d, k);
        if (run->state != AMP_RUN_FAILED) continue;
        add(c, "%s: %d of %d trainings failed and are left out; seed %u: %s", s->dtype,
            s->failed, c->seed_count, run->seed, run->failure);
        return;
    }
}

static void add_skips(amp_comparison *c, int d)
{
    const amp_dtype_summary *s = &c->summaries[d];
    if (s->skipped.count && s->skipped.mean > 0)
        add(c, "%s: %.1f steps of a training were skipped on average, as a gradient was inf or NaN; none of "
            "them counts.", s->dtype, s->skipped.mean);
}

static void judge_dtype(amp_comparison *c, int d, const char *note)
{
    add_failures(c, d);
    if (d != c->reference) {
        judge_accuracy(c, d);
        judge_speed(c, d, note);
    }
    add_skips(c, d);
}

void amp_compare_verdict(amp_comparison *c, const char *const *notes)
{
    int done = 0, all = c->dtype_count * c->seed_count;
    for (int i = 0; i < all; i++) done += c->runs[i].state == AMP_RUN_DONE;
    if (c->interrupted)
        add(c, "Interrupted: %d of %d trainings are done; the same command continues.", done, all);
    if (c->dtype_count == 1)
        add(c, "Only %s was trained: there is nothing to compare it with.", c->dtypes[0]);
    for (int d = 0; d < c->dtype_count; d++) judge_dtype(c, d, notes ? notes[d] : NULL);
    if (c->dtype_count > 1) add_window(c);
}
