/* The blocked layouts in which oneDNN keeps weights of convolutions: copies of the weights in some of them,
 * and the gradient that lies in another added to a sum. The library's own reorders see to any other layout.
 *
 * Weights are O filters of I input channels of K = size_h·size_w places, O·I·K floats as Darknet keeps them
 * (OIHW). */
#pragma once

#include <stddef.h>

#include "onednn_compat.h"

/* Where filter o, channel i, place k lies. Strides are in elements, of whole blocks. */
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
    size_t block, channel_block;     /* filters, and channels of FLOATS_OF_CHANNELS, in a block */
    size_t padded_filters, padded_channels;
    size_t filter_stride, channel_stride, place_stride;
} amp_weights_layout;

/* The layout of a memory descriptor; order is AMP_WEIGHTS_UNKNOWN where it is none of the above. */
amp_weights_layout amp_weights_layout_of(amp_const_md md);

/* n, if md is fp32 in blocks of n channels by n filters, [i % n][o % n] at each place, without gaps between
 * places, channels and filters ("ABcd16b16a"); else 0. Gradients of weights lie so. */
size_t amp_weights_squares(amp_const_md md);

/* ---- copies, in bf16 or fp32: weights_copy.c ----
 *
 * One pass over the fp32 masters makes both. The library's own reorders take one copy at a time and wait for
 * memory in each: with the rounding to bf16 before them, three passes and twice the time of this one. */

typedef struct amp_weights_target {
    const amp_weights_layout *layout; /* of a known order */
    void *copy;                       /* NULL: not wanted */
} amp_weights_target;

/* Bytes of scratch that one pass to this layout needs, for as many threads as OpenMP would use now. */
size_t amp_weights_scratch(const amp_weights_layout *, size_t places);

/* Write both copies, padding included (zeros): both fp32, or both of the masters rounded to bf16. */
void amp_weights_copy(const float *masters, size_t filters, size_t channels, size_t places,
                      amp_weights_target one, amp_weights_target other, void *scratch);

/* ---- sums of gradients: weights_add.c ----
 *
 * In half the time of the library's own reorder, which moves single floats. */

/* Bytes of scratch that amp_weights_add needs, for as many threads as OpenMP would use now. */
size_t amp_weights_add_scratch(size_t block, size_t places);

/* sum[filter][channel][place] += gradient, which lies in blocks of `block` channels by `block` filters
 * (amp_weights_squares); padding is left out. */
void amp_weights_add(const float *gradient, size_t block, size_t filters, size_t channels, size_t places,
                     float *sum, void *scratch);
