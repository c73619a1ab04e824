/* Winograd convolutions (backend/cpu/winograd.h), beyond what test_backend_conv.c requires of any
 * convolution: the bits do not depend on the cut, the threads or the instruction set; numbers of any scale
 * are as close to sums in double precision as documented, and finite where these are finite; and the rule. */
#include "testing.h"

#include <math.h>
#include <omp.h>

#include "backend/cpu/kernels.h"
#include "backend/cpu/onednn_conv.h"
#include "conv_sums.h"

static amp_backend *backend;

typedef struct problem {
    amp_conv_desc d;
    amp_conv *conv;
    size_t x_count, y_count, w_count;
    void *x, *dy, *y, *dx;
    float *w, *dw, *bias;
} problem;

/* x (n, h, w, c) to k filters; c and k are per group. */
static amp_conv_desc describe(int n, int h, int w, int c, int k, int groups, amp_dtype dtype)
{
    return (amp_conv_desc){ .x = { n, c * groups, h, w }, .k = k * groups, .size_h = 3, .size_w = 3,
                            .stride = 1, .pad = 1, .groups = groups, .dtype = dtype, .training = 1,
                            .wants_dx = 1 };
}

static float number(void) { return (float)rand() / (float)RAND_MAX * 2 - 1; }

static void *allocate(size_t bytes)
{
    amp_error error;
    void *memory = NULL;
    if (backend->allocate(backend, bytes, &memory, &error) != AMP_OK) fail_msg("%s", error.message);
    memset(memory, 0xff, bytes); /* NaN */
    return memory;
}

static void create(problem *p)
{
    amp_error error;
    if (backend->conv_create(backend, &p->d, &p->conv, &error) != AMP_OK) fail_msg("%s", error.message);
}

static void begin(problem *p, amp_conv_desc d)
{
    amp_shape y = amp_conv_output(&d);
    size_t size = amp_dtype_size(d.dtype);
    *p = (problem){ .d = d, .x_count = amp_shape_count(d.x), .y_count = amp_shape_count(y),
                    .w_count = (size_t)d.k * (size_t)(d.x.c / d.groups) * 9 };
    p->x = allocate(p->x_count * size), p->dx = allocate(p->x_count * size);
    p->y = allocate(p->y_count * size), p->dy = allocate(p->y_count * size);
    p->w = allocate(p->w_count * 4), p->dw = allocate(p->w_count * 4), p->bias = allocate((size_t)d.k * 4);
    srand(7);
    for (size_t i = 0; i < p->x_count; i++) set_number(p->d.dtype, p->x, i, number());
    for (size_t i = 0; i < p->y_count; i++) set_number(p->d.dtype, p->dy, i, number());
    for (size_t i = 0; i < p->w_count; i++) p->w[i] = number();
    for (int i = 0; i < d.k; i++) p->bias[i] = number();
    create(p);
}

static void end(problem *p)
{
    void *all[] = { p->x, p->dx, p->y, p->dy, p->w, p->dw, p->bias };
    backend->conv_destroy(backend, p->conv);
    for (size_t i = 0; i < COUNT(all); i++) backend->release(backend, all[i]);
}

/* Runs all passes; dx is added to the contents of x, dw to zeros. */
static void run(problem *p)
{
    amp_error error;
    int failed;
    memset(p->y, 0xff, p->y_count * amp_dtype_size(p->d.dtype));
    memcpy(p->dx, p->x, p->x_count * amp_dtype_size(p->d.dtype));
    memset(p->dw, 0, p->w_count * sizeof *p->dw);
    if (backend->conv_load_weights(backend, &(amp_conv_weights){ p->conv, p->w }, 1, &failed, &error)
        || backend->conv_forward(backend, p->conv, p->x, p->bias, p->y, &error)
        || backend->conv_backward_data(backend, p->conv, p->dy, p->dx, 1, &error)
        || backend->conv_backward_weights(backend, p->conv, p->x, p->dy, p->dw, &error))
        fail_msg("%s", error.message);
}

