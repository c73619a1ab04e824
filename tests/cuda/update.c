/* What the end of a step costs on CUDA, and the tables that it keeps on the device. On the doubles; what it
 * computes is test_cuda_double_step's and test_cuda_double_kernels_update's. */
#include "kernel_cases.h"
#include "update_cases.h"

#include "backend/cuda/kernels.h"
#ifndef ON_DEVICE /* a real one does not count, nor fail when told to */
#include "cuda_doubles.h"
#endif

enum { PARAMS = 3, COUNT_OF_EACH = 9001 }; /* two chunks */

static void make(amp_param params[PARAMS])
{
    for (int i = 0; i < PARAMS; i++) params[i] = filled_param(i, COUNT_OF_EACH, 0);
}

static void destroy(amp_param params[PARAMS])
{
    for (int i = 0; i < PARAMS; i++) release_param(&params[i], 0);
}

static int same_weights(const amp_param a[PARAMS], const amp_param b[PARAMS])
{
    for (int i = 0; i < PARAMS; i++) if (!same_param(&a[i], &b[i])) return 0;
    return 1;
}

static amp_step_end end_of(const amp_param *params, const amp_statistics *statistics, int statistics_count)
{
    return (amp_step_end){ .params = params, .param_count = PARAMS, .statistics = statistics,
        .statistics_count = statistics_count, .update = usual_update };
}

static amp_status update(const amp_param *params, amp_error *error)
{
    amp_step_end end = end_of(params, NULL, 0);
    amp_step_outcome out;
    return backend->finish_step(backend, &end, &out, error);
}

/* Every field that an update reads. */
TEST(a_changed_list_of_parameters_is_noticed)
{
    for (int field = 0; field < 6; field++) {
        amp_param p[PARAMS], q[PARAMS];
        amp_backend *other = machine.create(NULL);
        assert_non_null(other);
        make(p);
        make(q);
        ASSERT_OK(update(p, e));
        amp_param *c = &p[1];
        if (field == 0) c->count = 17;
        if (field == 1) c->decay = .1f;
        if (field == 2) c->rate_scale = .5f;
        if (field == 3) c->clip = .125f;
        if (field == 4) { float *grad = c->grad; c->grad = p[2].grad; p[2].grad = grad; }
        if (field == 5) { float *master = c->master; c->master = p[2].master; p[2].master = master; }
        for (int i = 0; i < PARAMS; i++) {
            memcpy(q[i].master, p[i].master, COUNT_OF_EACH * sizeof(float));
            memcpy(q[i].momentum, p[i].momentum, COUNT_OF_EACH * sizeof(float));
            for (size_t k = 0; k < COUNT_OF_EACH; k++)
                p[i].grad[k] = q[i].grad[k] = (float)(k % 31) - (float)i;
            q[i].count = p[i].count, q[i].decay = p[i].decay, q[i].rate_scale = p[i].rate_scale,
                q[i].clip = p[i].clip;
        }
        ASSERT_OK(update(p, e));
        amp_backend *first = backend;
        backend = other; /* has never seen another list */
        ASSERT_OK(update(q, e));
        backend = first;
        assert_true(same_weights(p, q));
        other->destroy(other);
        destroy(p);
        destroy(q);
    }
}

#ifndef ON_DEVICE
/* 3 parameters, and many statistics: nothing is asked for one by one. */
enum { STATISTICS = 40 };

static void make_statistics(amp_statistics s[STATISTICS])
{
    for (int i = 0; i < STATISTICS; i++)
        s[i] = (amp_statistics){ .array = filled_array(5, 900u + (uint32_t)i, -1, 1),
                                 .committed = filled_array(5, 7, 2, 3), .count = 5 };
}

static void destroy_statistics(amp_statistics s[STATISTICS])
{
    for (int i = 0; i < STATISTICS; i++) release(s[i].array), release(s[i].committed);
}

static int committed(const amp_statistics s[STATISTICS])
{
    int count = 0;
    for (int i = 0; i < STATISTICS; i++) count += !memcmp(s[i].array, s[i].committed, 5 * sizeof(float));
    return count;
}

/* One more than what it makes is told to fail: no allocation, no wait but for the verdict, no copy but the
 * verdict's, and of launches the check, the verdict and what it allows. And the host has the verdict while
 * the update is still to be run. */
