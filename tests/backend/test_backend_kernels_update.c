/* The fused update and the gradient check of a backend: against stock Darknet's separate steps bit for bit
 * where possible, otherwise against double precision. */
#include "kernel_cases.h"
#include "update_cases.h"

#include <float.h>

/* Arrays of about a vector, about a stretch of 16384 and several stretches; one is empty. */
static const size_t counts[] = { 1, 7, 16, 33, 0, 1000, 16384, 16385, 50001 };
enum { PARAMS = COUNT(counts) };

static void make(amp_param params[PARAMS])
{
    for (int i = 0; i < PARAMS; i++) params[i] = filled_param(i, counts[i], 0);
}

static void destroy(amp_param params[PARAMS])
{
    for (int i = 0; i < PARAMS; i++) release_param(&params[i], 0);
}

static void assert_alike(const amp_param a[PARAMS], const amp_param b[PARAMS])
{
    for (int i = 0; i < PARAMS; i++) assert_true(same_param(&a[i], &b[i]));
}

/* The end of a step that is taken. */
static amp_status updated(const amp_param *params, const amp_update_args *args, amp_error *error)
{
    amp_step_end end = { .params = params, .param_count = PARAMS, .update = *args };
    amp_step_outcome out = { 7, 7, 7 };
    amp_status status = backend->finish_step(backend, &end, &out, error);
    assert_int_equal(out.taken, status == AMP_OK);
    return status;
}

enum { SGD, ADAM, ADAMW, SOLVERS };

static void choose(amp_update_args *args, int solver)
{
    args->adam = solver != SGD;
    args->adamw = solver == ADAMW;
}

/* update_convolutional_layer: each step rounds to float, as separate calls do. */
TEST(behaviour_11_fused_sgd_equals_unscale_decay_axpy_scal_bit_for_bit)
{
    NEEDS(finish_step);
    amp_param mine[PARAMS], stock[PARAMS];
    amp_update_args args = usual_update;
    make(mine);
    make(stock);
    for (int step = 0; step < 3; step++) {
        args.inverse_scale = step == 2 ? 0.000123f : 0x1p-16f;
        for (int i = 0; i < PARAMS; i++) for (size_t k = 0; k < counts[i]; k++) {
            volatile float w = stock[i].master[k], update = stock[i].momentum[k], product;
            float rate = args.learning_rate * stock[i].rate_scale;
            product = stock[i].grad[k] * (float)args.inverse_scale;
            update = update + product;
            product = -stock[i].decay * (float)args.batch * w;
            update = update + product;
            product = rate / (float)args.batch * update;
            w = w + product;
            stock[i].master[k] = w;
            stock[i].momentum[k] = update * args.momentum;
        }
        ASSERT_OK(updated(mine, &args, e));
        assert_alike(mine, stock);
        for (int i = 0; i < PARAMS; i++)
            for (size_t k = 0; k < counts[i]; k++) {
                assert_int_equal(amp_float_bits(mine[i].grad[k]), 0);
                stock[i].grad[k] = mine[i].grad[k] = (float)(k % 17) - 5;
            }
    }
    destroy(mine);
    destroy(stock);
}

