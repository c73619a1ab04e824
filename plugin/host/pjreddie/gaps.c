/* gaps.h lists what is wrong in stock Darknet's CPU layers. If stock's function (l.forward, l.backward) is
 * right, the layer runs with it, if necessary after it has got the buffers that it lacks. Otherwise the layer
 * runs with a function of our own, from this file or, for recurrent layers, from gaps_recurrent.c. */
#include "gaps.h"

#include "../darknet/own.h"

#include "activations.h"
#include "blas.h"
#include "iseg_layer.h"
#include "logistic_layer.h"
#include "region_layer.h"
#include "softmax_layer.h"
#include "utils.h"

#include <math.h>

/* Defined in lstm_layer.c; no header of Darknet declares it. */
void backward_lstm_layer(layer l, network state);

/* ---- region -------------------------------------------------------------------------------------------- */

/* The index of entry `entry` (w*h floats) of anchor `anchor` in image `b`. */
static size_t region_entry(const layer *l, int b, int anchor, int entry)
{
    return (size_t)b*l->outputs + (size_t)l->w*l->h*(anchor*(l->coords + l->classes + 1) + entry);
}

/* One softmax per pixel and group of the tree, like softmax_tree() in blas_kernels.cu. */
static void region_softmax_tree(const layer *l, float *x)
{
    const tree *hier = l->softmax_tree;
    const int spatial = l->w*l->h;
    for (int b = 0; b < l->batch; b++)
        for (int n = 0; n < l->n; n++)
            for (int g = 0; g < hier->groups; g++) {
                float *group = x + region_entry(l, b, n, l->coords + 1 + hier->group_offset[g]);
                softmax_cpu(group, hier->group_size[g], 1, 0, spatial, 1, spatial, 1, group);
            }
}

/* Stock's forward copies its input, applies some activations to the copy wrongly or not at all, and computes
 * the loss. So those activations are applied to a copy of the input before stock's forward. */
static void forward_region(layer l, network net)
{
    if (l.coords <= 4 && !l.softmax_tree) {
        forward_region_layer(l, net);
        return;
    }
    float *input = amp_gap_scratch((size_t)l.batch*l.inputs);
    copy_cpu(l.batch*l.inputs, net.input, 1, input, 1);
    if (l.coords > 4)
        for (int b = 0; b < l.batch; b++)
            for (int n = 0; n < l.n; n++)
                activate_array(input + region_entry(&l, b, n, 4), (l.coords - 4)*l.w*l.h, LOGISTIC);
    tree without_softmax;
    if (l.softmax_tree) {
        region_softmax_tree(&l, input);
        /* With groups = 0 stock's own tree softmax does nothing. Stock's loss does not read `groups`. */
        without_softmax = *l.softmax_tree;
        without_softmax.groups = 0;
        l.softmax_tree = &without_softmax;
    }
    net.input = input;
    forward_region_layer(l, net);
    free(input);
}

/* Multiplies the deltas of `entries` entries, starting at `index`, by the slope of the logistic function. */
static void through_logistic(const layer *l, size_t index, int entries)
{
    gradient_array(l->output + index, entries*l->w*l->h, LOGISTIC, l->delta + index);
}

static void backward_region(layer l, network net)
{
    for (int b = 0; b < l.batch; b++)
        for (int n = 0; n < l.n; n++) {
            through_logistic(&l, region_entry(&l, b, n, 0), 2);
            if (l.coords > 4) through_logistic(&l, region_entry(&l, b, n, 4), l.coords - 4);
            if (!l.background) through_logistic(&l, region_entry(&l, b, n, l.coords), 1);
        }
    axpy_cpu(l.batch*l.inputs, 1, l.delta, 1, net.delta, 1);
}

/* ---- softmax, logistic, cost, iseg, l2norm ------------------------------------------------------------- */

static void forward_softmax(layer l, network net)
{
    const int n = l.batch*l.inputs;
    const int loss = net.truth && !l.noloss;

    if (!l.spatial || l.softmax_tree) {
        forward_softmax_layer(l, net);
    } else {
        softmax_cpu(net.input, l.c, l.batch, l.inputs, l.w*l.h, 1, l.w*l.h, 1, l.output);
        if (loss) softmax_x_ent_cpu(n, l.output, net.truth, l.delta, l.loss);
    }
    if (!loss) return;
    if (l.softmax_tree)
        for (int i = 0; i < n; i++)
            if (net.truth[i] == SECRET_NUM) l.delta[i] = l.loss[i] = 0;
    l.cost[0] = sum_array(l.loss, n);
}

