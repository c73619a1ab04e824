/* What the doubles of Darknet's own CUDA kernels are made of, for either Darknet. */
#ifndef TESTS_DOUBLES_DARKNET_KERNELS_H
#define TESTS_DOUBLES_DARKNET_KERNELS_H

#include <cmath>
#include <functional>

#include "cuda_doubles.h"

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <curand.h>

namespace {

void run(void *work)
{
    auto *f = (std::function<void()> *)work;
    (*f)();
    delete f;
}

void queue(cudaStream_t stream, const char *what, std::function<void()> f)
{
    amp_cuda_enqueue(stream, what, run, new std::function<void()>(std::move(f)));
}

}

/* On DARKNET_STREAM, which is Darknet's. */
#define KERNEL(...) queue(DARKNET_STREAM, __func__, [=] { __VA_ARGS__; })

/* Linked as free (--wrap=free), so that memory that is registered as pinned is seen to be freed. */
extern "C" void __real_free(void *);
extern "C" void __wrap_free(void *memory)
{
    amp_cuda_program_frees(memory);
    __real_free(memory);
}

#endif
