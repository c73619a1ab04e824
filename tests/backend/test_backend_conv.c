/* Conformance of a backend's convolutions: every shape of a table, in every dtype, against sums in double
 * precision.
 *
 * Inputs and weights are rounded to the dtype first, so that a backend that computes in the dtype and one
 * that widens it must agree. The allowed difference is one rounding of the result, u·|result| with the
 * format's unit roundoff u, plus the rounding of fp32 sums, 1e-5 · Σ|terms|, plus one more rounding if the
 * machine says that its backend has one. Outputs are filled with NaN before they are overwritten. */
#include "conv_sums.h"
#include "kernel_cases.h"

#include <malloc.h>
#include <pthread.h>

/* One test requests more memory than there is; the address sanitizer must then return NULL too. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }

typedef struct shape_case {
    const char *what;
    int n, c, h, w, k, size_h, size_w, stride, pad, groups, stride_x, dilation;
} shape_case;

static const shape_case shapes[] = {
    { "first layer, three channels",            2, 3, 17, 19, 16, 3, 3, 1, 1, 1, 0, 0 },
    { "stem 7x7 stride 2",                      1, 3, 33, 35, 64, 7, 7, 2, 3, 1, 0, 0 },
    { "11x11 stride 4, no padding",             1, 3, 35, 36, 24, 11, 11, 4, 0, 1, 0, 0 },
    { "3x3 of blocks of 16",                    2, 32, 13, 13, 64, 3, 3, 1, 1, 1, 0, 0 },
    { "3x3, many channels",                     1, 256, 7, 7, 128, 3, 3, 1, 1, 1, 0, 0 },
    { "3x3 stride 2 on odd sizes",              2, 32, 15, 13, 48, 3, 3, 2, 1, 1, 0, 0 },
    { "3x3 stride 2 on even sizes",             2, 16, 14, 12, 32, 3, 3, 2, 1, 1, 0, 0 },
    { "3x3 stride 2 without padding",           1, 16, 14, 14, 16, 3, 3, 2, 0, 1, 0, 0 },
    { "stride 3 that leaves rows unused",       1, 16, 15, 16, 16, 3, 3, 3, 0, 1, 0, 0 },
    { "stride larger than the window",          1, 16, 15, 14, 16, 1, 1, 3, 0, 1, 0, 0 },
    { "1x1",                                    2, 64, 13, 13, 32, 1, 1, 1, 0, 1, 0, 0 },
    { "1x1 stride 2 with an unused last row",   2, 32, 14, 14, 32, 1, 1, 2, 0, 1, 0, 0 },
    { "head of 255 channels",                   2, 64, 13, 13, 255, 1, 1, 1, 0, 1, 0, 0 },
    { "from 255 channels",                      1, 255, 9, 9, 32, 3, 3, 1, 1, 1, 0, 0 },
    { "5 to 7 channels",                        2, 5, 11, 9, 7, 3, 3, 1, 1, 1, 0, 0 },
    { "17 to 33 channels, stride 2",            3, 17, 10, 11, 33, 3, 3, 2, 1, 1, 0, 0 },
    { "1 to 1 channel",                         1, 1, 8, 8, 1, 3, 3, 1, 1, 1, 0, 0 },
    { "5x5",                                    1, 16, 12, 12, 32, 5, 5, 1, 2, 1, 0, 0 },
    { "even window",                            1, 16, 12, 12, 16, 2, 2, 1, 1, 1, 0, 0 },
    { "even window, stride 2",                  1, 16, 12, 12, 16, 4, 4, 2, 1, 1, 0, 0 },
    { "1x1 with padding",                       1, 16, 6, 6, 16, 1, 1, 1, 1, 1, 0, 0 },
    { "padding as large as the window",         1, 16, 6, 6, 16, 3, 3, 1, 3, 1, 0, 0 },
    { "padding larger than the window",         1, 16, 6, 6, 16, 2, 2, 2, 3, 1, 0, 0 },
    { "3x1 window",                             1, 16, 9, 9, 16, 3, 1, 1, 0, 1, 0, 0 },
    { "1x3 window, padding 1",                  1, 8, 9, 9, 16, 1, 3, 1, 1, 1, 0, 0 },
    { "one pixel",                              4, 32, 1, 1, 32, 3, 3, 1, 1, 1, 0, 0 },
    { "one row",                                1, 16, 1, 40, 16, 3, 3, 1, 1, 1, 0, 0 },
    { "2 groups",                               2, 32, 9, 9, 64, 3, 3, 1, 1, 2, 0, 0 },
    { "8 groups of 4, as ResNeXt",              1, 32, 10, 10, 32, 3, 3, 1, 1, 8, 0, 0 },
    { "2 groups of 16, stride 2",               1, 32, 11, 11, 32, 3, 3, 2, 1, 2, 0, 0 },
    { "3 groups of 5 to 2",                     2, 15, 7, 7, 6, 3, 3, 1, 1, 3, 0, 0 },
    { "1x1 in 4 groups",                        1, 64, 7, 7, 32, 1, 1, 1, 0, 4, 0, 0 },
    { "depthwise",                              2, 32, 14, 14, 32, 3, 3, 1, 1, 32, 0, 0 },
    { "depthwise, stride 2",                    2, 32, 14, 14, 32, 3, 3, 2, 1, 32, 0, 0 },
    { "depthwise, 13 channels",                 1, 13, 9, 9, 13, 3, 3, 1, 1, 13, 0, 0 },
    { "depthwise, 5x5",                         1, 24, 9, 9, 24, 5, 5, 1, 2, 24, 0, 0 },
    { "depthwise that doubles",                 1, 16, 8, 8, 32, 3, 3, 1, 1, 16, 0, 0 },
    { "connected, image",                       2, 7, 5, 3, 10, 5, 3, 1, 0, 1, 0, 0 },
    { "connected, vector",                      4, 256, 1, 1, 100, 1, 1, 1, 0, 1, 0, 0 },
    { "connected, batch 1",                     1, 1, 28, 28, 10, 28, 28, 1, 0, 1, 0, 0 },
    { "connected, one output",                  3, 16, 4, 4, 1, 4, 4, 1, 0, 1, 0, 0 },
    { "connected, a sum of 4100 forward",       2, 4100, 1, 1, 6, 1, 1, 1, 0, 1, 0, 0 },
    { "connected, and of 4100 backward",        2, 6, 1, 1, 4100, 1, 1, 1, 0, 1, 0, 0 },
    { "grouped, window as large as the input",  1, 8, 3, 3, 8, 3, 3, 1, 0, 2, 0, 0 },
    { "padded, window as large as the input",   1, 8, 3, 3, 8, 3, 3, 1, 1, 1, 0, 0 },
    { "connected, stride 2 in the .cfg",        2, 8, 3, 3, 8, 3, 3, 2, 0, 1, 0, 0 },
    { "rows too wide for AMX's blocks",         1, 3, 6, 384, 16, 3, 3, 1, 1, 1, 0, 0 },
    { "rows too wide for three of them",        1, 17, 12, 225, 16, 3, 3, 1, 1, 1, 0, 0 },
    { "window much smaller than the stride",    1, 16, 20, 52, 32, 2, 2, 5, 1, 1, 0, 0 },
    { "few channels by 1x1 with a stride",      2, 4, 32, 32, 8, 1, 1, 2, 0, 1, 0, 0 },
    { "an image narrower than the stride",      1, 16, 5, 1, 16, 3, 3, 2, 1, 1, 0, 0 },
    { "more than one slice of the batch",       3, 64, 64, 48, 2, 1, 1, 1, 0, 1, 0, 0 },
    { "3x3, dilated by 2",                      2, 32, 13, 15, 48, 3, 3, 1, 2, 1, 0, 2 },
    { "3x3 stride 2, dilated by 4",             1, 16, 14, 15, 16, 3, 3, 2, 4, 1, 0, 4 },
    { "depthwise, dilated by 3, no padding",    2, 16, 9, 10, 16, 3, 3, 1, 0, 16, 0, 3 },
    { "1x1, dilated in the .cfg",               1, 16, 7, 7, 16, 1, 1, 1, 0, 1, 0, 2 },
    { "stride 2 down, 1 along a row",           2, 16, 12, 13, 32, 3, 3, 2, 1, 1, 1, 0 },
    { "stride 1 down, 3 along a row, dilated",  1, 16, 12, 13, 32, 3, 3, 1, 1, 1, 3, 2 },
    { "3x3 stride 2, 64 channels",              1, 64, 11, 10, 32, 3, 3, 2, 1, 1, 0, 0 },
    { "3x3 of tiles, three panels of filters",  5, 16, 14, 15, 48, 3, 3, 1, 1, 1, 0, 0 },
    { "3x3 of tiles, rectangles of filters",    6, 144, 6, 10, 32, 3, 3, 1, 1, 1, 0, 0 },
};
enum { SHAPES = COUNT(shapes) };

/* ------------------------------------------------------------------------------------------------ numbers */

