/* Conformance of a backend's locally connected layers: every shape of a table, in every dtype, against
 * sums in double precision.
 *
 * Inputs and weights are rounded to the dtype first, so that a backend that computes in the dtype and one
 * that widens it must agree. Outputs are NaN before they are overwritten. */
#include "kernel_cases.h"

typedef struct local_case {
    const char *what; int n, c, h, w, k, size, stride, pad, out_h, out_w;
} local_case;

static const local_case cases[] = {
    { "as yolov1's",                    2, 16, 7, 7, 24, 3, 1, 1, 7, 7 },
    { "no padding",                     3, 8, 6, 5, 8, 3, 1, 0, 4, 3 },
    { "stride 2, odd sizes",            2, 5, 9, 7, 3, 3, 2, 1, 5, 4 },
    { "stride larger than the window",  1, 8, 9, 8, 16, 1, 3, 0, 3, 3 },
    { "1x1",                            4, 16, 3, 5, 7, 1, 1, 0, 3, 5 },
    { "one channel",                    2, 1, 8, 8, 4, 3, 1, 1, 8, 8 },
    { "one filter, one image",          1, 24, 4, 4, 1, 3, 1, 1, 4, 4 },
    { "even window",                    2, 16, 8, 6, 5, 2, 2, 0, 4, 3 },
    { "5x5, two pixels of padding",     1, 8, 6, 6, 4, 5, 1, 2, 6, 6 },
    /* windows that reach beyond the padding */
    { "5x5, one pixel of padding",      1, 3, 6, 6, 4, 5, 1, 1, 6, 6 },
    { "window of the whole image",      3, 9, 3, 3, 10, 3, 1, 0, 1, 1 },
    { "one pixel",                      2, 40, 1, 1, 8, 1, 1, 0, 1, 1 },
};

typedef struct fixture {
    amp_local *local;
    amp_local_desc d;
    amp_tensor x, y, dx, dy;
    size_t w_count;
    float *w, *dw;
    double *want, *magnitude; /* of the largest of x, y and w */
} fixture;

static void fill_rounded(amp_dtype dtype, float *w, size_t count)
{
    amp_tensor one = poisoned(dtype, 1, 1, 1, 1);
    uint32_t seed = 9;
    for (size_t i = 0; i < count; i++) {
        set_element(&one, 0, 2 * uniform(&seed) - 1);
        w[i] = (float)element(&one, 0);
    }
    release(one.data);
}

static void begin(fixture *f, const local_case *s, amp_dtype dtype, int training)
{
    f->d = (amp_local_desc){ { s->n, s->c, s->h, s->w }, { s->n, s->k, s->out_h, s->out_w }, s->size,
                             s->stride, s->pad, dtype, training };
    f->x = filled(dtype, s->n, s->h, s->w, s->c, 1, -1, 1);
    f->dy = filled(dtype, s->n, s->out_h, s->out_w, s->k, 2, -1, 1);
    f->y = poisoned(dtype, s->n, s->out_h, s->out_w, s->k);
    f->dx = poisoned(dtype, s->n, s->h, s->w, s->c);
    f->w_count = (size_t)s->out_h * s->out_w * s->k * amp_local_window(&f->d);
    f->w = filled_array(f->w_count, 3, 0, 0);
    f->dw = filled_array(f->w_count, 4, -1, 1);
    fill_rounded(dtype, f->w, f->w_count);
    size_t most = f->w_count + amp_shape_count(f->x.shape) + amp_shape_count(f->y.shape);
    f->want = calloc(most, sizeof *f->want), f->magnitude = calloc(most, sizeof *f->magnitude);
    ASSERT_OK(CALL(local_create, &f->d, &f->local, e));
    ASSERT_OK(CALL(local_load_weights, f->local, f->w, e));
}

static void end(fixture *f)
{
    void *all[] = { f->x.data, f->y.data, f->dx.data, f->dy.data, f->w, f->dw };
    backend->local_destroy(backend, f->local);
    for (size_t i = 0; i < COUNT(all); i++) release(all[i]);
    free(f->want);
    free(f->magnitude);
}

typedef enum pass { FORWARD, BACKWARD_DATA, BACKWARD_WEIGHTS } pass;

