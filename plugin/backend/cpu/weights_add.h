/* Adds the gradient of a convolution's weights, in the layout that oneDNN's kernels leave it in, to a sum in
 * Darknet's. The library's own reorder takes about twice the time: it moves single floats. */
#pragma once

#include <stddef.h>

/* Bytes of scratch that amp_weights_add needs, for as many threads as OpenMP would use now. */
size_t amp_weights_add_scratch(size_t block, size_t places);

/* sum[filter][channel][place] += gradient, which lies in blocks of `block` channels by `block` filters
 * (amp_weights_squares); padding is left out. */
void amp_weights_add(const float *gradient, size_t block, size_t filters, size_t channels, size_t places,
                     float *sum, void *scratch);
