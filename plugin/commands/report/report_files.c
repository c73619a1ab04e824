/* Writes the report as JSON, as CSV, and as a table for the terminal. A value that was not measured is null
 * in JSON, empty in CSV, and a dash in the table. */
#include "../compare/comparison.h"
#include "../table.h"

#include <math.h>

#define DASH "–"

const char *amp_score_name(const amp_comparison *c, int i)
{
    static const char *const names[2][2] = { { "mAP@0.5", "mAP@0.5:0.95" }, { "top-1", "top-5" } };
    return names[c->kind == AMP_COMPARED_CLASSIFIER][i];
}

/* ---- a dtype ---- */

/* A rate or memory with at least three digits: 12.3M, 1234, 123, 12.3, 1.23; empty if not measured (0). */
static void amount_cell(const amp_cell *cell, char text[AMP_CELL_TEXT])
{
    double value = ((const amp_mean *)cell->value)->mean;
    if (!(value > 0) || !isfinite(value)) return;
    if (value < 1e6) snprintf(text, AMP_CELL_TEXT, "%.*f", value < 9.995 ? 2 : value < 99.95, value);
    else snprintf(text, AMP_CELL_TEXT, "%.*fM", value < 99.95e6, value / 1e6);
}

static int is_reference(const amp_cell *cell)
{
    const amp_comparison *c = cell->context;
    return cell->record == &c->summaries[c->reference];
}

/* Writes a difference in points, with its sign. */
static void points_cell(const amp_cell *cell, char text[AMP_CELL_TEXT])
{
    double points = ((const amp_interval *)cell->value)->mean;
    int rounds_to_0 = fabs(points) < .005;
    if (is_reference(cell)) return;
    snprintf(text, AMP_CELL_TEXT, !isfinite(points) ? DASH : rounds_to_0 ? "0.00" : "%+.2f", points);
}

static void times_cell(const amp_cell *cell, char text[AMP_CELL_TEXT])
{
    double ratio = ((const amp_times *)cell->value)->ratio;
    if (!is_reference(cell) && isfinite(ratio) && ratio > 0)
        snprintf(text, AMP_CELL_TEXT, "%.2fx", ratio);
}

/* "-3.20 to +2.54" */
static void interval_cell(const amp_cell *cell, char text[AMP_CELL_TEXT])
{
    const amp_interval *i = cell->value;
    if (i->count > 1) snprintf(text, AMP_CELL_TEXT, "%+.2f to %+.2f", i->least, i->most);
}

/* "1.61x to 1.70x" */
static void seeds_cell(const amp_cell *cell, char text[AMP_CELL_TEXT])
{
    const amp_times *t = cell->value;
    if (isfinite(t->ratio)) snprintf(text, AMP_CELL_TEXT, "%.2fx to %.2fx", t->least, t->most);
}

static void skipped_cell(const amp_cell *cell, char text[AMP_CELL_TEXT])
{
    const amp_comparison *c = cell->context;
    int d = (int)((const amp_dtype_summary *)cell->record - c->summaries);
    long skipped = 0;
    for (int s = 0; s < c->seed_count; s++) skipped += amp_comparison_run(c, d, s)->skipped;
    snprintf(text, AMP_CELL_TEXT, "%ld", skipped);
}

static void failed_cell(const amp_cell *cell, char text[AMP_CELL_TEXT])
{
    int failed = *(const int *)cell->value, of = ((const amp_comparison *)cell->context)->seed_count;
    if (failed) snprintf(text, AMP_CELL_TEXT, "%d of %d failed", failed, of);
}

static const amp_field mean_fields[] = {
    AMP_FIELD(amp_mean, mean), AMP_FIELD(amp_mean, spread), AMP_FIELD(amp_mean, count), { 0 } };
static const amp_field times_fields[] = {
    AMP_FIELD(amp_times, ratio, .known = AMP_ABOVE_0), AMP_FIELD(amp_times, least, .known = AMP_ABOVE_0),
    AMP_FIELD(amp_times, most, .known = AMP_ABOVE_0), { 0 } };

