/* The verdict on a comparison: a word and numbers for each dtype. It judges the error that each layer adds.
 *
 * The limits are the largest errors that rounding explains. In fp32, in units of roundoff (u = 2^-24):
 *  - A layer without long sums differed by up to 40 u in measurements (docs/results); the limit is 256 u.
 *  - A sum of k products in fp32 is off by at most 8 sqrt(k) u times the sum of their absolute values, except
 *    with a probability below 1e-13 k (Higham and Mary, "A new approach to probabilistic rounding error
 *    analysis", 2019, theorem 2.4 with lambda = 8). For an output, k is the number of its inputs; for an
 *    element of a delta, k is the number of outputs to which it contributes.
 *  - For gradients and batch norm's statistics, Darknet's CPU code adds all n numbers of a channel one
 *    after the other. The rounding errors add up rather than cancel, and those of the statistics affect all
 *    results of the layer. Errors of up to n/8 u were measured, and of up to n u in gradients; the limits are
 *    n/2 u and 2n u. On a GPU, n is at most a 256th of the channel's numbers, because many threads share the
 *    additions; for an average pool, n is at least the number of pixels in its window.
 *  - A result that is small compared with the terms of its sums has a large relative error: a delta after
 *    batch norm over few numbers, for example. So all limits are multiplied by the layer's condition
 *    (probe_conditions.c). This is correct because a sum computed in fp32 is the exact sum of terms that
 *    rounding moved (Higham, "Accuracy and stability of numerical algorithms", 3.1).
 *  - If rounding moves an output across the kink of leaky or relu, its delta gets the other slope
 *    (amp_probe_kinked). Darknet computes the slopes of logistic, tanh and similar activations from their
 *    outputs y, and AMP computes them from the inputs. Near an asymptote of the activation, Darknet's slopes
 *    are off by the rounding of 1 - y. The limits of deltas and gradients allow for both.
 *  - Some of Darknet's code computes tanh, loggy, elu and selu in fp32. If the output is near 0, this code
 *    subtracts 1 from a number near 1. The limits of outputs allow for the rounding of these numbers
 *    (cancelled).
 *
 * In half precision, the limits are multiples of the rounding of one number (2^-9 in bf16, 2^-12 in fp16),
 * and of the layer's condition:
 *  - For outputs and statistics, 32 times the dtype's rounding. Up to 8 times was measured.
 *  - For deltas and gradients of both dtypes, 128 times bf16's rounding, because batch norm's backward
 *    subtracts the mean from a delta, which cancels digits. Up to 37 times was measured, with GPU kernels
 *    that were built for the CPU and store deltas in 16 bits. In fp16 the limit also allows for underflow.
 *  - An inf is not a fault if the numbers are too large for fp16, or if a lower loss scale removes it.
 *  - Deltas that a max pool passes on are not judged: rounding may make neighbouring inputs equal, so that
 *    the pool chooses another input, and the delta goes to that input. */
#include "probe_comparison.h"

#include <math.h>

#include "../../host/program/failure.h"

#define ROUNDOFF 0x1p-24
#define BF16_ROUNDING 0x1p-9
#define FP16_ROUNDING 0x1p-12
#define FP16_LEAST 0x1p-24
#define KINK 4
enum { ALLOWED = 256, LAMBDA = 8, PART_OF_A_GPU_THREAD = 256, FAULTS_TOLD = 4, ROUNDINGS_NEAR_1 = 4 };

const char *const amp_trace_names[AMP_TRACE_KINDS] = {
    "output", "delta", "weights' gradient", "biases' gradient", "scales' gradient", "means of the batch",
    "variances of the batch" };

/* ---- lengths of sums ---- */

typedef double length_of(const amp_probe_comparison *, int layer);

/* Returns own(layer). For a delta: the maximum of own(layer) and of_reader(i) over all layers i that
 * contribute to it. */
static double longest(const amp_probe_comparison *c, int layer, amp_trace_kind kind, length_of *own,
                      length_of *of_reader)
{
    double most = own(c, layer);
    for (int i = layer + 1; kind == AMP_TRACE_DELTA && i < c->network.count; i++)
        if (amp_layer_reads(&c->network.layers[i], layer)) most = fmax(most, of_reader(c, i));
    return most;
}

static double of_a_channel(const amp_probe_comparison *c, int layer)
{
    const amp_layer_desc *d = &c->network.layers[layer];
    amp_shape in = d->input_count && d->inputs[0] >= 0 ? c->network.layers[d->inputs[0]].output
                                                       : c->network.image;
    double numbers = (double)d->output.n * d->output.h * d->output.w;
    /* pixels in an average pool's window; even on a GPU, a single thread adds them all */
    double pooled = (double)in.h * in.w / ((double)d->output.h * d->output.w);
    return fmax(c->on_gpu ? numbers / PART_OF_A_GPU_THREAD : numbers, pooled);
}

