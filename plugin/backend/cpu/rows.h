/* The inner loops of kernels.h's operations: one table of functions, compiled once per instruction set from
 * rows_impl.h.
 *
 * So one binary uses AVX-512 where it exists, and still starts on a machine that has only SSE2. rows_base.c,
 * rows_avx2.c and rows_avx512.c compile the same source with different compiler flags. Only these three files
 * may contain instructions beyond the baseline, so no other file includes rows_impl.h.
 *
 * Terms:
 *  - A span is `count` consecutive elements of an NHWC tensor that start at channel 0 of some pixel.
 *  - A period is a whole number of consecutive pixels. Each element of a period is a lane; lane l belongs to
 *    channel l % C. Per-channel fp32 arrays are replicated to one entry per lane, so that loops fill whole
 *    vectors even for C = 1 or C = 3 (blocks.h). `period` is the number of lanes.
 *  - dtype is the storage type of x, y, dx and dy.
 *
 * Results have the same bits on every instruction set: elementwise arithmetic uses no fused multiply-add
 * (rows_impl.h turns contraction off), and sums keep one accumulator per lane of the period, regardless of
 * the vector width. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "../../tensor/half.h"
#include "../activate.h"
#include "../backend.h"

/* The shapes and window of max pooling, for one image: x (h,w,c) → y (out_h,out_w,c). */
typedef struct amp_cpu_pool {
    int h, w, c, out_h, out_w, size, stride;
    int offset; /* window (i,j) starts at (i·stride - offset, j·stride - offset) */
} amp_cpu_pool;

/* Whether batch norm's backward recomputes the activation's input instead of reading y: always if the
 * gradient needs this input, and in fp32 also for leaky and relu, because reading y takes longer than
 * recomputing its sign. (Not in 16 bits: a small y may have been rounded to 0 and so have lost its sign.) */
static inline int amp_cpu_repeats_forward(amp_activation a, amp_dtype dtype)
{
    return amp_gradient_wants_input(a) || (dtype == AMP_FP32 && (a == AMP_LEAKY || a == AMP_RELU));
}

/* Batch norm's factors for each lane of a period: see normalize and normalize_delta. */
typedef struct amp_cpu_norm {
    size_t period;
    float *mean, *gain, *bias, *a, *b, *c;
} amp_cpu_norm;

/* One or two sums for each lane of a period, and scratch of 3·period floats. */
typedef struct amp_cpu_sums {
    double *first, *second;
    float *scratch;
} amp_cpu_sums;

/* The numbers that the update of one parameter uses. */
typedef struct amp_cpu_rule {
    float unscale, unscale_rest;    /* factor and rest of amp_unscale */
    float decay;                 /* decay·batch, as in Darknet; AdamW: 0 */
    float rate, clip;
    float momentum;              /* SGD only */
    float beta1, beta2, eps;        /* Adam and AdamW only */
    float shrink;                /* AdamW: rate·decay; else 0 */
    float correction1, correction2; /* 1 - beta1^t, 1 - beta2^t */
} amp_cpu_rule;

/* Pixels of output in a tile of a Winograd convolution: 4 x 4, except for the last tiles. */
typedef struct amp_cpu_tile_size { int rows, columns; } amp_cpu_tile_size;

/* The matrix V, M or D of a Winograd convolution (winograd.h), or its part from a given tile on. plane: the
 * stride between the 36 planes; line: the stride between groups of 16 channels; both in floats. */
typedef struct amp_cpu_matrix { float *data; size_t plane, line; } amp_cpu_matrix;

/* The epilogue of a Winograd convolution: y = leaky(sum + bias), or y += sum if accumulate is set. slope:
 * leaky's slope for negative numbers; 1: no activation. */
typedef struct amp_cpu_tile_end {
    const float *bias; /* biases of the channels that are written; ignored if accumulate is set */
    float slope;
    int accumulate;
} amp_cpu_tile_end;

/* The 3x3 filters of a convolution, as stored in the masters (OIHW). turned = 1 (for the data
 * gradient): the filters are rotated by 180 degrees; a "filter" is a channel of x, and a "channel" is a
 * channel of dy. */
typedef struct amp_cpu_filters {
    const float *masters;
    size_t filter_stride, channel_stride; /* strides in floats */
    int turned;
} amp_cpu_filters;