static float random_number(void) { return (float)rand() / (float)RAND_MAX * 2.0f - 1.0f; }

/* ------------------------------------------------------------------------------------------------ fixture */

static amp_status load(amp_conv *conv, const float *masters, amp_error *error)
{
    int failed;
    return backend->conv_load_weights(backend, &(amp_conv_weights){ conv, masters }, 1, &failed, error);
}

typedef struct fixture {
    amp_conv *conv;
    amp_conv_desc d;
    amp_shape y_shape;
    size_t x_count, y_count, w_count;
    void *x, *y, *dx, *dy;                /* in the dtype, NHWC, from the backend's allocate */
    float *w, *dw, *bias;
    double *want, *magnitude, *slack;     /* of the largest of x, y and w */
    double *sums, *sum_magnitudes;        /* the same number: see sum_terms */
} fixture;

static void *tensor_memory(size_t bytes)
{
    void *p = allocate_tensor(backend, bytes);
    assert_non_null(p);
    assert_int_equal((size_t)p % 64, 0);
    memset(p, 0xff, bytes); /* NaN in every dtype */
    return p;
}

static void fill_randomly(amp_dtype dtype, void *data, size_t count)
{
    for (size_t i = 0; i < count; i++) set_number(dtype, data, i, random_number());
}

static void begin(fixture *f, const shape_case *s, amp_dtype dtype)
{
    memset(f, 0, sizeof *f);
    srand(1);
    f->d = (amp_conv_desc){ { s->n, s->c, s->h, s->w }, s->k, s->size_h, s->size_w, s->stride, s->pad,
                            s->groups, dtype, 1, 1, 0, s->stride_x, s->dilation, 0, 0, 0 };
    f->y_shape = amp_conv_output(&f->d);
    f->x_count = amp_shape_count(f->d.x);
    f->y_count = amp_shape_count(f->y_shape);
    f->w_count = conv_weights(&f->d);
    size_t size = amp_dtype_size(dtype), most = f->x_count > f->y_count ? f->x_count : f->y_count;
    if (f->w_count > most) most = f->w_count;
    f->x = tensor_memory(f->x_count * size), f->dx = tensor_memory(f->x_count * size);
    f->y = tensor_memory(f->y_count * size), f->dy = tensor_memory(f->y_count * size);
    f->w = tensor_memory(f->w_count * 4), f->dw = tensor_memory(f->w_count * 4),
        f->bias = tensor_memory(s->k * 4);
    f->want = malloc(most * sizeof *f->want), f->magnitude = malloc(most * sizeof *f->magnitude);
    f->slack = malloc(most * sizeof *f->slack);
    f->sums = malloc(most * sizeof *f->sums);
    f->sum_magnitudes = malloc(most * sizeof *f->sum_magnitudes);
    assert_true(f->want && f->magnitude && f->slack && f->sums && f->sum_magnitudes);
    fill_randomly(dtype, f->x, f->x_count);
    fill_randomly(dtype, f->dy, f->y_count);
    fill_randomly(AMP_FP32, f->bias, s->k);
    fill_randomly(AMP_FP32, f->dw, f->w_count);
    for (size_t i = 0; i < f->w_count; i++) f->w[i] = rounded(dtype, random_number());
    ASSERT_OK(CALL(conv_create, &f->d, &f->conv, e));
    ASSERT_OK(load(f->conv, f->w, e));
}