static void add_term(fixture *f, pass which, size_t xi, size_t yi, size_t wi)
{
    size_t to = which == FORWARD ? yi : which == BACKWARD_DATA ? xi : wi;
    double a = which == BACKWARD_DATA ? element(&f->dy, yi) : element(&f->x, xi);
    double term = a * (which == BACKWARD_WEIGHTS ? element(&f->dy, yi) : (double)f->w[wi]);
    f->want[to] += term;
    f->magnitude[to] += fabs(term);
}

/* want += the pass in double, magnitude += its terms' absolute values. */
static void reference(fixture *f, pass which)
{
    const amp_local_desc *d = &f->d;
    for (int n = 0; n < d->x.n; n++)
    for (int i = 0; i < d->y.h; i++)
    for (int j = 0; j < d->y.w; j++)
    for (int r = 0; r < d->size; r++)
    for (int s = 0; s < d->size; s++) {
        int row = i * d->stride - d->pad + r, column = j * d->stride - d->pad + s;
        if (row < 0 || row >= d->x.h || column < 0 || column >= d->x.w) continue;
        for (int k = 0; k < d->y.c; k++)
        for (int c = 0; c < d->x.c; c++) {
            size_t place = (size_t)i * d->y.w + j;
            size_t xi = (((size_t)n * d->x.h + row) * d->x.w + column) * d->x.c + c;
            size_t yi = ((size_t)n * d->y.h * d->y.w + place) * d->y.c + k;
            add_term(f, which, xi, yi, (((place * d->y.c + k) * d->x.c + c) * d->size + r) * d->size + s);
        }
    }
}

static void start_at(fixture *f, size_t i, double value)
{
    f->want[i] = value;
    f->magnitude[i] = fabs(value);
}

static void start(fixture *f, size_t count) { for (size_t i = 0; i < count; i++) start_at(f, i, 0); }

static void compare(const fixture *f, const char *what, const amp_tensor *got)
{
    for (size_t i = 0; i < amp_shape_count(got->shape); i++)
        assert_rounded(got->dtype, element(got, i), f->want[i], 0x1p-20 * f->magnitude[i], what, i);
}

static amp_tensor gradient_of(const fixture *f)
{
    return (amp_tensor){ f->dw, AMP_FP32, AMP_NHWC, { 1, (int)f->w_count, 1, 1 } };
}

typedef struct local_test { const local_case *shape; amp_dtype dtype; } local_test;

static void agrees_with_double_precision(void **state)
{
    NEEDS(local_create);
    const local_test *t = *state;
    fixture f;
    begin(&f, t->shape, t->dtype, 1);
    size_t x_count = amp_shape_count(f.x.shape), y_count = amp_shape_count(f.y.shape);

    start(&f, y_count);
    reference(&f, FORWARD);
    ASSERT_OK(CALL(local_forward, f.local, f.x.data, f.y.data, e));
    compare(&f, "forward", &f.y);

    start(&f, x_count);
    reference(&f, BACKWARD_DATA);
    ASSERT_OK(CALL(local_backward_data, f.local, f.dy.data, f.dx.data, 0, e));
    compare(&f, "backward by data", &f.dx);

    /* What is there nearly cancels what is added: a sum of two roundings would not pass. */
    for (size_t i = 0; i < x_count; i++) {
        set_element(&f.dx, i, (float)(-1.01 * f.want[i]));
        start_at(&f, i, element(&f.dx, i));
    }
    reference(&f, BACKWARD_DATA);
    ASSERT_OK(CALL(local_backward_data, f.local, f.dy.data, f.dx.data, 1, e));
    compare(&f, "backward by data, adding", &f.dx);

    amp_tensor dw = gradient_of(&f);
    for (size_t i = 0; i < f.w_count; i++) start_at(&f, i, (double)f.dw[i]);
    for (int twice = 0; twice < 2; twice++) {
        reference(&f, BACKWARD_WEIGHTS);
        ASSERT_OK(CALL(local_backward_weights, f.local, f.x.data, f.dy.data, f.dw, e));
        compare(&f, "backward by weights", &dw);
    }
    end(&f);
}

/* -------------------------------------------------------------------------------------- single behaviours */

