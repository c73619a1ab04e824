/* The fused update and the gradient check of a backend: against stock Darknet's separate steps bit for bit where
 * that is possible, against double precision where it is not. */
#include "kernel_cases.h"

#include <float.h>

/* Arrays around a vector, a stretch of 16384 and several of them; an empty one among them. */
static const size_t counts[] = { 1, 7, 16, 33, 0, 1000, 16384, 16385, 50001 };
enum { PARAMS = COUNT(counts) };

static void make(amp_param params[PARAMS])
{
    for (int i = 0; i < PARAMS; ++i) {
        uint32_t seed = 100u * (uint32_t)i;
        size_t n = counts[i];
        params[i] = (amp_param){ .master = filled_array(n, seed + 1, -1, 1), .grad = filled_array(n, seed + 2, -50, 50),
            .momentum = filled_array(n, seed + 3, -3, 3), .m = filled_array(n, seed + 4, -3, 3),
            .v = filled_array(n, seed + 5, 0, 9), .count = n, .decay = i & 1 ? .0005f : 0,
            .rate_scale = i & 2 ? .5f : 1, .layer = i, .name = "weights" };
    }
}

static void destroy(amp_param params[PARAMS])
{
    for (int i = 0; i < PARAMS; ++i) {
        release(params[i].master); release(params[i].grad); release(params[i].momentum); release(params[i].m); release(params[i].v);
    }
}

static const amp_update_args sgd_args = { .learning_rate = .01f, .momentum = .9f, .batch = 64,
    .inverse_scale = 0x1p-16f, .beta1 = .9f, .beta2 = .999f, .eps = 1e-7f };

/* update_convolutional_layer: each step rounds to float, as separate calls do. */
static void sgd_equals_darknets_axpy_axpy_scal_bit_for_bit(void **state)
{
    (void)state;
    NEEDS(update);
    amp_param mine[PARAMS], stock[PARAMS];
    amp_update_args args = sgd_args;
    make(mine);
    make(stock);
    for (int step = 0; step < 3; ++step) {
        args.inverse_scale = step == 2 ? 0.000123f : 0x1p-16f;
        for (int i = 0; i < PARAMS; ++i) for (size_t k = 0; k < counts[i]; ++k) {
            volatile float w = stock[i].master[k], update = stock[i].momentum[k], product;
            float rate = args.learning_rate * stock[i].rate_scale;
            product = stock[i].grad[k] * args.inverse_scale;
            update = update + product;
            product = -stock[i].decay * (float)args.batch * w;
            update = update + product;
            product = rate / (float)args.batch * update;
            w = w + product;
            stock[i].master[k] = w;
            stock[i].momentum[k] = update * args.momentum;
        }
        ASSERT_OK(CALL(update, mine, PARAMS, &args, e));
        for (int i = 0; i < PARAMS; ++i) {
            assert_memory_equal(mine[i].master, stock[i].master, counts[i] * sizeof(float));
            assert_memory_equal(mine[i].momentum, stock[i].momentum, counts[i] * sizeof(float));
            for (size_t k = 0; k < counts[i]; ++k) {
                assert_int_equal(amp_float_bits(mine[i].grad[k]), 0);
                stock[i].grad[k] = mine[i].grad[k] = (float)(k % 17) - 5;
            }
        }
    }
    destroy(mine);
    destroy(stock);
}

static void sgd_is_the_formula_in_double(void **state)
{
    (void)state;
    NEEDS(update);
    amp_param p[PARAMS], old[PARAMS];
    make(p);
    make(old);
    ASSERT_OK(CALL(update, p, PARAMS, &sgd_args, e));
    for (int i = 0; i < PARAMS; ++i) for (size_t k = 0; k < counts[i]; ++k) {
        double step = (double)old[i].momentum[k] + (double)old[i].grad[k] * 0x1p-16 -
            (double)old[i].decay * 64 * (double)old[i].master[k];
        double rate = (double).01f * (double)old[i].rate_scale / 64;
        assert_rounded(AMP_FP32, (double)p[i].momentum[k], step * (double).9f, 0x1p-20, "momentum", k);
        assert_rounded(AMP_FP32, (double)p[i].master[k], (double)old[i].master[k] + rate * step, 0x1p-25, "master", k);
    }
    destroy(p);
    destroy(old);
}