TEST(a_step_end_is_three_launches_one_copy_and_one_wait)
{
    static const struct { const char *function; int calls; } allowed[] = { { "cudaMalloc", 0 },
        { "cudaMallocHost", 0 }, { "cudaHostAlloc", 0 }, { "cudaEventCreate", 0 },
        { "cudaStreamSynchronize", 0 }, { "cudaDeviceSynchronize", 0 },
        { "cudaPointerGetAttributes", 0 }, { "cudaMemsetAsync", 0 }, { "cudaMemcpy", 0 },
        { "cudaMemcpyAsync", 1 }, { "cudaEventRecord", 1 }, { "cudaEventSynchronize", 1 } };
    for (int bad = 0; bad < 2; bad++) {
        amp_param p[PARAMS];
        amp_statistics s[STATISTICS];
        amp_step_outcome out;
        amp_error error;
        make(p);
        make_statistics(s);
        amp_step_end end = end_of(p, s, STATISTICS);
        ASSERT_OK(CALL(finish_step, &end, &out, e));
        for (int i = 0; i < STATISTICS; i++) s[i].array[0] = 5;
        if (bad) s[STATISTICS - 1].array[4] = NAN;
        end.update.learning_rate = .5f; /* what a policy changes is no part of the table */
        end.update.clip_norm = 1e-3;
        end.update.t = 2;
        for (size_t i = 0; i < COUNT(allowed); i++)
            amp_cuda_fail_call(allowed[i].function, allowed[i].calls + 1, cudaErrorUnknown);
        long before = amp_cuda_launches();
        machine.begin();
        assert_int_equal(backend->finish_step(backend, &end, &out, &error), AMP_OK);
        assert_int_equal(amp_cuda_launches() - before, 3);
        assert_int_equal(cudaStreamQuery(amp_cuda_of(backend)->stream), cudaErrorNotReady);
        for (size_t i = 0; i < COUNT(allowed); i++) amp_cuda_fail_call(allowed[i].function, 0, cudaSuccess);
        cudaGetLastError();
        assert_null(machine.finish(backend));
        assert_int_equal(out.taken, !bad);
        assert_int_equal(committed(s), bad ? 0 : STATISTICS);
        destroy_statistics(s);
        destroy(p);
    }
}

/* The kept list of the step is not another's. */
TEST(what_is_checked_meanwhile_costs_a_step_end_nothing)
{
    amp_param p[PARAMS];
    amp_statistics s[STATISTICS];
    amp_step_outcome out;
    double squares;
    int found;
    make(p);
    make_statistics(s);
    amp_step_end end = end_of(p, s, STATISTICS);
    ASSERT_OK(CALL(finish_step, &end, &out, e));
    ASSERT_OK(CALL(check_gradients, &p[1], 1, 1, &found, &squares, e));
    ASSERT_OK(CALL(copy_statistics, s, STATISTICS, 0, e));
    ASSERT_OK(CALL(copy_statistics, s, STATISTICS, 1, e)); /* of one list, both ways */
    amp_cuda_fail_call("cudaMemcpyAsync", 2, cudaErrorUnknown); /* the first is the verdict's */
    amp_cuda_fail_call("cudaStreamSynchronize", 2, cudaErrorUnknown); /* the first is ASSERT_OK's */
    ASSERT_OK(CALL(finish_step, &end, &out, e));
    amp_cuda_fail_call("cudaStreamSynchronize", 0, cudaSuccess);
    amp_cuda_fail_call("cudaMemcpyAsync", 1, cudaErrorUnknown);
    ASSERT_OK(CALL(copy_statistics, s, STATISTICS, 0, e));
    amp_cuda_fail_call("cudaMemcpyAsync", 0, cudaSuccess);
    destroy_statistics(s);
    destroy(p);
}

/* In a backend that has not done it before. Up to the last launch nothing is moved; a failure of the wait
 * finds the step queued, all of it. */
TEST(any_call_of_a_step_end_may_fail)
{
    static const struct { const char *function; int status, calls; } cases[] = {
        { "cudaMalloc", cudaErrorMemoryAllocation, 2 }, { "cudaMallocHost", cudaErrorMemoryAllocation, 1 },
        { "cudaEventCreate", cudaErrorUnknown, 1 }, { "cudaMemcpyAsync", cudaErrorUnknown, 2 },
        { "cudaStreamSynchronize", cudaErrorUnknown, 1 }, { "cudaEventRecord", cudaErrorUnknown, 1 },
        { "launch", cudaErrorInvalidConfiguration, 3 }, { "cudaEventSynchronize", cudaErrorUnknown, 1 } };
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int call = 1; call <= cases[i].calls; call++) {
            amp_param p[PARAMS], before[PARAMS], moved[PARAMS];
            amp_statistics s[STATISTICS];
            amp_step_outcome out;
            amp_backend *first = backend;
            int queued = !strcmp(cases[i].function, "cudaEventSynchronize");
            make(p);
            make(before);
            make(moved);
            make_statistics(s);
            ASSERT_OK(update(moved, e));
            backend = machine.create(NULL);
            assert_non_null(backend);
            amp_step_end end = end_of(p, s, STATISTICS);
            amp_cuda_fail_call(cases[i].function, call, cases[i].status);
            ASSERT_REFUSED(CALL(finish_step, &end, &out, e));
            amp_cuda_fail_call(cases[i].function, 0, cudaSuccess);
            assert_int_equal(out.taken, 0);
            assert_true(same_weights(p, queued ? moved : before));
            assert_int_equal(committed(s), queued ? STATISTICS : 0);
            for (int k = 0; k < PARAMS; k++) memcpy(p[k].grad, before[k].grad, COUNT_OF_EACH * sizeof(float));
            if (!queued) {
                ASSERT_OK(CALL(finish_step, &end, &out, e));
                assert_int_equal(out.taken, 1);
                assert_true(same_weights(p, moved));
                assert_int_equal(committed(s), STATISTICS);
            }
            backend->destroy(backend);
            backend = first;
            destroy_statistics(s);
            destroy(p);
            destroy(before);
            destroy(moved);
        }
}
#endif

static int run(void) { return run_listed_tests(variant, NULL, NULL); }
int main(void)
{
#ifndef ON_DEVICE
    amp_cuda_any_stream(1); /* two backends have two */
#endif
    return for_each_variant(run);
}
