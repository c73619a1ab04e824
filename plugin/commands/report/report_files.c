/* The report for programs: JSON and CSV. What was not measured is null, or empty. */
#include "../compare/comparison.h"

#include "../json.h"
#include "report_curves.h"
#include "report_text.h"

#include <math.h>
#include <string.h>

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

static void write_values(amp_json *json, const char *key, const amp_points *points, int run)
{
    amp_json_array(json, key);
    for (size_t i = 0; i < points->count; ++i) amp_json_number(json, NULL, amp_points_of(points, run)[i]);
    amp_json_close(json);
}

static void write_run(amp_json *json, const amp_comparison *c, const amp_curves *curves, int index)
{
    const amp_run *run = &c->runs[index];
    int done = amp_run_has_score(run);
    amp_json_object(json, NULL);
    amp_json_text(json, "dtype", run->dtype);
    amp_json_integer(json, "seed", run->seed);
    amp_json_text(json, "state", state_key(run));
    amp_json_text(json, "failure", run->state == AMP_RUN_FAILED ? run->failure : NULL);
    amp_json_integer(json, "steps", (long long)run->count);
    amp_json_integer(json, "skipped", run->skipped);
    amp_json_number(json, "images_per_second", measured(run->images_per_second));
    amp_json_number(json, "compute_images_per_second", measured(run->compute_images_per_second));
    amp_json_number(json, "peak_memory_mb", measured(run->peak_memory_mb));
    for (int i = 0; i < 2; ++i) amp_json_number(json, score_key(c, i), done ? run->score[i] : (double)NAN);
    amp_json_number(json, "largest_difference", done ? run->largest_difference : (double)NAN);
    amp_json_number(json, "relative_difference", done ? run->relative_difference : (double)NAN);
    amp_json_integer(json, "steps_per_loss", (long long)curves->loss.per_point);
    write_values(json, "loss", &curves->loss, index); /* medians */
    amp_json_close(json);
}

static void write_json(FILE *stream, const amp_comparison *c, const amp_curves *curves)
{
    amp_json json = amp_json_begin(stream);
    amp_json_object(&json, NULL);
    write_settings(&json, c);
    amp_json_array(&json, "dtypes");
    for (int d = 0; d < c->dtype_count; ++d) write_summary(&json, c, d);
    amp_json_close(&json);
    amp_json_array(&json, "runs");
    for (int r = 0; r < c->dtype_count * c->seed_count; ++r) write_run(&json, c, curves, r);
    amp_json_close(&json);
    amp_json_close(&json);
}

amp_status amp_report_json(const amp_comparison *c, const char *file, amp_error *error)
{
    return amp_curves_write(c, file, write_json, error);
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

amp_status amp_report_csv(const amp_comparison *c, const char *file, amp_error *error)
{
    struct amp_output *output;
    FILE *stream;
    AMP_TRY(amp_output_begin(file, &output, &stream, error));
    fprintf(stream, "dtype,seed,state,steps,skipped,images_per_second,compute_images_per_second,peak_memory_mb,%s,%s,"
            "largest_difference,relative_difference,failure\n", score_key(c, 0), score_key(c, 1));
    for (int r = 0; r < c->dtype_count * c->seed_count; ++r) write_line(stream, &c->runs[r]);
    return amp_output_end(output, error);
}