static double weights_of(const amp_layer_desc *d)
{
    double weights = 0;
    for (int k = 0; k < d->param_count; k++) weights += d->params[k].decays ? (double)d->params[k].count : 0;
    return weights;
}

/* The number of products summed for an output: weights / output channels; for a delta: weights / input
 * channels. */
static double to_output(const amp_probe_comparison *c, int layer)
{
    const amp_layer_desc *d = &c->network.layers[layer];
    return weights_of(d) / d->output.c;
}

static double to_delta(const amp_probe_comparison *c, int layer)
{
    const amp_layer_desc *d = &c->network.layers[layer];
    return weights_of(d) / (d->inputs[0] < 0 ? c->network.image.c : c->network.layers[d->inputs[0]].output.c);
}

/* ---- limits ---- */

/* The relative error of a layer's delta if each element is off by half the distance between fp16's smallest
 * numbers. After unscaling, this distance is 2^-24 / loss scale. */
static double underflow(const amp_probe_comparison *c, int layer)
{
    const amp_probe_run *r = &c->runs[AMP_FP16];
    double size = sqrt(r->added[layer][AMP_TRACE_DELTA].yy);
    double step = FP16_LEAST / 2 / (double)r->fed_scale;
    return size > 0 ? step * sqrt((double)amp_shape_count(c->network.layers[layer].output)) / size : 0;
}

/* Returns the relative error of a layer's output if each element has the rounding error of a few numbers near
 * 1. AMP's own activations do not have this error (activate.h). */
static double cancelled(const amp_probe_comparison *c, int layer)
{
    const amp_layer_desc *d = &c->network.layers[layer];
    amp_activation a = d->activation;
    double size = sqrt(c->runs[AMP_FP32].added[layer][AMP_TRACE_OUTPUT].yy);
    if (!(size > 0) || (a != AMP_TANH && a != AMP_LOGGY && a != AMP_ELU && a != AMP_SELU)) return 0;
    return ROUNDINGS_NEAR_1 * ROUNDOFF * sqrt((double)amp_shape_count(d->output)) / size;
}

static int is_gradient(amp_trace_kind kind)
{
    return kind == AMP_TRACE_WEIGHTS || kind == AMP_TRACE_BIASES || kind == AMP_TRACE_SCALES;
}

/* KINK times amp_difference.flipped of the outputs. The factor KINK is needed because batch norm subtracts
 * the mean from deltas, which amplifies the error a few times. */
double amp_probe_kinked(const amp_network_desc *n, const amp_differences *added, int layer,
                        amp_trace_kind kind)
{
    double most = is_gradient(kind) ? added[layer][AMP_TRACE_OUTPUT].flipped : 0;
    for (int i = layer + 1; kind == AMP_TRACE_DELTA && i < n->count; i++)
        if (amp_layer_reads(&n->layers[i], layer)) most = fmax(most, added[i][AMP_TRACE_OUTPUT].flipped);
    return isfinite(most) ? KINK * most : 0;
}

int amp_probe_is_chosen_of(const amp_network_desc *n, int value)
{
    for (int i = value + 1; i < n->count; i++)
        if (n->layers[i].kind->chooses && amp_layer_reads(&n->layers[i], value)) return 1;
    return 0;
}

double amp_probe_limit(const amp_probe_comparison *c, amp_dtype dtype, int layer, amp_trace_kind kind)
{
    double n = longest(c, layer, kind, of_a_channel, of_a_channel), limit;
    double products = longest(c, layer, kind, to_output, to_delta);
    if (dtype == AMP_FP32)
        limit = ROUNDOFF * (ALLOWED + LAMBDA * sqrt(products) + (is_gradient(kind) ? 2 * n : n / 2))
                + amp_probe_kinked(&c->network, c->runs[AMP_FP32].added, layer, kind)
                + (kind == AMP_TRACE_OUTPUT ? cancelled(c, layer) : 0);
    else if (is_gradient(kind) || kind == AMP_TRACE_DELTA)
        limit = 128 * BF16_ROUNDING
                + (dtype == AMP_FP16 ? 128 * longest(c, layer, kind, underflow, underflow) : 0);
    else limit = 32 * (dtype == AMP_BF16 ? BF16_ROUNDING : FP16_ROUNDING);
    const amp_conditions *of = dtype == AMP_FP32 ? c->conditions : c->conditions_of_half;
    return limit * (of ? fmax(1, of[layer][kind]) : 1); /* `of` is NULL if Darknet's own code cannot run */
}