/* Skips the test if the processor lacks the instructions. */
static void needs_winograd(const problem *p)
{
    if (!amp_cpu_rows_best()->winograd_panel) skip();
    for (int pass = 0; pass < AMP_WINOGRAD_PASSES; pass++) assert_true(p->conv->winograd[pass].is_used);
}

/* ---- bits ---- */

typedef struct results { void *y, *dx, *dw; } results;

static void *duplicate(const void *from, size_t bytes)
{
    void *copy = malloc(bytes);
    assert_non_null(copy);
    return memcpy(copy, from, bytes);
}

static results keep(const problem *p)
{
    size_t size = amp_dtype_size(p->d.dtype);
    return (results){ duplicate(p->y, p->y_count * size), duplicate(p->dx, p->x_count * size),
                      duplicate(p->dw, p->w_count * 4) };
}

static void forget(results r)
{
    free(r.y);
    free(r.dx);
    free(r.dw);
}

static void compare_bits(const problem *p, const results *want)
{
    size_t size = amp_dtype_size(p->d.dtype);
    assert_memory_equal(p->y, want->y, p->y_count * size);
    assert_memory_equal(p->dx, want->dx, p->x_count * size);
    assert_memory_equal(p->dw, want->dw, p->w_count * 4);
}

static void cut(problem *p, size_t block, size_t some_in, size_t some_out)
{
    for (int pass = AMP_WINOGRAD_FORWARD; pass <= AMP_WINOGRAD_DATA; pass++) {
        amp_winograd *w = &p->conv->winograd[pass];
        w->block = block;
        w->some_in = some_in < w->in ? some_in : w->in;
        w->some_out = some_out < w->out ? some_out : w->out;
    }
}

TEST(neither_the_cut_nor_the_threads_change_a_bit)
{
    static const size_t blocks[] = { 1, 5, 28, 48 }, somes[] = { 16, 32, 1000 }, outs[] = { 32, 64, 1000 };
    for (amp_dtype dtype = AMP_FP32; dtype <= AMP_BF16; dtype++)
    for (int groups = 1; groups < 3; groups++) {
        problem p;
        /* 48 tiles, whose last row and column are cut off */
        begin(&p, describe(3, 15, 13, 48, 80, groups, dtype));
        needs_winograd(&p);
        run(&p);
        results want = keep(&p);
        for (size_t i = 0; i < COUNT(blocks) * COUNT(somes) * COUNT(outs); i++) {
            omp_set_num_threads(1 + (int)(i % 4));
            cut(&p, blocks[i % 4], somes[i / 4 % 3], outs[i / 12]);
            run(&p);
            compare_bits(&p, &want);
        }
        forget(want);
        omp_set_num_threads(1);
        p.conv->winograd[AMP_WINOGRAD_WEIGHTS].parts = 3;
        run(&p);
        want = keep(&p);
        for (int i = 0; i < 4; i++) {
            omp_set_num_threads(1 + i);
            p.conv->winograd[AMP_WINOGRAD_WEIGHTS].block = blocks[i];
            run(&p);
            compare_bits(&p, &want);
        }
        omp_set_num_threads(1);
        forget(want);
        end(&p);
    }
}

TEST(both_instruction_sets_give_the_same_bits)
{
    problem p;
    if (!amp_cpu_rows_best()->winograd_panel || amp_cpu_widest() < AMP_CPU_AVX512) skip();
    begin(&p, describe(3, 15, 13, 48, 80, 1, AMP_BF16));
    run(&p);
    results want = keep(&p);
    backend->conv_destroy(backend, p.conv);
    setenv("AMP_CPU_ISA", "avx2", 1);
    create(&p);
    assert_string_equal(p.conv->winograd[AMP_WINOGRAD_FORWARD].rows->name, "avx2");
    unsetenv("AMP_CPU_ISA");
    run(&p);
    compare_bits(&p, &want);
    forget(want);
    end(&p);
}

