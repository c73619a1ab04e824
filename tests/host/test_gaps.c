/*
 * The layers without time and without a loss on the CPU: is backward the gradient of forward, does it add to
 * what other consumers sent, and does it do without net.delta? Where stock's backward is no gradient, the
 * test holds its formula. (Layers that AMP computes, and of which stock's own functions are right, are
 * test_parity's.)
 */
#include "gradient_check.h"

#include "activation_layer.h"
#include "avgpool_layer.h"
#include "batchnorm_layer.h"
#include "convolutional_layer.h"
#include "l2norm_layer.h"
#include "local_layer.h"
#include "maxpool_layer.h"
#include "normalization_layer.h"
#include "reorg_layer.h"
#include "route_layer.h"
#include "upsample_layer.h"

enum { BATCH = 2, SIDE = 4, CHANNELS = 4 };

static void shape(layer *l, int w, int h, int c)
{
    l->w = l->out_w = w;
    l->h = l->out_h = h;
    l->c = l->out_c = c;
}

/* ---- layers with parameters ---------------------------------------------------------------------------- */

TEST(local_has_the_gradient_with_and_without_net_delta_and_needs_no_workspace)
{
    for (int without = 0; without < 2; without++){
        layer l = make_local_layer(BATCH, SIDE, SIDE, 2, 3, 3, 1, 1, LOGISTIC);
        const int weights = 2*3*3*3*l.out_w*l.out_h;
        randomise(l.weights, weights, -.5, .5); /* stock's make fills the first location only */
        struct subject s = subject_of(l, BATCH);
        float *delta = s.net.delta;
        if (without) s.net.delta = NULL;
        assert_null(s.net.workspace);
        run_both(&s);
        if (!without) assert_input_gradient(&s, weighted_output, 1);
        assert_parameter_gradients(&s, &s.l, "local", weights);
        s.net.delta = delta;
        release(&s);
    }
}

/*
 * Stock makes no x, x_norm, mean_delta, variance_delta for it. Its backward is near the gradient, not
 * the gradient (n-1 in the variance, 1/n in its derivative), so with many values per channel the
 * tolerance is theirs: 1/n.
 */
TEST(batchnorm_runs_once_prepared)
{
    const int side = 16;
    struct subject s = subject_of(make_batchnorm_layer(BATCH, side, side, 2), BATCH);
    run_both(&s);
    float expected[64];
    const int n = 64;
    for (int i = 0; i < n; i++) expected[i] = -slope(&s, weighted_output, s.net.input + i);
    assert_close("net.delta", s.net.delta, expected, n, 2./(BATCH*side*side));
    assert_gradient(&s, weighted_output, "scale_updates", s.l.scales, 2, s.l.scale_updates, 1);
    assert_gradient(&s, weighted_output, "bias_updates", s.l.biases, 2, s.l.bias_updates, 1);
    release(&s);
}

/* ---- layers that only pass on -------------------------------------------------------------------------- */

/* Linear ones and smooth ones: the gradient, added to what is there, and nothing at all where
 * no delta is wanted. */
static void passes_the_gradient_on(layer l)
{
    struct subject s = subject_of(l, BATCH);
    for (int i = 0; i < s.inputs; i++) s.net.delta[i] = 100 + i;
    run_both(&s);
    for (int i = 0; i < s.inputs; i++) s.net.delta[i] -= 100 + i;
    assert_input_gradient(&s, weighted_output, 1);

    float *delta = s.net.delta;
    s.net.delta = NULL;
    run_both(&s);
    s.net.delta = delta;
    release(&s);
}

TEST(what_is_linear_or_smooth_adds_the_gradient)
{
    passes_the_gradient_on(make_avgpool_layer(BATCH, SIDE, SIDE, CHANNELS));
    passes_the_gradient_on(make_activation_layer(BATCH, SIDE*SIDE*CHANNELS, LOGISTIC));
    for (int size = 1; size <= 3; size++){ /* stock's gemm for size 1 writes into net.delta with beta 0 */
        passes_the_gradient_on(make_convolutional_layer(BATCH, SIDE, SIDE, CHANNELS, 3, 1, size, 1, size/2,
            TANH, 0, 0, 0, 0));
    }
    static const struct { int stride, reverse, flatten, extra; } reorgs[] = { { 2, 0, 0, 0 }, { 2, 1, 0, 0 },
        { 1, 0, 1, 0 }, { 1, 1, 1, 0 }, { 1, 0, 0, 5 } };
    for (size_t k = 0; k < COUNT(reorgs); k++){
        passes_the_gradient_on(make_reorg_layer(BATCH, SIDE, SIDE, CHANNELS, reorgs[k].stride,
            reorgs[k].reverse, reorgs[k].flatten, reorgs[k].extra));
    }
    for (int stride = -2; stride <= 2; stride += 4){
        layer l = make_upsample_layer(BATCH, SIDE, SIDE, CHANNELS, stride);
        l.scale = .5;
        passes_the_gradient_on(l);
    }
}

