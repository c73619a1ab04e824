/* The tables of the HTML report. */
#include "report_tables.h"

#include "report_text.h"

#include <math.h>
#include <string.h>

/* A table that is wider than the page scrolls in a box of its own, which the keyboard reaches. */
static void begin_table(FILE *stream, const char *label)
{
    fprintf(stream, "<div class=\"wide-box\" role=\"region\" tabindex=\"0\" aria-label=\"%s\">\n<table>\n", label);
}

static void end_table(FILE *stream, const char *caption)
{
    /* A caption comes first in the source, wherever it is shown; so this one is a paragraph in the box. */
    fprintf(stream, "</tbody>\n</table>\n</div>\n<p class=\"note\">%s</p>\n", caption);
}

static void heading(FILE *stream, const char *name, const char *small)
{
    fputs("<th scope=\"col\">", stream);
    amp_html_text(stream, name);
    if (small) fprintf(stream, "<small>%s</small>", small);
    fputs("</th>", stream);
}

static void cell(FILE *stream, const char *value, const char *small)
{
    fprintf(stream, "<td>%s", value);
    if (small && *small) fprintf(stream, "<small>%s</small>", small);
    fputs("</td>", stream);
}

/* ---- a row per dtype ---- */

static void score_cell(FILE *stream, const amp_mean *mean)
{
    char number[AMP_REPORT_NUMBER], spread[64] = "";
    if (mean->count > 1 && amp_is_number(mean->spread)) snprintf(spread, sizeof spread, "spread %.2f", 100 * mean->spread);
    cell(stream, amp_report_percent(amp_mean_value(mean), number), spread);
}

static void difference_cell(FILE *stream, const amp_comparison *c, int dtype, int score)
{
    char number[AMP_REPORT_NUMBER], error[64] = "";
    const amp_dtype_summary *one = &c->summaries[dtype];
    if (dtype == c->reference) {
        cell(stream, "–", "");
        return;
    }
    if (amp_is_number(one->difference[score].mean) && amp_is_number(one->difference[score].error))
        snprintf(error, sizeof error, "± %.2f", one->difference[score].error);
    cell(stream, amp_report_points(one->difference[score].mean, number), error);
}

/* A rate or a size with what it is of the reference's. */
static void ratio_cell(FILE *stream, const amp_comparison *c, int dtype, const amp_mean *mean, double ratio)
{
    char number[AMP_REPORT_NUMBER], times[64] = "";
    if (dtype != c->reference && amp_is_number(ratio) && ratio > 0) snprintf(times, sizeof times, "%.2f×", ratio);
    cell(stream, amp_report_amount(amp_mean_value(mean), number), times);
}

/* The largest over the dtype's runs that are done; NaN: of none. */
static double largest_of(const amp_comparison *c, int dtype, int relative)
{
    double most = (double)NAN;
    for (int s = 0; s < c->seed_count; ++s) {
        const amp_run *run = amp_comparison_run(c, dtype, s);
        double value = relative ? run->relative_difference : run->largest_difference;
        if (run->state == AMP_RUN_DONE && amp_is_number(value) && !(value <= most)) most = value;
    }
    return most;
}

static long skipped_of(const amp_comparison *c, int dtype)
{
    long skipped = 0;
    for (int s = 0; s < c->seed_count; ++s) skipped += amp_comparison_run(c, dtype, s)->skipped;
    return skipped;
}

static int begun(const amp_comparison *c, int dtype)
{
    int count = 0;
    for (int s = 0; s < c->seed_count; ++s) count += amp_comparison_run(c, dtype, s)->count > 0;
    return count;
}

/* The largest difference of a weight, and below it the relative one of all. */
static void weights_cell(FILE *stream, double largest, double relative)
{
    char number[AMP_REPORT_NUMBER], below[AMP_REPORT_NUMBER + 16] = "";
    if (amp_is_number(largest) && amp_is_number(relative))
        snprintf(below, sizeof below, "rel. %s", amp_report_small(relative, number));
    cell(stream, amp_report_small(largest, number), below);
}

static void dtype_row(FILE *stream, const amp_comparison *c, int d)
{
    const amp_dtype_summary *one = &c->summaries[d];
    char number[AMP_REPORT_NUMBER], text[64];
    int is_reference = d == c->reference;
    fputs("<tr><th scope=\"row\">", stream);
    amp_html_text(stream, c->dtypes[d]);
    if (is_reference && c->dtype_count > 1) fputs("<small>reference</small>", stream);
    if (one->score[0].count < c->seed_count)
        fprintf(stream, "<small>%d of %d done</small>", one->score[0].count, c->seed_count);
    fputs("</th>", stream);
    for (int i = 0; i < 2; ++i) {
        score_cell(stream, &one->score[i]);
        difference_cell(stream, c, d, i);
    }
    ratio_cell(stream, c, d, &one->images_per_second, one->speedup.ratio);
    ratio_cell(stream, c, d, &one->compute_images_per_second, one->compute_speedup.ratio);
    ratio_cell(stream, c, d, &one->peak_memory_mb, one->memory_ratio.ratio);
    snprintf(text, sizeof text, "%ld", skipped_of(c, d));
    cell(stream, begun(c, d) ? text : "–", "");
    cell(stream, amp_report_number(amp_mean_value(&one->loss), 3, number), "");
    weights_cell(stream, is_reference ? (double)NAN : largest_of(c, d, 0), largest_of(c, d, 1));
    fputs("</tr>\n", stream);
}