/* ---- numbers ---- */

/* The passes in double, and the unit of each result's error: the sum over channels (by weights: over tiles)
 * of the largest factor of the tile, times the other factor's absolute values. Rounding errors in a tile
 * spread over all of it. */
typedef struct truth { double *y, *dx, *dw, *y_size, *dx_size, *dw_size; } truth;

static double *doubles(size_t count)
{
    double *zeros = calloc(count, sizeof *zeros);
    assert_non_null(zeros);
    return zeros;
}

/* The largest of the pixels of one channel that the tile at (top, left) reads, `around` more on each side. */
static double largest(const problem *p, const void *data, int channels, int n, int top, int left, int around,
                      int channel)
{
    double most = 0;
    for (int y = top - around; y < top + 4 + around; y++)
        for (int x = left - around; x < left + 4 + around; x++) {
            if (y < 0 || x < 0 || y >= p->d.x.h || x >= p->d.x.w) continue;
            size_t i = (((size_t)n * (size_t)p->d.x.h + (size_t)y) * (size_t)p->d.x.w + (size_t)x)
                * (size_t)channels + (size_t)channel;
            most = fmax(most, fabs((double)number_of(p->d.dtype, data, i)));
        }
    return most;
}

static truth compute(const problem *p)
{
    truth t = { doubles(p->y_count), doubles(p->x_count), doubles(p->w_count), doubles(p->y_count),
                doubles(p->x_count), doubles(p->w_count) };
    int h = p->d.x.h, w = p->d.x.w, c = p->d.x.c, k = p->d.k, each = c / p->d.groups;
    conv_sums(&p->d, FORWARD, p->x, p->dy, p->w, t.y, NULL);
    conv_sums(&p->d, BACKWARD_DATA, p->x, p->dy, p->w, t.dx, NULL);
    conv_sums(&p->d, BACKWARD_WEIGHTS, p->x, p->dy, p->w, t.dw, NULL);
    for (int n = 0; n < p->d.x.n; n++)
    for (int i = 0; i < h; i++)
    for (int j = 0; j < w; j++) {
        size_t here = ((size_t)n * (size_t)h + (size_t)i) * (size_t)w + (size_t)j;
        int top = i / 4 * 4, left = j / 4 * 4;
        double x_most[64], dy_most[64], dy_inside[64];
        for (int a = 0; a < c; a++) x_most[a] = largest(p, p->x, c, n, top, left, 1, a);
        for (int b = 0; b < k; b++) dy_most[b] = largest(p, p->dy, k, n, top, left, 1, b);
        for (int b = 0; b < k; b++) dy_inside[b] = largest(p, p->dy, k, n, top, left, 0, b);
        for (int b = 0; b < k; b++)
        for (int i_c = 0; i_c < each; i_c++)
        for (int q = 0; q < 9; q++) {
            size_t wi = ((size_t)b * (size_t)each + (size_t)i_c) * 9 + (size_t)q;
            int a = b / (k / p->d.groups) * each + i_c;
            t.y_size[here * (size_t)k + (size_t)b] += x_most[a] * fabs((double)p->w[wi]);
            t.dx_size[here * (size_t)c + (size_t)a] += dy_most[b] * fabs((double)p->w[wi]);
            t.dw_size[wi] += x_most[a] * dy_inside[b];
        }
    }
    for (size_t i = 0; i < p->y_count; i++) t.y[i] += (double)p->bias[i % (size_t)k];
    for (size_t i = 0; i < p->x_count; i++) t.dx[i] += (double)number_of(p->d.dtype, p->x, i);
    return t;
}

/* The largest error seen is 5e-6 of this unit: if one weight is 1000 times as large as the other eight. With
 * numbers of equal size it is 1e-6. */
static const double share = 1e-5;

