/* The report for programs: JSON and CSV. What was not measured is null, or empty. */
#include "report_files.h"

#include "../compare/compare.h"
#include "report_text.h"

#include <math.h>
#include <stdlib.h>

/* ---- JSON ---- */

static const char *score_key(const amp_comparison *c, int i)
{
    static const char *const names[2][2] = { { "map_50", "map_50_95" }, { "top_1", "top_5" } };
    return names[c->kind == AMP_COMPARED_CLASSIFIER][i];
}

static const char *state_key(const amp_run *run)
{
    static const char *const names[] = { "waiting", "training", "trained", "done", "failed" };
    return names[run->state];
}

static double measured(double value) { return value > 0 ? value : (double)NAN; }

static void write_mean(amp_json *json, const char *key, const amp_mean *mean)
{
    amp_json_object(json, key);
    amp_json_number(json, "mean", amp_mean_value(mean));
    amp_json_number(json, "spread", mean->count > 0 ? mean->spread : (double)NAN);
    amp_json_integer(json, "count", mean->count);
    amp_json_close(json);
}

static void write_settings(amp_json *json, const amp_comparison *c)
{
    amp_json_text(json, "kind", c->kind == AMP_COMPARED_CLASSIFIER ? "classifier" : "detector");
    amp_json_text(json, "title", c->title);
    amp_json_text(json, "data", c->data);
    amp_json_text(json, "cfg", c->cfg);
    amp_json_text(json, "weights", c->weights);
    amp_json_text(json, "machine", c->machine);
    amp_json_text(json, "version", c->version);
    amp_json_text(json, "date", c->date);
    amp_json_integer(json, "iterations", c->iterations);
    amp_json_integer(json, "batch", c->batch);
    amp_json_integer(json, "width", c->width);
    amp_json_integer(json, "height", c->height);
    amp_json_integer(json, "classes", c->classes);
    amp_json_integer(json, "train_images", c->train_images);
    amp_json_integer(json, "valid_images", c->valid_images);
    amp_json_array(json, "seeds");
    for (int s = 0; s < c->seed_count; ++s) amp_json_integer(json, NULL, c->seeds[s]);
    amp_json_close(json);
    amp_json_text(json, "reference", c->dtype_count ? c->dtypes[c->reference] : NULL);
    amp_json_boolean(json, "interrupted", c->interrupted);
    amp_json_number(json, "points_allowed", c->points_allowed);
    amp_json_number(json, "confidence", 1 - c->doubt);
    amp_json_number(json, "seconds_compared", c->apart ? (double)NAN : c->together_seconds);
    amp_json_array(json, "verdict");
    for (int i = 0; i < c->verdict_count; ++i) amp_json_text(json, NULL, c->verdict[i]);
    amp_json_close(json);
}

/* Differences of a score to the reference's, in points; what they say. */
static void write_difference(amp_json *json, const char *key, const amp_interval *i, amp_accuracy accuracy)
{
    static const char *const words[] = { NULL, "cannot tell", "as good", "worse" };
    amp_json_object(json, key);
    amp_json_number(json, "mean", i->mean);
    amp_json_number(json, "standard_error", i->error);
    amp_json_number(json, "least", i->least);
    amp_json_number(json, "most", i->most);
    amp_json_integer(json, "seeds", i->count);
    amp_json_text(json, "verdict", words[accuracy]);
    amp_json_close(json);
}

static void write_times(amp_json *json, const char *key, const amp_times *times)
{
    amp_json_object(json, key);
    amp_json_number(json, "ratio", measured(times->ratio));
    amp_json_number(json, "least", measured(times->least));
    amp_json_number(json, "most", measured(times->most));
    amp_json_close(json);
}

static void write_summary(amp_json *json, const amp_comparison *c, int dtype)
{
    const amp_dtype_summary *one = &c->summaries[dtype];
    amp_json_object(json, NULL);
    amp_json_text(json, "dtype", c->dtypes[dtype]);
    for (int i = 0; i < 2; ++i) write_mean(json, score_key(c, i), &one->score[i]);
    write_mean(json, "images_per_second", &one->images_per_second);
    write_mean(json, "compute_images_per_second", &one->compute_images_per_second);
    write_mean(json, "peak_memory_mb", &one->peak_memory_mb);
    write_mean(json, "loss", &one->loss);
    write_mean(json, "skipped", &one->skipped);
    amp_json_integer(json, "failed_runs", one->failed);
    if (dtype != c->reference) {
        for (int i = 0; i < 2; ++i) {
            char key[64];
            snprintf(key, sizeof key, "%s_difference_points", score_key(c, i));
            write_difference(json, key, &one->difference[i], one->accuracy[i]);
        }
        amp_json_integer(json, "more_seeds_to_tell", one->more_seeds);
        write_times(json, "speedup", &one->speedup);
        write_times(json, "compute_speedup", &one->compute_speedup);
        write_times(json, "memory_ratio", &one->memory_ratio);
    }
    amp_json_close(json);
}

