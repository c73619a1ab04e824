/* The tensors of one training pass, layer by layer, and how far those of another pass lie from them.
 *
 * All numbers are fp32, images and channels in Darknet's order (NCHW), without the loss scale, whatever the
 * pass computed in. */
#pragma once

#include "../../tensor/status.h"
#include "../../tensor/tensor.h"

/* What a layer makes in a pass. Gradients of weights, biases and scales are kept apart, and so are means and
 * variances, since the larger would hide the smaller. Statistics are the batch's: those that
 * the rolling ones have moved towards. */
typedef enum amp_trace_kind {
    AMP_TRACE_OUTPUT, AMP_TRACE_DELTA, AMP_TRACE_WEIGHTS, AMP_TRACE_BIASES, AMP_TRACE_SCALES,
    AMP_TRACE_MEANS, AMP_TRACE_VARIANCES, AMP_TRACE_KINDS
} amp_trace_kind;

typedef struct amp_trace_tensor { float *numbers; size_t count; } amp_trace_tensor; /* NULL: there is none */

typedef struct amp_trace {
    int layers;
    amp_trace_tensor *tensors; /* layers times AMP_TRACE_KINDS */
} amp_trace;

/* Sums over the numbers of a tensor x, compared, and y, its reference. */
typedef struct amp_difference {
    int compared;          /* both were there, and as large */
    double xx, yy, xy, dd; /* d = x - y; NaN where x or y holds inf or NaN */
    double floor;          /* the least that the size of y counts as: see amp_difference_error */
    double flipped;        /* of an output: how far the activation moves its deltas where x has another slope
                              than y, as across leaky's kink, or where y has lost the slope by rounding,
                              relative to all of them */
    double largest;        /* the largest |y|, times the pass's loss scale where y has one */
    double flushed;        /* the share of those numbers of y other than 0 that fp16 makes 0, so scaled */
} amp_difference;

/* Of one layer, a difference of each kind; and a flag. */
typedef amp_difference amp_differences[AMP_TRACE_KINDS];
typedef char amp_trace_flags[AMP_TRACE_KINDS];

void amp_trace_make(amp_trace *, int layers);
void amp_trace_free(amp_trace *);
amp_trace_tensor *amp_trace_at(const amp_trace *, int layer, amp_trace_kind);
/* Adds a copy of `count` numbers, times factor, behind those that are there already. */
void amp_trace_append(amp_trace *, int layer, amp_trace_kind, const float *numbers, size_t count,
                      float factor);

/* Compares a tensor with its reference; `reference` is the trace of all, which gives the floor. Those of
 * biases and scales are held against the size of their layer's weights' gradient where that is larger, since
 * a bias before batch norm has a gradient of 0 but for rounding; means against the square root of their
 * variances, for the same reason. */
void amp_trace_compare(const amp_trace *reference, int layer, amp_trace_kind, const float *numbers,
                       size_t count, double scale, amp_difference *out);

/* The relative L2 error |x - y| / max(|y|, floor): inf where x or y is not finite, 1 where y alone is 0, 0
 * where both are, NaN where nothing was compared. And the cosine of the angle between x and y; NaN likewise,
 * and where one is 0. */
double amp_difference_error(const amp_difference *);
double amp_difference_cosine(const amp_difference *);

/* Between a tensor as a backend has it (any dtype and layout) and NCHW, times factor: into the tensor from
 * `from`, or, where that is NULL, out of it to `to`. `memory`: where the tensor's bytes lie in the program's
 * memory. */
void amp_trace_convert(const amp_tensor *, void *memory, float factor, const float *from, float *to);