/* Whether this tensor is not judged (amp_probe_comparison.excused, undefined, beyond). */
static int is_excused(const amp_probe_comparison *c, amp_dtype dtype, int layer, amp_trace_kind kind)
{
    if (dtype == AMP_FP32) return !c->stock_runs || c->excused[layer][kind];
    return c->undefined[layer][kind] || (dtype == AMP_FP16 && c->beyond[layer][kind])
           || (kind == AMP_TRACE_DELTA && amp_probe_is_chosen_of(&c->network, layer));
}

/* ---- faults ---- */

static int further(const amp_probe_fault *a, const amp_probe_fault *b)
{
    return a->error / a->limit > b->error / b->limit;
}

void amp_probe_find_faults(amp_probe_comparison *c, amp_dtype dtype)
{
    amp_probe_run *r = &c->runs[dtype];
    r->nearest = (amp_probe_fault){ .layer = -1, .limit = 1 };
    r->faults = amp_allocated(calloc((size_t)c->network.count * AMP_TRACE_KINDS + 1, sizeof *r->faults));
    for (int i = 0; i < c->network.count; i++)
        for (int kind = 0; kind < AMP_TRACE_KINDS; kind++) {
            amp_probe_fault f = { .layer = i, .kind = (amp_trace_kind)kind };
            f.error = amp_difference_error(&r->added[i][f.kind]);
            f.limit = amp_probe_limit(c, dtype, i, f.kind);
            if (isnan(f.error) || is_excused(c, dtype, i, f.kind)) continue;
            if (r->nearest.layer < 0 || further(&f, &r->nearest)) r->nearest = f;
            if (f.error <= f.limit && !isnan(r->added[i][f.kind].dd)) continue;
            int at = r->fault_count++;
            for (; at > 0 && further(&f, &r->faults[at - 1]); at--) r->faults[at] = r->faults[at - 1];
            r->faults[at] = f;
        }
}

enum { TEXT = 600 };

/* Writes "layer 3 [convolutional], output"; for a delta, the layers that compute it. */
static const char *place_of(const amp_probe_comparison *c, const amp_probe_fault *f, char text[TEXT])
{
    const char *separator = "";
    text[0] = 0;
    if (f->kind != AMP_TRACE_DELTA || c->network.layers[f->layer].yolo) {
        snprintf(text, TEXT, "layer %d [%s], %s", f->layer, c->network.layers[f->layer].type,
                 amp_trace_names[f->kind]);
        return text;
    }
    for (int i = f->layer + 1; i < c->network.count; i++) {
        if (!amp_layer_reads(&c->network.layers[i], f->layer)) continue;
        amp_append(text, TEXT, "%slayer %d [%s]", separator, i, c->network.layers[i].type);
        separator = " or ";
    }
    amp_append(text, TEXT, ", the delta that it passes to layer %d", f->layer);
    return text;
}

const char *amp_probe_fault_text(const amp_probe_comparison *c, const amp_probe_fault *f,
                                 char text[AMP_FAULT_TEXT])
{
    char place[TEXT];
    place_of(c, f, place);
    if (isinf(f->error)) snprintf(text, AMP_FAULT_TEXT, "%s: inf or NaN", place);
    else
        snprintf(text, AMP_FAULT_TEXT, "%s: off by %.2g, but rounding explains only %.2g", place, f->error,
                 f->limit);
    return text;
}

/* ---- the verdict ---- */

#define PLAIN .01 /* an fp32 error above this gets the verdict "wrong" */

const char *const amp_probe_words[] = { "not compared", "same", "range", "off", "wrong" };

amp_probe_word amp_probe_word_of(const amp_probe_comparison *c, amp_dtype dtype)
{
    const amp_probe_run *r = &c->runs[dtype];
    int beyond = dtype == AMP_FP16 && (c->first_beyond >= 0 || r->scale < AMP_LEAST_SCALE);
    for (int k = 0; k < r->fault_count && dtype == AMP_FP32; k++)
        if (!(r->faults[k].error <= PLAIN)) return AMP_PROBE_WRONG;
    return !r->ran || (!r->fault_count && r->nearest.layer < 0) ? AMP_PROBE_NONE
         : r->fault_count ? AMP_PROBE_OFF : beyond ? AMP_PROBE_RANGE : AMP_PROBE_SAME;
}

/* A row of the table: a dtype's worst tensor, or another one whose error exceeds its limit. */
typedef struct row {
    const char *dtype, *word;
    char loss[16], error[16], scale[16], keep[16], off[16], limit[16], tensor[TEXT];
} row;

static void number_text(double number, const char *format, char text[16])
{
    if (!isfinite(number)) snprintf(text, 16, "inf/NaN");
    else snprintf(text, 16, format, number);
}

