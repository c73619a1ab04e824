/* The doubles of CUDA see what they are there to see: every fault below is made on purpose, and must not
 * pass. The same kernel without a fault must. Faults that end the program (an address sanitizer's report, a
 * touch of memory that is not the host's) are made in a child process. What the backend's tests assert of the
 * doubles with numbers (calls, waits and copies that are counted, calls that fail, memory that ends, streams
 * that wait for events) is not repeated here. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <math.h>
#include "testing.h"
#include <signal.h>
#include <sys/mman.h>

#include "child.h"
#include "faults.h"
#include "faults_testing.h"

enum { BLOCKS = 3, COUNT = BLOCKS * 256 };

static void *managed(size_t bytes)
{
    void *p = NULL;
    assert_int_equal(cudaMallocManaged(&p, bytes, cudaMemAttachGlobal), cudaSuccess);
    return p;
}

static void assert_fault(const char *says)
{
    if (!strstr(amp_cuda_fault(), says))
        fail_msg("the fault was \"%s\", which does not say \"%s\"", amp_cuda_fault(), says);
    amp_cuda_forget_faults();
}

/* The sums of x by a kernel with the fault, in the order given; 1 if they are right and
 * nothing was reported. */
static int sums_are_right(cuda_fault fault, const char *order)
{
    float x[COUNT], sums[BLOCKS];
    float *x_device = device(sizeof x), *sums_device = device(sizeof sums);
    for (int i = 0; i < COUNT; i++) x[i] = (float)(i * 7 % 13 + i / 256);
    amp_shim_order(order);
    assert_int_equal(cudaMemcpyAsync(x_device, x, sizeof x, cudaMemcpyHostToDevice, stream), cudaSuccess);
    cuda_faults_sums(fault, x_device, sums_device, BLOCKS, stream);
    int right = cudaGetLastError() == cudaSuccess;
    right &= cudaMemcpyAsync(sums, sums_device, sizeof sums, cudaMemcpyDeviceToHost, stream) == cudaSuccess;
    for (int b = 0; b < BLOCKS && right; b++) {
        float want = 0;
        for (int i = 0; i < 256; i++) want += x[b * 256 + i];
        right &= sums[b] == want;
    }
    cudaStreamSynchronize(stream);
    right &= amp_cuda_faults() == 0;
    char fault_text[600];
    snprintf(fault_text, sizeof fault_text, "%s", amp_cuda_fault());
    amp_cuda_forget_faults();
    cudaFree(x_device), cudaFree(sums_device);
    right &= amp_cuda_faults() == 0;
    amp_cuda_forget_faults();
    if (fault_text[0]) amp_cuda_report("%s", fault_text); /* for assert_fault */
    return right;
}

TEST_WITH(the_kernel_without_a_fault_passes_in_every_order, begin, end)
{
    for (int o = 0; o < ORDERS; o++) assert_true(sums_are_right(FAULT_NONE, orders[o]));
}

/* In how many of the orders the fault does not show. */
static int passes(cuda_fault fault)
{
    int count = 0;
    for (int o = 0; o < ORDERS; o++) count += sums_are_right(fault, orders[o]), amp_cuda_forget_faults();
    return count;
}

TEST_WITH(a_removed_barrier_gives_wrong_sums, begin, end)
{
    assert_int_equal(passes(FAULT_NO_BARRIER_BEFORE_READ), 0);
    /* Who runs last loses: not seen in each order. */
    assert_true(passes(FAULT_NO_BARRIER_BEFORE_WRITE) < ORDERS - 2);
    assert_int_equal(passes(FAULT_NO_WARP_BARRIER), 0);
}

TEST_WITH(a_short_shuffle_loop_gives_wrong_sums, begin, end)
{
    assert_int_equal(passes(FAULT_SHORT_SHUFFLE), 0);
}

TEST_WITH(unset_shared_memory_is_not_zero, begin, end)
{
    assert_int_equal(passes(FAULT_SHARED_UNSET), 0);
}

