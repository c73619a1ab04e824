/* Cuts an NHWC tensor into blocks, which are divided among threads. Each block is cut into periods for the
 * loops of rows.h, which defines a period and its lanes.
 *
 * Periods and blocks depend only on the shape, and sums are added in block order, so that the result does not
 * depend on the machine or the number of threads. */
#pragma once

#include "rows.h"

typedef struct amp_cpu_plan {
    size_t rows, channels;     /* n·h·w pixels of C channels */
    size_t period;             /* lanes per period: a multiple of C, and of 16 if that is not too long */
    size_t block_rows, blocks; /* pixels per block (whole periods, except for the last block); number of
                                  blocks */
} amp_cpu_plan;

amp_cpu_plan amp_cpu_plan_make(size_t rows, size_t channels);

/* amp_cpu_block_first: the index of block b's first element. amp_cpu_block_count: its number of elements. */
static inline size_t amp_cpu_block_first(const amp_cpu_plan *p, size_t b)
{
    return b * p->block_rows * p->channels;
}

static inline size_t amp_cpu_block_count(const amp_cpu_plan *p, size_t b)
{
    size_t first = b * p->block_rows, left = p->rows - first;
    return (left < p->block_rows ? left : p->block_rows) * p->channels;
}

/* per_lane[l] ← per_channel[l % channels] for all lanes of a period. */
void amp_cpu_replicate(const amp_cpu_plan *, const float *per_channel, float *per_lane);

/* amp_cpu_sums_make allocates zeroed sums [blocks][2][period] and scratch [blocks][3][period]. It returns the
 * addresses for block 0; amp_cpu_sums_of returns the addresses for another block. amp_cpu_sums_free takes the
 * addresses for block 0 and frees the memory of all blocks. */
amp_cpu_sums amp_cpu_sums_make(const amp_cpu_plan *);
void amp_cpu_sums_free(amp_cpu_sums *);
amp_cpu_sums amp_cpu_sums_of(const amp_cpu_plan *, const amp_cpu_sums *, size_t block);
/* Adds up all blocks and lanes in a fixed order. Entry c of block 0 becomes channel c's sum. The plan must
 * have at least one block. */
void amp_cpu_sums_fold(const amp_cpu_plan *, const amp_cpu_sums *);

/* Sums each channel over the plan's pixels, which begin at element `start` of x. Returns folded sums, which
 * the caller frees. */
amp_cpu_sums amp_cpu_sum_pixels(const amp_cpu_plan *, const amp_tensor *x, size_t start);

/* Whether this many elements are worth waking other threads. */
static inline int amp_cpu_worth_threads(size_t elements) { return elements >= 32768; }

/* Elementwise loops are divided into stretches. amp_cpu_stretches: their number. amp_cpu_stretch_count: the
 * number of elements in the stretch that begins at element `first`. */
enum { AMP_CPU_STRETCH = 16384 };
static inline size_t amp_cpu_stretches(size_t count)
{
    return (count + AMP_CPU_STRETCH - 1) / AMP_CPU_STRETCH;
}
static inline size_t amp_cpu_stretch_count(size_t count, size_t first)
{
    return count - first < AMP_CPU_STRETCH ? count - first : AMP_CPU_STRETCH;
}

/* The address of element i. */
static inline const void *amp_cpu_at(const amp_tensor *t, size_t i)
{
    return (const char *)t->data + i * amp_dtype_size(t->dtype);
}
static inline void *amp_cpu_into(const amp_tensor *t, size_t i)
{
    return (char *)t->data + i * amp_dtype_size(t->dtype);
}

static inline size_t amp_cpu_pixels(const amp_tensor *t)
{
    return (size_t)t->shape.n * t->shape.h * t->shape.w;
}
