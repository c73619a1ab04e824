/* The probe's result for people, a row per layer with a histogram over fp16's ranges, and as JSON. */
#include "probe.h"

#include <limits.h>
#include <math.h>

/* A row: what becomes 0, what becomes subnormal, what stays normal and what overflows in fp16, two binades a
 * character; the first and the last character hold all that lies beyond. */
enum { BINADES = 2, ZEROS = 6, SUBNORMALS = 6, NORMALS = 15, INFS = 3,
       COLUMNS = ZEROS + SUBNORMALS + NORMALS + INFS };
enum { LEAST_SUBNORMAL = -25, LEAST_NORMAL = -14, LEAST_INF = 16 };
static const int widths[] = { ZEROS, SUBNORMALS, NORMALS, INFS };

#define LEVELS " .:-=+*#@"
static const double level_shares[] = { 0, .001, .005, .01, .03, .1, .2, .4 };

static int column_of(int exponent)
{
    int column;
    if (exponent < LEAST_SUBNORMAL) column = ZEROS - 1 - (LEAST_SUBNORMAL - 1 - exponent) / BINADES;
    else if (exponent < LEAST_NORMAL) column = ZEROS + (exponent - LEAST_SUBNORMAL) / BINADES;
    else if (exponent < LEAST_INF) column = ZEROS + SUBNORMALS + (exponent - LEAST_NORMAL) / BINADES;
    else column = ZEROS + SUBNORMALS + NORMALS + (exponent - LEAST_INF) / BINADES;
    return column < 0 ? 0 : column >= COLUMNS ? COLUMNS - 1 : column;
}

static char level_of(unsigned long long numbers, unsigned long long count)
{
    int level = 0, most = (int)(sizeof level_shares / sizeof *level_shares) - 1;
    if (!numbers) return ' ';
    while (level < most && (double)numbers >= level_shares[level + 1] * (double)count) level++;
    return LEVELS[level + 1];
}

static void print_histogram(const amp_exponents *e, int shift, FILE *stream)
{
    unsigned long long columns[COLUMNS] = { 0 }, count = amp_exponents_count(e);
    for (int b = 0; b < AMP_EXPONENTS; b++) columns[column_of(b + AMP_LEAST_EXPONENT + shift)] += e->bins[b];
    int column = 0;
    for (int zone = 0; zone < 4; zone++) {
        putc('|', stream);
        for (int k = 0; k < widths[zone]; k++, column++) putc(level_of(columns[column], count), stream);
    }
    putc('|', stream);
}

static void print_share(double share, FILE *stream)
{
    if (share == 0) fprintf(stream, "%8s", "0");
    else if (share < .00005) fprintf(stream, "%8s", "<0.01%");
    else fprintf(stream, "%7.2f%%", 100 * share);
}

static void print_scales(amp_probe_scales s, FILE *stream)
{
    char least[32], most[32];
    if (s.least > s.most) fprintf(stream, "   none");
    else fprintf(stream, "   %s to %s", amp_probe_scale_text(s.least, least),
                 amp_probe_scale_text(s.most, most));
}

typedef enum table { OUTPUTS, DELTAS, GRADIENTS } table;

typedef struct row {
    int layer, in_fp32;
    const char *name;
    const amp_exponents *numbers;
    float fp16_scale, bf16_scale;
} row;

static void print_row(const row *r, FILE *stream)
{
    amp_lost fp16 = amp_numerics_lost(r->numbers, AMP_FP16, r->fp16_scale);
    amp_lost bf16 = amp_numerics_lost(r->numbers, AMP_BF16, r->bf16_scale);
    fprintf(stream, "%3d %-15.15s ", r->layer, r->name);
    print_histogram(r->numbers, ilogbf(r->fp16_scale), stream);
    if (r->numbers->not_finite) fprintf(stream, " %llu inf or NaN in fp32", r->numbers->not_finite);
    else if (r->in_fp32) fprintf(stream, "%8s", "in fp32");
    else {
        print_share(fp16.overflow, stream);
        print_share(fp16.zero, stream);
        print_share(fp16.subnormal, stream);
        print_share(fp16.error, stream);
        print_share(bf16.overflow, stream);
        print_share(bf16.zero, stream);
        print_share(bf16.error, stream);
    }
}

static row row_of(const amp_probe_result *r, int i, table which)
{
    const amp_probe_layer *layer = &r->layers[i];
    const amp_layer_numerics *n = &layer->numerics;
    row made = { .layer = i, .name = r->network.layers[i].type, .fp16_scale = 1, .bf16_scale = 1,
                 .in_fp32 = !layer->low };
    made.numbers = which == OUTPUTS ? &n->output : which == DELTAS ? &n->delta : &n->gradient;
    if (which == OUTPUTS) return made;
    made.fp16_scale = r->scale;
    made.bf16_scale = r->bf16_scale;
    return made;
}