TEST_WITH(a_barrier_that_not_all_reach_is_reported, begin, end)
{
    for (int o = 0; o < ORDERS; o++) {
        assert_false(sums_are_right(FAULT_DIVERGENT_BARRIER, orders[o]));
        assert_fault("divergent barrier");
        assert_false(sums_are_right(FAULT_BARRIER_OF_SOME, orders[o]));
        assert_fault("other threads of the block have ended");
        assert_false(sums_are_right(FAULT_BARRIER_IN_ONE_WARP, orders[o]));
        assert_true(strstr(amp_cuda_fault(), "barrier") || strstr(amp_cuda_fault(), "waits for lanes"));
        assert_fault("faults.cu:");
    }
}

TEST_WITH(lanes_that_a_shuffle_lacks_are_reported, begin, end)
{
    for (int o = 0; o < ORDERS; o++) {
        assert_false(sums_are_right(FAULT_MISSING_LANES, orders[o]));
        assert_fault("a shuffle waits for lanes that do not come");
        assert_false(sums_are_right(FAULT_ABSENT_LANE, orders[o]));
        assert_fault("shuffles from a lane that does not take part");
    }
    assert_true(sums_are_right(FAULT_NONE, "forward")); /* and the next kernel starts afresh */
}

/* As in_child, without CMocka's handlers of signals. */
static int in_a_child(void (*run)(void *), char said[8192])
{
    static const int caught[] = { SIGSEGV, SIGABRT, SIGBUS };
    void (*handlers[3])(int);
    for (int i = 0; i < 3; i++) handlers[i] = signal(caught[i], SIG_DFL);
    int status = in_child(run, NULL, said, 8192);
    for (int i = 0; i < 3; i++) signal(caught[i], handlers[i]);
    return status;
}

static cuda_fault chosen;

static void chosen_passes_in_some_order(void *context)
{
    (void)context;
    _exit(passes(chosen) ? 0 : 1);
}

TEST_WITH(accesses_outside_of_arrays_do_not_pass, begin, end)
{
    static const cuda_fault beyond[] = { FAULT_READS_BEYOND, FAULT_WRITES_BEYOND, FAULT_WRITES_FAR_BEYOND,
                                         FAULT_SHARED_BEYOND };
    static char said[8192];
    chosen = FAULT_NONE;
    assert_int_equal(in_a_child(chosen_passes_in_some_order, said), 0);
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
        chosen = beyond[i];
        if (in_a_child(chosen_passes_in_some_order, said) == 0) fail_msg("fault %d passes", chosen);
        if (chosen == FAULT_WRITES_FAR_BEYOND && !strstr(said, "AddressSanitizer"))
            assert_non_null(strstr(said, "which is no memory"));
    }
}

static void host_reads_device_memory(void *context)
{
    volatile float *x = device(16);
    (void)context;
    _exit(x[0] > 0 ? 2 : 3);
}

static void host_writes_device_memory_at_work(void *context)
{
    volatile float *x = managed(16);
    (void)context;
    x[0] = 1;
    amp_cuda_host_access(0);
    x[0] = 2;
}

TEST_WITH(the_host_cannot_touch_device_memory, begin, end)
{
    static char said[8192];
    assert_int_equal(in_a_child(host_reads_device_memory, said), -1);
    assert_non_null(strstr(said, "the host touched device memory"));
    assert_int_equal(in_a_child(host_writes_device_memory_at_work, said), -1);
    assert_non_null(strstr(said, "did not wait for the device"));
}

