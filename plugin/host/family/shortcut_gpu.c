/* Computes, in fp32 on a GPU, shortcuts that have weights or several inputs of different shapes: see gaps.h.
 * Uses only Darknet's kernels, and computes the same as gaps.c. */
#include "gaps.h"

#ifdef GPU

#include "activations.h"
#include "blas.h"

/* Parts of the workspace. `x` has the output's size and holds an input, or a part of a delta. `p`, `slope`
 * (see gaps.c) and `dots` (sums of delta times input) are laid out like the weights: all groups of the first
 * input, then of the second, and so on. `sum` and `other` have one element per group. */
typedef struct shares { int inputs, groups, each; float *x, *p, *slope, *dots, *sum, *other; } shares;

size_t amp_gap_shortcut_room(const layer *l)
{
    /* the arrays `sum` and `other` together need at most nweights floats */
    return (size_t)l->outputs * (size_t)l->batch + 4 * (size_t)l->nweights;
}

/* With relu: p = max(w, 0), slope = 1 where w > 0 and else 0, m->sum = 1 / (.0001 + sum of p). */
static void share_by_relu(const layer *l, const shares *m)
{
    copy_ongpu(l->nweights, l->weights_gpu, 1, m->p, 1);
    activate_array_ongpu(m->p, l->nweights, RELU);
    const_ongpu(l->nweights, 1, m->slope, 1);
    gradient_array_ongpu(m->p, l->nweights, RELU, m->slope);
    const_ongpu(m->groups, .0001f, m->sum, 1);
    for (int k = 0; k < m->inputs; k++) axpy_ongpu(m->groups, 1, m->p + k * m->groups, 1, m->sum, 1);
    pow_ongpu(m->groups, -1, m->sum, 1, m->sum, 1);
}

/* Sets m->p and m->sum such that input k's share, e / (E + .0001), is p * m->sum. Here e = exp(w - the
 * largest w), and E is the sum of all e. Darknet's softmax computes p = e / E. The largest p is 1/E, so
 * m->sum = 1 / (1 + .0001 * largest p). The largest p is found with max(a, b) = a + relu(b - a). */
static void share_by_softmax(const layer *l, const shares *m)
{
    int groups = m->groups;
    softmax_gpu_new_api(l->weights_gpu, m->inputs, 1, l->nweights, groups, 1, groups, 1, m->p);
    copy_ongpu(groups, m->p, 1, m->sum, 1);
    for (int k = 1; k < m->inputs; k++) {
        copy_ongpu(groups, m->p + k * groups, 1, m->other, 1);
        axpy_ongpu(groups, -1, m->sum, 1, m->other, 1);
        activate_array_ongpu(m->other, groups, RELU);
        axpy_ongpu(groups, 1, m->other, 1, m->sum, 1);
    }
    scal_add_ongpu(groups, .0001f, 1, m->sum, 1);
    pow_ongpu(groups, -1, m->sum, 1, m->sum, 1);
    copy_ongpu(l->nweights, m->p, 1, m->slope, 1);
}

static shares shares_of(const layer *l, float *room)
{
    shares m = { .inputs = l->n + 1, .groups = l->nweights / (l->n + 1), .x = room };
    m.p = m.x + (size_t)l->outputs * (size_t)l->batch;
    m.slope = m.p + l->nweights;
    m.dots = m.slope + l->nweights;
    m.sum = m.dots + l->nweights;
    m.other = m.sum + m.groups;
    if (!m.groups) return m;
    m.each = l->outputs / m.groups;
    if (l->weights_normalization == RELU_NORMALIZATION) share_by_relu(l, &m);
    else share_by_softmax(l, &m);
    for (int k = 0; k < m.inputs; k++) {
        mul_ongpu(m.groups, m.sum, 1, m.p + k * m.groups, 1);
        mul_ongpu(m.groups, m.sum, 1, m.slope + k * m.groups, 1);
    }
    return m;
}

/* The part of an input that is added to the output: `times` blocks of `count` floats, `step` floats apart in
 * the input. A block is the first part of an image, or all images if input and output are equally large. */
typedef struct common { int times, count; size_t step; } common;

