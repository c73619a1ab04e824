/* The end of a step as a whole: everything or nothing, with a non-finite number anywhere; clip_norm's factor;
 * statistics. test_backend_kernels_update tests the update itself. */
#include "kernel_cases.h"
#include "update_cases.h"

#include <float.h>

/* Sizes around a vector, and around the chunks of CUDA's blocks and the CPU's threads. */
static const size_t counts[] = { 1, 33, 0, 8192, 16385 };
static const size_t sizes[] = { 7, 0, 1, 8193 };
enum { PARAMS = COUNT(counts), STATES = COUNT(sizes), UNALIGNED = 1 };

typedef struct network {
    amp_param params[PARAMS];
    amp_statistics statistics[STATES];
} network;

/* The last parameter and the last statistic are not aligned to 16 bytes. */
static size_t off_of(int i, int count) { return i == count - 1 ? UNALIGNED : 0; }

static void make(network *n)
{
    for (int i = 0; i < PARAMS; i++) n->params[i] = filled_param(i, counts[i], off_of(i, PARAMS));
    n->params[3].clip = .5f;
    for (int i = 0; i < STATES; i++) {
        uint32_t seed = 1000u + 10u * (uint32_t)i;
        size_t off = off_of(i, STATES), all = sizes[i] + off;
        n->statistics[i] = (amp_statistics){ .array = filled_array(all, seed, -9, 9) + off,
            .committed = filled_array(all, seed + 1, -9, 9) + off, .count = sizes[i], .layer = i };
    }
}

static void destroy(network *n)
{
    for (int i = 0; i < PARAMS; i++) release_param(&n->params[i], off_of(i, PARAMS));
    for (int i = 0; i < STATES; i++) {
        release(n->statistics[i].array - off_of(i, STATES));
        release(n->statistics[i].committed - off_of(i, STATES));
    }
}

/* Compares everything, or everything except gradients. */
static int same(const network *a, const network *b, int gradients)
{
    for (int i = 0; i < PARAMS; i++) {
        const amp_param *p = &a->params[i], *q = &b->params[i];
        if (!same_param(p, q)) return 0;
        if (gradients && memcmp(p->grad, q->grad, counts[i] * sizeof(float))) return 0;
    }
    for (int i = 0; i < STATES; i++) {
        const amp_statistics *s = &a->statistics[i], *t = &b->statistics[i];
        size_t bytes = sizes[i] * sizeof(float);
        if (memcmp(s->array, t->array, bytes) || memcmp(s->committed, t->committed, bytes)) return 0;
    }
    return 1;
}

static amp_step_end end_of(const network *n, const amp_update_args *args)
{
    return (amp_step_end){ .params = n->params, .statistics = n->statistics, .param_count = PARAMS,
        .statistics_count = STATES, .update = *args };
}

static amp_step_outcome finished(const network *n, const amp_update_args *args)
{
    amp_step_end end = end_of(n, args);
    amp_step_outcome out = { 7, 7, NAN };
    ASSERT_OK(CALL(finish_step, &end, &out, e));
    return out;
}

/* √(Σ (g·inverse_scale)²)/batch. */
static double norm_of(const network *n, const amp_update_args *args)
{
    double sum = 0;
    for (int i = 0; i < PARAMS; i++) for (size_t k = 0; k < counts[i]; k++) {
        double g = (double)n->params[i].grad[k] * args->inverse_scale;
        sum += g * g;
    }
    return sqrt(sum) / args->batch;
}

/* Statistic i of n, and what is committed of it, are those that `before` began with. */
static void assert_committed(const network *n, const network *before, int i)
{
    size_t bytes = sizes[i] * sizeof(float);
    assert_memory_equal(n->statistics[i].array, before->statistics[i].array, bytes);
    assert_memory_equal(n->statistics[i].committed, before->statistics[i].array, bytes);
}

