/* What the programs that put faults into kernels on purpose share: a stream, memory of the double's, and the
 * orders in which threads run. */
#pragma once

#include "testing.h"

#include "doubles/cuda_doubles.h"

static const char *const orders[] = { "forward", "backward", "random1", "random2", "random3" };
enum { ORDERS = sizeof orders / sizeof *orders };

static cudaStream_t stream;

static int begin(void **state)
{
    (void)state;
    amp_cuda_forget_faults();
    amp_shim_order("forward");
    return cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess;
}

static int end(void **state)
{
    (void)state;
    amp_cuda_forget_faults();
    cudaStreamDestroy(stream);
    assert_int_equal(amp_cuda_leaks(), 0);
    return 0;
}

static void *device(size_t bytes)
{
    void *p = NULL;
    assert_int_equal(cudaMalloc(&p, bytes), cudaSuccess);
    return p;
}
