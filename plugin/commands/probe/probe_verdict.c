/* What a comparison means, in sentences.
 *
 * Whether AMP's fp32 is Darknet's is judged by what each layer adds to what it was given, and not by how far
 * the results of the whole pass lie apart: in a network of random weights differences of the last digit grow
 * to 10 % of a gradient within a hundred layers.
 *
 * How much rounding explains, in units roundoff (u = 2^-24):
 *  - A layer without long sums differs by up to 40 u (docs/results), and 256 are allowed.
 *  - A sum of k products in fp32 is off by at most 8 sqrt(k) u times the sum of their sizes, except with a
 *    probability below 1e-13 k (Higham and Mary, "A new approach to probabilistic rounding error analysis",
 *    2019, theorem 2.4 with lambda = 8). k are a layer's inputs for each output, and the other way round.
 *  - Darknet's CPU code adds up all n numbers of a channel one after the other, for batch norm's statistics,
 *    which go into all that the layer makes, and for gradients. These errors add up rather than cancel: up to
 *    n/8 were measured, and n in gradients; n/2 and 2n are allowed. On a GPU its threads add up a 256th of
 *    the numbers each, at most.
 *  - What a layer makes may be small beside the terms that it is made of, as a delta behind batch norm of few
 *    numbers. So all this is multiplied by the layer's condition: how many times as much its result moves as
 *    what it was given, as measured (find_conditions in probe_compare.c). A sum computed in fp32 is the exact
 *    one of terms moved by rounding (Higham, "Accuracy and stability of numerical algorithms", 3.1).
 *  - Where rounding moves an output across the kink of leaky or relu, its delta gets another slope
 *    (amp_probe_kinked). Darknet computes the slopes of logistic, tanh and the like from their outputs, AMP
 *    from their inputs: near a limit of the activation Darknet's are off by the rounding of 1 - y.
 *
 * Half precision: 32 times the rounding of one number (2^-9 in bf16, 2^-12 in fp16) for outputs and
 * statistics, of which up to 8 were measured; and 128 times bf16's for deltas and gradients, in both. Batch
 * norm's backward takes the mean off a delta, and what is left has lost digits (37 roundings, on the doubles
 * of a GPU, which stores it in 16 bits). In fp16 deltas may be below its smallest numbers, too: underflow.
 * The layer's condition counts here as well. A max pool is left out: after rounding neighbours are equal,
 * another one of them is chosen, and a delta goes elsewhere. */
#include "probe_compare.h"

#include <math.h>

#include "../../host/program/failure.h"

#define ROUNDOFF 0x1p-24
#define BF16_ROUNDING 0x1p-9
#define FP16_ROUNDING 0x1p-12
#define FP16_LEAST 0x1p-24
#define SAME_TIME 5 /* % */
#define KINK 4
enum { ALLOWED = 256, LAMBDA = 8, PART_OF_A_GPU_THREAD = 256, FAULTS_TOLD = 4, LOSERS_TOLD = 3 };

const char *const amp_trace_names[AMP_TRACE_KINDS] = {
    "output", "delta", "weights' gradient", "biases' gradient", "scales' gradient", "means of the batch",
    "variances of the batch" };

#define say(c, ...) amp_lines_add(&(c)->verdict, __VA_ARGS__)

/* ---- lengths of sums ---- */

typedef double length_of(const amp_probe_comparison *, int layer);

/* Of a layer's own results; of a delta the longest in the layers that give it. */
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
    double numbers = (double)d->output.n * d->output.h * d->output.w;
    return c->on_gpu ? numbers / PART_OF_A_GPU_THREAD : numbers;
}

static double weights_of(const amp_layer_desc *d)
{
    double weights = 0;
    for (int k = 0; k < d->param_count; k++) weights += d->params[k].decays ? (double)d->params[k].count : 0;
    return weights;
}

/* The products that make an output, and a delta: weights are shared out among channels. */
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

/* How far rounding to fp16's smallest numbers, steps of 2^-24 over the loss scale, may move a layer's
 * delta. */