void amp_html_dtypes(FILE *stream, const amp_comparison *c)
{
    begin_table(stream, "Results per dtype");
    fputs("<thead><tr><th scope=\"col\">dtype</th>", stream);
    for (int i = 0; i < 2; ++i) {
        heading(stream, amp_score_name(c, i), "mean");
        heading(stream, "difference", "points");
    }
    heading(stream, "images/s", "with loading");
    heading(stream, "images/s", "without");
    heading(stream, "memory", "peak, MB");
    heading(stream, "skipped", "steps");
    heading(stream, "loss", "at the end");
    heading(stream, "weights", "differ by");
    fputs("</tr></thead>\n<tbody>\n", stream);
    for (int d = 0; d < c->dtype_count; ++d) dtype_row(stream, c, d);
    end_table(stream, "Spread: largest minus smallest of the seeds. Difference: mean over the seeds of the "
              "difference to the reference's run of the same seed, ± its standard error. Images/s and "
              "memory: geometric means over the seeds; ×: times the reference. Weights: the largest |a "
              "− b| over all that is learnt (rolling statistics are not) and all seeds; rel.: the "
              "largest |a − b| / |b| in L2.");
}

/* ---- a row per run ---- */

static void run_row(FILE *stream, const amp_comparison *c, const amp_run *run)
{
    char number[AMP_REPORT_NUMBER], text[64];
    fputs("<tr><th scope=\"row\">", stream);
    amp_html_text(stream, run->dtype);
    fprintf(stream, "</th><td>%u</td><td class=\"text\">%s</td>", run->seed, amp_run_state_name(run));
    snprintf(text, sizeof text, "%zu", run->count);
    cell(stream, text, "");
    snprintf(text, sizeof text, "%ld", run->skipped);
    cell(stream, run->count ? text : "–", "");
    cell(stream, amp_report_small(run->count ? (double)run->rows[run->count - 1].avg_loss : (double)NAN, number), "");
    for (int i = 0; i < 2; ++i)
        cell(stream, amp_report_percent(amp_run_has_score(run) ? run->score[i] : (double)NAN, number), "");
    cell(stream, amp_report_amount(run->images_per_second, number), "");
    cell(stream, amp_report_amount(run->compute_images_per_second, number), "");
    cell(stream, amp_report_amount(run->peak_memory_mb, number), "");
    int compared = run->state == AMP_RUN_DONE && strcmp(run->dtype, c->dtypes[c->reference]);
    cell(stream, amp_report_small(compared ? run->largest_difference : (double)NAN, number), "");
    cell(stream, amp_report_small(compared ? run->relative_difference : (double)NAN, number), "");
    fputs("</tr>\n", stream);
    if (run->state != AMP_RUN_FAILED) return;
    fputs("<tr><td colspan=\"13\" class=\"failure\">", stream);
    amp_html_text(stream, run->failure[0] ? run->failure : "it did not say why");
    fputs("</td></tr>\n", stream);
}

void amp_html_runs(FILE *stream, const amp_comparison *c)
{
    begin_table(stream, "Results per run");
    fputs("<thead><tr><th scope=\"col\">dtype</th>", stream);
    heading(stream, "seed", NULL);
    fputs("<th scope=\"col\" class=\"text\">state</th>", stream);
    heading(stream, "steps", NULL);
    heading(stream, "skipped", "steps");
    heading(stream, "loss", "average, last");
    for (int i = 0; i < 2; ++i) heading(stream, amp_score_name(c, i), NULL);
    heading(stream, "images/s", "with loading");
    heading(stream, "images/s", "without");
    heading(stream, "memory", "peak, MB");
    heading(stream, "weights", "differ by");
    heading(stream, "weights", "relative");
    fputs("</tr></thead>\n<tbody>\n", stream);
    for (int r = 0; r < c->dtype_count * c->seed_count; ++r) run_row(stream, c, &c->runs[r]);
    end_table(stream, "Images per second: medians over the steps in which all dtypes of the seed trained, "
              "in turns, without the run's first tenth. Peak memory: the largest, of the whole program with "
              "the images it has loaded.");
}

/* ---- facts ---- */

static void fact(FILE *stream, const char *name, const char *value)
{
    fprintf(stream, "<dt>%s</dt><dd>", name);
    amp_html_text(stream, value && *value ? value : "–");
    fputs("</dd>\n", stream);
}

static void list_seeds(FILE *stream, const amp_comparison *c)
{
    fputs("<dt>Seeds</dt><dd>", stream);
    for (int s = 0; s < c->seed_count; ++s) fprintf(stream, "%s%u", s ? ", " : "", c->seeds[s]);
    fputs("</dd>\n", stream);
}

void amp_html_facts(FILE *stream, const amp_comparison *c)
{
    char text[160];
    fputs("<dl>\n", stream);
    fact(stream, "Network", c->cfg);
    fact(stream, "Data", c->data);
    fact(stream, "Weights at the start", c->weights ? c->weights : "random, the same in all dtypes of a seed");
    snprintf(text, sizeof text, "%ld to train with, %ld to validate with", c->train_images, c->valid_images);
    fact(stream, "Images", text);
    snprintf(text, sizeof text, "%d × %d pixels, %d classes", c->width, c->height, c->classes);
    fact(stream, "Input", text);
    snprintf(text, sizeof text, "%ld iterations of %d images", c->iterations, c->batch);
    fact(stream, "Training", text);
    list_seeds(stream, c);
    fact(stream, "Machine", c->machine);
    snprintf(text, sizeof text, "Darknet AMP %.120s", c->version ? c->version : "");
    fact(stream, "Program", text);
    fact(stream, "Date", c->date);
    fputs("</dl>\n", stream);
}
