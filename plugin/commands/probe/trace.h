/* The tensors of one training pass, layer by layer, and their differences from another pass.
 *
 * All numbers are fp32, in Darknet's order (NCHW), without the loss scale, whatever dtype the pass computed
 * in. */
#pragma once

#include "../../tensor/status.h"
#include "../../tensor/tensor.h"

/* A layer's results in a pass. Gradients of weights, biases and scales are separate, and so are means and
 * variances, since the larger numbers would hide the smaller. Statistics are those of the batch, not the
 * rolling ones. */
typedef enum amp_trace_kind {
    AMP_TRACE_OUTPUT, AMP_TRACE_DELTA, AMP_TRACE_WEIGHTS, AMP_TRACE_BIASES, AMP_TRACE_SCALES,
    AMP_TRACE_MEANS, AMP_TRACE_VARIANCES, AMP_TRACE_KINDS
} amp_trace_kind;

typedef struct amp_trace_tensor { float *numbers; size_t count; } amp_trace_tensor; /* NULL: no tensor */

typedef struct amp_trace {
    int layers;
    amp_trace_tensor *tensors; /* layers times AMP_TRACE_KINDS */
} amp_trace;

/* Sums over the elements of a tensor x and its reference y. */
typedef struct amp_difference {
    int compared;          /* both exist and have the same size */
    double xx, yy, xy, dd; /* d = x - y; NaN where x or y holds inf or NaN */
    double floor;          /* lower bound for the size of y: see amp_difference_error */
    double flipped;        /* of an output: the relative error of its deltas that is caused by a different
                              activation slope, for example if x and y are on different sides of leaky's kink,
                              or if rounding changed the slope */
    double largest;        /* the largest |y|, multiplied by `scale` of amp_trace_compare */
    double flushed;        /* the fraction of the nonzero y, also multiplied by it, that fp16 rounds to 0 */
} amp_difference;

/* One layer's differences, and flags, by kind. */
typedef amp_difference amp_differences[AMP_TRACE_KINDS];
typedef char amp_trace_flags[AMP_TRACE_KINDS];

void amp_trace_make(amp_trace *, int layers);
void amp_trace_free(amp_trace *);
amp_trace_tensor *amp_trace_at(const amp_trace *, int layer, amp_trace_kind);
/* Appends a copy of `count` numbers, multiplied by factor. */
void amp_trace_append(amp_trace *, int layer, amp_trace_kind, const float *numbers, size_t count,
                      float factor);

double amp_trace_mean_square(const amp_trace_tensor *); /* 0 without numbers */

/* Compares a tensor with its reference. `reference` is the whole trace, from which the floor is computed too.
 * For gradients of biases and scales the floor is the size of the layer's weights' gradient, since a bias
 * before batch norm has a gradient of 0 except for rounding. For means it is the square root of their
 * variances, for the same reason. scale: the pass's loss scale for deltas, else 1. */
void amp_trace_compare(const amp_trace *reference, int layer, amp_trace_kind, const float *numbers,
                       size_t count, double scale, amp_difference *out);

/* error: the relative L2 error |x - y| / max(|y|, floor). It is inf if x or y is not finite, 1 if only y is
 * 0, 0 if both are 0, and NaN if nothing was compared. cosine: that of the angle between x and y; NaN if
 * nothing was compared, or if x or y is 0. */
double amp_difference_error(const amp_difference *);
double amp_difference_cosine(const amp_difference *);

/* Converts between a backend's tensor (any dtype and layout) and fp32 numbers in NCHW, and multiplies by
 * factor. Writes the numbers `from` into the tensor; if `from` is NULL, writes the tensor's numbers to `to`.
 * `memory`: the tensor's bytes in the program's memory. */
void amp_trace_convert(const amp_tensor *, void *memory, float factor, const float *from, float *to);