TEST_WITH(without_a_synchronisation_nothing_is_there, begin, end)
{
    float *x = managed(4 * sizeof *x), *pinned, host[4] = { 9, 9, 9, 9 };
    assert_int_equal(cudaMallocHost((void **)&pinned, 4 * sizeof *pinned), cudaSuccess);
    for (int i = 0; i < 4; i++) x[i] = (float)i;

    cuda_faults_add(x, 4, 10, stream);
    assert_true(x[2] == 2); /* read too early */
    cudaStreamSynchronize(stream);
    assert_true(x[2] == 12);

    cuda_faults_add(x, 4, 10, stream);
    cudaMemcpyAsync(pinned, x, 4 * sizeof *x, cudaMemcpyDeviceToHost, stream);
    assert_true(isnan(pinned[2])); /* a copy into pinned memory does not wait either */
    cudaStreamSynchronize(stream);
    assert_true(pinned[2] == 22);

    cuda_faults_add(x, 4, 10, stream);
    amp_cuda_any_stream(1);
    /* The default stream does not wait for a non-blocking one. */
    cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);
    assert_true(host[2] == 22);
    cudaStreamSynchronize(stream);
    if (amp_cuda_sees_races()) {
        assert_true(strstr(amp_cuda_fault(), "was read by cudaMemcpy on another stream"));
        assert_fault("race: kernel add_to (faults.cu:");
    }
    amp_cuda_any_stream(0);
    cudaMemcpyAsync(host, x, sizeof host, cudaMemcpyDeviceToHost, stream); /* into pageable memory: waits */
    assert_true(host[2] == 32);
    cudaFree(x), cudaFreeHost(pinned);
}

/* An upload from pinned memory reads it late; from other memory, at once. */
TEST_WITH(pinned_memory_must_stay_until_it_was_read, begin, end)
{
    float *x = managed(2 * sizeof *x), *pinned, host[2] = { 1, 2 };
    assert_int_equal(cudaMallocHost((void **)&pinned, 2 * sizeof *pinned), cudaSuccess);
    cudaMemcpyAsync(x, host, sizeof host, cudaMemcpyHostToDevice, stream);
    host[0] = 7;
    cudaStreamSynchronize(stream);
    assert_true(x[0] == 1);
    pinned[0] = 1;
    cudaMemcpyAsync(x, pinned, sizeof host, cudaMemcpyHostToDevice, stream);
    pinned[0] = 7;
    cudaStreamSynchronize(stream);
    assert_true(x[0] == 7);
    assert_fault("was written to before it was copied");
    cudaFree(x), cudaFreeHost(pinned);
}

TEST_WITH(registered_memory_is_pinned_until_it_is_not, begin, end)
{
    float *x = managed(2 * sizeof *x), host[4] = { 1, 2, 3, 4 };
    assert_int_equal(cudaHostRegister(host, sizeof host, cudaHostRegisterDefault), cudaSuccess);
    assert_int_equal(amp_cuda_allocations(), 2);
    assert_true(amp_cuda_registered(host + 3) && !amp_cuda_registered(host + 4));
    assert_int_equal(cudaHostRegister(host + 1, 4, cudaHostRegisterDefault),
                     cudaErrorHostMemoryAlreadyRegistered);
    assert_int_equal(cudaGetLastError(), cudaErrorHostMemoryAlreadyRegistered);
    cudaMemcpyAsync(x, host + 2, sizeof *x, cudaMemcpyHostToDevice, stream);
    host[2] = 7;
    cudaStreamSynchronize(stream);
    assert_fault("was written to before it was copied");
    cudaMemcpyAsync(x, host + 2, sizeof *x, cudaMemcpyHostToDevice, stream);
    assert_int_equal(cudaHostUnregister(host), cudaErrorLaunchFailure);
    assert_fault("is not done");
    cudaStreamSynchronize(stream);
    assert_true(x[0] == 7);
    cudaHostUnregister(host);
    assert_fault("was not registered");
    assert_int_equal(cudaHostRegister(host, sizeof host, cudaHostRegisterDefault), cudaSuccess);
    amp_cuda_program_frees(host);
    assert_fault("is freed while it is registered");
    assert_int_equal(cudaHostUnregister(host), cudaSuccess);
    amp_cuda_program_frees(host);
    assert_int_equal(amp_cuda_faults(), 0);
    cudaFree(x);
}