static void forward_logistic(layer l, network net)
{
    const int n = l.batch*l.inputs;
    forward_logistic_layer(l, net);
    if (!net.truth) return;
    for (int i = 0; i < n; i++) {
        double t = net.truth[i], p = l.output[i];
        l.loss[i] = -t*log(p + .0000001) - (1 - t)*log(1 - p + .0000001);
    }
    l.cost[0] = sum_array(l.loss, n);
}

static void wgan(int n, const float *pred, const float *truth, float *delta, float *error)
{
    for (int i = 0; i < n; i++) {
        error[i] = truth[i] != 0 ? -pred[i] : pred[i];
        delta[i] = truth[i] > 0 ? 1 : -1;
    }
}

/* Corrects smooth_l1_cpu, whose delta has the wrong sign where |diff| >= 1. */
static void smooth_l1(int n, float *pred, float *truth, float *delta, float *error)
{
    smooth_l1_cpu(n, pred, truth, delta, error);
    for (int i = 0; i < n; i++) {
        float diff = truth[i] - pred[i];
        if (fabsf(diff) >= 1) delta[i] = diff > 0 ? 1 : -1;
    }
}

/* net.truth decides which outputs are masked (SECRET_NUM) and which are background (0). The local `truth`,
 * which may be smoothed, is the target of the loss. */
static void forward_cost(layer l, network net)
{
    if (!net.truth) return;
    const int n = l.batch*l.inputs;
    const float *label = net.truth;
    float *truth = net.truth, *smoothed = NULL;
    if (l.smooth) {
        truth = smoothed = amp_gap_scratch(n);
        for (int i = 0; i < n; i++) truth[i] = label[i]*(1 - l.smooth) + l.smooth/l.inputs;
    }

    switch (l.cost_type) {
        case SMOOTH: smooth_l1(n, net.input, truth, l.delta, l.output); break;
        case L1:     l1_cpu(n, net.input, truth, l.delta, l.output); break;
        case WGAN:   wgan(n, net.input, truth, l.delta, l.output); break;
        default:     l2_cpu(n, net.input, truth, l.delta, l.output); break;
    }
    for (int i = 0; i < n; i++) {
        float scale = 1;
        if (l.cost_type == MASKED && label[i] == SECRET_NUM) scale = 0;
        if (l.cost_type == SEG && label[i] == 0) scale = l.noobject_scale;
        l.delta[i] *= scale;
        l.output[i] *= scale;
    }
    const float thresh = l.thresh/l.inputs;
    if (thresh)
        for (int i = 0; i < n; i++)
            if (l.delta[i]*l.delta[i] < thresh*thresh) l.delta[i] = 0;
    l.cost[0] = sum_array(l.output, n);
    free(smoothed);
}

/* In inference iseg runs without truth. Stock's function cannot do that. */
static void forward_iseg(layer l, network net)
{
    if (net.truth) {
        forward_iseg_layer(l, net);
        return;
    }
    copy_cpu(l.batch*l.outputs, net.input, 1, l.output, 1);
    for (int b = 0; b < l.batch; b++)
        activate_array(l.output + (size_t)b*l.outputs, l.classes*l.w*l.h, LOGISTIC);
}

/* Normalizes each pixel's vector over the channels to length 1; a zero vector stays 0. Fills l.scales. */
static void forward_l2norm(layer l, network net)
{
    const int spatial = l.out_w*l.out_h;
    copy_cpu(l.batch*l.outputs, net.input, 1, l.output, 1);
    for (int b = 0; b < l.batch; b++)
        for (int i = 0; i < spatial; i++) {
            float *x = l.output + (size_t)b*l.out_c*spatial + i;
            float *scales = l.scales + (x - l.output);
            float norm = sqrtf(dot_cpu(l.out_c, x, spatial, x, spatial));
            if (norm == 0) norm = 1;
            for (int f = 0; f < l.out_c; f++) {
                x[f*spatial] /= norm;
                scales[f*spatial] = (1 - x[f*spatial])/norm;
            }
        }
}

