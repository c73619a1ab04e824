/* Small kernels of patterns that need an order of threads, once as they should be and once for each way to
 * get it wrong that doubles/cuda_races.cc is there to find (races.cu). Their results are right all the same
 * in most orders. */
#ifndef CUDA_RACES_H
#define CUDA_RACES_H

#include "backend/cuda/state.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cuda_race {
    RACE_NONE,
    /* Blocks: each adds up its share, and the one that finishes last adds up all. */
    RACE_NO_FENCE,           /* __threadfence between a block's sum and its ticket left out */
    RACE_FENCE_TOO_EARLY,    /* or in front of the sum */
    RACE_NO_FENCE_BEHIND,    /* between the ticket and the others' sums */
    RACE_PLAIN_TICKET,       /* += for atomicAdd */
    RACE_SUMS_OVERLAP,       /* two blocks write one sum */
    /* A block: rounds through two buffers in turn, so that one barrier a round is enough. */
    RACE_ONE_BUFFER,
    RACE_NO_BARRIER_IN_LAST_ROUND,
    /* A warp: each lane reads what another has written. */
    RACE_NO_WARP_BARRIER,
    RACE_BARRIER_OF_HALF_A_WARP, /* the other half's lanes are read */
    RACE_SHUFFLE_FOR_BARRIER,    /* which orders no memory */
    RACE_SHUFFLE_BY_HALF,        /* of lanes that do not come */
    RACES
} cuda_race;

/* *out = what RACE_NONE makes of x[0 ... 511]; partial has room for 8 floats, *ticket is 0. */
void cuda_races_run(cuda_race, const float *x, float *partial, unsigned *ticket, float *out, cudaStream_t);

/* x[i] += 1 for i < count, two at once, by one thread. */
void cuda_races_wide(float *x, int count, cudaStream_t);

#ifdef __cplusplus
}
#endif
#endif
