/* Prints a comparison as tables, and writes it as JSON. */
#include "probe_comparison.h"

#include <math.h>
#include <string.h>

#include "../../host/program/version.h"

/* ---- tables ---- */

static void print_number(double number, FILE *stream)
{
    if (isnan(number)) fprintf(stream, " %7s", "-");
    else if (isinf(number)) fprintf(stream, " %7s", "not fin");
    else if (number == 0) fprintf(stream, " %7s", "0");
    else fprintf(stream, " %7.1e", number);
}

/* The larger error of two tensors. A missing tensor is ignored; NaN if both are missing. */
static double larger(const amp_difference *a, const amp_difference *b)
{
    return fmax(amp_difference_error(a), amp_difference_error(b));
}

static void print_cells(const amp_probe_run *r, int layer, amp_trace_kind kind, FILE *stream)
{
    fputs(" |", stream);
    print_number(amp_difference_error(&r->whole[layer][kind]), stream);
    double cosine = amp_difference_cosine(&r->whole[layer][kind]);
    fprintf(stream, isnan(cosine) ? "       -" : " %7.5f", cosine);
    print_number(amp_difference_error(&r->added[layer][kind]), stream);
}

static void print_row(const amp_probe_comparison *c, const amp_probe_run *r, int i, FILE *stream)
{
    const amp_difference *whole = r->whole[i], *added = r->added[i];
    fprintf(stream, "%3d %-13.13s", i, c->network.layers[i].type);
    print_cells(r, i, AMP_TRACE_OUTPUT, stream);
    print_cells(r, i, AMP_TRACE_DELTA, stream);
    print_cells(r, i, AMP_TRACE_WEIGHTS, stream);
    fputs(" |", stream);
    print_number(larger(&added[AMP_TRACE_BIASES], &added[AMP_TRACE_SCALES]), stream);
    fputs(" |", stream);
    print_number(larger(&whole[AMP_TRACE_MEANS], &whole[AMP_TRACE_VARIANCES]), stream);
    print_number(larger(&added[AMP_TRACE_MEANS], &added[AMP_TRACE_VARIANCES]), stream);
    putc('\n', stream);
}

static void print_table(const amp_probe_comparison *c, amp_dtype dtype, FILE *stream)
{
    const amp_probe_run *r = &c->runs[dtype];
    if (!r->ran || (dtype == AMP_FP32 && !c->stock_runs)) return;
    fprintf(stream, "\n%s against %s\n%16s | %-23s | %-23s | %-23s | %-7s | %s\n", amp_dtype_name(dtype),
            dtype == AMP_FP32 ? "Darknet's own code" : "AMP's fp32", "", "output", "delta",
            "weights' gradient", "biases'", "statistics");
    fprintf(stream, "%-16s |   error  cosine   added |   error  cosine   added |   error  cosine   added |"
            "   added |   error   added\n", "layer");
    for (int i = 0; i < c->network.count; i++) print_row(c, r, i, stream);
}

static void print_sizes(const amp_difference *d, FILE *stream)
{
    fputs(" |", stream);
    print_number(d->compared ? d->largest : NAN, stream);
    if (!d->compared || d->flushed == 0) fprintf(stream, " %12s", d->compared ? "0" : "-");
    else if (d->flushed < .00005) fprintf(stream, " %12s", "<0.01 %");
    else fprintf(stream, " %10.2f %%", 100 * d->flushed);
}

/* For the output and the delta of each layer, prints the largest number that fp16 would have to hold, and the
 * part of the numbers that fp16 would round to 0. */
static void print_ranges(const amp_probe_comparison *c, FILE *stream)
{
    const amp_probe_run *r = &c->runs[AMP_FP16];
    if (!r->ran) return;
    fprintf(stream, "\nnumbers of AMP's fp32; fp16 holds up to 65504\n%16s | %-20s | delta x loss scale %g\n"
            "%-16s | largest    0 in fp16 | largest    0 in fp16\n", "", "output", (double)r->scale, "layer");
    for (int i = 0; i < c->network.count; i++) {
        fprintf(stream, "%3d %-13.13s", i, c->network.layers[i].type);
        print_sizes(&r->whole[i][AMP_TRACE_OUTPUT], stream);
        print_sizes(&r->whole[i][AMP_TRACE_DELTA], stream);
        putc('\n', stream);
    }
}

#define TRIAL(key, member, ...) AMP_FIELD_AS(key, amp_keep_trial, member, __VA_ARGS__)
static const amp_field trial_fields[] = {
    TRIAL(NULL, count, .title = "layers in fp32"),
    TRIAL("gradient_cosine", cosine, .title = "gradient's cosine", .format = "%.6f"),
    TRIAL("gradient_error", error, .title = "error", .format = "%.1e"),
    TRIAL("seconds", seconds, .title = "seconds of a pass", .format = "%.4f"), { 0 } };

static void print_trials(const amp_probe_comparison *c, amp_dtype dtype, FILE *stream)
{
    const amp_probe_run *r = &c->runs[dtype];
    amp_keep_trial rows[1 + AMP_KEEP_TRIALS] = { { 0, r->cosine, r->error, r->seconds } };
    if (!r->trial_count) return;
    memcpy(rows + 1, r->trials, sizeof r->trials);
    fprintf(stream, "\n%s with layers in fp32\n", amp_dtype_name(dtype));
    amp_table_print(stream, 2, trial_fields, rows, sizeof *rows, 1 + r->trial_count, NULL);
}