/* Columns of 49 places of 9216 numbers of 80 images: 72 MB in half. */
TEST(a_layer_larger_than_its_scratch_is_taken_in_slices)
{
    NEEDS(local_create);
    static const local_case large = { "large", 80, 1024, 7, 7, 1, 3, 1, 1, 7, 7 };
    fixture f;
    begin(&f, &large, AMP_FP16, 1);
    amp_tensor dw = gradient_of(&f);
    start(&f, amp_shape_count(f.y.shape));
    reference(&f, FORWARD);
    ASSERT_OK(CALL(local_forward, f.local, f.x.data, f.y.data, e));
    compare(&f, "forward", &f.y);
    start(&f, amp_shape_count(f.x.shape));
    reference(&f, BACKWARD_DATA);
    ASSERT_OK(CALL(local_backward_data, f.local, f.dy.data, f.dx.data, 0, e));
    compare(&f, "backward by data", &f.dx);
    for (size_t i = 0; i < f.w_count; i++) start_at(&f, i, (double)f.dw[i]);
    reference(&f, BACKWARD_WEIGHTS);
    ASSERT_OK(CALL(local_backward_weights, f.local, f.x.data, f.dy.data, f.dw, e));
    compare(&f, "backward by weights", &dw);
    end(&f);
}

/* A bad number spoils what depends on it, and nothing else; but in the gradient of weights also those that it
 * meets beside the image, where it is multiplied with 0. */
TEST(spreads_non_finite_inputs)
{
    NEEDS(local_create);
    for (size_t s = 0; s < 4; s++)
    for (size_t t = 0; t < COUNT(all_dtypes); t++)
    for (int inf = 0; inf < 2; inf++) {
        fixture f;
        begin(&f, &cases[s], all_dtypes[t], 1);
        amp_tensor dw = gradient_of(&f), *results[] = { &f.y, &f.dx, &dw };
        set_element(&f.x, amp_shape_count(f.x.shape) / 2, inf ? INFINITY : NAN);
        set_element(&f.dy, amp_shape_count(f.dy.shape) / 2, inf ? INFINITY : NAN);
        memset(f.dw, 0, f.w_count * sizeof *f.dw);
        ASSERT_OK(CALL(local_forward, f.local, f.x.data, f.y.data, e));
        ASSERT_OK(CALL(local_backward_data, f.local, f.dy.data, f.dx.data, 0, e));
        ASSERT_OK(CALL(local_backward_weights, f.local, f.x.data, f.dy.data, f.dw, e));
        for (pass p = FORWARD; p <= BACKWARD_WEIGHTS; p++) {
            size_t count = amp_shape_count(results[p]->shape);
            start(&f, count);
            reference(&f, p);
            for (size_t i = 0; i < count; i++) {
                if (p == BACKWARD_WEIGHTS && amp_is_finite((float)f.want[i])) continue;
                if (amp_is_finite((float)element(results[p], i)) != amp_is_finite((float)f.want[i]))
                    fail_msg("%s, %s, pass %d: element %zu is %g, not %g", cases[s].what,
                             amp_dtype_name(all_dtypes[t]), p, i, element(results[p], i), f.want[i]);
            }
        }
        end(&f);
    }
}

/* 32 images of 64·64 each exceed fp16's 65504: the gradient is fp32. */
TEST(weight_gradients_exceed_the_range_of_fp16)
{
    NEEDS(local_create);
    static const local_case many = { "many images", 32, 3, 4, 4, 2, 3, 1, 1, 4, 4 };
    for (size_t t = 0; t < COUNT(all_dtypes); t++) {
        fixture f;
        begin(&f, &many, all_dtypes[t], 1);
        amp_tensor dw = gradient_of(&f);
        fill(&f.x, 1, 64, 64);
        fill(&f.dy, 1, 64, 64);
        for (size_t i = 0; i < f.w_count; i++) start_at(&f, i, f.dw[i] = 0);
        reference(&f, BACKWARD_WEIGHTS);
        assert_true(f.want[4] == 32. * 64 * 64);
        ASSERT_OK(CALL(local_backward_weights, f.local, f.x.data, f.dy.data, f.dw, e));
        compare(&f, "weight gradients beyond 65504", &dw);
        end(&f);
    }
}