/* ---- a run's steps, as few as a chart can show: of a million as many as of some thousand ---- */

enum { LOSS_POINTS = 100, SCALE_COLUMNS = 2000 };

static size_t most_steps(const amp_comparison *c)
{
    size_t most = 0;
    for (int r = 0; r < c->dtype_count * c->seed_count; ++r)
        if (c->runs[r].count > most) most = c->runs[r].count;
    return most;
}

/* Steps that make one of `parts`: the same for all runs, so that they can be compared. */
static size_t per_part(const amp_comparison *c, size_t parts)
{
    size_t steps = most_steps(c);
    return steps ? (steps + parts - 1) / parts : 1;
}

/* Medians of `each` steps; losses that are inf or NaN are left out, and where there is no other it is null.
 * room: of `each`. */
static void write_losses(amp_json *json, const amp_run *run, size_t steps, size_t each, double *room)
{
    amp_json_array(json, "loss");
    for (size_t first = 0; first < steps; first += each) {
        size_t filled = 0;
        for (size_t k = first; k < first + each && k < run->count; ++k)
            if (amp_is_number((double)run->rows[k].loss)) room[filled++] = (double)run->rows[k].loss;
        amp_json_number(json, NULL, amp_median(room, filled));
    }
    amp_json_close(json);
}

/* Of a step; NaN where it is none. */
static double scale_of(const amp_run *run, size_t i)
{
    double scale = (double)run->rows[i].scale;
    return amp_is_number(scale) && scale > 0 ? scale : (double)NAN;
}

static int differs(double a, double b)
{
    return amp_is_number(a) != amp_is_number(b) || (amp_is_number(a) && (a < b || a > b));
}

/* All of a run's scales, or their steps, where the scale changes. Of `each` steps no more than the first, the
 * least, the largest and the last are written, which is what a chart shows of them. */
static void write_scales(amp_json *json, const char *key, const amp_run *run, size_t each, int steps)
{
    double before = -1;
    amp_json_array(json, key);
    for (size_t first = 0; first < run->count; first += each) {
        size_t end = first + each < run->count ? first + each : run->count;
        size_t kept[4] = { first, first, first, end - 1 };
        for (size_t k = first; k < end; ++k) {
            if (!amp_is_number(scale_of(run, k))) continue;
            if (!(scale_of(run, kept[1]) <= scale_of(run, k))) kept[1] = k;
            if (!(scale_of(run, kept[2]) >= scale_of(run, k))) kept[2] = k;
        }
        int turned = kept[1] > kept[2]; /* the largest comes before the least */
        for (int i = 0; i < 4; ++i) {
            size_t step = kept[turned && (i == 1 || i == 2) ? 3 - i : i];
            if (!differs(scale_of(run, step), before)) continue;
            before = scale_of(run, step);
            amp_json_number(json, NULL, steps ? (double)step + 1 : before);
        }
    }
    amp_json_close(json);
}

static void write_skipped(amp_json *json, const amp_run *run, size_t each)
{
    size_t drawn = 0; /* steps up to here are represented */
    amp_json_array(json, "skipped_at");
    for (size_t i = 0; i < run->count; ++i) {
        if (!run->rows[i].found_inf || i < drawn) continue;
        amp_json_integer(json, NULL, (long long)i + 1);
        drawn = i - i % each + each;
    }
    amp_json_close(json);
}