static double underflow(const amp_probe_comparison *c, int layer)
{
    const amp_probe_run *r = &c->runs[AMP_FP16];
    double size = sqrt(r->added[layer][AMP_TRACE_DELTA].yy);
    double step = FP16_LEAST / 2 / (double)r->scale;
    return size > 0 ? step * sqrt((double)amp_shape_count(c->network.layers[layer].output)) / size : 0;
}

static int is_gradient(amp_trace_kind kind)
{
    return kind == AMP_TRACE_WEIGHTS || kind == AMP_TRACE_BIASES || kind == AMP_TRACE_SCALES;
}

/* What numbers that rounding has moved across an activation's kink put into a gradient, or into a delta that
 * layers give: as much as their own deltas are of all, and batch norm, which takes the mean off, makes it a
 * few times that. */
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
                + amp_probe_kinked(&c->network, c->runs[AMP_FP32].added, layer, kind);
    else if (is_gradient(kind) || kind == AMP_TRACE_DELTA)
        limit = 128 * BF16_ROUNDING
                + (dtype == AMP_FP16 ? 128 * longest(c, layer, kind, underflow, underflow) : 0);
    else limit = 32 * (dtype == AMP_BF16 ? BF16_ROUNDING : FP16_ROUNDING);
    const amp_conditions *of = dtype == AMP_FP32 ? c->conditions : c->conditions_of_half;
    return limit * (of ? fmax(1, of[layer][kind]) : 1); /* none: stock does not run */
}

/* Whether nothing can be said of this tensor. */
static int is_excused(const amp_probe_comparison *c, amp_dtype dtype, int layer, amp_trace_kind kind)
{
    if (dtype == AMP_FP32) return !c->stock_runs || c->excused[layer][kind];
    return c->undefined[layer][kind]
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

/* "layer 3 [convolutional], output"; a delta's fault is in the layers that give it. */
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
    amp_append(text, TEXT, ", the delta that it gives to layer %d", f->layer);
    return text;
}

const char *amp_probe_fault_text(const amp_probe_comparison *c, const amp_probe_fault *f,
                                 char text[AMP_FAULT_TEXT])
{
    char place[TEXT];
    place_of(c, f, place);
    if (isinf(f->error)) snprintf(text, AMP_FAULT_TEXT, "%s: inf or NaN", place);
    else
        snprintf(text, AMP_FAULT_TEXT, "%s: off by %.2g, where rounding explains %.2g", place, f->error,
                 f->limit);
    return text;
}

static void say_faults(amp_probe_comparison *c, amp_dtype dtype)
{
    char text[AMP_FAULT_TEXT];
    const amp_probe_run *r = &c->runs[dtype];
    for (int k = 0; k < r->fault_count && k < FAULTS_TOLD; k++)
        say(c, "%s: %s.", amp_dtype_name(dtype), amp_probe_fault_text(c, &r->faults[k], text));
}

static void judge_fp32(amp_probe_comparison *c)
{
    const amp_probe_run *r = &c->runs[AMP_FP32];
    char place[TEXT];
    if (r->fault_count)
        say(c, "AMP's fp32 is NOT Darknet's: %d tensor%s further off than rounding explains, given the "
            "same numbers.", r->fault_count, r->fault_count == 1 ? " is" : "s are");
    else if (r->nearest.layer < 0)
        say(c, "AMP's fp32 cannot be compared with Darknet's: see below.");
    else
        say(c, "AMP's fp32 is Darknet's: given the same numbers, no layer is further off than rounding "
            "explains; nearest to that is %s: %.2g of %.2g.", place_of(c, &r->nearest, place),
            r->nearest.error, r->nearest.limit);
    say_faults(c, AMP_FP32);
    say(c, "From the image on, the losses are %.7g and Darknet's %.7g, and the gradients differ by %.2g "
        "(cosine %.7f): what each layer adds grows in those behind it.", r->loss, c->stock_loss, r->error,
        r->cosine);
}