static void end(fixture *f)
{
    void *all[] = { f->x, f->y, f->dx, f->dy, f->w, f->dw, f->bias };
    for (size_t i = 0; i < COUNT(all); i++) release_tensor(backend, all[i]);
    backend->conv_destroy(backend, f->conv);
    free(f->want);
    free(f->magnitude);
    free(f->slack);
    free(f->sums);
    free(f->sum_magnitudes);
}

/* ---------------------------------------------------------------------------------------------- reference */

/* Writes sums and sum_magnitudes. */
static void sum_terms(fixture *f, pass which)
{
    conv_sums(&f->d, which, f->x, f->dy, f->w, f->sums, f->sum_magnitudes);
}

static void start_at(fixture *f, size_t i, double value)
{
    f->want[i] = value;
    f->magnitude[i] = fabs(value);
    f->slack[i] = 0;
}

/* want += sums, and magnitude likewise; both must hold the start values. rounds: the backend rounds the
 * pass's sum to the dtype before it adds it to the existing numbers. */
static void add_sums(fixture *f, pass which, int rounds)
{
    for (size_t i = 0; i < conv_results(&f->d, which); i++) {
        f->want[i] += f->sums[i];
        f->magnitude[i] += f->sum_magnitudes[i];
        if (rounds) f->slack[i] += rounding(f->d.dtype, f->sums[i]);
    }
}

static void reference(fixture *f, pass which)
{
    sum_terms(f, which);
    add_sums(f, which, which == BACKWARD_WEIGHTS && machine.rounds_weight_gradients);
}

static void compare(const fixture *f, const char *what, const void *got, amp_dtype dtype, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double value = number_of(dtype, got, i), want = f->want[i];
        double bound = unit_roundoff(dtype) * fabs(want) + 1e-5 * f->magnitude[i] +
            (dtype == AMP_FP16 ? 0x1p-25 : 0);
        bound += f->slack[i];
        if (!(fabs(value - want) <= bound)) /* so that NaN fails */
            fail_msg("%s: element %zu of %zu is %.9g, not %.9g within %.3g", what, i, count, value,
                     want, bound);
    }
}

/* The convolution as in a network that only predicts; leaky: with that activation. */
static amp_conv *predicting(const fixture *f, int leaky)
{
    amp_conv *conv;
    amp_conv_desc d = f->d;
    d.training = d.wants_dx = 0;
    d.leaky = leaky;
    ASSERT_OK(CALL(conv_create, &d, &conv, e));
    ASSERT_OK(load(conv, f->w, e));
    return conv;
}

/* want: the result of forward with bias. Leaky does not increase differences; a backend may round before it.
 * It must not make the library choose another kernel either: with DNNL_MAX_CPU_ISA=AVX that one would take
 * three times as long. */