/* Its index is -1: in front of the delta lies what the C library knows of the array. */
TEST(maxpool_writes_nothing_for_a_window_of_nan)
{
    struct subject s = subject_of(make_maxpool_layer(BATCH, SIDE, SIDE, 1, 2, 2, 1), BATCH);
    float guarded[1 + BATCH*SIDE*SIDE] = {0}, *delta = s.net.delta;
    for (int i = 0; i < s.l.outputs*BATCH; i++) s.l.indexes[i] = -1, s.l.delta[i] = 1;
    s.net.delta = guarded + 1;
    s.l.backward(s.l, s.net);
    for (int i = 0; i < 1 + s.inputs; i++) assert_true(guarded[i] == 0);
    s.net.delta = delta;
    release(&s);
}

TEST(route_sends_its_delta_to_every_input)
{
    layer sources[2] = {{0}, {0}};
    int *indexes = calloc(2, sizeof(int)), *sizes = calloc(2, sizeof(int));
    for (int i = 0; i < 2; i++){
        indexes[i] = i;
        sizes[i] = 3 + i;
        sources[i].output = zeros(BATCH*sizes[i]);
        sources[i].delta = zeros(BATCH*sizes[i]);
    }
    struct subject s = subject_of(make_route_layer(BATCH, 2, indexes, sizes), BATCH);
    s.net.layers = sources;
    float *delta = s.net.delta;
    s.net.delta = NULL;
    run_both(&s);
    for (int i = 0; i < 2; i++){
        assert_gradient(&s, weighted_output, "source delta", sources[i].output, BATCH*sizes[i],
                        sources[i].delta, 1);
    }
    s.net.delta = delta;
    for (int i = 0; i < 2; i++){
        free(sources[i].output);
        free(sources[i].delta);
    }
    release(&s);
}

/* ---- layers whose backward is no gradient in stock ----------------------------------------------------- */

static struct subject l2norm(void)
{
    layer l = make_l2norm_layer(BATCH, SIDE*SIDE*CHANNELS);
    shape(&l, SIDE, SIDE, CHANNELS);
    return subject_of(l, BATCH);
}

TEST(l2norm_leaves_a_zero_pixel_at_zero)
{
    struct subject s = l2norm();
    for (int c = 0; c < CHANNELS; c++) s.net.input[c*SIDE*SIDE] = 0;
    run_forward(&s);
    for (int c = 0; c < CHANNELS; c++) assert_true(s.l.output[c*SIDE*SIDE] == 0);
    for (int pixel = 1; pixel < SIDE*SIDE; pixel++){
        double sum = 0;
        for (int c = 0; c < CHANNELS; c++) sum += pow(s.l.output[c*SIDE*SIDE + pixel], 2);
        assert_float_equal(sum, 1, 1e-5);
    }
    release(&s);
}

/*
 * The CPU's form: straight through. The GPU's adds l.scales, (1 - y)/norm, whatever delta is: no gradient
 * either, since a loss that ignores the layer would still push.
 */
TEST(l2norm_passes_delta_straight_through)
{
    struct subject s = l2norm();
    run_both(&s);
    for (int i = 0; i < s.inputs; i++) assert_true(s.net.delta[i] == -s.coefficient[i]);
    for (int i = 0; i < s.inputs; i++){
        float norm = s.net.input[i]/s.l.output[i];
        assert_float_equal(s.l.scales[i], (1 - s.l.output[i])/norm, 1e-3*(1 + fabsf(s.l.scales[i])));
    }
    release(&s);
}

/* Stock's both forms: delta * norms^-beta, without the derivative of the norms. */
TEST(normalization_adds_stocks_approximation)
{
    struct subject s = subject_of(make_normalization_layer(BATCH, SIDE, SIDE, CHANNELS, 3, .1, .75, 1),
                                  BATCH);
    for (int i = 0; i < s.inputs; i++) s.net.delta[i] = 1;
    run_both(&s);
    float *expected = zeros(s.inputs);
    for (int i = 0; i < s.inputs; i++) expected[i] = 1 - s.coefficient[i]*powf(s.l.norms[i], -.75f);
    assert_close("net.delta", s.net.delta, expected, s.inputs, 1e-5);
    free(expected);
    release(&s);
}

int main(void)
{
    srand(3);
    return run_listed_tests("tests", NULL, NULL);
}
