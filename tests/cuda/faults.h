/* A small kernel, once as it should be and once with each of the faults that cuda_shim.h is there
 * to find (faults.cu). */
#ifndef CUDA_FAULTS_H
#define CUDA_FAULTS_H

#include "backend/cuda/state.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cuda_fault {
    FAULT_NONE,
    FAULT_NO_BARRIER_BEFORE_READ,  /* __syncthreads between writing shared memory and reading it left out */
    FAULT_NO_BARRIER_BEFORE_WRITE, /* and before it is written again */
    FAULT_NO_WARP_BARRIER,
    FAULT_SHORT_SHUFFLE,           /* the tree starts at 8 lanes instead of 16 */
    FAULT_DIVERGENT_BARRIER,       /* half the block waits elsewhere */
    FAULT_BARRIER_OF_SOME,         /* half the block waits, the others end */
    FAULT_BARRIER_IN_ONE_WARP,     /* the others go on to a shuffle that nobody joins */
    FAULT_MISSING_LANES,           /* odd lanes skip the shuffle and wait at the barrier */
    FAULT_ABSENT_LANE,             /* shuffles from a lane that has ended */
    FAULT_SHARED_UNSET,            /* shared memory is read as if it were zero at the start */
    FAULT_READS_BEYOND,            /* one element behind the array */
    FAULT_WRITES_BEYOND,
    FAULT_WRITES_FAR_BEYOND,       /* where no memory is */
    FAULT_SHARED_BEYOND,           /* one element behind shared memory */
    FAULTS
} cuda_fault;

/* out[block] = sum of x[block·256 ... + 255], for `blocks` blocks. */
void cuda_faults_sums(cuda_fault, const float *x, float *out, int blocks, cudaStream_t);

/* *out = sum of count numbers at *table; x[i] += add; in a structure; grid and block as given. */
typedef struct cuda_faults_list { int count; const float *numbers; } cuda_faults_list;
typedef struct cuda_faults_lists {
    short counts[3];
    double none;
    cuda_faults_list list[2];
    char tail;
} cuda_faults_lists;
void cuda_faults_indirect(const float *const *table, int count, float *out, cudaStream_t);
void cuda_faults_structure(cuda_faults_list list, float *out, cudaStream_t);
void cuda_faults_structures(cuda_faults_lists lists, float *out, cudaStream_t);
void cuda_faults_add(float *x, int count, float add, cudaStream_t);
void cuda_faults_shape(dim3 blocks, dim3 threads, unsigned *counter, cudaStream_t);
void cuda_faults_many_blocks(size_t blocks, unsigned *counter, cudaStream_t);
/* order[k] = which thread of which block came k-th: block·threads + thread. */
void cuda_faults_order(int blocks, int threads, int *order, unsigned *counter, cudaStream_t);

#ifdef __cplusplus
}
#endif
#endif