static void compare_leaky(fixture *f)
{
    amp_conv *conv = predicting(f, 1), *plain = predicting(f, 0);
    amp_conv_facts facts, plain_facts;
    backend->conv_facts(backend, conv, &facts);
    backend->conv_facts(backend, plain, &plain_facts);
    assert_string_equal(facts.kernel, plain_facts.kernel);
    backend->conv_destroy(backend, plain);
    memset(f->y, 0xff, f->y_count * amp_dtype_size(f->d.dtype));
    for (size_t i = 0; i < f->y_count; i++) {
        if (machine.rounds_before_bias) f->slack[i] += rounding(f->d.dtype, f->want[i]);
        if (!(f->want[i] > 0)) f->want[i] *= (double).1f;
    }
    ASSERT_OK(CALL(conv_forward, conv, f->x, f->bias, f->y, e));
    compare(f, "forward with bias and leaky", f->y, f->d.dtype, f->y_count);
    backend->conv_destroy(backend, conv);
}

/* ---------------------------------------------------------------------------------------------- the table */

typedef struct conv_test { const shape_case *shape; amp_dtype dtype; } conv_test;

static void agrees_with_double_precision(void **state)
{
    NEEDS(conv_create);
    const conv_test *t = *state;
    fixture f;
    begin(&f, t->shape, t->dtype);
    int k = f.d.k;

    sum_terms(&f, FORWARD);
    for (int with_bias = 0; with_bias < 2; with_bias++) {
        memset(f.y, 0xff, f.y_count * amp_dtype_size(t->dtype));
        for (size_t i = 0; i < f.y_count; i++) start_at(&f, i, with_bias ? f.bias[i % k] : 0);
        add_sums(&f, FORWARD, with_bias && machine.rounds_before_bias);
        ASSERT_OK(CALL(conv_forward, f.conv, f.x, with_bias ? f.bias : NULL, f.y, e));
        compare(&f, with_bias ? "forward with bias" : "forward", f.y, t->dtype, f.y_count);
        if (with_bias) compare_leaky(&f);
    }

    for (size_t i = 0; i < f.x_count; i++) start_at(&f, i, 0);
    reference(&f, BACKWARD_DATA);
    ASSERT_OK(CALL(conv_backward_data, f.conv, f.dy, f.dx, 0, e));
    compare(&f, "backward by data", f.dx, t->dtype, f.x_count);

    /* The existing number nearly cancels the sum: a result rounded twice would fail. */
    for (size_t i = 0; i < f.x_count; i++) {
        set_number(t->dtype, f.dx, i, (float)(-1.01 * f.want[i]) + 0.01f * random_number());
        start_at(&f, i, number_of(t->dtype, f.dx, i));
    }
    add_sums(&f, BACKWARD_DATA, 0);
    ASSERT_OK(CALL(conv_backward_data, f.conv, f.dy, f.dx, 1, e));
    compare(&f, "backward by data, adding", f.dx, t->dtype, f.x_count);

    for (size_t i = 0; i < f.w_count; i++) start_at(&f, i, f.dw[i]);
    sum_terms(&f, BACKWARD_WEIGHTS);
    for (int twice = 0; twice < 2; twice++) {
        add_sums(&f, BACKWARD_WEIGHTS, machine.rounds_weight_gradients);
        ASSERT_OK(CALL(conv_backward_weights, f.conv, f.x, f.dy, f.dw, e));
        compare(&f, "backward by weights", f.dw, AMP_FP32, f.w_count);
    }
    end(&f);
}

/* -------------------------------------------------------------------------------------- single behaviours */

static const shape_case small = { "small", 2, 16, 9, 9, 32, 3, 3, 1, 1, 1, 0, 0 };

/* One bad input number must spoil everything that depends on it: the finite check of the gradients relies on
 * that. Forward must spoil nothing else. Backward may spoil more, since the step is skipped in any case:
 * oneDNN's weight gradients in bf16 multiply skipped elements by zero, and Winograd spreads it over whole
 * tiles. */
