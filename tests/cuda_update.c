/* What the CUDA backend's update does beyond backend.h: it may be told on the device to skip, and it keeps a table of the
 * parameters there. On the doubles; what it computes is test_cuda_double_kernels_update's. */
#include "kernel_cases.h"

#include "backend/cuda/kernels.h"
#ifndef ON_DEVICE /* a real one does not count, nor fail when told to */
#include "cuda_doubles.h"
#endif

enum { PARAMS = 3, COUNT_OF_EACH = 9001 }; /* two chunks */

static const amp_update_args step = { .learning_rate = .01f, .momentum = .9f, .batch = 4, .inverse_scale = .5, .t = 1,
    .beta1 = .9f, .beta2 = .999f, .eps = 1e-7f };

static void make(amp_param params[PARAMS])
{
    for (int i = 0; i < PARAMS; ++i) {
        uint32_t seed = 100u * (uint32_t)i;
        params[i] = (amp_param){ .master = filled_array(COUNT_OF_EACH, seed + 1, -1, 1),
            .grad = filled_array(COUNT_OF_EACH, seed + 2, -1, 1), .momentum = filled_array(COUNT_OF_EACH, seed + 3, -1, 1),
            .m = filled_array(COUNT_OF_EACH, seed + 4, -1, 1), .v = filled_array(COUNT_OF_EACH, seed + 5, 0, 1),
            .count = COUNT_OF_EACH, .rate_scale = 1, .name = "weights" };
    }
}

static void destroy(amp_param params[PARAMS])
{
    for (int i = 0; i < PARAMS; ++i) {
        release(params[i].master); release(params[i].grad); release(params[i].momentum); release(params[i].m);
        release(params[i].v);
    }
}

/* 1: all of a's arrays but the gradients hold the bits of b's. */
static int same_weights(const amp_param a[PARAMS], const amp_param b[PARAMS])
{
    size_t bytes = COUNT_OF_EACH * sizeof(float);
    for (int i = 0; i < PARAMS; ++i)
        if (memcmp(a[i].master, b[i].master, bytes) || memcmp(a[i].momentum, b[i].momentum, bytes) ||
            memcmp(a[i].m, b[i].m, bytes) || memcmp(a[i].v, b[i].v, bytes)) return 0;
    return 1;
}

static amp_status update_unless(amp_param *params, const amp_update_args *args, const int *skip, amp_error *e)
{
    return amp_cuda_update_unless(backend, params, PARAMS, args, skip, e);
}

/* The finding itself is the flag: no copy through the host between the check and the update. */
static void an_update_skips_what_the_device_found_infinite(void **state)
{
    (void)state;
    for (int adam = 0; adam < 2; ++adam)
        for (int bad = 0; bad < 2; ++bad) {
            amp_param mine[PARAMS], before[PARAMS], updated[PARAMS];
            amp_update_args args = step;
            double squares;
            int found;
            args.adam = adam;
            make(mine);
            make(before);
            make(updated);
            if (bad) mine[2].grad[COUNT_OF_EACH - 1] = INFINITY;
            ASSERT_OK(CALL(check_gradients, mine, PARAMS, 1, &found, &squares, e));
            assert_int_equal(found, bad);
            assert_non_null(amp_cuda_found_inf(backend));
            ASSERT_OK(update_unless(mine, &args, amp_cuda_found_inf(backend), e));
            ASSERT_OK(CALL(update, updated, PARAMS, &args, e));
            assert_true(same_weights(mine, bad ? before : updated));
            assert_false(same_weights(mine, bad ? updated : before));
            for (int i = 0; i < PARAMS; ++i)
                for (size_t k = 0; k < COUNT_OF_EACH; ++k) assert_true(mine[i].grad[k] == 0);
            destroy(mine);
            destroy(before);
            destroy(updated);
        }
}

