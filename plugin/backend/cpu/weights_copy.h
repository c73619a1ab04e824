/* The copies of a convolution's weights, in bf16 or fp32, in the library's two blocked layouts, both in one
 * pass over the fp32 masters.
 *
 * The library's own reorders take one copy at a time and wait for memory in each: with the rounding to bf16
 * before them, three passes and twice the time of this one. It knows the layouts that oneDNN asks for on
 * AVX-512; any other layout is left to the library.
 *
 * Weights are O filters of I input channels of K = size_h·size_w places, O·I·K floats as Darknet keeps them
 * (OIHW). */
#pragma once

#include <stddef.h>

#include "../../tensor/half.h"
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

typedef struct amp_weights_target {
    const amp_weights_layout *layout; /* of a known order */
    void *copy;                       /* NULL: not wanted */
} amp_weights_target;

/* Bytes of scratch that one pass to this layout needs, for as many threads as OpenMP would use now. */
size_t amp_weights_scratch(const amp_weights_layout *, size_t places);

/* Write both copies, padding included (zeros): both fp32, or both of the masters rounded to bf16. */
void amp_weights_copy(const float *masters, size_t filters, size_t channels, size_t places,
                      amp_weights_target one, amp_weights_target other, void *scratch);