TEST(spreads_non_finite_inputs)
{
    NEEDS(conv_create);
    static const int chosen[] = { 0, 3, 12, 13, 28, 32, 37, SHAPES - 2, SHAPES - 1 };
    for (size_t s = 0; s < COUNT(chosen); s++)
    for (size_t t = 0; t < COUNT(all_dtypes); t++)
    for (int inf = 0; inf < 2; inf++) {
        fixture f;
        begin(&f, &shapes[chosen[s]], all_dtypes[t]);
        float bad = inf ? INFINITY : NAN;
        set_number(f.d.dtype, f.x, f.x_count / 2, bad);
        set_number(f.d.dtype, f.dy, f.y_count / 2, bad);
        memset(f.dw, 0, f.w_count * 4);
        ASSERT_OK(CALL(conv_forward, f.conv, f.x, NULL, f.y, e));
        ASSERT_OK(CALL(conv_backward_data, f.conv, f.dy, f.dx, 0, e));
        ASSERT_OK(CALL(conv_backward_weights, f.conv, f.x, f.dy, f.dw, e));
        amp_conv_facts facts = { .winograd = "" };
        if (backend->conv_facts) backend->conv_facts(backend, f.conv, &facts);
        pass may_spread = facts.winograd[0] ? BACKWARD_DATA : BACKWARD_WEIGHTS;
        amp_conv *leaky = predicting(&f, 1);
        float *leaked = tensor_memory(f.y_count * sizeof *leaked);
        ASSERT_OK(CALL(conv_forward, leaky, f.x, NULL, leaked, e));
        for (size_t i = 0; i < f.y_count; i++)
            if (amp_is_finite(number_of(f.d.dtype, leaked, i)) != amp_is_finite(number_of(f.d.dtype, f.y, i)))
                fail_msg("%s, %s, leaky: element %zu is %g, not %g", shapes[chosen[s]].what,
                         amp_dtype_name(f.d.dtype), i, number_of(f.d.dtype, leaked, i),
                         number_of(f.d.dtype, f.y, i));
        release_tensor(backend, leaked);
        backend->conv_destroy(backend, leaky);
        for (pass p = FORWARD; p <= BACKWARD_WEIGHTS; p++) {
            const void *got = p == FORWARD ? f.y : p == BACKWARD_DATA ? f.dx : f.dw;
            size_t count = conv_results(&f.d, p);
            amp_dtype dtype = p == BACKWARD_WEIGHTS ? AMP_FP32 : f.d.dtype;
            for (size_t i = 0; i < count; i++) start_at(&f, i, 0);
            reference(&f, p);
            for (size_t i = 0; i < count; i++) {
                float value = number_of(dtype, got, i);
                if (p >= may_spread && amp_is_finite((float)f.want[i])) continue;
                if (amp_is_finite(value) != amp_is_finite((float)f.want[i]))
                    fail_msg("%s, %s, pass %d: element %zu is %g, not %g", shapes[chosen[s]].what,
                             amp_dtype_name(f.d.dtype), p, i, value, f.want[i]);
            }
        }
        end(&f);
    }
}

/* 646 products of 512 each exceed fp16's 65504, although each one is far below. The gradient is fp32, and
 * must hold the sum. */
TEST(weight_gradients_exceed_the_range_of_fp16)
{
    NEEDS(conv_create);
    for (size_t t = 0; t < COUNT(all_dtypes); t++) {
        fixture f;
        begin(&f, &shapes[0], all_dtypes[t]);
        for (size_t i = 0; i < f.x_count; i++) set_number(f.d.dtype, f.x, i, 32);
        for (size_t i = 0; i < f.y_count; i++) set_number(f.d.dtype, f.dy, i, 16);
        for (size_t i = 0; i < f.w_count; i++) start_at(&f, i, f.dw[i] = 0);
        ASSERT_OK(CALL(conv_backward_weights, f.conv, f.x, f.dy, f.dw, e));
        reference(&f, BACKWARD_WEIGHTS);
        assert_true(f.want[4] == 2 * 17 * 19 * 32. * 16); /* the 3x3 window's centre sees every pixel */
        compare(&f, "weight gradients beyond 65504", f.dw, AMP_FP32, f.w_count);
        end(&f);
    }
}

TEST(uses_new_weights_after_loading_again)
{
    NEEDS(conv_create);
    for (size_t t = 0; t < COUNT(all_dtypes); t++) {
        amp_error error = { 0 };
        fixture f;
        begin(&f, &small, all_dtypes[t]);
        ASSERT_OK(CALL(conv_forward, f.conv, f.x, NULL, f.y, e));
        for (size_t i = 0; i < f.w_count; i++) f.w[i] = rounded(all_dtypes[t], random_number());
        CALL(conv_drop_weights, f.conv);
        assert_int_equal(CALL(conv_forward, f.conv, f.x, NULL, f.y, &error), AMP_BACKEND_FAILED);
        assert_int_equal(CALL(conv_backward_data, f.conv, f.dy, f.dx, 0, &error), AMP_BACKEND_FAILED);
        assert_non_null(strstr(error.message, "weights were not loaded"));
        ASSERT_OK(load(f.conv, f.w, e));
        for (size_t i = 0; i < f.y_count; i++) start_at(&f, i, 0);
        reference(&f, FORWARD);
        ASSERT_OK(CALL(conv_forward, f.conv, f.x, NULL, f.y, e));
        compare(&f, "forward with new weights", f.y, all_dtypes[t], f.y_count);
        for (size_t i = 0; i < f.x_count; i++) start_at(&f, i, 0);
        reference(&f, BACKWARD_DATA);
        ASSERT_OK(CALL(conv_backward_data, f.conv, f.dy, f.dx, 0, e));
        compare(&f, "backward by data with new weights", f.dx, all_dtypes[t], f.x_count);
        end(&f);
    }
}

static void *forward_into_y(void *argument)
{
    fixture *f = argument;
    amp_error error;
    return CALL(conv_forward, f->conv, f->x, f->bias, f->y, &error) == AMP_OK ? f : NULL;
}