#define SUMMARY(key, member, ...) AMP_FIELD_AS(key, amp_dtype_summary, member, __VA_ARGS__)
#define MEAN(member, ...) AMP_RECORD_AS(#member, amp_dtype_summary, member, mean_fields, __VA_ARGS__)
#define AMOUNT(member, heading) MEAN(member, .title = heading, .cell = amount_cell, .none = DASH)
#define TIMES(member) \
    AMP_RECORD_AS(#member, amp_dtype_summary, member, times_fields, .title = "", .cell = times_cell)

static const char *const accuracy_names[] = { NULL, "cannot tell", "as good", "worse" };
static const char *const speed_names[] = { NULL, "cannot tell", "faster", "not worth it", "slower" };

/* The score minus the reference's, in points, and the verdict on it. */
#define DIFFERENCE(k) { SUMMARY("mean", difference[k].mean), SUMMARY("standard_error", difference[k].error), \
    SUMMARY("least", difference[k].least), SUMMARY("most", difference[k].most), \
    SUMMARY("seeds", difference[k].count), \
    AMP_NAME_AS("verdict", amp_dtype_summary, accuracy[k], accuracy_names), { 0 } }
static const amp_field difference_fields[2][7] = { DIFFERENCE(0), DIFFERENCE(1) };

#define SCORE(k, key, name) \
    AMP_RECORD_AS(key, amp_dtype_summary, score[k], mean_fields), \
    SUMMARY(NULL, score[k].mean, .known = AMP_FROM_0, .title = name, .format = "%.2f %%", .unit = .01, \
            .none = DASH), \
    AMP_GROUP_AS(key "_difference_points", difference_fields[k]), \
    SUMMARY(NULL, difference[k], .title = "points", .cell = points_cell)
#define SUMMARY_FIELDS(key0, name0, key1, name1) { \
    SUMMARY("dtype", dtype, .title = "dtype", .left = 1), SCORE(0, key0, name0), SCORE(1, key1, name1), \
    AMOUNT(images_per_second, "images/s"), TIMES(speedup), \
    AMOUNT(compute_images_per_second, "no loading"), TIMES(compute_speedup), \
    AMOUNT(peak_memory_mb, "peak MB"), TIMES(memory_ratio), \
    MEAN(loss), MEAN(skipped), \
    SUMMARY("more_seeds_to_tell", more_seeds), { .title = "skipped", .cell = skipped_cell }, \
    SUMMARY("failed_runs", failed, .title = "", .left = 1, .cell = failed_cell), \
    AMP_NAME_AS("accuracy", amp_dtype_summary, both, accuracy_names), \
    AMP_NAME_AS("speed", amp_dtype_summary, speed, speed_names), { 0 } }
static const amp_field summary_fields[2][24] = {
    [AMP_COMPARED_DETECTOR] = SUMMARY_FIELDS("map_50", "mAP@0.5", "map_50_95", "mAP@0.5:0.95"),
    [AMP_COMPARED_CLASSIFIER] = SUMMARY_FIELDS("top_1", "top-1", "top_5", "top-5") };

#define VERDICT_FIELDS(name0, name1) { SUMMARY(NULL, dtype, .title = "dtype", .left = 1), \
    AMP_NAME_AS(NULL, amp_dtype_summary, both, accuracy_names, .title = "accuracy", .left = 1, \
                .none = DASH), \
    SUMMARY(NULL, difference[0], .title = name0, .cell = interval_cell, .none = DASH), \
    SUMMARY(NULL, difference[1], .title = name1, .cell = interval_cell, .none = DASH), \
    AMP_NAME_AS(NULL, amp_dtype_summary, speed, speed_names, .title = "speed", .left = 1, .none = DASH), \
    SUMMARY(NULL, speedup, .title = "by seed", .cell = seeds_cell, .none = DASH), { 0 } }
static const amp_field verdict_fields[2][7] = {
    [AMP_COMPARED_DETECTOR] = VERDICT_FIELDS("mAP@0.5", "mAP@0.5:0.95"),
    [AMP_COMPARED_CLASSIFIER] = VERDICT_FIELDS("top-1", "top-5") };

/* Prints the verdicts on all dtypes but the reference. */
static void print_verdicts(const amp_comparison *c, FILE *stream)
{
    amp_dtype_summary judged[c->dtype_count];
    int count = 0;
    for (int d = 0; d < c->dtype_count; d++) if (d != c->reference) judged[count++] = c->summaries[d];
    if (!count) return;
    fprintf(stream, "\nagainst %s: %.4g %% intervals of the differences in points; images/s of the slowest "
            "and the fastest seed\n", c->dtypes[c->reference], 100 - 100 * c->alpha);
    amp_table_print(stream, 0, verdict_fields[c->kind], judged, sizeof *judged, count, c);
}