/* Writes how many layers to keep in fp32. */
static void keep_text(const amp_probe_run *r, char text[16])
{
    if (!r->trial_count) return;
    if (r->error <= AMP_PROBE_LITTLE) snprintf(text, 16, "none");
    else if (r->best < 0) snprintf(text, 16, "no gain");
    else snprintf(text, 16, "%d", r->trials[r->best].count);
}

static void show_tensor(const amp_probe_comparison *c, const amp_probe_fault *f, row *to)
{
    place_of(c, f, to->tensor);
    number_text(f->error, "%.2g", to->off);
    number_text(f->limit, "%.2g", to->limit);
}

static int add_rows(const amp_probe_comparison *c, amp_dtype dtype, row *rows)
{
    const amp_probe_run *r = &c->runs[dtype];
    int count = r->fault_count < FAULTS_TOLD ? r->fault_count : FAULTS_TOLD;
    rows[0].dtype = amp_dtype_name(dtype);
    rows[0].word = amp_probe_words[amp_probe_word_of(c, dtype)];
    if (!r->ran) snprintf(rows[0].tensor, TEXT, "%s", c->machine.note[dtype]);
    if (!r->ran) return 1;
    number_text(r->loss, "%.6g", rows[0].loss);
    number_text(r->scale, "%g", rows[0].scale);
    if (dtype != AMP_FP32 || c->stock_runs) number_text(r->error, "%.2g", rows[0].error);
    keep_text(r, rows[0].keep);
    if (!count && r->nearest.layer >= 0) show_tensor(c, &r->nearest, rows);
    for (int k = 0; k < count; k++) show_tensor(c, &r->faults[k], &rows[k]);
    return count ? count : 1;
}

void amp_probe_print_verdict(FILE *stream, const void *comparison)
{
#define CELL(member, name, is_left) AMP_FIELD(row, member, .title = name, .left = is_left)
    static const amp_field fields[] = {
        CELL(dtype, "dtype", 1), CELL(word, "verdict", 1), CELL(loss, "loss", 0), CELL(scale, "scale", 0),
        CELL(error, "gradient", 0), CELL(keep, "to keep", 0), CELL(off, "off by", 0),
        CELL(limit, "limit", 0), CELL(tensor, "tensor", 1), { 0 } };
    const amp_probe_comparison *c = comparison;
    row rows[1 + AMP_PROBE_DTYPES * FAULTS_TOLD] = { { .dtype = "stock" } };
    int count = c->stock_runs;
    number_text(c->stock_loss, "%.6g", rows[0].loss);
    if (!count) rows[0] = (row){ 0 };
    count += add_rows(c, AMP_FP32, &rows[count]);
    count += add_rows(c, AMP_BF16, &rows[count]);
    count += add_rows(c, AMP_FP16, &rows[count]);
    amp_table_print(stream, 2, fields, rows, sizeof *rows, count, NULL);
    for (size_t i = 0; i < c->stock_faults.count; i++)
        amp_print_wrapped(stream, 0, "%s", c->stock_faults.line[i]);
    for (size_t i = 0; i < c->advice.count; i++) amp_print_wrapped(stream, 0, "%s", c->advice.line[i]);
}

/* ---- what to do ---- */

#define advise(c, ...) amp_lines_add(&(c)->advice, __VA_ARGS__)

static void advise_layers(amp_probe_comparison *c, amp_dtype dtype)
{
    const amp_probe_run *r = &c->runs[dtype];
    char layers[TEXT] = "";
    if (!r->trial_count || r->error <= AMP_PROBE_LITTLE || r->best < 0) return;
    for (int k = 0; k < r->trials[r->best].count; k++)
        amp_append(layers, TEXT, "%s%d [%s]", k ? ", " : "", r->order[k],
                   c->network.layers[r->order[k]].type);
    advise(c, "%s: keep in fp32 with amp=0: %s.", amp_dtype_name(dtype), layers);
}

void amp_probe_advise(amp_probe_comparison *c)
{
    int i = c->first_beyond;
    if (i >= 0 && c->runs[AMP_FP16].ran)
        advise(c, "fp16: layer %d [%s] has numbers beyond 65504 (its largest output is %.2g): keep it and "
               "the layers that read it in fp32 (amp=0), or use bf16.", i, c->network.layers[i].type,
               c->runs[AMP_FP16].whole[i][AMP_TRACE_OUTPUT].largest);
    if (c->runs[AMP_FP16].ran && c->runs[AMP_FP16].scale < AMP_LEAST_SCALE)
        advise(c, "fp16: deltas overflow even at the smallest loss scale of a training (%g): use bf16.",
               (double)AMP_LEAST_SCALE);
    advise_layers(c, AMP_BF16);
    advise_layers(c, AMP_FP16);
    if (c->data && !c->source.weights)
        advise(c, "These are random weights: use trained weights to see what half precision loses in a "
                  "training.");
}
