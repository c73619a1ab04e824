/* See faults.h. */
#include "faults.h"

#include "backend/cuda/launch.h"

enum { THREADS = 256, WARPS = THREADS / 32 };

template <int FAULT> __global__ void sums(const float *x, float *out)
{
    __shared__ float part[WARPS];
    __shared__ float total[2];
    __shared__ float reversed[THREADS];
    int t = threadIdx.x, warp = t / 32, i = blockIdx.x * THREADS + t;

    /* Backwards through shared memory and back again, which changes nothing. */
    reversed[THREADS - 1 - t] = x[FAULT == FAULT_READS_BEYOND ? i + 1 : i];
    if (FAULT != FAULT_NO_BARRIER_BEFORE_READ) __syncthreads();
    float value = reversed[t];
    if (FAULT != FAULT_NO_BARRIER_BEFORE_WRITE) __syncthreads();
    reversed[(t + 1) % THREADS] = value;
    __syncthreads();
    value = reversed[t];
    __syncthreads();

    /* To the neighbour lane and back, within a warp. */
    reversed[t ^ 1] = value;
    if (FAULT != FAULT_NO_WARP_BARRIER) __syncwarp();
    value = reversed[t];
    __syncwarp();

    if (FAULT == FAULT_ABSENT_LANE && t == 40) return;
    if (FAULT == FAULT_BARRIER_OF_SOME && t >= THREADS / 2) return;
    if (FAULT == FAULT_BARRIER_IN_ONE_WARP && warp == 0) __syncthreads();
    if (FAULT != FAULT_MISSING_LANES || t % 2 == 0)
        for (int by = FAULT == FAULT_SHORT_SHUFFLE ? 8 : 16; by; by >>= 1)
            value += __shfl_xor_sync(0xffffffffu, value, by);
    if (t % 32 == 0) part[FAULT == FAULT_SHARED_BEYOND ? warp + 1 : warp] = value;
    if (FAULT == FAULT_DIVERGENT_BARRIER && t < THREADS / 2) __syncthreads();
    else __syncthreads();
    if (t == 0) {
        if (FAULT != FAULT_SHARED_UNSET) total[0] = 0;
        for (int w = 0; w < WARPS; w++) total[0] += part[w];
        if (FAULT == FAULT_WRITES_BEYOND) out[gridDim.x] = total[0];
        if (FAULT == FAULT_WRITES_FAR_BEYOND) out[(size_t)1 << 40] = total[0];
        out[blockIdx.x] = total[0];
    }
}

template <int FAULT>
static void run_sums(cuda_fault fault, const float *x, float *out, int blocks, cudaStream_t stream)
{
    if (fault == FAULT) AMP_CUDA_RUN(sums<FAULT>, blocks, THREADS, stream, x, out);
    else if constexpr (FAULT + 1 < FAULTS) run_sums<FAULT + 1>(fault, x, out, blocks, stream);
}

void cuda_faults_sums(cuda_fault fault, const float *x, float *out, int blocks, cudaStream_t stream)
{
    run_sums<FAULT_NONE>(fault, x, out, blocks, stream);
}

__global__ void sum_of_list(cuda_faults_list list, float *out)
{
    if (threadIdx.x == 0) *out = 0;
    for (int i = 0; i < list.count; i++) *out += list.numbers[i];
}

__global__ void sum_of_lists(cuda_faults_lists lists, float *out)
{
    *out = (float)lists.none;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < lists.list[k].count; i++) *out += lists.list[k].numbers[i];
}

__global__ void sum_of_table(const float *const *table, int count, float *out)
{
    *out = 0;
    for (int i = 0; i < count; i++) *out += table[0][i];
}

__global__ void add_to(float *x, int count, float add)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) x[i] += add;
}

__global__ void count_threads(unsigned *counter) { atomicAdd(counter, 1u); }

__global__ void note_order(int *order, unsigned *counter)
{
    order[atomicAdd(counter, 1u)] = blockIdx.x * blockDim.x + threadIdx.x;
}

void cuda_faults_structure(cuda_faults_list list, float *out, cudaStream_t stream)
{
    AMP_CUDA_RUN(sum_of_list, 1, 1, stream, list, out);
}

void cuda_faults_structures(cuda_faults_lists lists, float *out, cudaStream_t stream)
{
    AMP_CUDA_RUN(sum_of_lists, 1, 1, stream, lists, out);
}

void cuda_faults_indirect(const float *const *table, int count, float *out, cudaStream_t stream)
{
    AMP_CUDA_RUN(sum_of_table, 1, 1, stream, table, count, out);
}

void cuda_faults_add(float *x, int count, float add, cudaStream_t stream)
{
    AMP_CUDA_RUN(add_to, (count + 127) / 128, 128, stream, x, count, add);
}

void cuda_faults_shape(dim3 blocks, dim3 threads, unsigned *counter, cudaStream_t stream)
{
    AMP_CUDA_RUN(count_threads, blocks, threads, stream, counter);
}

void cuda_faults_many_blocks(size_t blocks, unsigned *counter, cudaStream_t stream)
{
    AMP_CUDA_RUN(count_threads, blocks, 1, stream, counter);
}

void cuda_faults_order(int blocks, int threads, int *order, unsigned *counter, cudaStream_t stream)
{
    AMP_CUDA_RUN(note_order, blocks, threads, stream, order, counter);
}