void amp_report_table(FILE *stream, const void *comparison)
{
    const amp_comparison *c = comparison;
    amp_table_print(stream, 0, summary_fields[c->kind], c->summaries, sizeof *c->summaries, c->dtype_count,
                    c);
    print_verdicts(c, stream);
    for (size_t i = 0; i < c->advice.count; i++) fprintf(stream, "%s\n", c->advice.line[i]);
}

/* ---- a run's steps, thinned out to what a chart can show: a few thousand values at most ---- */

enum { LOSS_POINTS = 100, SCALE_COLUMNS = 2000 };

static size_t most_steps(const amp_comparison *c)
{
    size_t most = 0;
    for (int r = 0; r < c->dtype_count * c->seed_count; r++)
        if (c->runs[r].count > most) most = c->runs[r].count;
    return most;
}

/* The steps per part if the longest run is cut into `parts` parts. The parts of all runs have this length. */
static size_t per_part(const amp_comparison *c, size_t parts)
{
    size_t steps = most_steps(c);
    return steps ? (steps + parts - 1) / parts : 1;
}

/* Writes the median of the finite losses in each group of `each` steps; null if a group has none. room:
 * scratch memory for `each` numbers. */
static void write_losses(amp_json *json, const amp_run *run, size_t steps, size_t each, double *room)
{
    amp_json_array(json, "loss");
    for (size_t first = 0; first < steps; first += each) {
        size_t filled = 0;
        for (size_t k = first; k < first + each && k < run->count; k++)
            if (isfinite((double)run->rows[k].loss)) room[filled++] = (double)run->rows[k].loss;
        amp_json_number(json, NULL, amp_median(room, filled));
    }
    amp_json_close(json);
}

/* The loss scale of a step; NaN if it is not above 0 or not finite. */
static double scale_of(const amp_run *run, size_t i)
{
    double scale = (double)run->rows[i].scale;
    return isfinite(scale) && scale > 0 ? scale : (double)NAN;
}

static int differs(double a, double b)
{
    return isfinite(a) != isfinite(b) || (isfinite(a) && (a < b || a > b));
}

/* Writes the loss scale (if `steps` is set: the step) each time the scale changes. `each` steps are one
 * column of the chart, so only their first, smallest, largest and last scale are considered. */
static void write_scales(amp_json *json, const char *key, const amp_run *run, size_t each, int steps)
{
    double before = -1;
    amp_json_array(json, key);
    for (size_t first = 0; first < run->count; first += each) {
        size_t end = first + each < run->count ? first + each : run->count;
        double smallest = NAN, largest = NAN; /* fmin and fmax ignore NaN */
        for (size_t k = first; k < end; k++) {
            smallest = fmin(smallest, scale_of(run, k));
            largest = fmax(largest, scale_of(run, k));
        }
        for (size_t k = first; k < end; k++) {
            double scale = scale_of(run, k);
            int is_kept = k == first || k + 1 == end || scale <= smallest || scale >= largest;
            if (scale <= smallest) smallest = NAN; /* a later equal scale is not kept */
            if (scale >= largest) largest = NAN;
            if (!is_kept || !differs(scale, before)) continue;
            before = scale;
            amp_json_number(json, NULL, steps ? (double)k + 1 : scale);
        }
    }
    amp_json_close(json);
}

static void write_skipped(amp_json *json, const amp_run *run, size_t each)
{
    size_t drawn = 0; /* steps before this one are covered by a mark */
    amp_json_array(json, "skipped_at");
    for (size_t i = 0; i < run->count; i++) {
        if (!amp_log_is_skipped(&run->rows[i]) || i < drawn) continue;
        amp_json_integer(json, NULL, (long long)i + 1);
        drawn = i - i % each + each;
    }
    amp_json_close(json);
}

/* ---- a run ---- */

const char *const amp_training_state_names[] = { "waiting", "training", "trained", "done", "failed" };

#define RUN(key, member, ...) AMP_FIELD_AS(key, amp_run, member, __VA_ARGS__)
#define RUN_FIELDS(key0, key1) { RUN("dtype", dtype), RUN("seed", seed), \
    AMP_NAME_AS("state", amp_run, state, amp_training_state_names), RUN("steps", count), \
    RUN("skipped", skipped), \
    RUN("images_per_second", images_per_second, .known = AMP_ABOVE_0), \
    RUN("compute_images_per_second", compute_images_per_second, .known = AMP_ABOVE_0), \
    RUN("peak_memory_mb", peak_memory_mb, .known = AMP_ABOVE_0), RUN(key0, score[0]), RUN(key1, score[1]), \
    RUN("failure", failure), { 0 } }
