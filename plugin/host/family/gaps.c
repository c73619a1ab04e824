/* See gaps.h. */
#include "gaps.h"

#include <math.h>
#include <string.h>

#include "../darknet/own.h"
#include "activations.h"
#include "convolutional_layer.h"

/* Smaller inputs of the logistic function are replaced by LEAST_LOGIT, because in Darknet's build the
 * function gives NaN below -88.7 (gaps.h). The results stay right: at -88 and below they are subnormal, which
 * that build treats as 0. NaN and inf are not replaced, so that AMP finds them. */
static const float LEAST_LOGIT = -88;

void amp_gap_prepare(layer *l)
{
    size_t count = (size_t)l->outputs * (size_t)l->batch;
    if (l->type != CONVOLUTIONAL || !l->batch_normalize) return;
    amp_gap_own_buffer(&l->mean, (size_t)l->n);
    amp_gap_own_buffer(&l->variance, (size_t)l->n);
    amp_gap_own_buffer(&l->x, count);
    amp_gap_own_buffer(&l->x_norm, count);
}

size_t amp_gap_input_count(const network *net, int index)
{
    return (size_t)(index ? net->layers[index - 1].outputs : net->inputs) * (size_t)net->batch;
}

/* Binarizes as on a GPU: each weight becomes plus or minus the mean magnitude of its filter's weights, and
 * each number of the input becomes 1 or -1 (in binary_input). */
static void binarize(layer *l, const float *input, size_t count, float *binary_input)
{
    binarize_weights(l->weights, l->n, l->nweights / l->n, l->binary_weights);
    for (size_t i = 0; i < count; i++) binary_input[i] = input[i] > 0 ? 1 : -1;
    l->weights = l->binary_weights;
    l->xnor = 0;
}

void amp_gap_copy_inner(layer *l, layer inner[AMP_GAP_INNER])
{
    layer **const places[AMP_GAP_INNER] = { &l->input_layer, &l->self_layer, &l->output_layer };
    for (int i = 0; l->type == CRNN && i < AMP_GAP_INNER; i++) {
        inner[i] = **places[i];
        *places[i] = &inner[i];
    }
}

void amp_gap_forward(layer l, network_state state)
{
    size_t count = amp_gap_input_count(&state.net, state.index);
    float *copy = NULL;
    int squashes = l.type == YOLO || l.type == GAUSSIAN_YOLO;
    if (l.type == CONVOLUTIONAL && l.xnor && (!l.align_bit_weights || state.train)) {
        copy = amp_gap_scratch(count);
        binarize(&l, state.input, count, copy);
        state.input = copy;
    }
    if (squashes || (l.type == COST && l.cost_type == MASKED && state.truth)) {
        copy = amp_gap_scratch(count);
        memcpy(copy, state.input, count * sizeof *copy);
        state.input = copy;
    }
    for (size_t i = 0; squashes && i < count; i++)
        if (copy[i] < LEAST_LOGIT && copy[i] > -INFINITY) copy[i] = LEAST_LOGIT;
    layer inner[AMP_GAP_INNER];
    amp_gap_copy_inner(&l, inner);
    AMP_RUN(l.forward, l, state);
    size_t deltas = squashes && l.delta && l.delta_normalizer != 1 ? (size_t)l.outputs * (size_t)l.batch : 0;
    for (size_t i = 0; i < deltas; i++) l.delta[i] *= l.delta_normalizer;
    free(copy);
}

/* ---- a shortcut with weights ---- */

/* A shortcut with weights computes y = sum over k of p[k] x[k]. x[0] is the output of the layer before, the
 * others are the outputs that from= names. w[k * groups + g] is the weight of input k in group g; groups is 1
 * or the number of channels. weights_normalization= (required here) says whether f(w) is relu(w) or
 * exp(w - the largest w). In each group, with s = .0001 + sum over k of f(w[k]):
 *
 * p[k] = f(w[k]) / s        slope[k] = f'(w[k]) / s        dy/dw[k] = slope[k] (x[k] - y) */
typedef struct shares { int inputs, groups; float *p, *slope; } shares; /* p and slope are laid out like w */

static shares shares_of(const layer *l)
{
    const float epsilon = .0001f; /* as in Darknet's forward */
    shares m = { .inputs = l->n + 1, .groups = l->nweights / (l->n + 1) };
    m.p = amp_gap_scratch(2 * (size_t)l->nweights);
    m.slope = m.p + l->nweights;
    for (int g = 0; g < m.groups; g++) {
        float largest = -INFINITY, sum = epsilon;
        for (int at = g; at < l->nweights; at += m.groups) largest = fmaxf(largest, l->weights[at]);
        for (int at = g; at < l->nweights; at += m.groups) {
            float w = l->weights[at];
            int is_relu = l->weights_normalization == RELU_NORMALIZATION;
            m.p[at] = is_relu ? fmaxf(w, 0) : expf(w - largest);
            m.slope[at] = is_relu ? w > 0 : m.p[at];
            sum += m.p[at];
        }
        for (int at = g; at < l->nweights; at += m.groups) m.p[at] /= sum, m.slope[at] /= sum;
    }
    return m;
}

/* The backward of one group in one image. An input shorter than the output counts as 0 beyond its end. */
static void share_out(const layer *l, const shares *m, int image, int g, const network_state *state)
{
    int each = l->outputs / m->groups;
    double sums[m->inputs];
    for (int k = 0; k < m->inputs; k++) sums[k] = 0;
    for (int i = g * each; i < (g + 1) * each; i++) {
        float d = l->delta[(size_t)image * l->outputs + i], x[m->inputs], y = 0;
        for (int k = 0; k < m->inputs; k++) {
            int length = k ? l->input_sizes[k - 1] : l->outputs;
            size_t at = (size_t)image * length + i;
            float *delta = k ? l->layers_delta[k - 1] : state->delta, p = m->p[k * m->groups + g];
            x[k] = i >= length ? 0 : k ? l->layers_output[k - 1][at] : state->input[at];
            y += p * x[k];
            if (i < length && delta) delta[at] += p * d;
        }
        for (int k = 0; k < m->inputs; k++) sums[k] += (double)d * (x[k] - y);
    }
    for (int k = 0; l->weight_updates && k < m->inputs; k++) {
        int at = k * m->groups + g;
        l->weight_updates[at] += (float)(m->slope[at] * sums[k]);
    }
}

