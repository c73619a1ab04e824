/* The copies of a convolution's weights, in bf16 or fp32, in the library's two blocked layouts, both in one
 * pass over the fp32 masters.
 *
 * The library's own reorders take one copy at a time and wait for memory in each: with the rounding to bf16
 * before them, three passes and twice the time of this one. It knows the layouts that oneDNN asks for on
 * AVX-512; any other layout is left to the library. */
#pragma once

#include "weights_layout.h"

typedef struct amp_weights_target {
    const amp_weights_layout *layout; /* of a known order */
    void *copy;                       /* NULL: not wanted */
} amp_weights_target;

/* Bytes of scratch that one pass to this layout needs, for as many threads as OpenMP would use now. */
size_t amp_weights_scratch(const amp_weights_layout *, size_t places);

/* Write both copies, padding included (zeros): both fp32, or both of the masters rounded to bf16. */
void amp_weights_copy(const float *masters, size_t filters, size_t channels, size_t places,
                      amp_weights_target one, amp_weights_target other, void *scratch);