/* Darknet trains each network in a separate thread, created for every batch. */
TEST(runs_in_a_thread_that_did_not_create_it)
{
    NEEDS(conv_create);
    fixture f;
    begin(&f, &small, AMP_BF16);
    size_t bytes = f.y_count * 2;
    void *here = tensor_memory(bytes), *result = NULL;
    ASSERT_OK(CALL(conv_forward, f.conv, f.x, f.bias, here, e));
    for (int again = 0; again < 3; again++) {
        pthread_t thread;
        memset(f.y, 0xff, bytes);
        machine.begin();
        assert_int_equal(pthread_create(&thread, NULL, forward_into_y, &f), 0);
        assert_int_equal(pthread_join(thread, &result), 0);
        assert_null(machine.finish(backend));
        assert_non_null(result);
        assert_memory_equal(here, f.y, bytes);
    }
    release_tensor(backend, here);
    end(&f);
}

TEST(refuses_impossible_shapes_by_name)
{
    NEEDS(conv_create);
    static const struct { amp_conv_desc d; const char *says; } bad[] = {
        { { { 0, 3, 8, 8 }, 4, 3, 3, 1, 1, 1, AMP_FP32, 1, 1, 0, 0, 0, 0, 0, 0 }, "the input is empty" },
        { { { 1, 3, 8, -1 }, 4, 3, 3, 1, 1, 1, AMP_FP32, 1, 1, 0, 0, 0, 0, 0, 0 }, "the input is empty" },
        { { { 1, 3, 8, 8 }, 0, 3, 3, 1, 1, 1, AMP_FP32, 1, 1, 0, 0, 0, 0, 0, 0 }, "the filters are empty" },
        { { { 1, 3, 8, 8 }, 4, 3, 0, 1, 1, 1, AMP_BF16, 1, 1, 0, 0, 0, 0, 0, 0 }, "the filters are empty" },
        { { { 1, 3, 8, 8 }, 4, 3, 3, 0, 1, 1, AMP_FP32, 1, 1, 0, 0, 0, 0, 0, 0 },
          "stride must be at least 1" },
        { { { 1, 3, 8, 8 }, 4, 3, 3, 1, -1, 1, AMP_FP32, 1, 1, 0, 0, 0, 0, 0, 0 }, "padding 0 or more" },
        { { { 1, 3, 8, 8 }, 4, 3, 3, 1, 1, 2, AMP_FP16, 1, 1, 0, 0, 0, 0, 0, 0 }, "groups must divide" },
        { { { 1, 3, 8, 8 }, 4, 3, 3, 1, 1, 0, AMP_FP16, 1, 1, 0, 0, 0, 0, 0, 0 }, "groups must divide" },
        { { { 1, 3, 8, 8 }, 4, 3, 3, 1, 2000000000, 1, AMP_FP16, 1, 1, 0, 0, 0, 0, 0, 0 },
          "the padded input is too large" },
        { { { 1, 3, 8, 8 }, 4, 11, 11, 1, 1, 1, AMP_FP32, 1, 1, 0, 0, 0, 0, 0, 0 },
          "larger than the padded input" },
        { { { 1, 3, 2, 8 }, 4, 5, 3, 4, 1, 1, AMP_FP32, 1, 1, 0, 0, 0, 0, 0, 0 },
          "larger than the padded input" },
        { { { 1, 3, 6, 8 }, 4, 3, 3, 1, 0, 1, AMP_FP32, 1, 1, 0, 0, 3, 0, 0, 0 },
          "larger than the padded input" },
        { { { 1, 3, 8, 8 }, 4, 3, 3, 1, 1, 1, AMP_FP32, 1, 1, 0, 0, -1, 0, 0, 0 },
          "dilation must be at least 1" },
        { { { 1, 3, 8, 8 }, 4, 3, 3, 1, 1, 1, AMP_FP32, 1, 1, 0, -2, 1, 0, 0, 0 },
          "stride must be at least 1" },
    };
    amp_error error = { 0 };
    for (size_t i = 0; i < COUNT(bad); i++) {
        amp_conv *conv = NULL;
        assert_int_equal(CALL(conv_create, &bad[i].d, &conv, &error), AMP_BAD_NETWORK);
        assert_non_null(strstr(error.message, bad[i].says));
        assert_null(strchr(error.message, '\n'));
        char shape[64];
        snprintf(shape, sizeof shape, "%dx%dx%dx%d", bad[i].d.x.n, bad[i].d.x.c, bad[i].d.x.h, bad[i].d.x.w);
        assert_non_null(strstr(error.message, shape));
    }
}

