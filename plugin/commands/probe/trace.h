/* The tensors of one training pass, layer by layer, and their differences from another pass. All numbers are
 * fp32, in NCHW, and without the loss scale, whatever the pass's dtype. */
#pragma once

#include "../../tensor/status.h"
#include "../../tensor/tensor.h"

/* A layer's results in a pass. Gradients of weights, biases and scales are separate, and so are means and
 * variances, because an error in small numbers would not show beside large ones. The statistics are the
 * batch's, not rolling ones. */
typedef enum amp_trace_kind {
    AMP_TRACE_OUTPUT, AMP_TRACE_DELTA, AMP_TRACE_WEIGHTS, AMP_TRACE_BIASES, AMP_TRACE_SCALES,
    AMP_TRACE_MEANS, AMP_TRACE_VARIANCES, AMP_TRACE_KINDS
} amp_trace_kind;

typedef struct amp_trace_tensor { float *numbers; size_t count; } amp_trace_tensor; /* numbers NULL: none */

typedef struct amp_trace {
    int layers;
    amp_trace_tensor *tensors; /* [layers][AMP_TRACE_KINDS] */
} amp_trace;

/* Sums over the elements of a tensor x and its reference y. */
typedef struct amp_difference {
    int compared;          /* 1: x and y exist and have the same size */
    double xx, yy, xy, dd; /* d = x - y; all sums are NaN if x or y holds inf or NaN */
    double floor;          /* lower bound for the size of y: see amp_difference_error */
    double flipped;        /* for an output only: the relative error that the layer's deltas get because the
                              activation's slopes at x and y differ */
    double largest;        /* the largest |y|, times `scale` of amp_trace_compare */
    double flushed;        /* the share of y's nonzero numbers that fp16 rounds to 0 after they were
                              multiplied by `scale` */
} amp_difference;

/* One layer's differences and flags, indexed by amp_trace_kind. */
typedef amp_difference amp_differences[AMP_TRACE_KINDS];
typedef char amp_trace_flags[AMP_TRACE_KINDS];

void amp_trace_make(amp_trace *, int layers);
void amp_trace_free(amp_trace *);
amp_trace_tensor *amp_trace_at(const amp_trace *, int layer, amp_trace_kind);
/* Appends a copy of `count` numbers, multiplied by factor. */
void amp_trace_append(amp_trace *, int layer, amp_trace_kind, const float *numbers, size_t count,
                      float factor);

double amp_trace_mean_square(const amp_trace_tensor *); /* 0 if there are no numbers */

/* Compares a tensor with its reference. Some tensors would be 0 in exact arithmetic (for example, a bias's
 * gradient before batch norm), and hold only rounding errors. So some kinds get a floor from other tensors of
 * `reference`: gradients of biases and scales get the size of the weights' gradient; means get the square
 * root of their variances. scale: the pass's loss scale for deltas, else 1. */
void amp_trace_compare(const amp_trace *reference, int layer, amp_trace_kind, const float *numbers,
                       size_t count, double scale, amp_difference *out);

/* error: the relative L2 error |x - y| / max(|y|, floor). It is inf if x or y is not finite, 1 if only y is
 * 0, 0 if both are 0, and NaN if nothing was compared. cosine: the cosine of the angle between x and y. It is
 * NaN if nothing was compared, or if x or y is 0. */
double amp_difference_error(const amp_difference *);
double amp_difference_cosine(const amp_difference *);

/* Copies numbers, multiplied by `factor`, between a tensor of any dtype and layout and an fp32 array in NCHW.
 * memory: the tensor's bytes, in host memory. If `from` is not NULL, it is copied to the tensor; otherwise
 * the tensor is copied to `to`. */
void amp_trace_convert(const amp_tensor *, void *memory, float factor, const float *from, float *to);