void amp_probe_print_comparison(FILE *stream, const void *comparison)
{
    static const amp_dtype order[] = { AMP_FP32, AMP_BF16, AMP_FP16 };
    const amp_probe_comparison *c = comparison;
    const char *weights = c->source.weights ? c->source.weights : "random weights";
    fprintf(stream, "%s on %s, from %s, in one pass: %ldx%dx%d\n", c->cfg,
            c->data ? c->data : "random images", weights, c->images, c->width, c->height);
    fprintf(stream, "darknet amp %s, %s, on %s\n", AMP_VERSION, amp_fork_name, c->machine.description);
    fprintf(stream, "error: |x - y| / |y| over all numbers, after the whole pass; added: the error "
                    "of this layer alone, with y's input\n");
    for (int k = 0; k < AMP_PROBE_DTYPES; k++) print_table(c, order[k], stream);
    print_ranges(c, stream);
    for (int k = 1; k < AMP_PROBE_DTYPES; k++) print_trials(c, order[k], stream);
    putc('\n', stream);
    amp_probe_print_verdict(stream, c);
}

/* ---- JSON ---- */

static void write_tensor(const amp_probe_comparison *c, amp_dtype dtype, int i, amp_trace_kind kind,
                         amp_json *json)
{
    static const char *const keys[AMP_TRACE_KINDS] = { "output", "delta", "weights_gradient",
        "biases_gradient", "scales_gradient", "batch_means", "batch_variances" };
    const amp_probe_run *r = &c->runs[dtype];
    const amp_difference *whole = &r->whole[i][kind];
    if (!whole->compared) return;
    amp_json_object(json, keys[kind]);
    amp_json_number(json, "error", amp_difference_error(whole));
    amp_json_number(json, "cosine", amp_difference_cosine(whole));
    amp_json_number(json, "added", amp_difference_error(&r->added[i][kind]));
    amp_json_number(json, "limit", amp_probe_limit(c, dtype, i, kind));
    if (dtype == AMP_FP32) amp_json_boolean(json, "excused", c->excused[i][kind]);
    if (dtype == AMP_FP16 && kind <= AMP_TRACE_DELTA) {
        amp_json_number(json, "largest", whole->largest);
        amp_json_number(json, "flushed_to_0", whole->flushed);
    }
    amp_json_close(json);
}

static void write_trials(const amp_probe_run *r, amp_json *json)
{
    amp_json_array(json, "keep_layers");
    for (int k = 0; k < r->trial_count; k++) {
        const amp_keep_trial *t = &r->trials[k];
        amp_json_object(json, NULL);
        amp_json_array(json, "layers");
        for (int i = 0; i < t->count; i++) amp_json_integer(json, NULL, r->order[i]);
        amp_json_close(json);
        amp_json_fields(json, t, trial_fields);
        amp_json_boolean(json, "advised", k == r->best);
        amp_json_close(json);
    }
    amp_json_close(json);
}

static void write_run(const amp_probe_comparison *c, amp_dtype dtype, amp_json *json)
{
#define RUN(key, member) AMP_FIELD_AS(key, amp_probe_run, member)
    static const amp_field fields[] = {
        RUN("loss_scale", scale), RUN("loss", loss), RUN("gradient_cosine", cosine),
        RUN("gradient_error", error), RUN("seconds", seconds), { 0 } };
    const amp_probe_run *r = &c->runs[dtype];
    if (!r->ran) return;
    amp_json_object(json, amp_dtype_name(dtype));
    amp_json_text(json, "verdict", amp_probe_words[amp_probe_word_of(c, dtype)]);
    amp_json_text(json, "against", dtype != AMP_FP32 ? "fp32" : c->stock_runs ? "stock" : "nothing");
    amp_json_fields(json, r, fields);
    amp_json_array(json, "layers");
    for (int i = 0; i < c->network.count; i++) {
        amp_json_object(json, NULL);
        amp_json_integer(json, "layer", i);
        amp_json_text(json, "type", c->network.layers[i].type);
        for (int kind = 0; kind < AMP_TRACE_KINDS; kind++)
            write_tensor(c, dtype, i, (amp_trace_kind)kind, json);
        amp_json_close(json);
    }
    amp_json_close(json);
    if (dtype != AMP_FP32) write_trials(r, json);
    amp_json_close(json);
}

void amp_probe_write_comparison(FILE *stream, const void *comparison)
{
#define COMPARED(member) AMP_FIELD(amp_probe_comparison, member)
    static const amp_field fields[] = {
        AMP_FIELD_AS("machine", amp_probe_comparison, machine.description), COMPARED(data), COMPARED(cfg),
        AMP_FIELD_AS("weights", amp_probe_comparison, source.weights), COMPARED(images), COMPARED(width),
        COMPARED(height), AMP_FLAG_AS("on_gpu", amp_probe_comparison, on_gpu), { 0 } };
    const amp_probe_comparison *c = comparison;
    amp_json json = amp_json_begin(stream);
    amp_json_object(&json, NULL);
    amp_json_text(&json, "version", AMP_VERSION);
    amp_json_text(&json, "darknet", amp_fork_name);
    amp_json_fields(&json, c, fields);
    amp_json_boolean(&json, "stock_runs", c->stock_runs);
    amp_json_boolean(&json, "fp32_is_stocks", c->stock_runs && !amp_probe_is_wrong(c));
    amp_json_number(&json, "stock_loss", c->stock_loss);
    write_run(c, AMP_FP32, &json);
    write_run(c, AMP_BF16, &json);
    write_run(c, AMP_FP16, &json);
    amp_json_lines(&json, "darknets_faults", &c->stock_faults);
    amp_json_lines(&json, "advice", &c->advice);
    amp_json_close(&json);
    putc('\n', stream);
}
