/* A channel's moments over the images of all ranks (amp_batchnorm.ranks), of those of each rank: written once
 * for every backend.
 *
 * Sums of x and x² would lose the variance where the mean is far larger than it. So each rank gives its
 * mean, in two fp32 numbers that add up to it, and its Σ(x - mean)², at a place of its own among zeros: the
 * sum over the ranks holds those of all. */
#pragma once

#include <stddef.h>

#ifdef __CUDACC__
#define AMP_MOMENTS static __host__ __device__ __forceinline__
#else
#define AMP_MOMENTS static inline
#endif

typedef struct amp_moments { double mean, squares; } amp_moments; /* squares: Σ(x - mean)² */

/* The ranks share (ranks, 3, channels) floats. */
enum { AMP_MOMENTS_SHARED = 3 };

AMP_MOMENTS void amp_moments_put(float *all, int rank, size_t channels, size_t channel, amp_moments m)
{
    float *mine = all + AMP_MOMENTS_SHARED * (size_t)rank * channels + channel;
    mine[0] = (float)m.mean;
    mine[channels] = (float)(m.mean - (double)mine[0]);
    mine[2 * channels] = (float)m.squares;
}

AMP_MOMENTS double amp_moments_mean(const float *of_rank, size_t channels)
{
    return (double)of_rank[0] + (double)of_rank[channels];
}

/* Each rank has `rows` numbers in the channel. */
AMP_MOMENTS amp_moments amp_moments_join(const float *all, int ranks, size_t channels, size_t channel,
                                         double rows)
{
    amp_moments m = { 0, 0 };
    size_t each = AMP_MOMENTS_SHARED * channels;
    for (int r = 0; r < ranks; r++) m.mean += amp_moments_mean(all + r * each + channel, channels) / ranks;
    for (int r = 0; r < ranks; r++) {
        const float *of_rank = all + r * each + channel;
        double apart = amp_moments_mean(of_rank, channels) - m.mean;
        m.squares += (double)of_rank[2 * channels] + rows * apart * apart;
    }
    return m;
}