static void write_run(amp_json *json, const amp_comparison *c, const amp_run *run, double *room)
{
    int done = amp_run_has_score(run);
    size_t per_loss = per_part(c, LOSS_POINTS), per_column = per_part(c, SCALE_COLUMNS);
    amp_json_object(json, NULL);
    amp_json_text(json, "dtype", run->dtype);
    amp_json_integer(json, "seed", run->seed);
    amp_json_text(json, "state", state_key(run));
    amp_json_text(json, "failure", run->state == AMP_RUN_FAILED ? run->failure : NULL);
    amp_json_integer(json, "steps", (long long)run->count);
    amp_json_integer(json, "skipped", run->skipped);
    amp_json_number(json, "average_loss",
                    run->count ? (double)run->rows[run->count - 1].avg_loss : (double)NAN);
    amp_json_number(json, "images_per_second", measured(run->images_per_second));
    amp_json_number(json, "compute_images_per_second", measured(run->compute_images_per_second));
    amp_json_number(json, "peak_memory_mb", measured(run->peak_memory_mb));
    for (int i = 0; i < 2; ++i) amp_json_number(json, score_key(c, i), done ? run->score[i] : (double)NAN);
    amp_json_number(json, "largest_difference", done ? run->largest_difference : (double)NAN);
    amp_json_number(json, "relative_difference", done ? run->relative_difference : (double)NAN);
    amp_json_integer(json, "steps_per_loss", (long long)per_loss);
    write_losses(json, run, most_steps(c), per_loss, room);
    write_scales(json, "scale", run, per_column, 0);
    write_scales(json, "scale_from_step", run, per_column, 1);
    write_skipped(json, run, per_column);
    amp_json_close(json);
}

amp_status amp_report_write_json(FILE *stream, const amp_comparison *c, amp_error *error)
{
    amp_json json = amp_json_begin(stream);
    double *room = calloc(per_part(c, LOSS_POINTS), sizeof *room);
    if (!room) return amp_fail(error, AMP_NO_MEMORY, "the report: out of memory");
    amp_json_object(&json, NULL);
    write_settings(&json, c);
    amp_json_array(&json, "dtypes");
    for (int d = 0; d < c->dtype_count; ++d) write_summary(&json, c, d);
    amp_json_close(&json);
    amp_json_array(&json, "runs");
    for (int r = 0; r < c->dtype_count * c->seed_count; ++r) write_run(&json, c, &c->runs[r], room);
    amp_json_close(&json);
    amp_json_close(&json);
    free(room);
    return AMP_OK;
}

amp_status amp_report_write(const amp_comparison *c, const char *file, amp_report_writer *write,
                            amp_error *error)
{
    struct amp_output *output;
    FILE *stream;
    AMP_TRY(amp_output_begin(file, &output, &stream, error));
    amp_status status = write(stream, c, error);
    if (status == AMP_OK) return amp_output_end(output, error);
    amp_output_abandon(output);
    return status;
}

amp_status amp_report_json(const amp_comparison *c, const char *file, amp_error *error)
{
    return amp_report_write(c, file, amp_report_write_json, error);
}

/* ---- CSV (RFC 4180) ---- */

static void write_field(FILE *stream, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, stream);
        return;
    }
    putc('"', stream);
    for (; *text; ++text) {
        if (*text == '"') putc('"', stream);
        putc(*text, stream);
    }
    putc('"', stream);
}

static void write_number(FILE *stream, double value)
{
    putc(',', stream);
    if (amp_is_number(value)) fprintf(stream, "%.9g", value);
}

static void write_line(FILE *stream, const amp_run *run)
{
    int done = amp_run_has_score(run);
    write_field(stream, run->dtype);
    fprintf(stream, ",%u,%s,%zu,%ld", run->seed, state_key(run), run->count, run->skipped);
    write_number(stream, measured(run->images_per_second));
    write_number(stream, measured(run->compute_images_per_second));
    write_number(stream, measured(run->peak_memory_mb));
    for (int i = 0; i < 2; ++i) write_number(stream, done ? run->score[i] : (double)NAN);
    write_number(stream, done ? run->largest_difference : (double)NAN);
    write_number(stream, done ? run->relative_difference : (double)NAN);
    putc(',', stream);
    write_field(stream, run->state == AMP_RUN_FAILED ? run->failure : "");
    putc('\n', stream);
}

static amp_status write_csv(FILE *stream, const amp_comparison *c, amp_error *error)
{
    (void)error;
    fprintf(stream, "dtype,seed,state,steps,skipped,images_per_second,compute_images_per_second,peak_memory_mb,%s,%s,"
            "largest_difference,relative_difference,failure\n", score_key(c, 0), score_key(c, 1));
    for (int r = 0; r < c->dtype_count * c->seed_count; ++r) write_line(stream, &c->runs[r]);
    return AMP_OK;
}

amp_status amp_report_csv(const amp_comparison *c, const char *file, amp_error *error)
{
    return amp_report_write(c, file, write_csv, error);
}
