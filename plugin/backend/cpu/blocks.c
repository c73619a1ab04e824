/* Cuts tensors into periods and blocks, and adds up the blocks' sums: see blocks.h. */
#include "blocks.h"

#include <string.h>

enum {
    FULL_PERIOD = 128,  /* the fewest lanes that make a loop efficient: eight vectors of 16 */
    LONG_PERIOD = 1024, /* a period is rounded up to whole vectors only if it then has at most this many
                           lanes; five arrays of this length fit in the L1 cache */
    PERIODS = 64,       /* periods in the smallest block, as many as in an fp32 chunk of rows_norm.h */
    BLOCKS = 64         /* maximum number of blocks: enough to balance threads, but quick to add up */
};

static size_t divide_up(size_t a, size_t b) { return (a + b - 1) / b; }

/* Returns the number of pixels in a period. A period has at least FULL_PERIOD lanes. It consists of whole
 * vectors of 16 lanes, unless it would then have more than LONG_PERIOD lanes. */
static size_t period_pixels(size_t channels)
{
    size_t aligned = 1;
    while (aligned < 16 && aligned * channels % 16) aligned *= 2;
    size_t pixels = aligned * divide_up(FULL_PERIOD, aligned * channels);
    return pixels * channels <= LONG_PERIOD ? pixels : divide_up(FULL_PERIOD, channels);
}

amp_cpu_plan amp_cpu_plan_make(size_t rows, size_t channels)
{
    size_t pixels = period_pixels(channels), unit = pixels * PERIODS;
    amp_cpu_plan plan = { .rows = rows, .channels = channels, .period = pixels * channels };
    plan.block_rows = unit * divide_up(divide_up(rows, unit), BLOCKS);
    if (plan.block_rows == 0) plan.block_rows = unit;
    plan.blocks = divide_up(rows, plan.block_rows);
    return plan;
}

void amp_cpu_replicate(const amp_cpu_plan *plan, const float *per_channel, float *per_lane)
{
    for (size_t l = 0; l < plan->period; l += plan->channels)
        memcpy(per_lane + l, per_channel, plan->channels * sizeof *per_lane);
}

amp_cpu_sums amp_cpu_sums_make(const amp_cpu_plan *plan)
{
    size_t lanes = plan->blocks * plan->period;
    double *sums = amp_allocated(calloc(2 * lanes, sizeof *sums));
    return (amp_cpu_sums){ sums, sums + plan->period, amp_allocated(malloc(3 * lanes * sizeof(float))) };
}

void amp_cpu_sums_free(amp_cpu_sums *sums)
{
    free(sums->first);
    free(sums->scratch);
}

amp_cpu_sums amp_cpu_sums_of(const amp_cpu_plan *plan, const amp_cpu_sums *sums, size_t block)
{
    size_t before = block * plan->period;
    return (amp_cpu_sums){ sums->first + 2 * before, sums->second + 2 * before, sums->scratch + 3 * before };
}

void amp_cpu_sums_fold(const amp_cpu_plan *plan, const amp_cpu_sums *sums)
{
    size_t both = 2 * plan->period;
    for (size_t b = 1; b < plan->blocks; b++)
        for (size_t l = 0; l < both; l++) sums->first[l] += sums->first[b * both + l];
    for (size_t l = plan->channels; l < plan->period; l++) {
        sums->first[l % plan->channels] += sums->first[l];
        sums->second[l % plan->channels] += sums->second[l];
    }
}

amp_cpu_sums amp_cpu_sum_pixels(const amp_cpu_plan *plan, const amp_tensor *x, size_t start)
{
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    amp_cpu_sums sums = amp_cpu_sums_make(plan);
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(plan->rows * plan->channels))
    for (size_t b = 0; b < plan->blocks; b++) {
        amp_cpu_sums own = amp_cpu_sums_of(plan, &sums, b);
        rows->sum(x->dtype, amp_cpu_at(x, start + amp_cpu_block_first(plan, b)),
                  amp_cpu_block_count(plan, b), plan->period, &own);
    }
    amp_cpu_sums_fold(plan, &sums);
    return sums;
}
