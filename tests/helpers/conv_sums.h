/* A convolution's passes as plain sums in double precision, over all places, channels and filters: the
 * reference for tests of convolutions. */
#pragma once

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "kernel_numbers.h"

typedef enum pass { FORWARD, BACKWARD_DATA, BACKWARD_WEIGHTS } pass;

static inline size_t conv_weights(const amp_conv_desc *d)
{
    return (size_t)d->k * (size_t)(d->x.c / d->groups) * (size_t)d->size_h * (size_t)d->size_w;
}

/* The number of elements of a pass's result: of y, of x or of w. */
static inline size_t conv_results(const amp_conv_desc *d, pass which)
{
    return which == FORWARD ? amp_shape_count(amp_conv_output(d)) : which == BACKWARD_DATA
        ? amp_shape_count(d->x) : conv_weights(d);
}

static inline double *widened(amp_dtype dtype, const void *data, size_t count)
{
    double *wide = malloc(count * sizeof *wide);
    if (!wide) abort();
    for (size_t i = 0; i < count; i++) wide[i] = (double)number_of(dtype, data, i);
    return wide;
}

/* sums: of the pass's terms; sizes: of their absolute values, or NULL. x and dy are NHWC in d's dtype, w is
 * OIHW. */
static inline void conv_sums(const amp_conv_desc *d, pass which, const void *x_numbers,
                             const void *dy_numbers, const float *w, double *sums, double *sizes)
{
    const amp_shape in = d->x, out = amp_conv_output(d);
    const int group_c = in.c / d->groups, group_k = d->k / d->groups, apart = d->dilation ? d->dilation : 1,
        stride_x = d->stride_x ? d->stride_x : d->stride;
    double *x = widened(d->dtype, x_numbers, amp_shape_count(in)),
        *dy = widened(d->dtype, dy_numbers, amp_shape_count(out));
    memset(sums, 0, conv_results(d, which) * sizeof *sums);
    if (sizes) memset(sizes, 0, conv_results(d, which) * sizeof *sizes);
    for (int n = 0; n < in.n; n++)
    for (int i = 0; i < out.h; i++)
    for (int j = 0; j < out.w; j++)
    for (int r = 0; r < d->size_h; r++) {
        int row = i * d->stride - d->pad + r * apart;
        if (row < 0 || row >= in.h) continue;
        for (int s = 0; s < d->size_w; s++) {
            int column = j * stride_x - d->pad + s * apart;
            if (column < 0 || column >= in.w) continue;
            for (int k = 0; k < d->k; k++)
            for (int c = 0; c < group_c; c++) {
                size_t xi = (((size_t)n * in.h + row) * in.w + column) * in.c + k / group_k * group_c + c;
                size_t yi = (((size_t)n * out.h + i) * out.w + j) * out.c + k;
                size_t wi = (((size_t)k * group_c + c) * d->size_h + r) * d->size_w + s;
                size_t to = which == FORWARD ? yi : which == BACKWARD_DATA ? xi : wi;
                double a = which == BACKWARD_DATA ? dy[yi] : x[xi],
                    b = which == BACKWARD_WEIGHTS ? dy[yi] : (double)w[wi];
                sums[to] += a * b;
                if (sizes) sizes[to] += fabs(a * b);
            }
        }
    }
    free(x);
    free(dy);
}
