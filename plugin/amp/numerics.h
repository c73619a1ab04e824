/* How large the numbers of a network are: histograms of their binary exponents, tensor by tensor, as an
 * observer sees them.
 *
 * They are measured with the engine in fp32 and a loss scale of 1, so that nothing is rounded away before it
 * is counted. A loss scale that is a power of two moves a histogram by whole bins, which shows what a dtype
 * would lose at that scale. */
#pragma once

#include "engine.h"

/* All that fp32 has, its subnormals too: bin b holds 2^(b + AMP_LEAST_EXPONENT) <= |x| < twice that. bf16's
 * limits lie among fp32's subnormals, so that one bin for these would not tell what bf16 loses of them. */
enum { AMP_LEAST_EXPONENT = -149, AMP_EXPONENTS = 277 };

typedef struct amp_exponents {
    unsigned long long bins[AMP_EXPONENTS], zeros, not_finite;
    float largest; /* |x| of those that are finite */
} amp_exponents;

/* Of a layer; gradient is of its weights, not of biases and scales. inner: what a layer that normalizes or
 * activates in a second pass stores between the two, in the same dtype as its output: the sums that batch
 * normalization reads, and the delta that comes out of batch normalization and activation, from which
 * gradients and the delta of the layer below are computed. */
typedef struct amp_layer_numerics { amp_exponents output, inner_output, delta, inner_delta,
                                    gradient; } amp_layer_numerics;

typedef struct amp_numerics amp_numerics;

/* engine: the observed one, which outlives the use of the observer; NULL: nothing inner is counted. */
amp_numerics *amp_numerics_create(int layers, const amp_engine *engine);
void amp_numerics_free(amp_numerics *); /* NULL is fine */
/* To be given to amp_engine_set_observer; lives as long as the numerics. */
amp_observer amp_numerics_observer(amp_numerics *);
/* Whether gradients are counted; at first they are. An observer is shown their sums over the subdivisions so
 * far: those of the first subdivision alone are what a GPU writes in 16 bits. */
void amp_numerics_count_gradients(amp_numerics *, int counted);
const amp_layer_numerics *amp_numerics_of(const amp_numerics *, int layer);

/* Adds count numbers of a dtype to a histogram. */
void amp_exponents_add(amp_exponents *, const void *numbers, amp_dtype, size_t count);
/* Numbers that are neither 0, inf nor NaN. */
unsigned long long amp_exponents_count(const amp_exponents *);

/* Shares of the numbers that are neither 0, inf nor NaN, 0..1, in dtype after multiplication by scale (of
 * which the power of two counts: 1000 is 512): rounding to inf, rounding to 0, and being subnormal
 * afterwards. All 0 if there are no numbers.
 *
 * A limit that lies within a bin: the bin goes where most of it does. In fp16 that is 2^15 to 2^16, of which
 * 65520 and more, 1/2048 of it, become inf; 2^-25 to 2^-24, of which only 2^-25 itself becomes 0; 2^-15 to
 * 2^-14, of which the topmost 1/1024 become normal. (In bf16: 1/256 of 2^127 to 2^128, 2^-134, 1/128 of
 * 2^-127 to 2^-126.) So overflow is too small by what little lies there, but overflows is exact. */
typedef struct amp_lost {
    double overflow, zero, subnormal;
    int overflows;             /* at least one number does */
    double error;              /* what rounding takes or adds, as a share of the sum of |x|: see below;
                                  without what overflows */
    unsigned long long count;  /* of numbers */
} amp_lost;
amp_lost amp_numerics_lost(const amp_exponents *, amp_dtype dtype, float scale);

/* Whether small numbers are missed depends on what lies beside them: of a loss's deltas a tenth may become 0
 * and be a millionth of their sum, whereas one that is subnormal throughout loses its precision though
 * nothing becomes 0. So error counts, for each number, how far rounding moves it: itself where it becomes 0,
 * else on average a quarter of the distance between two numbers of the dtype there (subnormal fp16: 2^-24);
 * numbers are taken as spread evenly over their bin. fp16 at its best has 0.02 %, bf16 0.13 %. */

/* The largest k with which no number times 2^k is beyond dtype's range, exactly; and the least with which
 * error is no more than share. Where there are no numbers: INT_MAX, INT_MIN. Where no scale is enough for
 * share, least is INT_MAX. */
int amp_numerics_most_scale(const amp_exponents *, amp_dtype dtype);
int amp_numerics_least_scale(const amp_exponents *, amp_dtype dtype, double share);