TEST_WITH(work_on_another_stream_is_reported, begin, end)
{
    cudaStream_t other;
    float *x = managed(4 * sizeof *x);
    for (int i = 0; i < 4; i++) x[i] = 0;
    assert_int_equal(cudaStreamCreate(&other), cudaSuccess);
    cuda_faults_add(x, 4, 1, stream);
    assert_int_equal(amp_cuda_faults(), 0);
    cuda_faults_add(x, 4, 1, other);
    assert_fault("is on stream");
    cuda_faults_add(x, 4, 1, NULL);
    assert_fault("is on stream 0");
    cudaMemsetAsync(x, 0, 4, other);
    assert_fault("cudaMemsetAsync is on stream");
    cudaStreamDestroy(other);
    cuda_faults_add(x, 4, 1, other);
    assert_fault("a stream that does not exist");
    cudaFree(x);
}

TEST_WITH(use_after_free_is_reported, begin, end)
{
    float *x = device(64), host[16], *out = device(sizeof *out);
    assert_int_equal(cudaFree(x), cudaSuccess);
    cuda_faults_add(x, 16, 1, stream);
    assert_fault("argument 1: ");
    cuda_faults_add(x + 3, 4, 1, stream);
    assert_fault("which was freed");
    cuda_faults_structure((cuda_faults_list){ 1, x }, out, stream);
    assert_fault("which was freed");
    assert_int_equal(cudaMemcpyAsync(host, x, 64, cudaMemcpyDeviceToHost, stream), cudaErrorLaunchFailure);
    assert_fault("which was freed");
    assert_int_not_equal(cudaFree(x), cudaSuccess);
    assert_fault("cudaFree: ");
    assert_int_equal(cudaFree(NULL), cudaSuccess);
    cudaStreamSynchronize(stream);
    amp_cuda_forget_faults();
    cudaFree(out);
}

TEST_WITH(what_is_left_alive_is_reported, begin, end)
{
    assert_int_equal(amp_cuda_leaks(), 1); /* the stream of all tests */
    assert_fault("0 allocations, 1 streams, 0 events and 0 graphs");
    cudaStream_t other;
    cudaEvent_t event;
    assert_int_equal(cudaStreamCreate(&other), cudaSuccess);
    assert_int_equal(cudaEventCreate(&event), cudaSuccess);
    float *x = device(64);
    assert_int_equal(amp_cuda_leaks(), 4);
    assert_fault("1 allocations, 2 streams, 1 events and 0 graphs");
    cudaEventDestroy(event), cudaStreamDestroy(other), cudaFree(x);
    assert_int_equal(amp_cuda_faults(), 0);
}

TEST_WITH(use_after_destruction_is_reported, begin, end)
{
    cudaStream_t gone, later;
    cudaEvent_t past, event;
    assert_int_equal(cudaStreamCreate(&gone), cudaSuccess);
    assert_int_equal(cudaEventCreate(&past), cudaSuccess);
    cudaStreamDestroy(gone), cudaEventDestroy(past);
    /* Not even where a later one could have taken its place. */
    assert_int_equal(cudaStreamCreate(&later), cudaSuccess);
    assert_int_equal(cudaEventCreate(&event), cudaSuccess);
    assert_int_not_equal(cudaEventRecord(past, stream), cudaSuccess);
    assert_fault("an event that does not exist");
    assert_int_not_equal(cudaEventRecord(event, gone), cudaSuccess);
    assert_fault("cudaEventRecord on a stream that does not exist");
    assert_int_not_equal(cudaStreamWaitEvent(gone, event, 0), cudaSuccess);
    assert_fault("cudaStreamWaitEvent on a stream that does not exist");
    assert_int_not_equal(cudaStreamSynchronize(gone), cudaSuccess);
    assert_fault("cudaStreamSynchronize of no stream");
    assert_int_not_equal(cudaStreamDestroy(gone), cudaSuccess);
    assert_fault("cudaStreamDestroy of no stream");
    assert_int_not_equal(cudaEventDestroy(past), cudaSuccess);
    assert_fault("an event that does not exist");
    cudaEventDestroy(event), cudaStreamDestroy(later);
}