/* adam_update_gpu's calls one after the other: scal, scal, axpy, axpy, mul, axpy, and adam_kernel. */
TEST(behaviour_11_fused_adam_equals_darknets_calls_bit_for_bit)
{
    amp_param mine[PARAMS], stock[PARAMS];
    amp_update_args args = usual_update;
    args.adam = 1;
    make(mine);
    make(stock);
    for (args.t = 1; args.t <= 3; args.t++) {
        float b1 = args.beta1, b2 = args.beta2, c1 = 1.f - powf(b1, (float)args.t),
            c2 = 1.f - powf(b2, (float)args.t);
        args.inverse_scale = args.t == 2 ? (double)0.000123f : 0x1p-16;
        for (int i = 0; i < PARAMS; i++) for (size_t k = 0; k < counts[i]; k++) {
            volatile float w = stock[i].master[k], d = stock[i].grad[k], m = stock[i].m[k], v = stock[i].v[k],
                product, root;
            d = d * (float)args.inverse_scale;
            m = m * b1;
            v = v * b2;
            product = -stock[i].decay * (float)args.batch * w;
            d = d + product;
            product = (1 - b1) * d;
            m = m + product;
            d = d * d;
            product = (1 - b2) * d;
            v = v + product;
            volatile float mhat = m / c1, vhat = v / c2;
            root = sqrtf(vhat);
            root = root + args.eps;
            product = args.learning_rate * stock[i].rate_scale * mhat;
            product = product / root;
            stock[i].master[k] = w + product;
            stock[i].m[k] = m;
            stock[i].v[k] = v;
        }
        ASSERT_OK(updated(mine, &args, e));
        assert_alike(mine, stock);
        for (int i = 0; i < PARAMS; i++)
            for (size_t k = 0; k < counts[i]; k++) stock[i].grad[k] = mine[i].grad[k] = (float)(k % 17) - 5;
    }
    destroy(mine);
    destroy(stock);
}

/* Without history and decay, with momentum 1: the momentum afterwards is the gradient that the update
 * used. */
TEST(behaviour_02_finite_gradients_come_out_exactly_g_times_inv)
{
    static const float inverses[] = { 1, 0x1p-16f, 0.000123f, 3, 0x1p-126f };
    for (size_t s = 0; s < COUNT(inverses); s++) {
        amp_param p[PARAMS];
        float *grads[PARAMS];
        amp_update_args args = usual_update;
        args.momentum = 1;
        args.inverse_scale = (double)inverses[s];
        make(p);
        for (int i = 0; i < PARAMS; i++) {
            memset(p[i].momentum, 0, counts[i] * sizeof(float));
            p[i].decay = 0;
            if (s == 4) for (size_t k = 0; k < counts[i]; k++) p[i].grad[k] *= 0x1p100f;
            grads[i] = array_copy(p[i].grad, counts[i]);
        }
        ASSERT_OK(updated(p, &args, e));
        for (int i = 0; i < PARAMS; i++) {
            for (size_t k = 0; k < counts[i]; k++) {
                volatile float want = grads[i][k] * inverses[s];
                assert_int_equal(amp_float_bits(p[i].momentum[k]), amp_float_bits(want));
            }
            release(grads[i]);
        }
        destroy(p);
    }
}

/* Gradients 2^k larger under a scale of 2^k are the same gradients: weights, decay and everything else are
 * equal bit for bit. */
TEST(behaviour_12_weight_decay_acts_on_unscaled_values)
{
    for (int solver = 0; solver < SOLVERS; solver++) {
        amp_param scaled[PARAMS], plain[PARAMS];
        amp_update_args args = usual_update;
        choose(&args, solver);
        args.t = 2;
        make(scaled);
        make(plain);
        for (int i = 0; i < PARAMS; i++)
            for (size_t k = 0; k < counts[i]; k++) scaled[i].grad[k] *= 0x1p14f;
        args.inverse_scale = 0x1p-14;
        ASSERT_OK(updated(scaled, &args, e));
        args.inverse_scale = 1;
        ASSERT_OK(updated(plain, &args, e));
        assert_alike(scaled, plain);
        destroy(scaled);
        destroy(plain);
    }
}

/* torch.optim.AdamW, in double as torch computes it. */
static void step_of_pytorch(const amp_update_args *a, double decay, double g, double *w, double *m, double *v)
{
    double rate = (double)a->learning_rate, b1 = (double)a->beta1, b2 = (double)a->beta2;
    *w -= rate * decay * *w;
    *m = b1 * *m + (1 - b1) * g;
    *v = b2 * *v + (1 - b2) * g * g;
    *w -= rate * (*m / (1 - pow(b1, a->t))) / (sqrt(*v / (1 - pow(b2, a->t))) + (double)a->eps);
}