typedef struct amp_cpu_rows {
    const char *name; /* "sse2" (on aarch64 "neon"), "avx2", "avx512" */

    /* Converts between storage and fp32. narrow: dst (+)= src, added in fp32 and rounded to nearest even
     * exactly like tensor/half.h. */
    void (*widen)(amp_dtype, const void *src, float *dst, size_t count);
    void (*narrow)(amp_dtype, const float *src, void *dst, size_t count, int accumulate);
    /* dst (columns × rows) = transpose of src (rows × columns); strides are in floats. */
    void (*transpose)(const float *src, size_t src_stride, float *dst, size_t dst_stride, size_t rows,
                      size_t columns);
    /* For weights_copy.c, which stores two bf16 in the 32 bits of a float. Rounds even[i] to bf16 in the low
     * 16 bits of dst[i], and odd[i] to bf16 in the high 16 bits. */
    void (*pair_bf16)(const float *even, const float *odd, float *dst, size_t count);
    /* Interleaves 16 halves of low with 16 of high, `count` times: low[0], high[0], low[1], ... src_stride is
     * in floats, and dst_stride in halves. dst and dst_stride are multiples of 64 bytes. */
    void (*zip)(const float *low, const float *high, size_t src_stride, amp_half_bits *dst, size_t dst_stride,
                size_t count);
    /* Copies 16 floats `count` times. Strides are in floats; dst and dst_stride are multiples of 64 bytes. */
    void (*lines)(const float *src, size_t src_stride, float *dst, size_t dst_stride, size_t count);
    /* Makes what zip and lines have written visible to other threads. Call it after them. */
    void (*end_copies)(void);

    /* to->first[l] += Σ x over the span's elements in lane l. */
    void (*sum)(amp_dtype, const void *x, size_t count, size_t period, const amp_cpu_sums *to);
    /* With u = x - origin[l]: to->first[l] += Σ u, to->second[l] += Σ u². Accurate for any origin
     * (rows_norm.h). */
    void (*moments)(amp_dtype, const void *x, size_t count, size_t period, const float *origin,
                    const amp_cpu_sums *to);
    /* y = act((x - mean[l])·gain[l] + bias[l]). */
    void (*normalize)(amp_dtype, amp_activation, const void *x, void *y, size_t count, const amp_cpu_norm *);
    /* With d = dy·act': to->first[l] += Σ d, to->second[l] += Σ d·(x - mean[l]). If amp_cpu_repeats_forward,
     * act' is computed from (x - mean[l])·gain[l] + bias[l], and y is not read; otherwise gain and bias are
     * not read. */
    void (*delta_sums)(amp_dtype, amp_activation, const void *x, const void *y, const void *dy, size_t count,
                       const amp_cpu_norm *, const amp_cpu_sums *to);
    /* dx = a[l]·d + b[l]·(x - mean[l]) + c[l], with d as in delta_sums; dx may be dy. */
    void (*normalize_delta)(amp_dtype, amp_activation, const void *x, const void *y, const void *dy, void *dx,
                            size_t count, const amp_cpu_norm *);

    /* activate: y = act(x). gradient: dx (+)= dy·act'(y); if amp_gradient_wants_input, dx (+)= dy·act'(x)
     * with x passed as y. Both functions may work in place. */
    void (*activate)(amp_dtype, amp_activation, const void *x, void *y, size_t count);
    void (*gradient)(amp_dtype, amp_activation, const void *y, const void *dy, void *dx, size_t count,
                     int accumulate);
    /* y = act(alpha·x + beta·from). */
    void (*blend)(amp_dtype, amp_activation, const void *x, const void *from, void *y, size_t count,
                  float alpha, float beta);
    /* y (+)= x·s. */
    void (*product)(amp_dtype, const void *x, const void *s, void *y, size_t count, int accumulate);
    /* dst (+)= alpha·src. */
    void (*scale)(amp_dtype, const void *src, void *dst, size_t count, float alpha, int accumulate);
    /* dst (+)= values[l]. */
    void (*spread)(amp_dtype, const float *values, size_t period, void *dst, size_t count, int accumulate);
    /* y (+)= keep ? scale·x : 0. */
    void (*mask)(amp_dtype, const void *x, void *y, const uint8_t *keep, size_t count, float scale,
                 int accumulate);

    /* maxpool computes row i of y and of choice; x is the whole image. maxpool_delta computes row i of dx; dy
     * and choice are the whole image. */
    void (*maxpool)(amp_dtype, const amp_cpu_pool *, const void *x, int i, void *y_row, uint8_t *choice_row);
    void (*maxpool_delta)(amp_dtype, const amp_cpu_pool *, const void *dy, const uint8_t *choice, int i,
                          void *dx_row, int accumulate);
    /* upsample computes one row of y (w·stride pixels) from one row of x (w pixels). upsample_delta computes
     * one row of dx from `stride` rows of dy. */
    void (*upsample)(amp_dtype, const void *x_row, void *y_row, int w, int c, int stride, float scale);
    void (*upsample_delta)(amp_dtype, const void *dy_rows, void *dx_row, int w, int c, int stride,
                           float scale, int accumulate);

    /* Update a stretch of one parameter (the formulas are at backend.h's finish_step), and set grad to 0. */
    void (*sgd)(float *master, float *grad, float *momentum, size_t count, const amp_cpu_rule *);
    void (*adam)(float *master, float *grad, float *m, float *v, size_t count, const amp_cpu_rule *);
    /* Returns Σ grad². Sets *found_inf to 1 if any element is inf or NaN, else does not change it. */
    double (*squares)(const float *grad, size_t count, int *found_inf);

    /* Winograd convolutions: winograd.h explains the matrices V, U, M, D and their layouts. Numbers of
     * channels are multiples of 16. width, the number of filters in a panel, is also a multiple of 16. plane
     * and line are strides as in amp_cpu_matrix. In the baseline, these functions are NULL and winograd_panel
     * is 0.
     *
     * winograd_transform computes a tile's V from 36 pixels (side 6), or D from 16 pixels (side 4), for the
     * channels of one group. Returns 1 if a pixel is inf, NaN or so large that results may overflow. */
    int (*winograd_transform)(amp_dtype, int side, const void *const *pixels, amp_cpu_tile_size,
                              size_t channels, size_t groups, amp_cpu_matrix to);
    /* Whether all numbers of `count` pixels are finite. */
    int (*winograd_is_finite)(amp_dtype, const void *const *pixels, size_t count, size_t channels);
    /* Computes the 16 pixels of one tile from M, for `channels` channels. */
    void (*winograd_output)(amp_dtype, amp_cpu_matrix from, size_t channels, void *const *pixels,
                            amp_cpu_tile_size, const amp_cpu_tile_end *);
    /* Computes the same pixels as winograd_output, but by the direct sum, from the tile's 36 input pixels,
     * which have `in` channels. Computes `channels` filters from `first` on. */
    void (*winograd_direct)(amp_dtype, const void *const *pixels, size_t in, const amp_cpu_filters *,
                            size_t first, size_t channels, void *const *to, const amp_cpu_tile_end *);
    /* Computes U of the panel that begins at filter `first`, for the channels [channel, channel + channels).
     * first, width, channel and channels are multiples of 16. Returns 1 if a weight is inf, NaN or too
     * large. */
    int (*winograd_filters)(const amp_cpu_filters *, size_t first, size_t width, size_t channel,
                            size_t channels, float *to, size_t plane);
    /* winograd_products and winograd_sums work on one plane, and add to the old output if `add` is set.
     * winograd_products: m (+)= v·u for a panel of U, summed over `blocks` blocks of 16 channels.
     * winograd_sums: out[16][width] (+)= the products of 16 channels of v and a panel of d, summed over
     * tiles. */
    void (*winograd_products)(const float *v, size_t v_line, size_t blocks, const float *u, size_t width,
                              float *m, size_t m_line, size_t tiles, int add);
    void (*winograd_sums)(const float *v, const float *d, size_t d_line, size_t tiles, size_t width,
                          float *out, int add);
    /* dw += the gradient of a panel of filters for 16 channels. It is computed from the sum of `parts` arrays
     * [plane][16][width], which are `part` floats apart; their planes are `plane` floats apart. */
    void (*winograd_gradient)(const float *from, size_t plane, size_t parts, size_t part, size_t width,
                              float *dw, size_t filter_stride);
    /* dw += one tile's contribution to the gradient of one filter, computed by the direct sum from 36 pixels
     * of x and 16 of dy. */
    void (*winograd_direct_gradient)(amp_dtype, const void *const *x, size_t channels, const void *const *dy,
                                     size_t filter, float *dw);
    size_t winograd_panel; /* filters per panel; the last panel may have only 16 */
} amp_cpu_rows;

/* Instruction sets: the architecture's baseline; AVX2 with FMA and F16C; x86-64-v4 (AVX-512 F, BW, CD, DQ,
 * VL). */
typedef enum amp_cpu_width { AMP_CPU_BASE, AMP_CPU_AVX2, AMP_CPU_AVX512 } amp_cpu_width;

/* The widest instruction set that the processor, the operating system (which must save the registers), and
 * oneDNN's environment variable DNNL_MAX_CPU_ISA allow. */
amp_cpu_width amp_cpu_widest(void);

/* Returns the widest table that amp_cpu_widest allows. The environment variable AMP_CPU_ISA = sse2 | avx2 |
 * avx512 can select a narrower table, for tests. */
const amp_cpu_rows *amp_cpu_rows_best(void);

/* The table of one instruction set, even if this processor lacks it; NULL if the build lacks it. */
const amp_cpu_rows *amp_cpu_rows_base(void);
const amp_cpu_rows *amp_cpu_rows_avx2(void);
const amp_cpu_rows *amp_cpu_rows_avx512(void);