#ifndef ON_DEVICE
static void one_launch_updates_all_parameters(void **state)
{
    (void)state;
    amp_param p[PARAMS];
    double squares;
    int found;
    make(p);
    ASSERT_OK(CALL(check_gradients, p, PARAMS, 1, &found, &squares, e));
    long before = amp_cuda_launches();
    ASSERT_OK(CALL(update, p, PARAMS, &step, e));
    assert_int_equal(amp_cuda_launches() - before, 1);
    before = amp_cuda_launches();
    ASSERT_OK(CALL(check_gradients, p, PARAMS, 1, &found, &squares, e));
    assert_int_equal(amp_cuda_launches() - before, 2); /* the chunks', and their sum */
    destroy(p);
}
#endif

/* Every field that an update reads. */
static void a_changed_list_of_parameters_is_noticed(void **state)
{
    (void)state;
    for (int field = 0; field < 6; ++field) {
        amp_param p[PARAMS], q[PARAMS];
        amp_backend *other = machine.create(NULL);
        assert_non_null(other);
        make(p);
        make(q);
        ASSERT_OK(CALL(update, p, PARAMS, &step, e));
        amp_param *c = &p[1];
        if (field == 0) c->count = 17;
        if (field == 1) c->decay = .1f;
        if (field == 2) c->rate_scale = .5f;
        if (field == 3) c->clip = .125f;
        if (field == 4) { float *grad = c->grad; c->grad = p[2].grad; p[2].grad = grad; }
        if (field == 5) { float *master = c->master; c->master = p[2].master; p[2].master = master; }
        for (int i = 0; i < PARAMS; ++i) {
            memcpy(q[i].master, p[i].master, COUNT_OF_EACH * sizeof(float));
            memcpy(q[i].momentum, p[i].momentum, COUNT_OF_EACH * sizeof(float));
            for (size_t k = 0; k < COUNT_OF_EACH; ++k) p[i].grad[k] = q[i].grad[k] = (float)(k % 31) - (float)i;
            q[i].count = p[i].count, q[i].decay = p[i].decay, q[i].rate_scale = p[i].rate_scale, q[i].clip = p[i].clip;
        }
        ASSERT_OK(CALL(update, p, PARAMS, &step, e));
        amp_backend *first = backend;
        backend = other; /* has never seen another list */
        ASSERT_OK(CALL(update, q, PARAMS, &step, e));
        backend = first;
        assert_true(same_weights(p, q));
        other->destroy(other);
        destroy(p);
        destroy(q);
    }
}

#ifndef ON_DEVICE
static void memory_that_is_not_there_is_said_and_survived(void **state)
{
    static const char *const calls[] = { "cudaMalloc", "cudaMallocHost" };
    (void)state;
    for (size_t i = 0; i < COUNT(calls); ++i) {
        amp_param p[PARAMS], before[PARAMS];
        amp_backend *first = backend;
        backend = machine.create(NULL);
        assert_non_null(backend);
        make(p);
        make(before);
        amp_cuda_fail_call(calls[i], 1, cudaErrorMemoryAllocation);
        ASSERT_REFUSED(CALL(update, p, PARAMS, &step, e));
        assert_true(same_weights(p, before));
        ASSERT_OK(CALL(update, p, PARAMS, &step, e));
        assert_false(same_weights(p, before));
        backend->destroy(backend);
        backend = first;
        destroy(p);
        destroy(before);
    }
}
#endif

static int run(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_update_skips_what_the_device_found_infinite),
        cmocka_unit_test(a_changed_list_of_parameters_is_noticed),
#ifndef ON_DEVICE
        cmocka_unit_test(one_launch_updates_all_parameters),
        cmocka_unit_test(memory_that_is_not_there_is_said_and_survived),
#endif
    };
    return cmocka_run_group_tests_name(variant, tests, NULL, NULL);
}

int main(void)
{
#ifndef ON_DEVICE
    amp_cuda_any_stream(1); /* two backends have two */
#endif
    return for_each_variant(run);
}