static void compare(const problem *p, const char *what, const void *got, int floats, const double *want,
                    const double *sizes, size_t count)
{
    double rounding = floats || p->d.dtype == AMP_FP32 ? 0x1p-23 : p->d.dtype == AMP_BF16 ? 0x1p-8 : 0x1p-11;
    for (size_t i = 0; i < count; i++) {
        double value = floats ? (double)((const float *)got)[i] : (double)number_of(p->d.dtype, got, i);
        double bound = share * sizes[i] + rounding * fabs(want[i]);
        if (!(fabs(value - want[i]) <= bound))
            fail_msg("%s: element %zu is %.9g, not %.9g within %.3g", what, i, value, want[i], bound);
    }
}

static void run_and_compare(problem *p)
{
    truth t = compute(p);
    run(p);
    compare(p, "forward", p->y, 0, t.y, t.y_size, p->y_count);
    compare(p, "backward by data", p->dx, 0, t.dx, t.dx_size, p->x_count);
    compare(p, "backward by weights", p->dw, 1, t.dw, t.dw_size, p->w_count);
    double *all[] = { t.y, t.dx, t.dw, t.y_size, t.dx_size, t.dw_size };
    for (size_t i = 0; i < COUNT(all); i++) free(all[i]);
}

static void multiply_channel(problem *p, void *data, size_t count, size_t channels, float by)
{
    for (size_t i = 3; i < count; i += channels)
        set_number(p->d.dtype, data, i, by * number_of(p->d.dtype, data, i));
}

TEST(agrees_with_double_precision_at_any_scale)
{
    static const float scales[] = { 1e-4f, 1, 1e3f };
    for (size_t s = 0; s < COUNT(scales); s++)
    for (int uneven = 0; uneven < 2; uneven++)
    for (int parts = 0; parts < 2; parts++) {
        problem p;
        begin(&p, describe(2, 13, 14, 16, 32, 1, s == 1 ? AMP_BF16 : AMP_FP32));
        needs_winograd(&p);
        if (parts) p.conv->winograd[AMP_WINOGRAD_WEIGHTS].parts = 2;
        for (size_t i = 0; i < p.w_count; i++) p.w[i] *= scales[s];
        if (uneven) { /* one channel of each tensor, and some filters */
            multiply_channel(&p, p.x, p.x_count, 16, 1000);
            multiply_channel(&p, p.dy, p.y_count, 32, 1000);
            for (size_t i = 0; i < p.w_count; i += 7) p.w[i] *= 1000;
        }
        run_and_compare(&p);
        end(&p);
    }
}

/* All pairs of 1 to 4 rows and columns in the last tiles. */
TEST(narrow_tiles_agree_with_double_precision)
{
    for (int h = 9; h <= 12; h++)
    for (int w = 9; w <= 12; w++)
    for (int parts = 0; parts < 2; parts++) {
        problem p;
        begin(&p, describe(2, h, w, 16, 32, 1 + h % 2, (h + w) % 2 ? AMP_FP16 : AMP_FP32));
        needs_winograd(&p);
        p.conv->winograd[AMP_WINOGRAD_WEIGHTS].parts = parts ? 2 : 0;
        for (int pass = 0; parts && pass < AMP_WINOGRAD_PASSES; pass++) p.conv->winograd[pass].block = 5;
        run_and_compare(&p);
        end(&p);
    }
}

/* Numbers near fp32's largest, for which no direct sum becomes inf: one at a time in x, dy and w. Without
 * precautions the transforms would overflow, and a step would be skipped. */