/* Gives the same copies as one by one, whatever is in the list: forward gives the same bits. */
TEST(weights_of_many_convolutions_are_loaded_at_once)
{
    static const shape_case mixed[] = { { "", 1, 8, 4, 4, 16, 3, 3, 1, 1, 1, 0, 0 },
        { "", 1, 255, 3, 3, 8, 1, 1, 1, 0, 1, 0, 0 },
        { "", 1, 3, 6, 6, 5, 3, 3, 1, 1, 1, 0, 0 }, { "", 1, 16, 4, 4, 8, 3, 3, 1, 1, 4, 0, 0 },
        { "", 1, 13, 4, 4, 13, 3, 3, 1, 1, 13, 0, 0 },
        { "", 2, 7, 3, 3, 10, 3, 3, 1, 0, 1, 0, 0 } };
    NEEDS(conv_create);
    enum { MANY = COUNT(mixed) * COUNT(all_dtypes) };
    fixture f[MANY];
    amp_conv_weights all[MANY];
    int failed;
    for (size_t i = 0; i < MANY; i++) {
        begin(&f[i], &mixed[i / COUNT(all_dtypes)], all_dtypes[i % COUNT(all_dtypes)]);
        /* Other weights than those that begin() has loaded. */
        for (size_t k = 0; k < f[i].w_count; k++) f[i].w[k] = rounded(f[i].d.dtype, random_number());
        all[i] = (amp_conv_weights){ f[i].conv, f[i].w };
    }
    ASSERT_OK(CALL(conv_load_weights, all, MANY, &failed, e));
    for (size_t i = 0; i < MANY; i++) {
        size_t bytes = f[i].y_count * amp_dtype_size(f[i].d.dtype);
        void *at_once = malloc(bytes);
        assert_non_null(at_once);
        ASSERT_OK(CALL(conv_forward, f[i].conv, f[i].x, NULL, f[i].y, e));
        memcpy(at_once, f[i].y, bytes);
        CALL(conv_drop_weights, f[i].conv);
        ASSERT_OK(load(f[i].conv, f[i].w, e));
        memset(f[i].y, 0xff, bytes);
        ASSERT_OK(CALL(conv_forward, f[i].conv, f[i].x, NULL, f[i].y, e));
        assert_memory_equal(f[i].y, at_once, bytes);
        free(at_once);
    }
    ASSERT_OK(CALL(conv_load_weights, all, 0, &failed, e));
    for (size_t i = 0; i < MANY; i++) end(&f[i]);
}

TEST(refuses_backward_of_an_inference_convolution)
{
    NEEDS(conv_create);
    amp_error error = { 0 };
    fixture f;
    begin(&f, &small, AMP_FP32);
    amp_conv *conv;
    f.d.training = 0;
    ASSERT_OK(CALL(conv_create, &f.d, &conv, e));
    ASSERT_OK(load(conv, f.w, e));
    ASSERT_OK(CALL(conv_forward, conv, f.x, NULL, f.y, e));
    assert_int_equal(CALL(conv_backward_data, conv, f.dy, f.dx, 0, &error), AMP_BACKEND_FAILED);
    assert_int_equal(CALL(conv_backward_weights, conv, f.x, f.dy, f.dw, &error), AMP_BACKEND_FAILED);
    backend->conv_destroy(backend, conv);
    backend->conv_destroy(backend, NULL);
    end(&f);
}

/* Described as convolutions: c is the deconvolution's filters, k its input's channels, and h and w its
 * output's size. */
static const shape_case deconvolutions[] = {
    { "doubles, size 4 stride 2 padding 1",     2, 16, 14, 12, 32, 4, 4, 2, 1, 1, 0, 0 },
    { "doubles, size 2 stride 2",               2, 32, 12, 10, 64, 2, 2, 2, 0, 1, 0, 0 },
    { "size 3 stride 1 padding 1",              1, 24, 9, 8, 16, 3, 3, 1, 1, 1, 0, 0 },
    { "triples, 3 filters of 5 channels",       3, 3, 12, 9, 5, 3, 3, 3, 0, 1, 0, 0 },
    { "size 3 stride 2, 255 filters",           1, 255, 9, 11, 16, 3, 3, 2, 0, 1, 0, 0 },
    { "stride larger than the window",          1, 8, 13, 10, 16, 1, 1, 3, 0, 1, 0, 0 },
    { "from one pixel",                         4, 16, 4, 4, 100, 4, 4, 1, 0, 1, 0, 0 },
    { "vector to vector",                       4, 10, 1, 1, 64, 1, 1, 1, 0, 1, 0, 0 },
};

