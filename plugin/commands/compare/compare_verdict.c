/* Makes the verdict: words (docs/commands.md) and advice. comparison.h has the thresholds. */
#include "comparison.h"

#include <math.h>

#define advise(c, ...) amp_lines_add(&(c)->advice, __VA_ARGS__)

/* ---- accuracy ---- */

amp_accuracy amp_compare_judge(const amp_interval *i, double allowed)
{
    if (!i->count) return AMP_ACCURACY_UNKNOWN;
    if (i->least >= -allowed) return AMP_ACCURACY_AS_GOOD;
    return i->most < -allowed ? AMP_ACCURACY_WORSE : AMP_ACCURACY_UNDECIDED;
}

/* The usual estimate of a sample's size (Chow, Shao and Wang, Sample Size Calculations in Clinical Research,
 * 2nd edition (2008), 3.1). `distance` is the distance between the mean and the limit -`allowed`. With a
 * probability of 80 %, n seeds show on which side of the limit the true mean is, if
 *
 *     distance >= (t + z) * deviation / sqrt(n)
 *
 * z = 0.8416 is the 80 % quantile of the normal distribution. t is a quantile of Student's distribution
 * instead of the normal distribution, because the deviation is estimated too. */
int amp_compare_more_seeds(const amp_interval *i, double allowed, double alpha)
{
    static const double normal_quantile = .8416;
    double distance = fabs(i->mean + allowed), deviation = i->error * sqrt(i->count);
    if (i->count < 2) return 0;
    for (int n = i->count + 1; n <= AMP_COMPARE_MOST_SEEDS; n++)
        if ((amp_student(n, alpha) + normal_quantile) * deviation <= distance * sqrt(n)) return n - i->count;
    return 0;
}

int amp_compare_is_settled(const amp_comparison *c)
{
    for (int d = 0; d < c->dtype_count; d++)
        if (c->summaries[d].both == AMP_ACCURACY_UNDECIDED) return 0;
    return 1;
}

static void advise_on_accuracy(amp_comparison *c, const amp_dtype_summary *s)
{
    int count = s->difference[0].count;
    if (s->both == AMP_ACCURACY_UNKNOWN && count)
        advise(c, "neither %s nor %s has learnt enough to be compared: train longer.", s->dtype,
               c->dtypes[c->reference]);
    if (s->both != AMP_ACCURACY_UNDECIDED) return;
    if (count < 2)
        advise(c, "%s: with one seed, an effect of precision cannot be told from chance: give -seeds 3 or "
                  "more, or -until %g.",
               s->dtype, c->points_allowed);
    else if (s->more_seeds)
        advise(c, "%s: about %d more seeds are needed to judge its accuracy: give -seeds %d, or -until %g.",
               s->dtype, s->more_seeds, count + s->more_seeds, c->points_allowed);
    else
        advise(c, "%s: more than %d seeds would be needed to judge its accuracy.", s->dtype,
               AMP_COMPARE_MOST_SEEDS);
}

/* ---- speed ---- */

/* How long a dtype's speed was measured, over all trainings that did not fail. fewest: the smallest number of
 * measured steps in a training. seconds: the total time of all measured steps. */
typedef struct measured { size_t fewest; double seconds; } measured;

static measured measured_of(const amp_comparison *c, int d)
{
    measured m = { SIZE_MAX, 0 };
    for (int s = 0; s < c->seed_count; s++) {
        const amp_run *run = amp_comparison_run(c, d, s);
        if (run->state == AMP_RUN_FAILED || !run->count) continue;
        if (run->speed_steps < m.fewest) m.fewest = run->speed_steps;
        m.seconds += run->speed_seconds;
    }
    return m;
}

/* Returns the verdict that is true for every seed; UNDECIDED if no verdict is. */
static amp_speed speed_of(const amp_times *t)
{
    return t->least >= AMP_WORTHWHILE_SPEEDUP ? AMP_SPEED_FASTER
         : t->most < 1 / AMP_WORTHWHILE_SPEEDUP ? AMP_SPEED_SLOWER
         : t->most < AMP_WORTHWHILE_SPEEDUP ? AMP_SPEED_NOT_WORTH_IT : AMP_SPEED_UNDECIDED;
}

/* Judges the speed of dtype d, and adds advice. note (may be NULL): the machine's remark on the dtype. */
static void judge_speed(amp_comparison *c, int d, const char *note)
{
    amp_dtype_summary *s = &c->summaries[d];
    const measured ours = measured_of(c, d), theirs = measured_of(c, c->reference);
    size_t steps = ours.fewest < theirs.fewest ? ours.fewest : theirs.fewest;
    double seconds = fmin(ours.seconds, theirs.seconds);
    if (!isfinite(s->speedup.ratio)) return;
    s->speed = AMP_SPEED_UNDECIDED;
    if (steps < AMP_SPEED_STEPS)
        advise(c, "%s: judging its speed needs %d steps, but %zu were measured: give more -iters.", s->dtype,
               AMP_SPEED_STEPS, steps);
    else if (s->images_per_second.count < AMP_SPEED_SEEDS)
        advise(c, "%s: judging its speed needs %d seeds, but one was measured: give more -seeds.", s->dtype,
               AMP_SPEED_SEEDS);
    else if (seconds < AMP_SPEED_SECONDS)
        advise(c, "%s: judging its speed needs %d seconds, but %.0f were measured: give more -iters or "
                  "-seeds.",
               s->dtype, AMP_SPEED_SECONDS, seconds);
    else if ((s->speed = speed_of(&s->speedup)) == AMP_SPEED_UNDECIDED)
        advise(c, "%s: the seeds' speeds differ: use a quieter machine, or more -seeds.", s->dtype);
    if (s->speedup.ratio >= AMP_WORTHWHILE_SPEEDUP) return;
    if (s->compute_speedup.ratio >= AMP_WORTHWHILE_SPEEDUP)
        advise(c, "%s: steps wait for images: try cache=disk, more cores or smaller photos.", s->dtype);
    else if (s->speed != AMP_SPEED_UNDECIDED && note)
        advise(c, "%s: %s.", s->dtype, note);
}

/* ---- all ---- */

/* Adds the first failed training of the dtype to the advice. */
static void name_failure(amp_comparison *c, int d)
{
    for (int k = 0; k < c->seed_count; k++) {
        const amp_run *run = amp_comparison_run(c, d, k);
        if (run->state != AMP_RUN_FAILED) continue;
        advise(c, "%s: seed %u failed: %s", run->dtype, run->seed, run->failure);
        return;
    }
}

void amp_compare_verdict(amp_comparison *c, const char *const *notes)
{
    int done = 0, all = c->dtype_count * c->seed_count;
    for (int i = 0; i < all; i++) done += c->runs[i].state == AMP_RUN_DONE;
    if (c->interrupted)
        advise(c, "Interrupted: %d of %d trainings are done; run the same command again to continue.",
               done, all);
    if (c->dtype_count == 1) advise(c, "No verdict: it needs two dtypes.");
    for (int d = 0; d < c->dtype_count; d++) {
        name_failure(c, d);
        if (d == c->reference) continue;
        advise_on_accuracy(c, &c->summaries[d]);
        judge_speed(c, d, notes ? notes[d] : NULL);
    }
    if (c->dtype_count > 1 && c->apart)
        advise(c, "Speeds: not all dtypes of a seed trained at the same time, so the machine may have been "
               "busier for one than for another.");
}