static void backward_weighted_shortcut(layer l, network_state state)
{
    int count = l.outputs * l.batch;
    if (l.activation == SWISH) gradient_array_swish(l.output, count, l.activation_input, l.delta);
    else if (l.activation == MISH) gradient_array_mish(count, l.activation_input, l.delta);
    else gradient_array(l.output, count, l.activation, l.delta);
    shares m = shares_of(&l);
    for (int image = 0; image < l.batch; image++)
        for (int g = 0; g < m.groups; g++) share_out(&l, &m, image, g, &state);
    free(m.p);
}

/* ---- crnn ---- */

/* Returns the index, in an NCHW array, of a channel's element i, where i counts over all images. */
static size_t place_of(size_t i, size_t channel, size_t channels, size_t pixels)
{
    return (i / pixels * channels + channel) * pixels + i % pixels;
}

/* Computes the mean and variance (over N-1, as variance_cpu) of one time step of a crnn's inner layer,
 * because Darknet's forward leaves only those of the final step. Also adds the gradients of the biases, which
 * Darknet's backward does not compute. */
static void complete_batchnorm(const layer *l)
{
    size_t pixels = (size_t)l->out_w * (size_t)l->out_h, channels = (size_t)l->out_c,
           count = (size_t)l->batch * pixels;
    float *delta = amp_gap_scratch(count * channels);
    memcpy(delta, l->delta, count * channels * sizeof *delta);
    gradient_array(l->output, (int)(count * channels), l->activation, delta);
    for (size_t c = 0; c < channels; c++) {
        double sum = 0, squares = 0, gradient = 0;
        for (size_t i = 0; i < count; i++) {
            sum += l->x[place_of(i, c, channels, pixels)];
            gradient += delta[place_of(i, c, channels, pixels)];
        }
        double mean = sum / (double)count;
        for (size_t i = 0; i < count; i++) squares += pow(l->x[place_of(i, c, channels, pixels)] - mean, 2);
        l->mean[c] = (float)mean;
        l->variance[c] = (float)(squares / ((double)count - 1));
        l->bias_updates[c] += (float)gradient;
    }
    free(delta);
}

/* Runs the backward of an inner layer, and adds the delta of its input to the `count` floats of `delta`,
 * which Darknet's own backward would overwrite. `delta` may be NULL. */
static void backward_inner(layer l, network_state state, float *input, float *delta, size_t count)
{
    float *part = delta ? amp_gap_scratch(count) : NULL;
    state.input = input;
    state.delta = part;
    if (l.batch_normalize) complete_batchnorm(&l);
    AMP_RUN(l.backward, l, state);
    for (size_t i = 0; delta && i < count; i++) delta[i] += part[i];
    free(part);
}

/* A crnn computes, with s[t] for the state before step t:
 *
 *     s[0] = 0        s[t + 1] = input(x[t]) + self(s[t]), plus s[t] with shortcut=1
 *     y[t] = output(s[t + 1])
 *
 * l.state holds s[0] to s[steps]. */
static void backward_crnn(layer l, network_state state)
{
    size_t n = (size_t)l.hidden * (size_t)l.batch, inputs = (size_t)l.inputs * (size_t)l.batch;
    network_state s = { .train = state.train, .workspace = state.workspace, .net = state.net };
    for (int t = l.steps - 1; t >= 0; t--) {
        layer input = amp_gap_at_step(l.input_layer, t), self = amp_gap_at_step(l.self_layer, t);
        float *before = l.state + (size_t)t * n, *earlier = t ? self.delta - n : NULL;
        /* self.delta must become the delta of the state after step t. So far it holds the part from step
         * t + 1; the output layer's backward adds the other part. */
        backward_inner(amp_gap_at_step(l.output_layer, t), s, before + n, self.delta, n);
        memcpy(input.delta, self.delta, n * sizeof *input.delta);
        for (size_t i = 0; l.shortcut && earlier && i < n; i++) earlier[i] += self.delta[i];
        backward_inner(self, s, before, earlier, n);
        size_t at = (size_t)t * inputs;
        backward_inner(input, s, state.input + at, state.delta ? state.delta + at : NULL, inputs);
    }
}

/* ---- any layer ---- */

void amp_gap_backward(layer l, network_state state)
{
    size_t count = amp_gap_input_count(&state.net, state.index);
    float *sum = state.delta, *part = NULL;
    /* A route adds to the deltas of the layers that it joins, and ignores state.delta. */
    if (l.type != ROUTE) state.delta = part = amp_gap_scratch(count);
    if (l.type == SHORTCUT && l.nweights) backward_weighted_shortcut(l, state);
    else if (l.type == CRNN) backward_crnn(l, state);
    else AMP_RUN(l.backward, l, state);
    for (size_t i = 0; part && sum && i < count; i++) sum[i] += part[i];
    free(part);
}

int amp_gap_overwrites_delta(const layer *l, int on_gpu)
{
    switch (l->type) {
    case NORMALIZATION: case REORG: return 1;
    case REGION: return on_gpu;
    case CONVOLUTIONAL: case BATCHNORM: case ACTIVE: return !on_gpu;
    default: return 0;
    }
}