/* Whatever the loss scale, the batch and the gradient, a weight decays by rate·decay. Gradients have
 * Darknet's form: with the opposite sign, and multiplied by a loss scale. The tolerance is fp32's rounding of
 * the number itself, and of 1 - beta2^t, the smallest of which is 1 - beta2. */
TEST(behaviour_12_adamw_decays_as_pytorchs)
{
    enum { COPIES = 33, TRAININGS = 40, STEPS = 8 };
    static const float rates[] = { 1e-3f, 2e-3f, .05f }, decays[] = { 0, 5e-4f, .01f, .1f, 2 },
        epsilons[] = { 1e-8f, 1e-7f, 1e-3f }, betas[][2] = { { .9f, .999f }, { .875f, .9375f }, { .5f, .75f },
                                                             { 0, .5f }, { .95f, .99f } };
    NEEDS(finish_step);
    uint32_t seed = 5;
    for (int n = 0; n < TRAININGS; n++) {
        double w[COPIES], m[COPIES] = { 0 }, v[COPIES] = { 0 }, path[COPIES] = { 0 },
            size = pow(10, -3 + 5 * (double)uniform(&seed));
        amp_update_args torchs = { .learning_rate = rates[n % 3], .beta1 = betas[n % 5][0],
            .beta2 = betas[n % 5][1], .eps = epsilons[n / 3 % 3], .batch = 64, .inverse_scale = 0x1p-10,
            .adam = 1, .adamw = 1 };
        amp_param p = filled_param(n, COPIES, 0);
        p.decay = decays[n / 5 % 5];
        p.rate_scale = .5f;
        memset(p.m, 0, sizeof(float[COPIES]));
        memset(p.v, 0, sizeof(float[COPIES]));
        for (int k = 0; k < COPIES; k++) w[k] = (double)p.master[k];
        for (torchs.t = 1; torchs.t <= STEPS; torchs.t++) {
            for (int k = 0; k < COPIES; k++) {
                double before = w[k];
                float g = uniform(&seed) < .1f ? 0 : (uniform(&seed) * 4 - 2) * (float)size;
                p.grad[k] = -g * 0x1p10f;
                step_of_pytorch(&torchs, (double)p.decay, (double)g, &w[k], &m[k], &v[k]);
                path[k] += fabs(w[k] - before);
            }
            amp_step_end end = { .params = &p, .param_count = 1, .update = torchs };
            amp_step_outcome out = { 0 };
            end.update.learning_rate *= 2; /* which rate_scale halves */
            ASSERT_OK(CALL(finish_step, &end, &out, e));
            assert_int_equal(out.taken, 1);
            for (int k = 0; k < COPIES; k++)
                if (!(fabs((double)p.master[k] - w[k])
                      <= 0x1p-22 / (1 - (double)torchs.beta2) * path[k] + 0x1p-21 * fabs(w[k])))
                    fail_msg("training %d, step %d, copy %d: %.9g, not %.9g", n, torchs.t, k,
                             (double)p.master[k], w[k]);
        }
        release_param(&p, 0);
    }
}

/* constrain_kernel: fminf(clip, fmaxf(-clip, w)) applied to the result of the update without clip; history is
 * not changed. */
