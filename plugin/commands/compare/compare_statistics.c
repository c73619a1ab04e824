/* Computes a comparison's numbers: medians within a run, means and differences over the seeds
 * (docs/commands.md). Speed is measured only on steps that were made while all dtypes of the seed trained in
 * turns, because once a dtype is done, the others have more of the machine. The first tenth of a run is never
 * counted, because caches are cold, and fp16 searches for its loss scale. A failed run is left out. */
#include "comparison.h"

#include <math.h>

/* ---- a run ---- */

/* Whether the run's steps count for speed and memory. */
static int counts(const amp_run *run) { return run->state != AMP_RUN_FAILED && run->count > 0; }

typedef struct window { double begin, end; } window; /* seconds since 1970 */

/* The time during which all counted runs of seed s were training: from the latest begin to the earliest end.
 * If there is no common time, begin >= end. */
static window window_of(const amp_comparison *c, int s)
{
    window common = { -INFINITY, INFINITY };
    for (int d = 0; d < c->dtype_count; d++) {
        const amp_run *run = amp_comparison_run(c, d, s);
        if (!counts(run)) continue;
        const amp_log_row *first = &run->rows[0], *last = &run->rows[run->count - 1];
        common.begin = fmax(common.begin, first->time - first->load_seconds - first->train_seconds);
        common.end = fmin(common.end, last->time);
    }
    return common;
}

/* Computes medians over the steps within the window, without the run's first tenth. images: number of images
 * in a step. */
static void measure_speed(amp_run *run, int images, window w)
{
    double *with_loading = amp_allocated(malloc(2 * (run->count + 1) * sizeof *with_loading));
    double *without = with_loading + run->count;
    run->speed_steps = 0;
    run->speed_seconds = 0;
    for (size_t i = run->count / 10; i < run->count; i++) {
        const amp_log_row *row = &run->rows[i];
        double seconds = row->load_seconds + row->train_seconds;
        if (!(row->time > w.begin && row->time <= w.end && row->train_seconds > 0)) continue;
        with_loading[run->speed_steps] = images / seconds;
        without[run->speed_steps++] = images / row->train_seconds;
        run->speed_seconds += seconds;
    }
    run->images_per_second = amp_median(with_loading, run->speed_steps);
    run->compute_images_per_second = amp_median(without, run->speed_steps);
    free(with_loading);
}

static void measure_run(amp_run *run)
{
    run->skipped = 0;
    run->peak_memory_mb = NAN;
    for (size_t i = 0; i < run->count; i++) {
        const amp_log_row *row = &run->rows[i];
        run->skipped += amp_log_is_skipped(row);
        if (isfinite(row->peak_memory_mb) && !(row->peak_memory_mb <= run->peak_memory_mb))
            run->peak_memory_mb = row->peak_memory_mb;
    }
}

static void measure_seed(amp_comparison *c, int s)
{
    window w = window_of(c, s);
    int together = w.begin < w.end;
    if (!together) w = (window){ -INFINITY, INFINITY };
    c->apart |= !together;
    for (int d = 0; d < c->dtype_count; d++) {
        amp_run *run = amp_comparison_run(c, d, s);
        measure_run(run);
        measure_speed(run, c->batch, w);
        if (counts(run)) c->together_seconds += run->speed_seconds;
    }
}

/* ---- over the seeds ---- */

typedef double measure(const amp_run *);

static double score0(const amp_run *run) { return run->state == AMP_RUN_DONE ? run->score[0] : NAN; }
static double score1(const amp_run *run) { return run->state == AMP_RUN_DONE ? run->score[1] : NAN; }
static double rate(const amp_run *run) { return counts(run) ? run->images_per_second : NAN; }
static double compute_rate(const amp_run *run) { return counts(run) ? run->compute_images_per_second : NAN; }
static double memory(const amp_run *run) { return counts(run) ? run->peak_memory_mb : NAN; }
static double loss(const amp_run *run)
{
    return amp_run_is_trained(run) && run->count ? (double)run->rows[run->count - 1].avg_loss : NAN;
}
static double skipped(const amp_run *run) { return amp_run_is_trained(run) ? (double)run->skipped : NAN; }

static double value_of(const amp_comparison *c, int d, int s, measure *of)
{
    return of(amp_comparison_run(c, d, s));
}

/* Whether a seed is used for quotients between dtypes. A seed that lacks a dtype which others have is not:
 * the dtypes' numbers would come from different seeds, during some of which the machine was busier. */
static int is_measured_in_all(const amp_comparison *c, int seed, measure *of)
{
    for (int d = 0; d < c->dtype_count; d++) {
        int measured = 0;
        for (int s = 0; s < c->seed_count; s++) measured |= isfinite(value_of(c, d, s, of));
        if (measured && !isfinite(value_of(c, d, seed, of))) return 0;
    }
    return 1;
}