TEST(is_finite_where_the_direct_sum_is)
{
    for (int which = 0; which < 3; which++)
    for (int rectangles = 0; rectangles < 2; rectangles++)
    for (amp_dtype dtype = AMP_FP32; dtype <= AMP_BF16; dtype++) {
        problem p;
        if (dtype == AMP_FP16 && which < 2) continue; /* it does not have these numbers */
        begin(&p, describe(2, 13, 14, 32, 32, 2, dtype));
        needs_winograd(&p);
        if (rectangles) cut(&p, 20, 16, 32);
        else p.conv->winograd[AMP_WINOGRAD_WEIGHTS].parts = 2;
        for (size_t i = 0; i < p.x_count; i++)
            set_number(dtype, p.x, i, .001f * number_of(dtype, p.x, i));
        for (size_t i = 0; i < p.y_count; i++)
            set_number(dtype, p.dy, i, .001f * number_of(dtype, p.dy, i));
        if (which == 0) set_number(dtype, p.x, p.x_count / 2, 2e38f);
        if (which == 1) set_number(dtype, p.dy, p.y_count / 2, -2e38f);
        if (which == 2) p.w[p.w_count / 2] = 2e38f;
        if (which == 2 && dtype == AMP_FP16) /* to keep the result in range */
            for (size_t i = 0; i < p.x_count; i++)
                set_number(dtype, p.x, i, 0), set_number(dtype, p.dy, i, 0);
        run_and_compare(&p);
        end(&p);
    }
}

static size_t not_finite(amp_dtype dtype, const void *data, size_t count)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) found += !amp_is_finite(number_of(dtype, data, i));
    return found;
}

/* In forward an inf only affects the nine pixels around it; in backward it is in the gradient, and
 * spreads. */
TEST(an_inf_spreads_no_further_forward_and_is_found_backward)
{
    for (int in_dy = 0; in_dy < 2; in_dy++)
    for (int rectangles = 0; rectangles < 2; rectangles++)
    for (amp_dtype dtype = AMP_FP32; dtype <= AMP_BF16; dtype++) {
        problem p;
        begin(&p, describe(2, 13, 14, 32, 32, 2, dtype));
        needs_winograd(&p);
        if (rectangles) cut(&p, 20, 16, 32);
        else p.conv->winograd[AMP_WINOGRAD_WEIGHTS].parts = 2;
        /* In the second image and group: four tiles read its pixel. */
        set_number(dtype, in_dy ? p.dy : p.x, (13 * 14 + 7 * 14 + 7) * 64 + 32 + 5, INFINITY);
        run(&p);
        assert_int_equal(not_finite(dtype, p.y, p.y_count), in_dy ? 0 : 9 * 32);
        assert_int_equal(not_finite(AMP_FP32, p.dw, p.w_count), 9 * 32); /* of one channel or filter */
        if (in_dy) assert_in_range(not_finite(dtype, p.dx, p.x_count), 9 * 32, 4 * 16 * 32);
        end(&p);
    }
}

/* ---- the rule ---- */

/* A convolution for which all passes use Winograd, and variants that differ in one number. */
TEST(the_rule_is_of_shapes)
{
#define NUMBER(name) offsetof(amp_conv_desc, name)
    static const struct { size_t number; int value; int passes[AMP_WINOGRAD_PASSES]; } cases[] = {
        { NUMBER(training), 1, { 1, 1, 1 } }, { NUMBER(wants_dx), 0, { 1, 0, 1 } },
        { NUMBER(training), 0, { 1, 0, 0 } }, { NUMBER(x.h), 13, { 1, 1, 1 } },
        { NUMBER(x.h), 4, { 0, 0, 0 } /* 8 tiles */ }, { NUMBER(x.c), 3, { 0, 0, 0 } },
        { NUMBER(x.w), 1, { 0, 0, 0 } },
        { NUMBER(x.c), 48, { 1, 1, 1 } }, { NUMBER(k), 255, { 0, 0, 0 } }, { NUMBER(stride), 2, { 0, 0, 0 } },
        { NUMBER(stride_x), 2, { 0, 0, 0 } }, { NUMBER(pad), 0, { 0, 0, 0 } },
        { NUMBER(dilation), 2, { 0, 0, 0 } }, { NUMBER(dilation), 1, { 1, 1, 1 } },
        { NUMBER(groups), 2, { 1, 1, 1 } }, { NUMBER(groups), 4, { 0, 0, 0 } },
        { NUMBER(size_h), 5, { 0, 0, 0 } }, { NUMBER(size_w), 1, { 0, 0, 0 } },
        { NUMBER(transposed), 1, { 0, 0, 0 } }, { NUMBER(direct), 1, { 0, 0, 0 } } };
    if (!amp_cpu_rows_best()->winograd_panel) skip();
    for (size_t i = 0; i < COUNT(cases); i++) {
        amp_conv_desc d = describe(2, 32, 16, 32, 64, 1, AMP_FP32);
        memcpy((char *)&d + cases[i].number, &cases[i].value, sizeof cases[i].value);
        for (int pass = 0; pass < AMP_WINOGRAD_PASSES; pass++)
            if (amp_winograd_make(&d, (amp_winograd_pass)pass, AMP_FP32).is_used != cases[i].passes[pass])
                fail_msg("case %zu, pass %d", i, pass);
    }
}