TEST(clip_is_darknets_constrain_after_the_update)
{
    for (int adam = 0; adam < 2; adam++) {
        amp_param clipped[PARAMS], plain[PARAMS];
        amp_update_args args = usual_update;
        size_t kept = 0, cut = 0;
        args.adam = adam;
        args.t = 2;
        make(clipped);
        make(plain);
        for (int i = 0; i < PARAMS; i++) clipped[i].clip = i == 5 ? 0 : .25f;
        ASSERT_OK(updated(clipped, &args, e));
        ASSERT_OK(updated(plain, &args, e));
        for (int i = 0; i < PARAMS; i++) for (size_t k = 0; k < counts[i]; k++) {
            float want = plain[i].master[k];
            if (i != 5) want = fminf(.25f, fmaxf(-.25f, want));
            assert_int_equal(amp_float_bits(clipped[i].master[k]), amp_float_bits(want));
            assert_int_equal(amp_float_bits(clipped[i].momentum[k]), amp_float_bits(plain[i].momentum[k]));
            assert_int_equal(amp_float_bits(clipped[i].v[k]), amp_float_bits(plain[i].v[k]));
            if (want == plain[i].master[k]) ++kept;
            else ++cut;
        }
        assert_true(kept > 1000 && cut > 1000);
        destroy(clipped);
        destroy(plain);
    }
}

/* clip_norm can require a factor below fp32's smallest number, which a host built with -Ofast flushes to
 * 0. */
TEST(a_factor_below_fp32_still_unscales)
{
    static const double factors[] = { 0x1p-126, 0x1p-127, 1e-40, 3e-43, 1e-52 };
    for (size_t s = 0; s < COUNT(factors); s++) {
        amp_param p[PARAMS];
        amp_update_args args = usual_update;
        args.momentum = 1;
        args.inverse_scale = factors[s];
        make(p);
        for (int i = 0; i < PARAMS; i++) {
            memset(p[i].momentum, 0, counts[i] * sizeof(float));
            p[i].decay = 0;
            for (size_t k = 0; k < counts[i]; k++) p[i].grad[k] = k & 1 ? FLT_MAX : -FLT_MAX / 3;
        }
        ASSERT_OK(updated(p, &args, e));
        for (int i = 0; i < PARAMS; i++) for (size_t k = 0; k < counts[i]; k++) {
            double want = (double)(k & 1 ? FLT_MAX : -FLT_MAX / 3) * factors[s];
            assert_true(fabs((double)p[i].momentum[k] - want) <= fabs(want) * 0x1p-22);
        }
        destroy(p);
    }
}

TEST(update_is_the_same_for_any_count_of_processors_and_variant)
{
    NEEDS(check_gradients);
    NEEDS(finish_step);
    for (int solver = 0; solver < SOLVERS; solver++) {
        amp_param a[PARAMS], b[PARAMS];
        amp_update_args args = usual_update;
        double squares_a, squares_b;
        int found;
        choose(&args, solver);
        args.t = 3;
        make(a);
        make(b);
        machine.set_processors(backend, 3);
        ASSERT_OK(CALL(check_gradients, a, PARAMS, .37f, &found, &squares_a, e));
        ASSERT_OK(updated(a, &args, e));
        machine.set_processors(backend, 1);
        machine.select(machine.variants[0]);
        ASSERT_OK(CALL(check_gradients, b, PARAMS, .37f, &found, &squares_b, e));
        ASSERT_OK(updated(b, &args, e));
        machine.select(variant);
        assert_memory_equal(&squares_a, &squares_b, sizeof squares_a);
        assert_alike(a, b);
        destroy(a);
        destroy(b);
    }
    machine.set_processors(backend, 0);
}

static void check(const amp_param *params, float inverse_scale, int want_found)
{
    int found = 99;
    double squares = -1;
    ASSERT_OK(CALL(check_gradients, params, PARAMS, inverse_scale, &found, &squares, e));
    assert_int_equal(found, want_found);
}