/* adam_update_gpu of Darknet's blas_kernels.cu. */
static void adam_is_darknets_for_every_t(void **state)
{
    static const int ts[] = { 1, 2, 10, 1000, 100000 };
    (void)state;
    NEEDS(update);
    for (size_t s = 0; s < COUNT(ts); ++s) {
        amp_param p[PARAMS], old[PARAMS];
        amp_update_args args = sgd_args;
        args.adam = 1;
        args.t = ts[s];
        make(p);
        make(old);
        if (ts[s] == 1) for (int i = 0; i < PARAMS; ++i) { /* as at the start of training */
            memset(p[i].m, 0, counts[i] * sizeof(float));
            memset(p[i].v, 0, counts[i] * sizeof(float));
        }
        ASSERT_OK(CALL(update, p, PARAMS, &args, e));
        double correction1 = (double)(1.f - powf(.9f, (float)ts[s])), correction2 = (double)(1.f - powf(.999f, (float)ts[s]));
        for (int i = 0; i < PARAMS; ++i) for (size_t k = 0; k < counts[i]; ++k) {
            double w = (double)old[i].master[k], m0 = ts[s] == 1 ? 0 : (double)old[i].m[k];
            double v0 = ts[s] == 1 ? 0 : (double)old[i].v[k];
            double d = (double)old[i].grad[k] * 0x1p-16 - (double)old[i].decay * 64 * w;
            double m = (double).9f * m0 + (double)(1 - .9f) * d, v = (double).999f * v0 + (double)(1 - .999f) * d * d;
            double rate = (double)(.01f * old[i].rate_scale) / correction1 / (sqrt(v / correction2) + (double)1e-7f);
            double size = fabs((double).9f * m0) + .1 * (fabs((double)old[i].grad[k]) * 0x1p-16 + .04 * fabs(w));
            assert_rounded(AMP_FP32, (double)p[i].m[k], m, 0x1p-22 * size, "m", k);
            assert_rounded(AMP_FP32, (double)p[i].v[k], v, 0x1p-22 * v + 0x1p-22 * .001 * fabs(d), "v", k);
            assert_rounded(AMP_FP32, (double)p[i].master[k], w + rate * m, rate * size * 0x1p-21, "master", k);
            assert_int_equal(amp_float_bits(p[i].grad[k]), 0);
            assert_true(p[i].momentum[k] == old[i].momentum[k]);
        }
        destroy(p);
        destroy(old);
    }
}

static void update_is_the_same_for_any_count_of_processors_and_variant(void **state)
{
    (void)state;
    NEEDS(check_gradients);
    NEEDS(update);
    for (int adam = 0; adam < 2; ++adam) {
        amp_param a[PARAMS], b[PARAMS];
        amp_update_args args = sgd_args;
        double squares_a, squares_b;
        int found;
        args.adam = adam;
        args.t = 3;
        make(a);
        make(b);
        machine.set_processors(backend, 3);
        ASSERT_OK(CALL(check_gradients, a, PARAMS, .37f, &found, &squares_a, e));
        ASSERT_OK(CALL(update, a, PARAMS, &args, e));
        machine.set_processors(backend, 1);
        machine.select(machine.variants[0]);
        ASSERT_OK(CALL(check_gradients, b, PARAMS, .37f, &found, &squares_b, e));
        ASSERT_OK(CALL(update, b, PARAMS, &args, e));
        machine.select(variant);
        assert_memory_equal(&squares_a, &squares_b, sizeof squares_a);
        for (int i = 0; i < PARAMS; ++i) {
            assert_memory_equal(a[i].master, b[i].master, counts[i] * sizeof(float));
            assert_memory_equal(a[i].momentum, b[i].momentum, counts[i] * sizeof(float));
        }
        destroy(a);
        destroy(b);
    }
    machine.set_processors(backend, 0);
}