static const amp_field run_fields[2][12] = { [AMP_COMPARED_DETECTOR] = RUN_FIELDS("map_50", "map_50_95"),
                                             [AMP_COMPARED_CLASSIFIER] = RUN_FIELDS("top_1", "top_5") };

/* Returns a copy of the run for the report: without scores if the run was not validated, and without the
 * failure of an earlier attempt. */
static amp_run shown(const amp_run *run)
{
    amp_run copy = *run;
    if (run->state != AMP_RUN_DONE) copy.score[0] = copy.score[1] = (double)NAN;
    if (run->state != AMP_RUN_FAILED) copy.failure[0] = 0;
    return copy;
}

static void write_run(amp_json *json, const amp_comparison *c, const amp_run *run, double *room)
{
    size_t per_loss = per_part(c, LOSS_POINTS), per_column = per_part(c, SCALE_COLUMNS);
    const amp_run copy = shown(run);
    amp_json_object(json, NULL);
    amp_json_fields(json, &copy, run_fields[c->kind]);
    amp_json_number(json, "average_loss",
                    run->count ? (double)run->rows[run->count - 1].avg_loss : (double)NAN);
    amp_json_integer(json, "steps_per_loss", (long long)per_loss);
    write_losses(json, run, most_steps(c), per_loss, room);
    write_scales(json, "scale", run, per_column, 0);
    write_scales(json, "scale_from_step", run, per_column, 1);
    write_skipped(json, run, per_column);
    amp_json_close(json);
}

/* ---- files ---- */

void amp_report_csv(FILE *stream, const void *comparison)
{
    const amp_comparison *c = comparison;
    amp_csv_print(stream, run_fields[c->kind], NULL);
    for (int r = 0; r < c->dtype_count * c->seed_count; r++) {
        const amp_run copy = shown(&c->runs[r]);
        amp_csv_print(stream, run_fields[c->kind], &copy);
    }
}

static void write_settings(amp_json *json, const amp_comparison *c)
{
#define SETTING(member) AMP_FIELD(amp_comparison, member)
    static const char *const kinds[] = { [AMP_COMPARED_DETECTOR] = "detector",
                                         [AMP_COMPARED_CLASSIFIER] = "classifier" };
    static const amp_field fields[] = {
        AMP_NAME_AS("kind", amp_comparison, kind, kinds), SETTING(title), SETTING(data), SETTING(cfg),
        SETTING(weights), SETTING(machine), SETTING(version), SETTING(date), SETTING(iterations),
        SETTING(batch), SETTING(width), SETTING(height), SETTING(classes), SETTING(train_images),
        SETTING(valid_images), AMP_FLAG_AS("interrupted", amp_comparison, interrupted),
        SETTING(points_allowed), { 0 } };
    amp_json_fields(json, c, fields);
    amp_json_array(json, "seeds");
    for (int s = 0; s < c->seed_count; s++) amp_json_integer(json, NULL, s + 1);
    amp_json_close(json);
    amp_json_text(json, "reference", c->dtype_count ? c->dtypes[c->reference] : NULL);
    amp_json_number(json, "confidence", 1 - c->alpha);
    amp_json_number(json, "seconds_compared", c->apart ? (double)NAN : c->together_seconds);
    amp_json_lines(json, "advice", &c->advice);
}

void amp_report_json(FILE *stream, const void *comparison)
{
    const amp_comparison *c = comparison;
    amp_json json = amp_json_begin(stream);
    double *room = amp_allocated(calloc(per_part(c, LOSS_POINTS), sizeof *room));
    amp_json_object(&json, NULL);
    write_settings(&json, c);
    amp_json_records(&json, "dtypes", c->summaries, sizeof *c->summaries, c->dtype_count,
                     summary_fields[c->kind]);
    amp_json_array(&json, "runs");
    for (int r = 0; r < c->dtype_count * c->seed_count; r++) write_run(&json, c, &c->runs[r], room);
    amp_json_close(&json);
    amp_json_close(&json);
    free(room);
}