TEST(behaviour_02_one_bad_gradient_is_found_wherever_it_lies)
{
    static const uint32_t bad[] = { 0x7f800000u, 0xff800000u, 0x7fc00000u, 0x7f800001u, 0xffffffffu,
                                    0x7fbfffffu };
    NEEDS(check_gradients);
    amp_param p[PARAMS];
    make(p);
    check(p, 1, 0);
    for (int i = 0; i < PARAMS; i++) {
        size_t n = counts[i], step = n > 64 ? n / 37 : 1;
        /* Includes the last one. */
        for (size_t k = 0; k < n; k = k + 1 < n && k + step >= n ? n - 1 : k + step) {
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

/* Every start and length around a vector's, so that whole vectors and tails begin anywhere. */
TEST(behaviour_02_a_bad_gradient_is_found_in_unaligned_tails)
{
    float *memory = filled_array(160, 3, -50, 50), *other = filled_array(160, 4, -1, 1);
    for (size_t start = 0; start < 17; start++)
        for (size_t n = 1; n < 70; n++)
            for (size_t at = 0; at < 3; at++) {
                amp_param p = { .master = other, .grad = memory + start, .momentum = other, .count = n,
                                .name = "weights" };
                int found;
                double squares;
                float *bad = &memory[start + (at == 0 ? 0 : at == 1 ? n / 2 : n - 1)], old = *bad;
                memory[start + n] = NAN; /* elements after the end are not read */
                ASSERT_OK(CALL(check_gradients, &p, 1, 1, &found, &squares, e));
                assert_int_equal(found, 0);
                *bad = at & 1 ? NAN : -INFINITY;
                ASSERT_OK(CALL(check_gradients, &p, 1, 1, &found, &squares, e));
                assert_int_equal(found, 1);
                *bad = old;
                memory[start + n] = 1;
            }
    release(memory);
    release(other);
}

TEST(behaviour_03_a_scale_of_one_still_checks)
{
    amp_param p[PARAMS];
    make(p);
    check(p, 1, 0);
    p[3].grad[32] = NAN;
    check(p, 1, 1);
    p[3].grad[32] = INFINITY;
    check(p, 1, 1);
    p[3].grad[32] = 1;
    check(p, 1, 0);
    destroy(p);
}

/* The largest gradients under the smallest possible loss scale, and the smallest under the largest. */
TEST(no_norm_overflows_or_vanishes)
{
    amp_param p[PARAMS];
    int found;
    double squares, n = 0;
    make(p);
    for (int i = 0; i < PARAMS; i++) {
        n += (double)counts[i];
        for (size_t k = 0; k < counts[i]; k++) p[i].grad[k] = FLT_MAX;
    }
    ASSERT_OK(CALL(check_gradients, p, PARAMS, FLT_MAX, &found, &squares, e));
    assert_int_equal(found, 0);
    assert_true(fabs(squares / (n * pow((double)FLT_MAX, 4)) - 1) < 1e-12);
    for (int i = 0; i < PARAMS; i++)
        for (size_t k = 0; k < counts[i]; k++) p[i].grad[k] = FLT_MIN;
    ASSERT_OK(CALL(check_gradients, p, PARAMS, 0x1p-126f, &found, &squares, e));
    assert_true(fabs(squares / (n * pow((double)FLT_MIN, 4)) - 1) < 1e-12);
    destroy(p);
}

TEST(sum_of_squares_is_that_of_the_unscaled_gradients)
{
    NEEDS(check_gradients);
    amp_param p[PARAMS];
    double want = 0, got;
    int found;
    make(p);
    for (int i = 0; i < PARAMS; i++)
        for (size_t k = 0; k < counts[i]; k++) want += pow((double)p[i].grad[k] * (double).37f, 2);
    ASSERT_OK(CALL(check_gradients, p, PARAMS, .37f, &found, &got, e));
    assert_true(fabs(got - want) < want * 1e-12);
    for (int i = 0; i < PARAMS; i++) /* and nothing has changed */
        for (size_t k = 0; k < counts[i]; k++) assert_true(p[i].grad[k] >= -50 && p[i].grad[k] <= 50);
    ASSERT_OK(CALL(check_gradients, p, 0, 1, &found, &got, e));
    assert_true(found == 0 && got == 0);
    destroy(p);
}

int main(void) { return for_each_variant(run_listed); }
