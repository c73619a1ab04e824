/* Keeping the GPU at work for a while, for timing (conv_tune.c). */
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
