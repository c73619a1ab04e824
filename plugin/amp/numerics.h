/* The magnitudes of a network's numbers: histograms of their binary exponents, per tensor, as an observer
 * sees them.
 *
 * They are measured with the engine in fp32 and a loss scale of 1, so that nothing is rounded before it is
 * counted. A loss scale that is a power of two shifts a histogram by whole bins, which shows what a dtype
 * would lose at that scale. */
#pragma once

#include "engine.h"

/* All exponents of fp32, subnormals included: bin b holds 2^(b + AMP_LEAST_EXPONENT) <= |x| < twice that.
 * bf16's limits are among fp32's subnormals: a single bin for them would not show what bf16 loses. */
enum { AMP_LEAST_EXPONENT = -149, AMP_EXPONENTS = 277 };

typedef struct amp_exponents {
    unsigned long long bins[AMP_EXPONENTS], zeros, not_finite;
    float largest; /* largest finite |x| */
} amp_exponents;

/* Of one layer; `gradient` is of its weights, not of biases and scales. inner: what a layer that normalizes
 * or activates in a second pass stores in between, in the dtype of its output. inner_output: the sums that
 * batch norm reads. inner_delta: the delta that batch norm and activation pass down, from which gradients and
 * the delta of the layer below are computed. */
typedef struct amp_layer_numerics { amp_exponents output, inner_output, delta, inner_delta,
                                    gradient; } amp_layer_numerics;

typedef struct amp_numerics amp_numerics;

/* engine: the observed engine, which must live as long as the observer is in use; NULL: the inner tensors are
 * not counted. */
amp_numerics *amp_numerics_create(int layers, const amp_engine *engine);
void amp_numerics_free(amp_numerics *); /* NULL is fine */
/* Pass this to amp_engine_set_observer. It is valid until amp_numerics_free. */
amp_observer amp_numerics_observer(amp_numerics *);
/* Whether gradients are counted (initially yes). An observer sees their sums over the subdivisions so far; a
 * GPU writes only those of the first subdivision in 16 bits. */
void amp_numerics_count_gradients(amp_numerics *, int counted);
const amp_layer_numerics *amp_numerics_of(const amp_numerics *, int layer);

/* Adds count numbers of a dtype to a histogram. */
void amp_exponents_add(amp_exponents *, const void *numbers, amp_dtype, size_t count);
/* Numbers that are neither 0, inf nor NaN. */
unsigned long long amp_exponents_count(const amp_exponents *);

/* Shares (0..1) of the numbers that are neither 0, inf nor NaN, in dtype after multiplication by scale
 * (rounded down to a power of two: 1000 counts as 512): overflow is rounded to inf, zero is rounded to 0,
 * subnormal is subnormal afterwards. All 0 if there are no numbers.
 *
 * A bin that contains a limit counts where most of it belongs. In fp16: of 2^15 to 2^16, the part from 65520
 * on (1/2048 of it) becomes inf; of 2^-25 to 2^-24, only 2^-25 itself becomes 0; of 2^-15 to 2^-14, the
 * topmost 1/1024 becomes normal. (In bf16: 1/256 of 2^127 to 2^128; 2^-134; 1/128 of 2^-127 to 2^-126.) So
 * `overflow` misses the few numbers in that part, but `overflows` is exact. */
typedef struct amp_lost {
    double overflow, zero, subnormal;
    int overflows;             /* at least one number overflows */
    double error;              /* sum of rounding errors as a share of the sum of |x|, without numbers that
                                  overflow; see below */
    unsigned long long count;  /* numbers that are neither 0, inf nor NaN */
} amp_lost;
amp_lost amp_numerics_lost(const amp_exponents *, amp_dtype dtype, float scale);

/* Whether lost small numbers matter depends on the numbers beside them: a tenth of a loss's deltas may become
 * 0 and be a millionth of their sum, whereas a tensor that is entirely subnormal loses precision although
 * nothing becomes 0. So `error` sums, for each number, how far rounding moves it: the number itself if it
 * becomes 0, else on average a quarter of the spacing of the dtype's numbers there (subnormal fp16: 2^-24).
 * Numbers are assumed to be spread evenly over their bin. At its best fp16 has 0.02 %, bf16 0.13 %. */

/* The largest k for which no number times 2^k exceeds dtype's range (exact), and the least k for which
 * `error` is at most share. Without numbers: INT_MAX, INT_MIN. If no scale reaches share, the least is
 * INT_MAX. */
int amp_numerics_most_scale(const amp_exponents *, amp_dtype dtype);
int amp_numerics_least_scale(const amp_exponents *, amp_dtype dtype, double share);
