/* How large the numbers of a network are: histograms of their binary exponents, tensor by tensor, as an observer sees them.
 *
 * Measured with the engine in fp32 and a loss scale of 1, so that nothing is rounded away before it is counted; what a dtype
 * would lose at a loss scale is then read off the histogram: a power of two as the scale moves it by whole bins. */
#ifndef AMP_AMP_NUMERICS_H
#define AMP_AMP_NUMERICS_H

#include "observer.h"

enum { AMP_EXPONENTS = 256 }; /* of fp32: bin e holds 2^(e-127) <= |x| < 2^(e-126); 0: subnormal; 255: inf and NaN */

typedef struct amp_exponents {
    unsigned long long bins[AMP_EXPONENTS], zeros;
} amp_exponents;

/* Of a layer; gradients is of all its parameters together. */
typedef struct amp_layer_numerics { amp_exponents output, delta, gradient; } amp_layer_numerics;

typedef struct amp_numerics amp_numerics;

amp_status amp_numerics_create(int layers, amp_numerics **out, amp_error *);
void amp_numerics_free(amp_numerics *);
/* To be given to amp_engine_set_observer; lives as long as the numerics. */
amp_observer amp_numerics_observer(amp_numerics *);
const amp_layer_numerics *amp_numerics_of(const amp_numerics *, int layer);

/* Shares of the numbers that are neither 0, inf nor NaN, 0..1, in dtype after multiplication by scale (a power of two):
 * overflowing (rounding to inf), becoming 0, and becoming subnormal. The first bin that is partly lost counts as its upper half
 * does. All 0 if there are no numbers. */
typedef struct amp_lost { double overflow, zero, subnormal; unsigned long long count; } amp_lost;
amp_lost amp_numerics_lost(const amp_exponents *, amp_dtype dtype, float scale);

#endif
