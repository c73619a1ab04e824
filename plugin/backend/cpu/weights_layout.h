/* The blocked layouts in which oneDNN keeps weights of convolutions. Functions here copy weights to some of
 * these layouts, and add gradients in another layout to a sum. For any other layout the library's own
 * reorders are used.
 *
 * Weights are O filters of I input channels of K = size_h·size_w places: O·I·K floats in Darknet's order
 * (OIHW). */
#pragma once

#include <stddef.h>

#include "onednn_compat.h"

/* How the weights of filter o and channel i are arranged within a block: as oneDNN's tag (a: filters, b:
 * channels), and as indices. The strides of amp_weights_layout lead from block to block, in elements. */
typedef enum amp_weights_order {
    AMP_WEIGHTS_UNKNOWN,
    AMP_WEIGHTS_PAIRS_OF_CHANNELS,   /* ..16·n a 2b: [o % block][i % 2], block a multiple of 16 */
    AMP_WEIGHTS_CHANNELS_IN_EIGHTS,  /* ..8b 16a 2b: [i % 16 / 2][o % 16][i % 2] */
    AMP_WEIGHTS_FILTERS_IN_EIGHTS,   /* ..8a 16b 2a: [o % 16 / 2][i % 16][o % 2] */
    AMP_WEIGHTS_FLOATS_OF_FILTERS,   /* fp32 ..16·n a: [o % block]; block a multiple of 16 */
    AMP_WEIGHTS_FLOATS_OF_CHANNELS   /* fp32 ..16a 16b: [o % 16][i % 16]; or ..16·n b: [i % channel_block] */
} amp_weights_order;

typedef struct amp_weights_layout {
    amp_weights_order order;
    size_t block, channel_block;     /* filters per block; in FLOATS_OF_CHANNELS also channels per block */
    size_t padded_filters, padded_channels;
    size_t filter_stride, channel_stride, place_stride;
} amp_weights_layout;

/* The layout of a memory descriptor; order is AMP_WEIGHTS_UNKNOWN for any other layout. */
amp_weights_layout amp_weights_layout_of(amp_const_md md);

/* Recognizes the layout of gradients of weights: fp32 in blocks of n channels by n filters, [i % n][o % n] at
 * each place, without gaps between places, channels and filters ("ABcd16b16a" if n is 16). Returns n, or 0
 * for another layout. */
size_t amp_weights_squares(amp_const_md md);

/* ---- copies, in bf16 or fp32: weights_copy.c ----
 *
 * One pass over the fp32 masters makes both copies, for forward and for backward by data. The library's own
 * reorders make one copy at a time. With the rounding to bf16 these are three passes, each limited by memory,
 * and take twice the time. */

typedef struct amp_weights_target {
    const amp_weights_layout *layout; /* its order is known */
    void *copy;                       /* NULL: not wanted */
} amp_weights_target;

/* Scratch bytes for one pass to this layout, for the number of threads that OpenMP would use now. */
size_t amp_weights_scratch(const amp_weights_layout *, size_t places);

/* Writes both copies, including padding (zeros). Both are in fp32, or both are in bf16, rounded from the
 * masters. */
void amp_weights_copy(const float *masters, size_t filters, size_t channels, size_t places,
                      amp_weights_target one, amp_weights_target other, void *scratch);

/* ---- sums of gradients: weights_add.c ----
 *
 * amp_weights_add takes half the time of the library's own reorder, which moves single floats. */

/* Scratch bytes for amp_weights_add, for the number of threads that OpenMP would use now. */
size_t amp_weights_add_scratch(size_t block, size_t places);

/* sum[filter][channel][place] += gradient. The gradient is in blocks of `block` channels by `block` filters
 * (amp_weights_squares), whose padding is ignored. */
void amp_weights_add(const float *gradient, size_t block, size_t filters, size_t channels, size_t places,
                     float *sum, void *scratch);