TEST(uses_new_weights_after_loading_again)
{
    NEEDS(local_create);
    for (size_t t = 0; t < COUNT(all_dtypes); t++) {
        amp_error error = { 0 };
        fixture f;
        begin(&f, &cases[0], all_dtypes[t], 1);
        ASSERT_OK(CALL(local_forward, f.local, f.x.data, f.y.data, e));
        for (size_t i = 0; i < f.w_count; i++) f.w[i] = -f.w[i];
        CALL(local_drop_weights, f.local);
        assert_int_equal(CALL(local_forward, f.local, f.x.data, f.y.data, &error), AMP_BACKEND_FAILED);
        assert_int_equal(CALL(local_backward_data, f.local, f.dy.data, f.dx.data, 0, &error),
                         AMP_BACKEND_FAILED);
        assert_non_null(strstr(error.message, "weights were not loaded"));
        ASSERT_OK(CALL(local_load_weights, f.local, f.w, e));
        start(&f, amp_shape_count(f.y.shape));
        reference(&f, FORWARD);
        ASSERT_OK(CALL(local_forward, f.local, f.x.data, f.y.data, e));
        compare(&f, "forward with new weights", &f.y);
        end(&f);
    }
}

TEST(refuses_what_cannot_be_and_backward_at_inference)
{
    NEEDS(local_create);
    static const struct { amp_local_desc d; const char *says; } bad[] = {
        { { { 0, 3, 8, 8 }, { 0, 4, 8, 8 }, 3, 1, 1, AMP_FP32, 1 }, "the input is empty" },
        { { { 1, 3, 2, 8 }, { 1, 4, 0, 6 }, 3, 1, 0, AMP_FP32, 1 }, "the output is empty" },
        { { { 2, 3, 8, 8 }, { 1, 4, 8, 8 }, 3, 1, 1, AMP_FP32, 1 }, "the output is empty" },
        { { { 1, 3, 8, 8 }, { 1, 4, 8, 8 }, 0, 1, 1, AMP_BF16, 1 }, "size and stride must be at least 1" },
        { { { 1, 3, 8, 8 }, { 1, 4, 8, 8 }, 3, 0, 1, AMP_FP32, 1 }, "size and stride must be at least 1" },
        { { { 1, 3, 8, 8 }, { 1, 4, 8, 8 }, 3, 1, -1, AMP_FP32, 1 }, "padding 0 or more" },
        { { { 1, 3000, 8, 8 }, { 1, 4, 8, 8 }, 1000, 1, 1, AMP_FP32, 1 }, "it is too large" },
    };
    amp_error error = { 0 };
    for (size_t i = 0; i < COUNT(bad); i++) {
        amp_local *local = NULL;
        assert_int_equal(CALL(local_create, &bad[i].d, &local, &error), AMP_BAD_NETWORK);
        assert_non_null(strstr(error.message, bad[i].says));
        assert_null(strchr(error.message, '\n'));
    }
    fixture f;
    begin(&f, &cases[0], AMP_FP32, 0);
    ASSERT_OK(CALL(local_forward, f.local, f.x.data, f.y.data, e));
    assert_int_equal(CALL(local_backward_data, f.local, f.dy.data, f.dx.data, 0, &error), AMP_BACKEND_FAILED);
    assert_int_equal(CALL(local_backward_weights, f.local, f.x.data, f.dy.data, f.dw, &error),
                     AMP_BACKEND_FAILED);
    assert_non_null(strstr(error.message, "without training"));
    backend->local_destroy(backend, NULL);
    end(&f);
}

TEST(tells_what_became_of_it)
{
    NEEDS(local_facts);
    fixture f;
    amp_conv_facts facts = { 0 };
    begin(&f, &cases[0], AMP_FP16, 1);
    backend->local_facts(backend, f.local, &facts);
    assert_true(facts.computes == AMP_FP16 || facts.computes == AMP_FP32);
    assert_int_equal(facts.padded_in, cases[0].c);
    assert_int_equal(facts.padded_out, cases[0].k);
    assert_true(facts.kernel[0] != '\0');
    end(&f);
}

static int run(void)
{
    static local_test tests[COUNT(cases) * 3];
    static char names[COUNT(cases) * 3][96];
    static struct CMUnitTest table[COUNT(cases) * 3];
    for (size_t i = 0; i < COUNT(table); i++) {
        tests[i] = (local_test){ &cases[i / 3], all_dtypes[i % 3] };
        snprintf(names[i], sizeof names[i], "%s, %s", cases[i / 3].what, amp_dtype_name(all_dtypes[i % 3]));
        table[i] = (struct CMUnitTest){ names[i], agrees_with_double_precision, NULL, NULL, &tests[i] };
    }
    int failed = _cmocka_run_group_tests("locally connected layers agree with double precision", table,
                                         COUNT(table), NULL, NULL);
    return run_listed_tests("locally connected layers", NULL, NULL) + failed;
}

int main(void) { return with_one_variant(run); }