/* The mean over the seeds. geometric: 1: the geometric mean, of values above 0; 0: the arithmetic mean. */
static amp_mean mean_of(const amp_comparison *c, int d, measure *of, int geometric)
{
    double sum = 0, least = NAN, most = NAN;
    int count = 0;
    for (int s = 0; s < c->seed_count; s++) {
        double value = value_of(c, d, s, of);
        if (!isfinite(value) || (geometric && !is_measured_in_all(c, s, of))) continue;
        sum += geometric ? log(value) : value;
        least = fmin(least, value); /* fmin and fmax ignore the NaN at the start */
        most = fmax(most, value);
        ++count;
    }
    double mean = count ? sum / count : NAN;
    return (amp_mean){ geometric ? exp(mean) : mean, most - least, count };
}

static amp_times times_of(const amp_comparison *c, int d, measure *of)
{
    amp_times times = { mean_of(c, d, of, 1).mean / mean_of(c, c->reference, of, 1).mean, NAN, NAN };
    for (int s = 0; s < c->seed_count; s++) {
        double ratio = value_of(c, d, s, of) / value_of(c, c->reference, s, of);
        if (!isfinite(ratio) || !is_measured_in_all(c, s, of)) continue;
        times.least = fmin(times.least, ratio);
        times.most = fmax(times.most, ratio);
    }
    return times;
}

/* The mean difference of a score from the reference's, in points, and its interval. values: room for all
 * seeds. */
static amp_interval difference_of(const amp_comparison *c, int d, measure *of, double *values)
{
    int count = 0;
    for (int s = 0; s < c->seed_count; s++) {
        values[count] = 100 * (value_of(c, d, s, of) - value_of(c, c->reference, s, of));
        if (isfinite(values[count])) ++count;
    }
    return amp_interval_of(values, count, c->alpha);
}

/* Returns the score (0..1) of a network that has learnt next to nothing. */
static double chance_of(const amp_comparison *c)
{
    return c->kind == AMP_COMPARED_CLASSIFIER && c->classes > 0 ? 1.2 / c->classes : .01;
}

/* Computes means and differences of both scores, and judges them. values: room for all seeds. */
static void compare_scores(const amp_comparison *c, int d, amp_dtype_summary *s, double *values)
{
    measure *const scores[2] = { score0, score1 };
    for (int k = 0; k < 2; k++) {
        s->score[k] = mean_of(c, d, scores[k], 0);
        s->difference[k] = difference_of(c, d, scores[k], values);
    }
    double reference = mean_of(c, c->reference, score0, 0).mean;
    if (d == c->reference || (s->score[0].mean <= chance_of(c) && reference <= chance_of(c))) return;
    for (int k = 0; k < 2; k++) {
        s->accuracy[k] = amp_compare_judge(&s->difference[k], c->points_allowed);
        if (s->accuracy[k] != AMP_ACCURACY_UNDECIDED) continue;
        int more = amp_compare_more_seeds(&s->difference[k], c->points_allowed, c->alpha);
        if (more > s->more_seeds) s->more_seeds = more;
    }
    amp_accuracy a = s->accuracy[0], b = s->accuracy[1];
    s->both = a == AMP_ACCURACY_WORSE || b == AMP_ACCURACY_WORSE ? AMP_ACCURACY_WORSE : a < b ? a : b;
}

static void summarize(const amp_comparison *c, int d, amp_dtype_summary *s, double *values)
{
    *s = (amp_dtype_summary){ .dtype = c->dtypes[d] };
    compare_scores(c, d, s, values);
    s->loss = mean_of(c, d, loss, 0);
    s->skipped = mean_of(c, d, skipped, 0);
    measure *const measures[3] = { rate, compute_rate, memory };
    amp_mean *const means[3] = { &s->images_per_second, &s->compute_images_per_second, &s->peak_memory_mb };
    amp_times *const times[3] = { &s->speedup, &s->compute_speedup, &s->memory_ratio };
    for (int k = 0; k < 3; k++) {
        *means[k] = mean_of(c, d, measures[k], 1);
        *times[k] = times_of(c, d, measures[k]);
    }
    for (int k = 0; k < c->seed_count; k++) s->failed += amp_comparison_run(c, d, k)->state == AMP_RUN_FAILED;
}

void amp_compare_summarize(amp_comparison *c)
{
    double values[c->seed_count + 1];
    if (!c->summaries)
        c->summaries = amp_allocated(calloc((size_t)c->dtype_count, sizeof *c->summaries));
    for (int d = 0; d < c->dtype_count; d++) summarize(c, d, &c->summaries[d], values);
}

void amp_compare_statistics(amp_comparison *c)
{
    c->together_seconds = c->apart = 0;
    for (int s = 0; s < c->seed_count; s++) measure_seed(c, s);
    amp_compare_summarize(c);
}