/* What a layer keeps between convolution and activation gets a row only where it loses more than what all
 * see. */
static void print_inner(const amp_probe_result *r, const row *outer, table which, FILE *stream)
{
    row inner = *outer;
    const amp_layer_numerics *n = &r->layers[outer->layer].numerics;
    if (which == GRADIENTS || outer->in_fp32) return;
    inner.numbers = which == OUTPUTS ? &n->inner_output : &n->inner_delta;
    inner.name = which == OUTPUTS ? "  its sums" : "  within it";
    amp_lost lost = amp_numerics_lost(inner.numbers, AMP_FP16, inner.fp16_scale);
    amp_lost seen = amp_numerics_lost(outer->numbers, AMP_FP16, inner.fp16_scale);
    int worse = lost.overflow > seen.overflow || (lost.error > seen.error && lost.error > r->share);
    if (!worse) return;
    print_row(&inner, stream);
    putc('\n', stream);
}

static void print_table(const amp_probe_result *r, table which, FILE *stream)
{
    fprintf(stream, "\n%64s%32s\n", "fp16", "bf16");
    fprintf(stream, "layer               |  to 0|subnor|     normal    |inf|     inf    to 0 subnorm rounded "
            "    inf    to 0 rounded%s\n", which == DELTAS ? "   loss scales for fp16" : "");
    for (int i = 0; i < r->network.count; i++) {
        row made = row_of(r, i, which);
        if (!amp_exponents_count(made.numbers) && !made.numbers->not_finite) continue;
        print_row(&made, stream);
        if (which == DELTAS && r->layers[i].scales.most != INT_MAX) print_scales(r->layers[i].scales, stream);
        putc('\n', stream);
        print_inner(r, &made, which, stream);
    }
}

static const char *source_text(const amp_probe_result *r, char text[300])
{
    switch (r->scale_source) {
    case AMP_SCALE_OF_SIDECAR: snprintf(text, 300, "from %.250s.amp", r->weights); break;
    case AMP_SCALE_OF_CFG:
        snprintf(text, 300, "%s in the .cfg", r->scale_moves ? "init_scale" : "loss_scale");
        break;
    default: snprintf(text, 300, "the highest power of two at which no delta of this probe overflows");
    }
    return text;
}

static void print_summary(const amp_probe_result *r, FILE *stream)
{
    char least[32], most[32];
    int unbounded = r->scales.most == INT_MAX;
    putc('\n', stream);
    if (!unbounded && r->scales.least <= r->scales.most)
        fprintf(stream, "Loss scales at which no delta overflows fp16, and rounding moves each layer's "
                "deltas by %g %% of their sum at most%s: %s to %s\n", 100 * r->share,
                r->keep_count ? ", with what is kept below" : "",
                amp_probe_scale_text(r->scales.least, least),
                amp_probe_scale_text(r->scales.most, most));
    for (size_t i = 0; i < r->advice.count; i++) fprintf(stream, "%s\n", r->advice.line[i]);
}

void amp_probe_print(const amp_probe_result *r, FILE *stream)
{
    char source[300];
    int exponent;
    fprintf(stream, "%s on %s, from %s: %ld steps of %d images at %dx%d in fp32, loss %g at first and %g at "
            "last, %.1f seconds\n", r->cfg, r->data, r->weights ? r->weights : "random weights",
            r->iterations, r->images, r->width, r->height, (double)r->first_loss, (double)r->last_loss,
            r->seconds);
    fprintf(stream, "Loss scale for fp16: %g%s, %s; for bf16: %g\n", (double)r->scale,
            frexpf(r->scale, &exponent) == .5f ? "" : " (looked at as the power of two below)",
            source_text(r, source), (double)r->bf16_scale);
    fprintf(stream, "Histograms by size, two powers of two a character, as shares of a layer's numbers: . "
            "any  : 0.1 %%  - 0.5 %%  = 1 %%  + 3 %%  * 10 %%  # 20 %%  @ 40 %%\n"
            "rounded: how far rounding moves the numbers, as a share of their sum\n\nOutputs");
    print_table(r, OUTPUTS, stream);
    fprintf(stream, "\nDeltas, times the loss scale");
    print_table(r, DELTAS, stream);
    fprintf(stream, "\nWeight gradients of a subdivision, times the loss scale. They are kept in fp32, and "
            "on the CPU nothing of them is lost.\nOn a GPU cuDNN writes those of convolutions in 16 bits "
            "first; in fp16 they are scaled down before that, so that less is lost:");
    print_table(r, GRADIENTS, stream);
    print_summary(r, stream);
}

/* ---- JSON: what weight gradients lose is what a GPU loses of them; the CPU loses nothing ---- */