amp_status amp_probe_refuse(const amp_probe_comparison *c, amp_error *error)
{
    char text[AMP_FAULT_TEXT];
    return amp_fail(error, AMP_DIVERGED, "AMP's fp32 is not Darknet's: %s; please report it with what is "
                    "printed above and `darknet amp version`",
                    amp_probe_fault_text(c, &c->runs[AMP_FP32].faults[0], text));
}

/* ---- half ---- */

static const char *plural(int count) { return count == 1 ? "" : "s"; }

static void name_losers(const amp_probe_comparison *c, const amp_probe_run *r, int count, char text[TEXT])
{
    text[0] = 0;
    for (int k = 0; k < count && k < r->order_count; k++) {
        const char *separator = !k ? "" : k + 1 == count || k + 1 == r->order_count ? " and " : ", ";
        amp_append(text, TEXT, "%s%d [%s]", separator, r->order[k], c->network.layers[r->order[k]].type);
    }
}

static void number_text(double number, const char *format, char text[32])
{
    if (!isfinite(number)) snprintf(text, 32, "not finite");
    else snprintf(text, 32, format, number);
}

/* What the clock cannot tell is called the same. */
static const char *cost_of(const amp_probe_comparison *c, const amp_probe_run *r, const amp_keep_trial *t,
                           char text[80])
{
    double more = 100 * (t->seconds / r->seconds - 1);
    const char *clock = c->on_gpu ? "time" : "processor time";
    if (fabs(more) < SAME_TIME) snprintf(text, 80, "for about as much %s of a pass", clock);
    else snprintf(text, 80, "for %.0f %% %s %s of a pass", fabs(more), more < 0 ? "less" : "more", clock);
    return text;
}

static void judge_trials(amp_probe_comparison *c, const char *dtype, const amp_probe_run *r)
{
    char layers[TEXT], from[32], to[32], cost[80];
    if (!r->trial_count) return;
    if (r->error <= AMP_PROBE_LITTLE) {
        say(c, "%s: an error of the gradient below %g %% is no more than other images would make: nothing "
            "needs to be kept in fp32.", dtype, 100 * AMP_PROBE_LITTLE);
        return;
    }
    const amp_keep_trial *t = &r->trials[r->best < 0 ? r->trial_count - 1 : r->best];
    name_losers(c, r, t->count, layers);
    if (r->best < 0) {
        say(c, "%s: keeping layers in fp32 does not halve the gradient's error: with %d of them, %s, it "
            "is %.2g. Rounding is spread over all layers.", dtype, t->count, layers, t->error);
        return;
    }
    number_text(r->cosine, "%.6f", from);
    number_text(t->cosine, "%.6f", to);
    say(c, "%s: with layer%s %s in fp32 (amp=0) the gradient's cosine goes from %s to %s, %s.", dtype,
        plural(t->count), layers, from, to, cost_of(c, r, t, cost));
}

static void judge_half(amp_probe_comparison *c, amp_dtype dtype)
{
    const char *name = amp_dtype_name(dtype);
    const amp_probe_run *r = &c->runs[dtype];
    char losers[TEXT], cosine[32], error[32];
    if (!r->ran) {
        say(c, "%s: %s.", name, c->machine.note[dtype]);
        return;
    }
    name_losers(c, r, LOSERS_TOLD, losers);
    number_text(r->cosine, "%.6f", cosine);
    number_text(r->error, "%.2g", error);
    say(c, "%s: the cosine of its gradient and fp32's is %s (error %s), at a loss scale of %g. Layers "
        "that add most: %s.", name, cosine, error, (double)r->scale, r->order_count ? losers : "none "
        "computes in it");
    say_faults(c, dtype);
    judge_trials(c, name, r);
}

void amp_probe_judge(amp_probe_comparison *c)
{
    if (c->stock_runs) judge_fp32(c);
    for (size_t i = 0; i < c->stock_faults.count; i++) say(c, "%s", c->stock_faults.line[i]);
    judge_half(c, AMP_BF16);
    judge_half(c, AMP_FP16);
    if (!c->weights)
        say(c, "These are random weights: what half precision loses in a training is told by weights that "
            "have learnt.");
}