static common common_of(const layer *l, int k)
{
    int length = k ? l->input_sizes[k - 1] : l->outputs;
    if (length == l->outputs) return (common){ 1, l->outputs * l->batch, 0 };
    return (common){ l->batch, length < l->outputs ? length : l->outputs, (size_t)length };
}

/* Copies input k to x, with zeros beyond its end. */
static void read_input(const layer *l, const shares *m, int k, float *input)
{
    common both = common_of(l, k);
    float *from = k ? l->layers_output[k - 1] : input;
    if (both.count < l->outputs) fill_ongpu(l->outputs * l->batch, 0, m->x, 1);
    for (int i = 0; i < both.times; i++)
        copy_ongpu(both.count, from + both.step * i, 1, m->x + (size_t)l->outputs * i, 1);
}

static void scale_by_share(const layer *l, const shares *m, int k)
{
    if (m->groups) scale_bias_gpu(m->x, m->p + k * m->groups, l->batch, m->groups, m->each);
}

void amp_gap_forward_shortcut_gpu(layer l, network_state state)
{
    int count = l.outputs * l.batch;
    shares m = shares_of(&l, state.workspace);
    fill_ongpu(count, 0, l.output_gpu, 1);
    for (int k = 0; k < m.inputs; k++) {
        read_input(&l, &m, k, state.input);
        scale_by_share(&l, &m, k);
        axpy_ongpu(count, 1, m.x, 1, l.output_gpu, 1);
    }
    if (l.activation == SWISH)
        activate_array_swish_ongpu(l.output_gpu, count, l.activation_input_gpu, l.output_gpu);
    else if (l.activation == MISH)
        activate_array_mish_ongpu(l.output_gpu, count, l.activation_input_gpu, l.output_gpu);
    else activate_array_ongpu(l.output_gpu, count, l.activation);
}

static void add_delta(const layer *l, const shares *m, int k, float *sum)
{
    common both = common_of(l, k);
    if (!sum) return;
    copy_ongpu(l->outputs * l->batch, l->delta_gpu, 1, m->x, 1);
    scale_by_share(l, m, k);
    for (int i = 0; i < both.times; i++)
        axpy_ongpu(both.count, 1, m->x + (size_t)l->outputs * i, 1, sum + both.step * i, 1);
}

/* Adds slope[k] * (dots[k] - sum over j of p[j] dots[j]) to the gradient of input k's weight, in each group.
 * This equals the sum of delta * slope[k] * (x[k] - y): see gaps.c. */
static void add_gradients(const layer *l, const shares *m)
{
    int groups = m->groups;
    fill_ongpu(groups, 0, m->sum, 1);
    for (int k = 0; k < m->inputs; k++) {
        copy_ongpu(groups, m->p + k * groups, 1, m->other, 1);
        mul_ongpu(groups, m->dots + k * groups, 1, m->other, 1);
        axpy_ongpu(groups, 1, m->other, 1, m->sum, 1);
    }
    for (int k = 0; k < m->inputs; k++) axpy_ongpu(groups, -1, m->sum, 1, m->dots + k * groups, 1);
    mul_ongpu(l->nweights, m->slope, 1, m->dots, 1);
    axpy_ongpu(l->nweights, 1, m->dots, 1, l->weight_updates_gpu, 1);
}

void amp_gap_backward_shortcut_gpu(layer l, network_state state)
{
    int count = l.outputs * l.batch;
    if (l.activation == SWISH)
        gradient_array_swish_ongpu(l.output_gpu, count, l.activation_input_gpu, l.delta_gpu);
    else if (l.activation == MISH) gradient_array_mish_ongpu(count, l.activation_input_gpu, l.delta_gpu);
    else gradient_array_ongpu(l.output_gpu, count, l.activation, l.delta_gpu);
    shares m = shares_of(&l, state.workspace);
    int learns = m.groups && l.weight_updates_gpu;
    if (learns) fill_ongpu(l.nweights, 0, m.dots, 1);
    for (int k = 0; k < m.inputs; k++) {
        if (learns) {
            read_input(&l, &m, k, state.input);
            backward_scale_gpu(m.x, l.delta_gpu, l.batch, m.groups, m.each, m.dots + k * m.groups);
        }
        add_delta(&l, &m, k, k ? l.layers_delta[k - 1] : state.delta);
    }
    if (learns) add_gradients(&l, &m);
}

#endif