static void write_lost(const amp_exponents *e, amp_dtype dtype, float scale, amp_json *json)
{
#define LOST(key, member) AMP_FIELD_AS(key, amp_lost, member)
    static const amp_field fields[] = { LOST("overflow", overflow), LOST("zero", zero),
                                        LOST("subnormal", subnormal), LOST("rounding", error), { 0 } };
    amp_lost lost = amp_numerics_lost(e, dtype, scale);
    amp_json_record(json, amp_dtype_name(dtype), &lost, fields);
}

/* The bins from the first to the last that are not empty: exponents[i] numbers are from 2^(first + i) to
 * twice that. */
static void write_bins(const amp_exponents *e, amp_json *json)
{
    int first = 0, last = AMP_EXPONENTS - 1;
    while (first < last && !e->bins[first]) first++;
    while (last > first && !e->bins[last]) last--;
    amp_json_integer(json, "first_exponent", first + AMP_LEAST_EXPONENT);
    amp_json_array(json, "exponents");
    for (int b = first; b <= last; b++) amp_json_integer(json, NULL, (long long)e->bins[b]);
    amp_json_close(json);
}

static void write_numbers(const char *key, const amp_exponents *e, float fp16_scale, float bf16_scale,
                          amp_json *json)
{
    static const amp_field fields[] = { AMP_FIELD(amp_exponents, zeros), AMP_FIELD(amp_exponents, largest),
                                        AMP_FIELD_AS("inf_or_nan", amp_exponents, not_finite), { 0 } };
    unsigned long long count = amp_exponents_count(e);
    if (!count && !e->not_finite && !e->zeros) return;
    amp_json_object(json, key);
    amp_json_integer(json, "numbers", (long long)count);
    amp_json_fields(json, e, fields);
    if (count) {
        write_lost(e, AMP_FP16, fp16_scale, json);
        write_lost(e, AMP_BF16, bf16_scale, json);
        write_bins(e, json);
    }
    amp_json_close(json);
}

/* A scale as a number; null where nothing bounds it. */
static void write_scale(const char *key, int exponent, amp_json *json)
{
    amp_json_number(json, key, exponent == INT_MIN || exponent == INT_MAX ? INFINITY : ldexp(1, exponent));
}

static void write_scales(amp_probe_scales s, amp_json *json)
{
    amp_json_object(json, "loss_scales");
    write_scale("least", s.least, json);
    write_scale("most", s.most, json);
    amp_json_close(json);
}

static void write_layer(const amp_probe_result *r, int i, amp_json *json)
{
    const amp_probe_layer *layer = &r->layers[i];
    const amp_layer_numerics *n = &layer->numerics;
    amp_json_object(json, NULL);
    amp_json_integer(json, "layer", i);
    amp_json_text(json, "type", r->network.layers[i].type);
    amp_json_boolean(json, "half", layer->low);
    amp_json_boolean(json, "keep_fp32", r->network.layers[i].keep_fp32);
    amp_json_boolean(json, "keep", layer->keep);
    write_scales(layer->scales, json);
    write_numbers("outputs", &n->output, 1, 1, json);
    write_numbers("sums", &n->inner_output, 1, 1, json);
    write_numbers("deltas", &n->delta, r->scale, r->bf16_scale, json);
    write_numbers("inner_deltas", &n->inner_delta, r->scale, r->bf16_scale, json);
    write_numbers("weight_gradients", &n->gradient, r->scale, r->bf16_scale, json);
    amp_json_close(json);
}

void amp_probe_write(FILE *stream, const void *result)
{
    const amp_probe_result *r = result;
    amp_json made = amp_json_begin(stream), *json = &made;
#define RESULT(key, member) AMP_FIELD_AS(key, amp_probe_result, member)
    static const char *const sources[] = { "sidecar", "cfg", "highest without overflow" };
    static const amp_field fields[] = {
        RESULT("cfg", cfg), RESULT("data", data), RESULT("weights", weights), RESULT("steps", iterations),
        RESULT("images_per_step", images), RESULT("width", width), RESULT("height", height),
        RESULT("seconds", seconds), RESULT("first_loss", first_loss), RESULT("last_loss", last_loss),
        RESULT("loss_scale", scale), AMP_NAME_AS("loss_scale_from", amp_probe_result, scale_source, sources),
        AMP_FLAG_AS("loss_scale_dynamic", amp_probe_result, scale_moves),
        RESULT("bf16_loss_scale", bf16_scale), RESULT("share", share), { 0 } };
    amp_json_object(json, NULL);
    amp_json_fields(json, r, fields);
    write_scales(r->scales, json);
    amp_json_array(json, "keep_layers");
    for (int i = 0; i < r->network.count; i++) if (r->layers[i].keep) amp_json_integer(json, NULL, i);
    amp_json_close(json);
    amp_json_lines(json, "advice", &r->advice);
    amp_json_array(json, "layers");
    for (int i = 0; i < r->network.count; i++) write_layer(r, i, json);
    amp_json_close(json);
    amp_json_close(json);
}
