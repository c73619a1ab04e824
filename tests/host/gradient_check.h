/*
 * Why this file exists: the tests of Darknet's fp32 layers ask one question, is backward the gradient of
 * forward?, and differ only in the layer and in the loss. Here are one layer in a network of its own (struct
 * subject), the slope of a loss by finite differences, and the comparison.
 *
 * Darknet's `delta` and `*_updates` hold minus the gradient; so does "expected" everywhere here.
 */
#ifndef GRADIENT_CHECK_H
#define GRADIENT_CHECK_H

#include <fcntl.h>
#include <math.h>
#include <unistd.h>

#include "finite_differences.h"
#include "testing.h"

#include "host/pjreddie/gaps.h"

/* A layer, the network it believes to be in, and what its loss is made of. */
struct subject {
    layer l;
    network net;
    size_t seen;
    int inputs, outputs;      /* of the whole batch, all steps */
    float *coefficient;       /* loss = sum of coefficient * output, where the layer is no loss itself */
    float *state[2];          /* what a recurrent layer carries from batch to batch, ... */
    float *first_state[2];    /* ... and what it is before each forward of this test */
    int states;
};

static inline float *zeros(size_t n)
{
    float *x = calloc(n ? n : 1, sizeof(float));
    assert_non_null(x);
    return x;
}

static inline void randomise(float *x, size_t n, float low, float high)
{
    for (size_t i = 0; i < n; i++) x[i] = uniform(low, high);
}

/* `images` is the batch times the steps. Workspace stays NULL unless the layer says that it needs one. */
static inline struct subject subject_of(layer l, int images)
{
    struct subject s = {.l = l};
    amp_gap_prepare(&s.l);
    s.inputs = images*l.inputs;
    s.outputs = images*l.outputs;
    s.coefficient = zeros(s.outputs);
    randomise(s.coefficient, s.outputs, -1, 1);
    s.net.input = zeros(s.inputs);
    randomise(s.net.input, s.inputs, -1, 1);
    s.net.delta = zeros(s.inputs);
    s.net.train = 1;
    s.net.batch = images;
    s.net.seen = &s.seen;
    if (l.workspace_size && l.type != LOCAL) s.net.workspace = zeros(l.workspace_size/sizeof(float) + 1);
    return s;
}

static inline void carries(struct subject *s, float *state, int n)
{
    s->state[s->states] = state;
    s->first_state[s->states] = zeros(n);
    randomise(s->first_state[s->states], n, -1, 1);
    ++s->states;
}

/* Detection losses print a line per forward, and finite differences take hundreds: those go to /dev/null. */
static inline int mute_stdout(void)
{
    fflush(stdout);
    int original = dup(STDOUT_FILENO), null = open("/dev/null", O_WRONLY);
    assert_true(original >= 0 && null >= 0);
    dup2(null, STDOUT_FILENO);
    close(null);
    return original;
}

static inline void restore_stdout(int original)
{
    fflush(stdout);
    dup2(original, STDOUT_FILENO);
    close(original);
}

static inline void run_forward(struct subject *s)
{
    int carried = s->l.outputs*s->l.batch;
    for (int i = 0; i < s->states; i++) memcpy(s->state[i], s->first_state[i], carried*sizeof(float));
    s->net.seen = &s->seen;
    if (s->l.delta) memset(s->l.delta, 0, s->outputs*sizeof(float));
    int original = mute_stdout();
    amp_gap_forward(s->l, s->net);
    restore_stdout(original);
}

static inline double weighted_output(struct subject *s)
{
    double loss = 0;
    run_forward(s);
    for (int i = 0; i < s->outputs; i++) loss += (double)s->coefficient[i]*s->l.output[i];
    return loss;
}

/* Forward and backward under weighted_output's loss. */
static inline void run_both(struct subject *s)
{
    run_forward(s);
    for (int i = 0; i < s->outputs; i++) s->l.delta[i] = -s->coefficient[i];
    amp_gap_backward(s->l, s->net);
}

static inline double slope(struct subject *s, loss_of loss, float *x)
{
    return slope_at(s, loss, x, 1.f/32);
}

static inline void assert_close(const char *what, const float *x, const float *expected, int n,
                                double tolerance)
{
    double size = 1e-3;
    for (int i = 0; i < n; i++) if (fabs(expected[i]) > size) size = fabs(expected[i]);
    for (int i = 0; i < n; i++){
        double error = fabs((double)x[i] - expected[i])/size;
        if (!(error <= tolerance)) fail_msg("%s[%d] is %g, expected %g", what, i, x[i], expected[i]);
    }
}

/* `minus_gradient` against the slopes of `loss` along x, times `factor`. Changes nothing that
 * backward has written. */
static inline void assert_gradient(struct subject *s, loss_of loss, const char *what, float *x, int n,
    const float *minus_gradient, double factor)
{
    float *got = zeros(n), *expected = zeros(n);
    memcpy(got, minus_gradient, n*sizeof(float));
    for (int i = 0; i < n; i++) expected[i] = -factor*slope(s, loss, x + i);
    assert_close(what, got, expected, n, 1e-3);
    free(got);
    free(expected);
}

static inline void assert_input_gradient(struct subject *s, loss_of loss, double factor)
{
    assert_gradient(s, loss, "net.delta", s->net.input, s->inputs, s->net.delta, factor);
}

/* Weights and biases of a layer or sub-layer, under weighted_output. */
static inline void assert_parameter_gradients(struct subject *s, layer *sub, const char *name, int weights)
{
    char what[64];
    snprintf(what, sizeof what, "%s.weight_updates", name);
    assert_gradient(s, weighted_output, what, sub->weights, weights, sub->weight_updates, 1);
    snprintf(what, sizeof what, "%s.bias_updates", name);
    int biases = sub->nbiases ? sub->nbiases : sub->outputs;
    assert_gradient(s, weighted_output, what, sub->biases, biases, sub->bias_updates, 1);
}

void free_layer(layer l);

static inline void free_sub_layers(layer *l)
{
    layer *subs[] = {l->input_layer, l->self_layer, l->output_layer, l->uz, l->wz, l->ur, l->wr, l->uh, l->wh,
        l->uf, l->wf, l->ui, l->wi, l->ug, l->wg, l->uo, l->wo};
    if (l->output_layer) l->output = l->delta = NULL; /* the output layer's own */
    for (size_t i = 0; i < sizeof subs/sizeof *subs; i++){
        if (!subs[i]) continue;
        free_layer(*subs[i]);
        free(subs[i]);
    }
}

static inline void release(struct subject *s)
{
    layer *l = &s->l;
    free_sub_layers(l);
    /* What free_layer forgets. */
    float *forgotten[] = {l->loss, l->prev_state_cpu, l->prev_cell_cpu, l->cell_cpu, l->f_cpu, l->i_cpu,
        l->g_cpu, l->o_cpu, l->c_cpu, l->temp_cpu, l->temp2_cpu, l->temp3_cpu, l->dc_cpu, l->dh_cpu};
    for (size_t i = 0; i < sizeof forgotten/sizeof *forgotten; i++) free(forgotten[i]);
    for (int i = 0; l->sums && i < 90; i++) free(l->sums[i]);
    free(l->sums);
    free(l->counts);
    free(l->mask);
    free_layer(*l);
    for (int i = 0; i < s->states; i++) free(s->first_state[i]);
    free(s->coefficient);
    free(s->net.input);
    free(s->net.delta);
    free(s->net.truth);
    free(s->net.workspace);
}

#endif
