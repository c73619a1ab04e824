/* Keeps the GPU busy for conv.c's timing. Also checks whether a GPU can be used at all. */
#include "kernels.h"
#include "launch.h"

__global__ void spin(long long cycles)
{
    for (long long start = clock64(); clock64() - start < cycles;);
}

amp_status amp_cuda_spin(amp_backend *backend, long long cycles, amp_error *error)
{
    AMP_LAUNCH(backend, amp_cuda_of(backend)->multiprocessors, 1, spin, cycles);
    return AMP_OK;
}

/* cudaFree creates a context on the GPU. This fails if another program has exclusive use of the GPU.
 * cudaFuncGetAttributes fails if no kernels were compiled for the GPU. */
amp_status amp_cuda_find(int gpu, amp_error *error)
{
    struct cudaFuncAttributes attributes;
    AMP_CUDA_TRY(cudaSetDevice(gpu));
    AMP_CUDA_TRY(cudaFree(NULL));
    AMP_CUDA_TRY(cudaFuncGetAttributes(&attributes, (const void *)spin));
    return AMP_OK;
}