/* A convolution made to run backwards has only the passes that it was made for. */
static void runs_as_a_deconvolution(const shape_case *shape, amp_dtype dtype, int training, int wants_dx)
{
    amp_error error = { 0 };
    fixture f;
    begin(&f, shape, dtype);
    backend->conv_destroy(backend, f.conv);
    f.d.training = training;
    f.d.wants_dx = wants_dx;
    f.d.transposed = 1;
    ASSERT_OK(CALL(conv_create, &f.d, &f.conv, e));
    assert_int_equal(CALL(conv_backward_data, f.conv, f.dy, f.dx, 0, &error), AMP_BACKEND_FAILED);
    assert_non_null(strstr(error.message, "weights were not loaded"));
    ASSERT_OK(load(f.conv, f.w, e));
    for (size_t i = 0; i < f.x_count; i++) start_at(&f, i, 0);
    reference(&f, BACKWARD_DATA);
    ASSERT_OK(CALL(conv_backward_data, f.conv, f.dy, f.dx, 0, e));
    compare(&f, "forward of a deconvolution", f.dx, dtype, f.x_count);
    assert_int_equal(CALL(conv_backward_data, f.conv, f.dy, f.dx, 1, &error), AMP_BACKEND_FAILED);
    assert_non_null(strstr(error.message, "a deconvolution does not add to its output"));

    if (training && wants_dx) {
        for (size_t i = 0; i < f.y_count; i++) start_at(&f, i, 0);
        reference(&f, FORWARD);
        ASSERT_OK(CALL(conv_forward, f.conv, f.x, NULL, f.y, e));
        compare(&f, "backward by data of a deconvolution", f.y, dtype, f.y_count);
    } else {
        assert_int_equal(CALL(conv_forward, f.conv, f.x, NULL, f.y, &error), AMP_BACKEND_FAILED);
        assert_non_null(strstr(error.message, "it was created without"));
    }
    for (size_t i = 0; i < f.w_count; i++) start_at(&f, i, f.dw[i]);
    if (training) {
        reference(&f, BACKWARD_WEIGHTS);
        ASSERT_OK(CALL(conv_backward_weights, f.conv, f.x, f.dy, f.dw, e));
    } else {
        assert_int_equal(CALL(conv_backward_weights, f.conv, f.x, f.dy, f.dw, &error), AMP_BACKEND_FAILED);
    }
    compare(&f, "backward by weights of a deconvolution", f.dw, AMP_FP32, f.w_count);
    amp_conv_facts facts;
    backend->conv_facts(backend, f.conv, &facts);
    assert_true(facts.kernel[0] != '\0');
    end(&f);
}

TEST(a_deconvolution_is_its_convolution_run_backwards)
{
    NEEDS(conv_create);
    for (size_t s = 0; s < COUNT(deconvolutions); s++)
        for (size_t t = 0; t < COUNT(all_dtypes); t++) {
            runs_as_a_deconvolution(&deconvolutions[s], all_dtypes[t], 0, 0);
            runs_as_a_deconvolution(&deconvolutions[s], all_dtypes[t], 1, 0);
            runs_as_a_deconvolution(&deconvolutions[s], all_dtypes[t], 1, 1);
        }
}

TEST(tells_what_became_of_a_convolution)
{
    NEEDS(conv_facts);
    for (size_t t = 0; t < COUNT(all_dtypes); t++) {
        char note[256];
        amp_conv_facts facts = { .padded_in = -1 };
        fixture f;
        if (backend->supports(backend, all_dtypes[t], note) == AMP_SUPPORT_NONE) continue;
        begin(&f, &small, all_dtypes[t]);
        backend->conv_facts(backend, f.conv, &facts);
        assert_true(facts.computes == f.d.dtype || facts.computes == AMP_FP32);
        assert_true(facts.padded_in >= f.d.x.c / f.d.groups && facts.padded_out >= f.d.k / f.d.groups);
        size_t held = (size_t)facts.padded_in * (size_t)facts.padded_out *
            (size_t)(f.d.groups * f.d.size_h * f.d.size_w);
        /* One copy, or one per direction. */
        assert_true(facts.weight_bytes >= held * amp_dtype_size(facts.computes));
        assert_true(facts.kernel[0] != '\0');
        end(&f);
    }
}

TEST(allocates_nothing_for_nothing_and_says_how_much_failed)
{
    NEEDS(allocate);
    amp_error error = { 0 };
    void *p = &error;
    ASSERT_OK(CALL(allocate, 0, &p, e));
    assert_null(p);
    assert_int_equal(CALL(allocate, (size_t)-1 / 2, &p, &error), AMP_NO_MEMORY);
    assert_null(p);
    assert_non_null(strstr(error.message, "MiB"));
    backend->release(backend, NULL);
}

TEST(says_what_it_is)
{
    NEEDS(supports);
    print_message("%s\n", backend->description);
    assert_string_equal(backend->name, machine.name);
    assert_true(backend->description[0] != '\0' && !strchr(backend->description, '\n'));
    for (size_t t = 0; t < COUNT(all_dtypes); t++) {
        char note[256] = "unset";
        amp_support support = backend->supports(backend, all_dtypes[t], note);
        assert_int_equal(support == AMP_SUPPORT_NATIVE, note[0] == '\0');
    }
}

static int run(void)
{
    static conv_test cases[SHAPES * 3];
    static char names[SHAPES * 3][96];
    static struct CMUnitTest table[SHAPES * 3];
    for (size_t i = 0; i < SHAPES * 3; i++) {
        cases[i] = (conv_test){ &shapes[i / 3], all_dtypes[i % 3] };
        snprintf(names[i], sizeof names[i], "%s, %s", shapes[i / 3].what, amp_dtype_name(all_dtypes[i % 3]));
        table[i] = (struct CMUnitTest){ names[i], agrees_with_double_precision, NULL, NULL, &cases[i] };
    }
    int failed = _cmocka_run_group_tests("convolutions agree with double precision", table, SHAPES * 3,
                                         NULL, NULL);
    return run_listed_tests("convolutions", NULL, NULL) + failed;
}

int main(void)
{
    /* New memory is filled with 3.4e38 in bf16 and fp32, so that reading uninitialized memory shows. */
    mallopt(M_PERTURB, 0x80);
    return with_one_variant(run) + with_halves_computed(run);
}