/* ---- stock's function, with the buffers it lacks ------------------------------------------------------- */

size_t amp_gap_workspace(const layer *l)
{
    if (l->type == LOCAL) return (size_t)l->out_h*l->out_w*l->size*l->size*l->c*sizeof(float);
    size_t most = l->input_layer->workspace_size;
    if (most < l->self_layer->workspace_size) most = l->self_layer->workspace_size;
    if (most < l->output_layer->workspace_size) most = l->output_layer->workspace_size;
    return most;
}

static void with_own_workspace(void (*run)(layer, network), layer l, network net)
{
    net.workspace = amp_gap_scratch(amp_gap_workspace(&l)/sizeof(float) + 1);
    run(l, net);
    free(net.workspace);
}

static void forward_xnor(layer l, network net)
{
    l.binary_input = amp_gap_scratch((size_t)l.batch*l.inputs);
    l.forward(l, net);
    free(l.binary_input);
}

/* Runs a backward that would overwrite net.delta, and adds its result to net.delta instead, because other
 * consumers may have added to it already. net.delta may be NULL. */
static void adding(layer l, network net)
{
    float *sum = net.delta;
    net.delta = amp_gap_scratch((size_t)l.batch*l.inputs);
    l.backward(l, net);
    if (sum) axpy_cpu(l.batch*l.inputs, 1, net.delta, 1, sum, 1);
    free(net.delta);
}

int amp_gap_works_without_delta(LAYER_TYPE type)
{
    switch (type) {
        case CONVOLUTIONAL: case DECONVOLUTIONAL: case CONNECTED: case LOCAL:
        case RNN: case GRU: case LSTM: case CRNN: case ROUTE:
            return 1;
        default:
            return 0;
    }
}

int amp_gap_overwrites_delta(const layer *l, int on_gpu)
{
    switch (l->type) {
        case NORMALIZATION: return 1;
        case CONVOLUTIONAL: return !on_gpu && l->size == 1;
        case ACTIVE: case BATCHNORM: case REORG: return !on_gpu;
        case UPSAMPLE: return !on_gpu && l->reverse;
        default: return 0;
    }
}

/* ---- any layer ----------------------------------------------------------------------------------------- */

void amp_gap_prepare(layer *l)
{
    const size_t n = (size_t)l->batch*l->outputs;
    if (l->type == LSTM) {
        l->backward = backward_lstm_layer;
        amp_gap_own_buffer(&l->delta, n*l->steps);
    }
    if (l->type == BATCHNORM) {
        amp_gap_own_buffer(&l->x, n);
        amp_gap_own_buffer(&l->x_norm, n);
        amp_gap_own_buffer(&l->mean_delta, l->out_c);
        amp_gap_own_buffer(&l->variance_delta, l->out_c);
    }
}

void amp_gap_forward(layer l, network net)
{
    switch (l.type) {
        case RNN:     amp_gap_forward_rnn(l, net); return;
        case CRNN:
        case LOCAL:   with_own_workspace(l.forward, l, net); return;
        case CONVOLUTIONAL:
            if (l.xnor) forward_xnor(l, net);
            else l.forward(l, net);
            return;
        case REGION:  forward_region(l, net); return;
        case SOFTMAX: forward_softmax(l, net); return;
        case LOGXENT: forward_logistic(l, net); return;
        case COST:    forward_cost(l, net); return;
        case ISEG:    forward_iseg(l, net); return;
        case L2NORM:  forward_l2norm(l, net); return;
        default:      l.forward(l, net); return;
    }
}

void amp_gap_backward(layer l, network net)
{
    if (!net.delta && l.type != BATCHNORM && !amp_gap_works_without_delta(l.type)) return;
    switch (l.type) {
        case RNN:    amp_gap_backward_rnn(l, net); return;
        case GRU:    amp_gap_backward_gru(l, net); return;
        case LSTM:
            fill_cpu(l.outputs*l.batch, 0, l.dc_cpu, 1);
            backward_lstm_layer(l, net);
            return;
        case CRNN:
        case LOCAL:  with_own_workspace(l.backward, l, net); return;
        case REGION: backward_region(l, net); return;
        default:
            if (l.type == BATCHNORM || (net.delta && amp_gap_overwrites_delta(&l, 0))) adding(l, net);
            else l.backward(l, net);
    }
}
