/* The blocked layouts in which oneDNN keeps weights of convolutions: copies weights to some of them, and adds
 * gradients in another one to a sum. For any other layout the library's own reorders are used.
 *
 * Weights are O filters of I input channels of K = size_h·size_w places: O·I·K floats in Darknet's order
 * (OIHW). */
#pragma once

#include <stddef.h>

#include "onednn_compat.h"

/* The position of filter o, channel i, place k. Strides are in elements, between whole blocks. */
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
    size_t block, channel_block;     /* size of a block of filters, and, in FLOATS_OF_CHANNELS, of channels */
    size_t padded_filters, padded_channels;
    size_t filter_stride, channel_stride, place_stride;
} amp_weights_layout;

/* The layout of a memory descriptor; order is AMP_WEIGHTS_UNKNOWN if it is none of the above. */
amp_weights_layout amp_weights_layout_of(amp_const_md md);

/* n, if md is fp32 in blocks of n channels by n filters, [i % n][o % n] at each place, without gaps between
 * places, channels and filters ("ABcd16b16a"), which is the layout of gradients of weights; else 0. */
size_t amp_weights_squares(amp_const_md md);

/* ---- copies, in bf16 or fp32: weights_copy.c ----
 *
 * One pass over the fp32 masters makes both copies. The library's own reorders make one copy at a time and
 * wait for memory in each: including the rounding to bf16, three passes and twice the time. */

typedef struct amp_weights_target {
    const amp_weights_layout *layout; /* its order is known */
    void *copy;                       /* NULL: not wanted */
} amp_weights_target;

/* Scratch bytes for one pass to this layout, for the number of threads that OpenMP would use now. */
size_t amp_weights_scratch(const amp_weights_layout *, size_t places);

/* Writes both copies, including padding (zeros): both in fp32, or both from the masters rounded to bf16. */
void amp_weights_copy(const float *masters, size_t filters, size_t channels, size_t places,
                      amp_weights_target one, amp_weights_target other, void *scratch);

/* ---- sums of gradients: weights_add.c ----
 *
 * Takes half the time of the library's own reorder, which moves single floats. */

/* Scratch bytes for amp_weights_add, for the number of threads that OpenMP would use now. */
size_t amp_weights_add_scratch(size_t block, size_t places);

/* sum[filter][channel][place] += gradient, which is in blocks of `block` channels by `block` filters
 * (amp_weights_squares); padding is ignored. */
void amp_weights_add(const float *gradient, size_t block, size_t filters, size_t channels, size_t places,
                     float *sum, void *scratch);