static void update_needs_the_arrays_of_its_solver(void **state)
{
    (void)state;
    NEEDS(update);
    amp_param p[PARAMS];
    amp_update_args args = sgd_args;
    make(p);
    float *momentum = p[3].momentum, *v = p[3].v, before = p[0].master[0];
    p[3].momentum = NULL;
    ASSERT_REFUSED(CALL(update, p, PARAMS, &args, e));
    assert_true(p[0].master[0] == before); /* refused means nothing was moved */
    p[3].momentum = momentum;
    p[3].v = NULL;
    args.adam = args.t = 1;
    ASSERT_REFUSED(CALL(update, p, PARAMS, &args, e));
    assert_true(p[0].master[0] == before);
    p[3].v = v;
    destroy(p);
}

static void check(const amp_param *params, float inverse_scale, int want_found)
{
    int found = 99;
    double squares = -1;
    ASSERT_OK(CALL(check_gradients, params, PARAMS, inverse_scale, &found, &squares, e));
    assert_int_equal(found, want_found);
}

static void one_bad_gradient_is_found_wherever_it_lies(void **state)
{
    static const uint32_t bad[] = { 0x7f800000u, 0xff800000u, 0x7fc00000u, 0x7f800001u, 0xffffffffu, 0x7fbfffffu };
    (void)state;
    NEEDS(check_gradients);
    amp_param p[PARAMS];
    make(p);
    check(p, 1, 0);
    for (int i = 0; i < PARAMS; ++i) {
        size_t n = counts[i], step = n > 64 ? n / 37 : 1;
        for (size_t k = 0; k < n; k = k + 1 < n && k + step >= n ? n - 1 : k + step) { /* always the last one too */
            float old = p[i].grad[k];
            uint32_t bits = bad[k % COUNT(bad)];
            memcpy(&p[i].grad[k], &bits, sizeof bits);
            check(p, k & 1 ? 1 : 0x1p-24f, 1);
            p[i].grad[k] = old;
        }
    }
    check(p, 0x1p-16f, 0);
    destroy(p);
}

static void large_and_subnormal_gradients_are_finite(void **state)
{
    (void)state;
    NEEDS(check_gradients);
    amp_param p[PARAMS];
    make(p);
    for (size_t k = 0; k < counts[5]; ++k) p[5].grad[k] = k & 1 ? FLT_MAX : -FLT_MIN / 4;
    check(p, 1, 0);
    int found;
    double squares;
    ASSERT_OK(CALL(check_gradients, p, PARAMS, 1, &found, &squares, e));
    assert_true(isfinite(squares) && squares > 500 * (double)FLT_MAX * (double)FLT_MAX * .99);
    destroy(p);
}

static void sum_of_squares_is_that_of_the_unscaled_gradients(void **state)
{
    (void)state;
    NEEDS(check_gradients);
    amp_param p[PARAMS];
    double want = 0, got;
    int found;
    make(p);
    for (int i = 0; i < PARAMS; ++i)
        for (size_t k = 0; k < counts[i]; ++k) want += pow((double)p[i].grad[k] * (double).37f, 2);
    ASSERT_OK(CALL(check_gradients, p, PARAMS, .37f, &found, &got, e));
    assert_true(fabs(got - want) < want * 1e-12);
    for (int i = 0; i < PARAMS; ++i) /* and nothing moved */
        for (size_t k = 0; k < counts[i]; ++k) assert_true(p[i].grad[k] >= -50 && p[i].grad[k] <= 50);
    ASSERT_OK(CALL(check_gradients, p, 0, 1, &found, &got, e));
    assert_true(found == 0 && got == 0);
    destroy(p);
}

static int run(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sgd_equals_darknets_axpy_axpy_scal_bit_for_bit),
        cmocka_unit_test(sgd_is_the_formula_in_double),
        cmocka_unit_test(adam_is_darknets_for_every_t),
        cmocka_unit_test(update_is_the_same_for_any_count_of_processors_and_variant),
        cmocka_unit_test(update_needs_the_arrays_of_its_solver),
        cmocka_unit_test(one_bad_gradient_is_found_wherever_it_lies),
        cmocka_unit_test(large_and_subnormal_gradients_are_finite),
        cmocka_unit_test(sum_of_squares_is_that_of_the_unscaled_gradients),
    };
    return cmocka_run_group_tests_name(variant, tests, NULL, NULL);
}

int main(void) { return for_each_variant(run); }