/* A pointer that no one can see, in a table on the device. */
static void reads_freed_memory_by_a_table(void *context)
{
    (void)context;
    float *x = device(64), **table = device(sizeof *table), *out = device(sizeof *out), sum, ones[16];
    for (int i = 0; i < 16; i++) ones[i] = 1;
    cudaMemcpyAsync(x, ones, sizeof ones, cudaMemcpyHostToDevice, stream);
    cudaMemcpyAsync(table, &x, sizeof x, cudaMemcpyHostToDevice, stream);
    cuda_faults_indirect((const float *const *)table, 16, out, stream);
    cudaMemcpyAsync(&sum, out, sizeof sum, cudaMemcpyDeviceToHost, stream);
    if (!(sum == 16)) _exit(2);
    cudaFree(x);
    cuda_faults_indirect((const float *const *)table, 16, out, stream);
    cudaMemcpyAsync(&sum, out, sizeof sum, cudaMemcpyDeviceToHost, stream);
    _exit(amp_cuda_faults() || isnan(sum) ? 1 : 0);
}

TEST_WITH(freed_memory_holds_nothing, begin, end)
{
    static char said[8192];
    int status = in_a_child(reads_freed_memory_by_a_table, said);
    assert_true(status == 1 || strstr(said, "AddressSanitizer"));
}

TEST_WITH(host_memory_is_no_device_memory, begin, end)
{
    float host[16] = { 0 }, *heap = malloc(64), *x = device(64);
    assert_non_null(heap);
    cuda_faults_add(host, 16, 1, stream);
    assert_fault("argument 1: ");
    cuda_faults_add(heap, 16, 1, stream);
    assert_fault("is the host's memory");
    cuda_faults_structure((cuda_faults_list){ 3, host }, x, stream);
    assert_fault("is the host's memory");
    cudaMemsetAsync(heap, 0, 64, stream);
    assert_fault("is the host's memory");
    cudaMemcpyAsync(x, heap, 65, cudaMemcpyDeviceToDevice, stream);
    assert_fault("allocation");
    cudaMemcpyAsync(host, x, 64, cudaMemcpyHostToDevice, stream);
    assert_fault("is the host's memory");
    amp_cuda_forget_faults();
    cudaFree(x);
    free(heap);
}

/* What a structure's padding holds is no address, though it may look like one; nor are two
 * numbers side by side. */
