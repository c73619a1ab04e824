/* Batch norm's results for one channel: statistics, gradients and the factors of dx. They are computed in
 * double from the sums over the channel, according to amp_batchnorm_rule. All backends share these functions,
 * except that CUDA's forward computes amp_batchnorm_spread in fp32 (gain_of in norm.cu). */
#pragma once

#include <math.h>
#include <stddef.h>

#include "backend.h"

/* Returns the number by which xhat divides x - mean. */
AMP_ANYWHERE double amp_batchnorm_spread(const amp_batchnorm_rule *rule, double variance)
{
    double epsilon = (double)rule->epsilon;
    return rule->epsilon_inside_root ? sqrt(variance + epsilon) : sqrt(variance) + epsilon;
}

typedef struct amp_moments { double mean, squares; } amp_moments; /* squares: Σ(x - mean)² */

/* Computes the moments from Σu and Σu² of u = x - origin, over `count` numbers. */
AMP_ANYWHERE amp_moments amp_moments_of(double sum, double squares, double origin, double count)
{
    double around_mean = squares - sum * sum / count;
    if (around_mean < 0) around_mean = 0; /* negative only because of rounding; NaN stays NaN */
    amp_moments m = { origin + sum / count, around_mean };
    return m;
}

/* ---- images of several ranks (amp_batchnorm.ranks) ----
 *
 * If the mean is far larger than the spread, cancellation would ruin a variance computed from sums of x and
 * x². So each rank writes its mean (as two fp32 numbers that add up to the mean) and its Σ(x - mean)² to its
 * own place in a zeroed array, and these arrays are summed over the ranks. */

/* The array that is summed over the ranks has the shape (ranks, AMP_MOMENTS_SHARED, channels). */
enum { AMP_MOMENTS_SHARED = 3 };

AMP_ANYWHERE void amp_moments_put(float *all, int rank, size_t channels, size_t channel, amp_moments m)
{
    float *mine = all + AMP_MOMENTS_SHARED * (size_t)rank * channels + channel;
    mine[0] = (float)m.mean;
    mine[channels] = (float)(m.mean - (double)mine[0]);
    mine[2 * channels] = (float)m.squares;
}

AMP_ANYWHERE double amp_moments_mean(const float *of_rank, size_t channels)
{
    return (double)of_rank[0] + (double)of_rank[channels];
}

/* Returns one channel's moments over the numbers of all ranks. Each rank has `rows` numbers per channel. */
AMP_ANYWHERE amp_moments amp_moments_join(const float *all, int ranks, size_t channels, size_t channel,
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

/* ---- one channel ---- */

/* Sets the channel's mean and variance, and updates its rolling statistics. `count` is N. */
AMP_ANYWHERE void amp_batchnorm_keep(const amp_batchnorm *norm, size_t c, amp_moments m, double count)
{
    float mean = (float)m.mean, unbiased = count > 1 ? (float)(m.squares / (count - 1)) : 0;
    float moved = norm->rule.rolling_factor, kept = 1 - moved;
    norm->mean[c] = mean;
    norm->variance[c] = norm->rule.unbiased ? unbiased : (float)(m.squares / count);
    norm->rolling_mean[c] = kept * norm->rolling_mean[c] + moved * mean;
    norm->rolling_variance[c] = kept * norm->rolling_variance[c] + moved * unbiased;
}

/* Adds one channel's gradients to dbias and dscale. sum: this rank's Σd; product: its Σd(x - mean). */
AMP_ANYWHERE void amp_batchnorm_add_gradients(const amp_batchnorm *norm, size_t c, double sum, double product)
{
    norm->dbias[c] += (float)sum;
    norm->dscale[c] += (float)(product / amp_batchnorm_spread(&norm->rule, (double)norm->variance[c]));
}

/* batchnorm_backward's dx (backend.h), written as a·d + b·(x-mean) + c. The sums are over the images of all
 * ranks:
 *   a = inv·scale,  b = -inv³·scale·Σd(x-mean)/N,  c = -inv·scale·Σd/N.
 * With direct_outside_root, a = scale/(sqrt(v) + backward_epsilon) instead. */
typedef struct amp_batchnorm_line { float a, b, c; } amp_batchnorm_line;

AMP_ANYWHERE amp_batchnorm_line amp_batchnorm_line_of(const amp_batchnorm *norm, size_t channel, double sum,
                                                      double product, double count)
{
    double variance = (double)norm->variance[channel], epsilon = (double)norm->rule.backward_epsilon;
    double scale = (double)norm->scale[channel], inv = 1 / sqrt(variance + epsilon), a = inv * scale;
    amp_batchnorm_line line = {
        (float)(norm->rule.direct_outside_root ? scale / (sqrt(variance) + epsilon) : a),
        (float)(-a * inv * inv * product / count), (float)(-a * sum / count) };
    return line;
}
