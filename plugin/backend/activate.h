/* Darknet's fourteen activations on one float, and their gradients in terms of the output.
 *
 * The formulas are those of Darknet's activations.h. Where stock computes through double or overflows inside
 * a formula (tanh of 355 is inf/inf, elu of 710 is 0·inf), these stay in fp32 and finite: equal within a few
 * fp32 ulp wherever stock is finite. A NaN stays a NaN in every one of them. Written once for every backend:
 * CUDA's kernels call these functions, and so does the CPU but for the three that hot layers use (vector
 * forms in cpu/rows_impl.h). */
#ifndef AMP_BACKEND_ACTIVATE_H
#define AMP_BACKEND_ACTIVATE_H

#include <math.h>

#include "backend.h"

#ifdef __CUDACC__
#define AMP_ACTIVATE static __host__ __device__ __forceinline__
#else
#define AMP_ACTIVATE static inline
#endif

#define AMP_SELU_SCALE 1.0507f
#define AMP_SELU_ALPHA (1.0507f * 1.6732f) /* scale·alpha */

AMP_ACTIVATE float amp_activate_stair(float x)
{
    float whole = floorf(x), half = floorf(x * .5f);
    return whole == 2 * half ? half : (x - whole) + half; /* flat on [2k, 2k+1), rising by 1 on [2k+1,
                                                             2k+2) */
}

AMP_ACTIVATE float amp_activate_plse(float x)
{
    if (x < -4) return .01f * (x + 4);
    if (x > 4) return .01f * (x - 4) + 1;
    return .125f * x + .5f;
}

AMP_ACTIVATE float amp_activate_lhtan(float x)
{
    if (x < 0) return .001f * x;
    if (x > 1) return .001f * (x - 1) + 1;
    return x;
}

AMP_ACTIVATE float amp_activate(float x, amp_activation activation)
{
    switch (activation) {
    case AMP_LOGISTIC: return 1 / (1 + expf(-x));
    case AMP_LOGGY: return tanhf(.5f * x); /* = 2/(1+exp(-x)) - 1, without its cancellation */
    case AMP_RELU: return x * (float)(x > 0); /* a product, as stock's: NaN stays NaN */
    case AMP_RELIE: return x > 0 ? x : .01f * x;
    case AMP_RAMP: return x * (float)(x > 0) + .1f * x;
    case AMP_TANH: return tanhf(x);
    case AMP_PLSE: return amp_activate_plse(x);
    case AMP_LEAKY: return x > 0 ? x : .1f * x;
    case AMP_ELU: return x >= 0 ? x : expm1f(x);
    case AMP_SELU: return x >= 0 ? AMP_SELU_SCALE * x : AMP_SELU_ALPHA * expm1f(x);
    case AMP_STAIR: return amp_activate_stair(x);
    case AMP_HARDTAN: return x < -1 ? -1 : x > 1 ? 1 : x;
    case AMP_LHTAN: return amp_activate_lhtan(x);
    default: return x; /* AMP_LINEAR */
    }
}

/* d act / d x, from y = act(x). */
AMP_ACTIVATE float amp_gradient(float y, amp_activation activation)
{
    switch (activation) {
    case AMP_LOGISTIC: return (1 - y) * y;
    case AMP_LOGGY: return .5f * (1 - y) * (1 + y); /* 2(1-h)h with h = (y+1)/2 */
    case AMP_RELU: return (float)(y > 0);
    case AMP_RELIE: return y > 0 ? 1 : .01f;
    case AMP_RAMP: return (float)(y > 0) + .1f;
    case AMP_TANH: return 1 - y * y;
    case AMP_PLSE: return y < 0 || y > 1 ? .01f : .125f;
    case AMP_LEAKY: return y > 0 ? 1 : .1f;
    case AMP_ELU: return y >= 0 ? 1 : y + 1;
    case AMP_SELU: return y >= 0 ? AMP_SELU_SCALE : y + AMP_SELU_ALPHA;
    case AMP_STAIR: return (float)(floorf(y) != y);
    case AMP_HARDTAN: return (float)(y > -1 && y < 1);
    case AMP_LHTAN: return y > 0 && y < 1 ? 1 : .001f;
    default: return 1; /* AMP_LINEAR */
    }
}

#endif