TEST_WITH(what_is_no_address_is_not_taken_for_one, begin, end)
{
    float *x = device(sizeof *x), sum;
    /* The address's lower half is 0: together with the padding behind it, a count of 0
     * looks like the whole. */
    char *page = mmap((void *)0x6f0000000000, 4096, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(page != MAP_FAILED);
    cuda_faults_lists *lists = malloc(sizeof *lists);
    assert_non_null(lists);
    for (size_t i = 0; i < sizeof *lists; i++) /* volatile: or the compiler leaves padding out */
        ((volatile char *)lists)[i] = ((const char *)&page)[i % sizeof page];
    lists->counts[0] = lists->counts[1] = 0; /* the third and the padding behind it stay */
    lists->none = 0;
    for (int k = 0; k < 2; k++) lists->list[k].count = 0, lists->list[k].numbers = x;
    cuda_faults_structures(*lists, x, stream);
    cuda_faults_structure(lists->list[0], x, stream);
    cudaMemcpyAsync(&sum, x, sizeof sum, cudaMemcpyDeviceToHost, stream);
    assert_string_equal(amp_cuda_fault(), "");
    assert_true(sum == 0);
    lists->list[1].numbers = (float *)(void *)page; /* and yet each address is looked at */
    cuda_faults_structures(*lists, x, stream);
    assert_fault("kernel sum_of_lists, argument 1: ");
    munmap(page, 4096);
    free(lists);
    cudaFree(x);
}

TEST_WITH(pageable_machines_take_any_memory, begin, end)
{
    float host[2] = { 1, 2 };
    float *x = device(sizeof *x);
    amp_cuda_pageable(1);
    x[0] = 5;
    cuda_faults_add(host, 2, 1, stream);
    cuda_faults_add(x, 1, 1, stream);
    assert_true(host[0] == 1 && x[0] == 5);
    cudaStreamSynchronize(stream);
    assert_true(host[0] == 2 && x[0] == 6);
    amp_cuda_pageable(0);
    assert_int_equal(amp_cuda_faults(), 0);
    cudaFree(x);
}

TEST_WITH(launches_that_a_gpu_refuses_are_refused, begin, end)
{
    static const struct { dim3 blocks, threads; } refused[] = {
        { { 1, 1, 1 }, { 1025, 1, 1 } }, { { 1, 1, 1 }, { 32, 33, 1 } }, { { 1, 1, 1 }, { 1, 1, 65 } },
        { { 0, 1, 1 }, { 32, 1, 1 } }, { { 1, 1, 1 }, { 0, 1, 1 } }, { { 1, 65536, 1 }, { 1, 1, 1 } },
        { { 1, 1, 65536 }, { 1, 1, 1 } }, { { 0x80000000u, 1, 1 }, { 1, 1, 1 } } };
    unsigned *counter = managed(sizeof *counter);
    *counter = 0;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        cuda_faults_shape(refused[i].blocks, refused[i].threads, counter, stream);
        assert_int_equal(cudaGetLastError(), cudaErrorInvalidConfiguration);
    }
    cuda_faults_many_blocks((size_t)1 << 33, counter, stream);
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidConfiguration);
    cudaStreamSynchronize(stream);
    assert_int_equal(*counter, 0);
    cuda_faults_shape((dim3){ 3, 2, 5 }, (dim3){ 8, 4, 3 }, counter, stream);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    cudaStreamSynchronize(stream);
    assert_int_equal(*counter, 3 * 2 * 5 * 8 * 4 * 3);
    cudaFree(counter);
}

TEST_WITH(threads_and_blocks_run_in_the_order_asked_for, begin, end)
{
    enum { N = 4 * 64 };
    int *order = managed(N * sizeof *order), seen[N], forward = 0;
    unsigned *counter = managed(sizeof *counter);
    for (int o = 0; o < ORDERS; o++) {
        amp_shim_order(orders[o]);
        *counter = 0;
        cuda_faults_order(4, 64, order, counter, stream);
        cudaStreamSynchronize(stream);
        assert_int_equal(*counter, N);
        memset(seen, 0, sizeof seen);
        forward = 0;
        for (int i = 0; i < N; i++) ++seen[order[i]], forward += order[i] == i;
        for (int i = 0; i < N; i++) assert_int_equal(seen[i], 1);
        if (o == 0) assert_int_equal(forward, N);
        else if (o == 1) for (int i = 0; i < N; i++) assert_int_equal(order[i], N - 1 - i);
        else assert_true(forward < N / 4);
    }
    cudaFree(order), cudaFree(counter);
}

TEST_WITH(after_a_fault_the_runtime_refuses_to_go_on, begin, end)
{
    float host[4] = { 0 };
    void *p;
    cuda_faults_add(host, 4, 1, stream);
    assert_int_not_equal(cudaGetLastError(), cudaSuccess);
    assert_int_not_equal(cudaStreamSynchronize(stream), cudaSuccess);
    assert_int_not_equal(cudaMalloc(&p, 4), cudaSuccess);
    assert_true(host[0] == 0);
}

int main(void) { return run_listed_tests("doubles of CUDA", NULL, NULL); }
