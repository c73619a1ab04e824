/* The doubles of CUDA see races, whether or not the result is right: between threads of a block, lanes of a
 * warp, blocks and streams. Each must be reported in every order of threads, with the lines of both accesses;
 * the same kernel without a race must not. So must moves that are not aligned or go beyond an allocation. */
#include "cuda/faults.h"
#include "cuda/faults_testing.h"
#include "cuda/races.h"

enum { COUNT = 512 };

static int begin_on_any_stream(void **state)
{
    int failed = begin(state);
    amp_cuda_any_stream(1);
    return failed;
}

/* What is asserted below can only be seen in a build whose compiler puts in the hooks. */
static void demand_hooks(void)
{
#ifdef AMP_SHIM_RACES
    assert_true(amp_cuda_sees_races());
#else
    skip();
#endif
}

static void assert_says(const char *fault, const char *text)
{
    if (!strstr(fault, text)) fail_msg("the fault was \"%s\", which does not say \"%s\"", fault, text);
}

/* The kernel's result; *fault what was reported, "" for nothing. */
static float result(cuda_race race, const char *order, const char **fault)
{
    static char said[600];
    float x[COUNT], out = -1;
    float *x_device = device(sizeof x), *partial = device(8 * sizeof *partial);
    float *out_device = device(sizeof out);
    unsigned *ticket = device(sizeof *ticket);
    for (int i = 0; i < COUNT; i++) x[i] = (float)(i * 7 % 13);
    amp_shim_order(order);
    cudaMemcpyAsync(x_device, x, sizeof x, cudaMemcpyHostToDevice, stream);
    cudaMemsetAsync(partial, 0, 8 * sizeof *partial, stream);
    cudaMemsetAsync(ticket, 0, sizeof *ticket, stream);
    cuda_races_run(race, x_device, partial, ticket, out_device, stream);
    cudaStreamSynchronize(stream);
    snprintf(said, sizeof said, "%s", amp_cuda_fault());
    amp_cuda_forget_faults();
    cudaMemcpyAsync(&out, out_device, sizeof out, cudaMemcpyDeviceToHost, stream);
    cudaFree(x_device), cudaFree(partial), cudaFree(out_device), cudaFree(ticket);
    assert_int_equal(amp_cuda_faults(), 0);
    *fault = said;
    return out;
}

TEST_WITH(patterns_in_order_are_no_races, begin_on_any_stream, end)
{
    const char *fault;
    for (int o = 0; o < ORDERS; o++) {
        assert_true(result(RACE_NONE, orders[o], &fault) == 2 * 2 * 8 * 3060);
        assert_string_equal(fault, "");
    }
}

/* Both lines are named, and what was done there. */
static void assert_race(cuda_race race, const char *text)
{
    const char *fault;
    for (int o = 0; o < ORDERS; o++) {
        result(race, orders[o], &fault);
        assert_says(fault, text);
        if (strncmp(fault, "race: ", 6)) continue;
        const char *first = strstr(fault, ") at races.cu:");
        assert_non_null(first);
        assert_says(first + 1, ") at races.cu:");
        assert_says(fault, "and no barrier is between");
    }
}

TEST_WITH(blocks_that_nothing_orders_are_races, begin_on_any_stream, end)
{
    demand_hooks();
    assert_race(RACE_NO_FENCE, "byte");
    assert_race(RACE_FENCE_TOO_EARLY, "of an allocation of 32, which was written by block");
    assert_race(RACE_NO_FENCE_BEHIND, "of an allocation of 32, which was written by block");
    assert_race(RACE_PLAIN_TICKET, "byte 0 of an allocation of 4, which was written by block");
    assert_race(RACE_SUMS_OVERLAP, "of an allocation of 32, which was written by block");
}

TEST_WITH(threads_that_no_barrier_orders_are_races, begin_on_any_stream, end)
{
    demand_hooks();
    assert_race(RACE_ONE_BUFFER, "shared memory");
    assert_race(RACE_NO_BARRIER_IN_LAST_ROUND, "shared memory");
}

TEST_WITH(lanes_that_no_barrier_orders_are_races, begin_on_any_stream, end)
{
    demand_hooks();
    assert_race(RACE_NO_WARP_BARRIER, "shared memory");
    assert_race(RACE_BARRIER_OF_HALF_A_WARP, "shared memory");
    assert_race(RACE_SHUFFLE_FOR_BARRIER, "shared memory");
    assert_race(RACE_SHUFFLE_BY_HALF, "a shuffle waits for lanes that do not come");
}

TEST_WITH(streams_that_nothing_orders_are_races, begin_on_any_stream, end)
{
    demand_hooks();
    cudaStream_t other;
    cudaEvent_t event;
    float *x = device(4 * sizeof *x), host[4];
    assert_int_equal(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
    assert_int_equal(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    cudaMemsetAsync(x, 0, sizeof host, other);
    cudaEventRecord(event, other);
    cudaStreamWaitEvent(stream, event, 0);
    cuda_faults_add(x, 4, 1, stream); /* behind the event */
    cudaStreamSynchronize(stream);
    cuda_faults_add(x, 4, 1, other); /* the host has waited for the work before */
    cudaDeviceSynchronize();
    cudaMemcpyAsync(host, x, sizeof host, cudaMemcpyDeviceToHost, stream);
    assert_string_equal(amp_cuda_fault(), "");
    assert_true(host[3] == 2);

    cudaEventRecord(event, other);
    cudaMemsetAsync(x, 0, sizeof host, other); /* behind what the event is about */
    cudaStreamWaitEvent(stream, event, 0);
    cuda_faults_add(x, 4, 1, stream);
    cudaDeviceSynchronize();
    /* Whichever runs first in the double: on a GPU it may be the other. */
    assert_says(amp_cuda_fault(), "race: ");
    assert_says(amp_cuda_fault(), "kernel add_to");
    assert_says(amp_cuda_fault(), "cudaMemsetAsync");
    assert_says(amp_cuda_fault(), "on another stream, and nothing makes the one wait for the other");
    amp_cuda_forget_faults();

    cuda_faults_add(x, 4, 1, stream);
    cudaMemcpyAsync(host, x, sizeof host, cudaMemcpyDeviceToHost, other);
    cudaDeviceSynchronize();
    assert_says(amp_cuda_fault(), "race: ");
    amp_cuda_forget_faults();
    cudaEventDestroy(event), cudaStreamDestroy(other), cudaFree(x);
}

TEST_WITH(moves_are_aligned_and_within_an_allocation, begin_on_any_stream, end)
{
    demand_hooks();
    float *x = device(12 * sizeof *x);
    cudaMemsetAsync(x, 0, 12 * sizeof *x, stream);
    cuda_races_wide(x, 12, stream);
    cuda_races_wide(x + 4, 8, stream);
    cudaStreamSynchronize(stream);
    assert_string_equal(amp_cuda_fault(), "");
    cuda_races_wide(x + 1, 4, stream);
    cudaStreamSynchronize(stream);
    assert_says(amp_cuda_fault(), "at races.cu:");
    assert_says(amp_cuda_fault(), "is no multiple of 8");
    amp_cuda_forget_faults();
    cuda_races_wide(x + 8, 6, stream);
    cudaStreamSynchronize(stream);
    assert_says(amp_cuda_fault(), "at races.cu:");
    assert_says(amp_cuda_fault(), "reads ");
    assert_says(amp_cuda_fault(), "which are not all within an allocation");
    amp_cuda_forget_faults();
    cudaFree(x);
}

int main(void) { return run_listed_tests("races on the doubles of CUDA", NULL, NULL); }
