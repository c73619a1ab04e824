/* The copies of the weights that oneDNN's convolutions read, in the dtype in which the convolution computes
 * and in a blocked layout that the library chooses. onednn_conv.c makes them from the fp32 masters: with
 * amp_weights_copy if the layout is one of those below, else with a cast and the library's reorders.
 *
 * The library's gradients of weights are blocked, too. amp_weights_add adds them to dw if they have one
 * particular layout (amp_weights_squares); otherwise the library's reorder does.
 *
 * In Darknet's order (OIHW), weights are floats [filter][channel][place], with size_h·size_w places in the
 * window. */
#pragma once

#include <stddef.h>

#include "onednn_compat.h"

/* How weights are ordered within a block. Each comment gives oneDNN's tag (a: filters, b: channels), and
 * the indices of the weight of filter o and channel i. */
typedef enum amp_weights_order {
    AMP_WEIGHTS_UNKNOWN,
    AMP_WEIGHTS_PAIRS_OF_CHANNELS,   /* ..16·n a 2b: [o % block][i % 2], block a multiple of 16 */
    AMP_WEIGHTS_CHANNELS_IN_EIGHTS,  /* ..8b 16a 2b: [i % 16 / 2][o % 16][i % 2] */
    AMP_WEIGHTS_FILTERS_IN_EIGHTS,   /* ..8a 16b 2a: [o % 16 / 2][i % 16][o % 2] */
    AMP_WEIGHTS_FLOATS_OF_FILTERS,   /* fp32 ..16·n a: [o % block]; block a multiple of 16 */
    AMP_WEIGHTS_FLOATS_OF_CHANNELS   /* fp32 ..16a 16b: [o % 16][i % 16], or ..16·n b:
                                        [i % channel_block] */
} amp_weights_order;

typedef struct amp_weights_layout {
    amp_weights_order order;
    size_t block, channel_block;     /* filters per block; channels per block (only FLOATS_OF_CHANNELS) */
    size_t padded_filters, padded_channels;
    size_t filter_stride, channel_stride, place_stride; /* strides between blocks, in elements */
} amp_weights_layout;

/* The layout of a memory descriptor. Its order is AMP_WEIGHTS_UNKNOWN if no value above describes it. */
amp_weights_layout amp_weights_layout_of(amp_const_md md);

/* Returns n if a gradient has the layout that amp_weights_add reads: fp32, in blocks of n channels by n
 * filters, [i % n][o % n] at each place, without gaps ("ABcd16b16a" if n is 16). Returns 0 for any other
 * layout. */
size_t amp_weights_squares(amp_const_md md);

/* ---- copies, in bf16 or fp32: weights_copy.c ----
 *
 * amp_weights_copy makes both copies, for forward and for the data gradient, while it reads the masters once.
 * The library would read weights three times, and take twice as long, because memory limits the speed. */

typedef struct amp_weights_target {
    const amp_weights_layout *layout; /* the copy's layout; its order must be known unless copy is NULL */
    void *copy;                       /* NULL: do not make this copy */
} amp_weights_target;

/* Scratch bytes for amp_weights_copy to this layout, for the number of threads that OpenMP would use now. */
size_t amp_weights_scratch(const amp_weights_layout *, size_t places);

/* Writes both copies, including their padding (zeros). Both are in fp32, or both in bf16. */
void amp_weights_copy(const float *masters, size_t filters, size_t channels, size_t places,
                      amp_weights_target one, amp_weights_target other, void *scratch);

/* ---- sums of gradients: weights_add.c ---- */

/* Scratch bytes for amp_weights_add, for the number of threads that OpenMP would use now. */
size_t amp_weights_add_scratch(size_t block, size_t places);

/* sum[filter][channel][place] += gradient, without its padding. Takes half as long as the library's reorder.
 * block: amp_weights_squares of the gradient. */
void amp_weights_add(const float *gradient, size_t block, size_t filters, size_t channels, size_t places,
                     float *sum, void *scratch);