TEST(a_step_that_is_taken_moves_everything_once)
{
    NEEDS(finish_step);
    for (int adam = 0; adam < 2; adam++) {
        network mine, other;
        amp_update_args args = usual_update;
        args.adam = adam;
        make(&mine);
        make(&other);
        double norm = norm_of(&mine, &args);
        amp_step_outcome out = finished(&mine, &args);
        assert_int_equal(out.taken, 1);
        /* 25000 sums, each with an error of at most 2^-53. */
        assert_true(fabs(out.gradient_norm - norm) <= norm * 1e-13);
        for (int i = 0; i < STATES; i++) assert_committed(&mine, &other, i);
        for (int i = 0; i < PARAMS; i++) for (size_t k = 0; k < counts[i]; k++)
            assert_int_equal(amp_float_bits(mine.params[i].grad[k]), 0);
        assert_false(same(&mine, &other, 0));
        finished(&other, &args);
        assert_true(same(&mine, &other, 1));
        destroy(&mine);
        destroy(&other);
    }
}

/* The first and the last element of each array. Gradients must not change either: they are searched for the
 * cause. */
TEST(a_step_with_one_bad_number_anywhere_moves_nothing)
{
    static const uint32_t bad[] = { 0x7f800000u, 0xff800000u, 0x7fc00000u, 0x7f800001u };
    NEEDS(finish_step);
    network mine, before;
    unsigned tried = 0;
    make(&mine);
    make(&before);
    for (int i = 0; i < PARAMS + STATES; i++) {
        size_t count = i < PARAMS ? counts[i] : sizes[i - PARAMS];
        for (int last = 0; last < 2 && count; last++, tried++) {
            float *a = i < PARAMS ? mine.params[i].grad : mine.statistics[i - PARAMS].array;
            float *b = i < PARAMS ? before.params[i].grad : before.statistics[i - PARAMS].array,
                old = a[last ? count - 1 : 0];
            amp_update_args args = usual_update;
            args.adam = tried & 1;
            args.inverse_scale = tried & 2 ? 1 : 0x1p-16f;
            args.clip_norm = tried & 4 ? 1 : 0;
            memcpy(&a[last ? count - 1 : 0], &bad[tried % COUNT(bad)], 4);
            memcpy(&b[last ? count - 1 : 0], &bad[tried % COUNT(bad)], 4);
            assert_int_equal(finished(&mine, &args).taken, 0);
            assert_true(same(&mine, &before, 1));
            a[last ? count - 1 : 0] = b[last ? count - 1 : 0] = old;
        }
    }
    assert_int_equal(finished(&mine, &usual_update).taken, 1);
    assert_false(same(&mine, &before, 1));
    destroy(&mine);
    destroy(&before);
}

/* Compares with the factor that the engine would compute. The last bound requires a factor that is not a
 * normal float. */
TEST(clip_norm_is_a_factor_in_double)
{
    static const double bounds[] = { 1e9, 1e-3, 3.7e-8, 1e-42 };
    NEEDS(finish_step);
    for (size_t k = 0; k < 2 * COUNT(bounds); k++) {
        network clipped, plain;
        amp_update_args args = usual_update;
        args.adam = k % 2;
        args.clip_norm = bounds[k / 2];
        make(&clipped);
        make(&plain);
        double norm = finished(&clipped, &args).gradient_norm;
        if (norm > args.clip_norm) args.inverse_scale *= args.clip_norm / norm;
        assert_int_equal(norm > args.clip_norm, k / 2 > 0);
        assert_int_equal(args.inverse_scale < (double)FLT_MIN, k / 2 == 3);
        args.clip_norm = 0;
        finished(&plain, &args);
        assert_true(same(&clipped, &plain, 1));
        destroy(&clipped);
        destroy(&plain);
    }
}

/* The gradients do not change either, and the norm is reported. A bad number takes precedence over the
 * limit. */
