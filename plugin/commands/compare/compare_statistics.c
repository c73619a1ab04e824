/* The numbers of a comparison: medians within a run, means and differences over the seeds. */
#include "compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double amp_median(double *values, size_t count)
{
    if (!count) return NAN;
    qsort(values, count, sizeof *values, ascending);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* ---- a run ---- */

static double rate_with_loading(const amp_log_row *row, int images)
{
    double seconds = row->load_seconds + row->train_seconds;
    return seconds > 0 ? images / seconds : NAN;
}

static double rate_without_loading(const amp_log_row *row, int images)
{
    return row->train_seconds > 0 ? images / row->train_seconds : NAN;
}

/* Over its steps but the first tenth, in which caches are cold and fp16 looks for its scale. values: room for run->count. */
static double median_rate(const amp_run *run, int images, double (*rate)(const amp_log_row *, int), double *values)
{
    size_t count = 0;
    for (size_t i = run->count / 10; i < run->count; ++i) {
        values[count] = rate(&run->rows[i], images);
        if (amp_is_number(values[count])) ++count;
    }
    return amp_median(values, count);
}

void amp_run_statistics(amp_run *run, int images)
{
    double *values = malloc((run->count + 1) * sizeof *values);
    run->skipped = 0;
    run->peak_memory_mb = NAN;
    run->images_per_second = values ? median_rate(run, images, rate_with_loading, values) : NAN;
    run->compute_images_per_second = values ? median_rate(run, images, rate_without_loading, values) : NAN;
    free(values);
    for (size_t i = 0; i < run->count; ++i) {
        const amp_log_row *row = &run->rows[i];
        run->skipped += row->found_inf != 0;
        if (amp_is_number(row->peak_memory_mb) && !(row->peak_memory_mb <= run->peak_memory_mb))
            run->peak_memory_mb = row->peak_memory_mb;
    }
}

/* ---- over the seeds ---- */

typedef double (*measure)(const amp_run *);

static double score0(const amp_run *run) { return run->state == AMP_RUN_DONE ? run->score[0] : NAN; }
static double score1(const amp_run *run) { return run->state == AMP_RUN_DONE ? run->score[1] : NAN; }
static int counts(const amp_run *run) { return run->state != AMP_RUN_FAILED && run->count > 0; }
static int is_trained(const amp_run *run) { return run->state == AMP_RUN_TRAINED || run->state == AMP_RUN_DONE; }
static double rate(const amp_run *run) { return counts(run) ? run->images_per_second : NAN; }
static double compute_rate(const amp_run *run) { return counts(run) ? run->compute_images_per_second : NAN; }
static double memory(const amp_run *run) { return counts(run) ? run->peak_memory_mb : NAN; }
static double loss(const amp_run *run)
{
    return is_trained(run) && run->count ? (double)run->rows[run->count - 1].avg_loss : NAN;
}
static double skipped(const amp_run *run) { return is_trained(run) ? (double)run->skipped : NAN; }

static amp_mean mean_of(const amp_comparison *c, int dtype, measure of)
{
    amp_mean mean = { NAN, NAN, 0 };
    double sum = 0, least = 0, most = 0;
    for (int s = 0; s < c->seed_count; ++s) {
        double value = of(amp_comparison_run(c, dtype, s));
        if (!amp_is_number(value)) continue;
        if (!mean.count || value < least) least = value;
        if (!mean.count || value > most) most = value;
        sum += value;
        ++mean.count;
    }
    if (mean.count) {
        mean.mean = sum / mean.count;
        mean.spread = most - least;
    }
    return mean;
}

static double median_ratio(const amp_comparison *c, int dtype, measure of, double *values)
{
    size_t count = 0;
    for (int s = 0; s < c->seed_count; ++s) {
        double reference = of(amp_comparison_run(c, c->reference, s));
        values[count] = of(amp_comparison_run(c, dtype, s)) / reference;
        if (amp_is_number(values[count])) ++count;
    }
    return amp_median(values, count);
}

/* In points, within one seed; mean and standard error over the seeds. */
static void difference_of(const amp_comparison *c, int dtype, measure of, double *difference, double *error)
{
    double sum = 0, squares = 0;
    int count = 0;
    *difference = *error = NAN;
    for (int s = 0; s < c->seed_count; ++s) {
        double d = 100 * (of(amp_comparison_run(c, dtype, s)) - of(amp_comparison_run(c, c->reference, s)));
        if (!amp_is_number(d)) continue;
        sum += d;
        ++count;
    }
    if (!count) return;
    *difference = sum / count;
    if (count < 2) return;
    for (int s = 0; s < c->seed_count; ++s) {
        double d = 100 * (of(amp_comparison_run(c, dtype, s)) - of(amp_comparison_run(c, c->reference, s)));
        if (amp_is_number(d)) squares += (d - *difference) * (d - *difference);
    }
    *error = sqrt(squares / (count - 1) / count);
}

static void summarize(const amp_comparison *c, int dtype, amp_dtype_summary *s, double *values)
{
    *s = (amp_dtype_summary){ .dtype = c->dtypes[dtype] };
    s->score[0] = mean_of(c, dtype, score0);
    s->score[1] = mean_of(c, dtype, score1);
    s->images_per_second = mean_of(c, dtype, rate);
    s->compute_images_per_second = mean_of(c, dtype, compute_rate);
    s->peak_memory_mb = mean_of(c, dtype, memory);
    s->loss = mean_of(c, dtype, loss);
    s->skipped = mean_of(c, dtype, skipped);
    s->speedup = median_ratio(c, dtype, rate, values);
    s->compute_speedup = median_ratio(c, dtype, compute_rate, values);
    s->memory_ratio = median_ratio(c, dtype, memory, values);
    difference_of(c, dtype, score0, &s->score_difference[0], &s->score_error[0]);
    difference_of(c, dtype, score1, &s->score_difference[1], &s->score_error[1]);
    for (int k = 0; k < c->seed_count; ++k) s->failed += amp_comparison_run(c, dtype, k)->state == AMP_RUN_FAILED;
}

amp_status amp_compare_summarize(amp_comparison *c, amp_error *error)
{
    double *values = malloc(((size_t)c->seed_count + 1) * sizeof *values);
    if (!c->summaries) c->summaries = calloc((size_t)c->dtype_count, sizeof *c->summaries);
    if (!values || !c->summaries) {
        free(values);
        return amp_fail(error, AMP_NO_MEMORY, "no memory for the statistics of %d dtypes", c->dtype_count);
    }
    for (int d = 0; d < c->dtype_count; ++d) summarize(c, d, &c->summaries[d], values);
    free(values);
    return AMP_OK;
}
