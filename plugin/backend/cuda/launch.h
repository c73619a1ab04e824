/* How kernels are launched and how they read and write numbers. For .cu files only.
 *
 * AMP_LAUNCH(backend, blocks, threads, kernel, arguments...) launches a kernel. If the launch fails, the
 * calling function returns the error. AMP_CUDA_BY_DTYPE runs a statement with `T` as the C++ type of a dtype.
 * Tests define AMP_CUDA_RUN to run the same sources on the CPU. */
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "state.h"

#ifndef AMP_CUDA_RUN
#define AMP_CUDA_RUN(kernel, blocks, threads, stream, ...) \
    kernel<<<(blocks), (threads), 0, (stream)>>>(__VA_ARGS__)
#endif

#define AMP_LAUNCH(backend, blocks, threads, kernel, ...) do { \
        AMP_CUDA_RUN(kernel, blocks, threads, amp_cuda_of(backend)->stream, __VA_ARGS__); \
        AMP_CUDA_TRY(cudaGetLastError()); \
    } while (0)

#define AMP_CUDA_BY_DTYPE(dtype, ...) do { \
        if ((dtype) == AMP_FP32) { typedef float T; __VA_ARGS__; } \
        else if ((dtype) == AMP_FP16) { typedef __half T; __VA_ARGS__; } \
        else { typedef __nv_bfloat16 T; __VA_ARGS__; } \
    } while (0)

__device__ __forceinline__ float amp_load(float v) { return v; }
__device__ __forceinline__ float amp_load(__half v) { return __half2float(v); }
__device__ __forceinline__ float amp_load(__nv_bfloat16 v) { return __bfloat162float(v); }

template <class T> __device__ __forceinline__ T amp_store(float v);
template <> __device__ __forceinline__ float amp_store<float>(float v) { return v; }
template <> __device__ __forceinline__ __half amp_store<__half>(float v) { return __float2half_rn(v); }
template <> __device__ __forceinline__ __nv_bfloat16 amp_store<__nv_bfloat16>(float v)
{
    return __float2bfloat16_rn(v);
}

/* 16 bytes of T (8 halves or 4 floats), loaded or stored in one access. Memory must be 16-byte aligned. */
template <class T> struct alignas(16) amp_pack {
    static const int count = 16 / sizeof(T);
    static const bool half = sizeof(T) == 2;
    uint4 bits;
    __device__ __forceinline__ float get(int i) const
    {
        return amp_load(reinterpret_cast<const T *>(&bits)[i]);
    }
    __device__ __forceinline__ void set(int i, float v) { reinterpret_cast<T *>(&bits)[i] = amp_store<T>(v); }
};