/* A folded batch norm's weights are freed after they are loaded. */
TEST(masters_that_do_not_stay_are_copied)
{
    problem p;
    amp_error error;
    begin(&p, describe(2, 9, 9, 16, 32, 2, AMP_FP32));
    needs_winograd(&p);
    run(&p);
    float *y = allocate(p.y_count * sizeof *y), *dx = allocate(p.x_count * sizeof *dx);
    memcpy(y, p.y, p.y_count * sizeof *y);
    memcpy(dx, p.dx, p.x_count * sizeof *dx);
    memset(p.w, 0xff, p.w_count * sizeof *p.w);
    memcpy(p.dx, p.x, p.x_count * sizeof(float));
    if (backend->conv_forward(backend, p.conv, p.x, p.bias, p.y, &error)
        || backend->conv_backward_data(backend, p.conv, p.dy, p.dx, 1, &error)) fail_msg("%s", error.message);
    assert_memory_equal(p.y, y, p.y_count * sizeof *y);
    assert_memory_equal(p.dx, dx, p.x_count * sizeof *dx);
    backend->conv_drop_weights(backend, p.conv);
    assert_int_not_equal(backend->conv_forward(backend, p.conv, p.x, p.bias, p.y, &error), AMP_OK);
    assert_non_null(strstr(error.message, "its weights were not loaded"));
    backend->release(backend, y);
    backend->release(backend, dx);
    end(&p);
}

TEST(tells_which_passes_it_computes)
{
    problem p;
    amp_conv_facts facts;
    begin(&p, describe(2, 13, 13, 16, 32, 2, AMP_FP32));
    needs_winograd(&p);
    backend->conv_facts(backend, p.conv, &facts);
    assert_string_equal(facts.winograd, "all passes");
    assert_string_equal(facts.kernel, "winograd");
    assert_int_equal(facts.computes, AMP_FP32);
    assert_int_equal(facts.weight_bytes, p.w_count * sizeof *p.w);
    for (int pass = 0; pass < AMP_WINOGRAD_PASSES; pass++)
        assert_true(facts.workspace_bytes >= amp_winograd_scratch(&p.conv->winograd[pass]));
    backend->conv_destroy(backend, p.conv);
    p.d.masters_stay = 1;
    create(&p);
    backend->conv_facts(backend, p.conv, &facts);
    assert_int_equal(facts.weight_bytes, 0);
    backend->conv_destroy(backend, p.conv);
    p.d.direct = 1;
    create(&p);
    backend->conv_facts(backend, p.conv, &facts);
    assert_string_equal(facts.winograd, "");
    assert_string_not_equal(facts.kernel, "winograd");
    end(&p);
}

int main(void)
{
    amp_error error;
    backend = amp_cpu_backend_create(&error);
    if (!backend) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    amp_cpu_library(backend)->why_stored[AMP_BF16] = "a test"; /* this makes halves the same as fp32
                                                                  everywhere */
    amp_cpu_library(backend)->why_stored[AMP_FP16] = "a test";
    int failed = run_listed_tests("Winograd convolutions", NULL, NULL);
    backend->destroy(backend);
    return failed;
}