TEST(a_step_above_the_norms_limit_moves_nothing)
{
    NEEDS(finish_step);
    network mine, other;
    amp_update_args args = usual_update;
    make(&mine);
    make(&other);
    double norm = finished(&mine, &args).gradient_norm;
    destroy(&mine);
    const double limits[] = { norm * (1 - 0x1p-40), -1, norm / 1000 };
    make(&mine);
    for (size_t k = 0; k < COUNT(limits); k++) {
        args.norm_limit = limits[k];
        amp_step_outcome out = finished(&mine, &args);
        assert_true(!out.taken && out.above_limit == 1 && out.gradient_norm == norm);
        assert_true(same(&mine, &other, 1));
    }
    float old = mine.params[0].grad[0];
    mine.params[0].grad[0] = INFINITY;
    amp_step_outcome out = finished(&mine, &args);
    assert_true(!out.taken && !out.above_limit);
    mine.params[0].grad[0] = old;
    args.norm_limit = norm;
    out = finished(&mine, &args);
    assert_true(out.taken == 1 && !out.above_limit);
    assert_false(same(&mine, &other, 0));
    destroy(&mine);
    destroy(&other);
}

TEST(a_step_of_nothing_is_taken)
{
    NEEDS(finish_step);
    network n;
    make(&n);
    const amp_step_end ends[] = { { .update = usual_update },
        { .params = &n.params[2], .param_count = 1, .update = usual_update }, /* without elements */
        { .statistics = n.statistics, .statistics_count = STATES, .update = usual_update } };
    for (size_t i = 0; i < COUNT(ends); i++) {
        amp_step_outcome out = { 7, 7, NAN };
        ASSERT_OK(CALL(finish_step, &ends[i], &out, e));
        assert_true(out.taken == 1 && out.gradient_norm == 0);
    }
    for (int i = 0; i < STATES; i++) assert_committed(&n, &n, i);
    destroy(&n);
}

/* Between two steps of one list, other lists are checked and updated. */
TEST(lists_may_change_from_call_to_call)
{
    NEEDS(finish_step);
    NEEDS(check_gradients);
    network mine, other, third;
    int found;
    double squares;
    amp_step_outcome out;
    make(&mine);
    make(&other);
    make(&third);
    for (int round = 0; round < 6; round++) {
        amp_step_end end = end_of(&mine, &usual_update);
        end.param_count = PARAMS - round % 3;
        end.statistics_count = STATES - round % 2;
        for (int i = 0; i < PARAMS; i++) for (size_t k = 0; k < counts[i]; k++)
            mine.params[i].grad[k] = other.params[i].grad[k] = (float)(k % 31) - (float)round;
        for (int i = 0; i < STATES; i++) for (size_t k = 0; k < sizes[i]; k++)
            mine.statistics[i].array[k] = other.statistics[i].array[k] = (float)(k % 17) - (float)round;
        ASSERT_OK(CALL(finish_step, &end, &out, e));
        for (int i = 0; i < PARAMS; i++) { /* one by one */
            amp_step_end one = { .params = &other.params[i], .param_count = i < end.param_count,
                .statistics = &other.statistics[i], .statistics_count = i < end.statistics_count,
                .update = usual_update };
            ASSERT_OK(CALL(finish_step, &one, &out, e));
        }
        ASSERT_OK(CALL(check_gradients, third.params, PARAMS, 1, &found, &squares, e));
        assert_true(same(&mine, &other, 1));
    }
    destroy(&mine);
    destroy(&other);
    destroy(&third);
}

TEST(statistics_are_kept_and_restored_as_they_are)
{
    NEEDS(copy_statistics);
    network mine, before;
    make(&mine);
    make(&before);
    mine.statistics[0].array[3] = before.statistics[0].array[3] = NAN; /* compares bytes, not numbers */
    ASSERT_OK(CALL(copy_statistics, mine.statistics, STATES, 0, e));
    for (int i = 0; i < STATES; i++) {
        assert_committed(&mine, &before, i);
        for (size_t k = 0; k < sizes[i]; k++) mine.statistics[i].array[k] = -7;
    }
    ASSERT_OK(CALL(copy_statistics, mine.statistics, STATES - 1, 1, e));
    ASSERT_OK(CALL(copy_statistics, mine.statistics, 0, 1, e));
    for (int i = 0; i < STATES - 1; i++) assert_committed(&mine, &before, i);
    assert_true(mine.statistics[STATES - 1].array[5] == -7); /* not in the list */
    destroy(&mine);
    destroy(&before);
}

int main(void) { return for_each_variant(run_listed); }
