/* See races.h. */
#include "races.h"

#include "backend/cuda/launch.h"

enum { THREADS = 64, BLOCKS = 8, ROUNDS = 3 };

/* The sum of each thread's value, in all threads: round by round of its own and a neighbour's. */
template <int RACE> __device__ float through_buffers(float value)
{
    __shared__ float buffer[2][THREADS];
    int t = threadIdx.x;
    for (int round = 0; round < ROUNDS; round++) {
        float *now = buffer[RACE == RACE_ONE_BUFFER ? 0 : round % 2];
        now[t] = value;
        if (RACE != RACE_NO_BARRIER_IN_LAST_ROUND || round < ROUNDS - 1) __syncthreads();
        value += now[(t + 1) % THREADS];
    }
    return value;
}

template <int RACE> __device__ float within_warps(float value)
{
    __shared__ float of_lane[THREADS];
    int t = threadIdx.x;
    of_lane[t] = value;
    if (RACE == RACE_BARRIER_OF_HALF_A_WARP) __syncwarp(t % 32 < 16 ? 0xffffu : 0xffff0000u);
    else if (RACE == RACE_SHUFFLE_FOR_BARRIER) __shfl_xor_sync(0xffffffffu, value, 1);
    else if (RACE != RACE_NO_WARP_BARRIER) __syncwarp();
    value += of_lane[t ^ 16];
    if (RACE != RACE_SHUFFLE_BY_HALF || t % 32 < 16) value += __shfl_xor_sync(0xffffffffu, value, 1);
    return value;
}

template <int RACE> __global__ void pattern(const float *x, float *partial, unsigned *ticket, float *out)
{
    __shared__ float all[THREADS];
    __shared__ unsigned is_last;
    int t = threadIdx.x;
    all[t] = within_warps<RACE>(through_buffers<RACE>(x[blockIdx.x * THREADS + t]));
    __syncthreads();
    if (t == 0) {
        float sum = 0;
        for (int i = 0; i < THREADS; i++) sum += all[i];
        if (RACE == RACE_FENCE_TOO_EARLY) __threadfence();
        partial[RACE == RACE_SUMS_OVERLAP ? blockIdx.x / 2 : blockIdx.x] = sum;
        if (RACE != RACE_NO_FENCE && RACE != RACE_FENCE_TOO_EARLY) __threadfence();
        if (RACE == RACE_PLAIN_TICKET) is_last = ++*ticket == gridDim.x;
        else is_last = atomicAdd(ticket, 1u) == gridDim.x - 1;
        if (RACE != RACE_NO_FENCE_BEHIND) __threadfence();
    }
    __syncthreads();
    if (!is_last || t) return;
    float sum = 0;
    for (int i = 0; i < BLOCKS; i++) sum += partial[i];
    *out = sum;
}

template <int RACE> static void run(cuda_race race, const float *x, float *partial, unsigned *ticket,
                                    float *out, cudaStream_t stream)
{
    if (race == RACE) AMP_CUDA_RUN(pattern<RACE>, BLOCKS, THREADS, stream, x, partial, ticket, out);
    else if constexpr (RACE + 1 < RACES) run<RACE + 1>(race, x, partial, ticket, out, stream);
}

void cuda_races_run(cuda_race race, const float *x, float *partial, unsigned *ticket, float *out,
                    cudaStream_t stream)
{
    run<RACE_NONE>(race, x, partial, ticket, out, stream);
}

__global__ void add_wide(float *x, int count)
{
    for (int i = 0; i < count; i += 2) {
        float2 v = *reinterpret_cast<float2 *>(x + i);
        *reinterpret_cast<float2 *>(x + i) = float2{ v.x + 1, v.y + 1 };
    }
}

void cuda_races_wide(float *x, int count, cudaStream_t stream)
{
    AMP_CUDA_RUN(add_wide, 1, 1, stream, x, count);
}
