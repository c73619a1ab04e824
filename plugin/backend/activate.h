/* Darknet's activations of one float, and their gradients. A gradient is computed from the output y, or from
 * the input x if amp_gradient_wants_input returns 1.
 *
 * The formulas are those of Darknet's activations.h; relu6, mish, swish and hard_mish are AlexeyAB's. Mish is
 * x·tanh(log(1 + exp(x))); AlexeyAB's CPU and GPU code have other forms of this formula. Swish is
 * x·logistic(x). Darknet computes some formulas in double, and some of its formulas overflow (tanh of 355 is
 * inf/inf, elu of 710 is 0·inf). The functions here compute in fp32 and stay finite. Wherever Darknet's
 * result is finite, they agree with it within a few fp32 ulp, with one exception: tanh, loggy, elu and selu
 * near 0. For these, Darknet's GPU code and AlexeyAB's CPU code subtract 1 from a number near 1 in fp32; the
 * functions here are more exact. Every activation of NaN is NaN. All backends share these functions. For the
 * activations of hot layers, the CPU has vector forms instead (cpu/rows_impl.h). */
#pragma once

#include <math.h>

#include "backend.h"

#define AMP_SELU_SCALE 1.0507f
#define AMP_SELU_ALPHA (1.0507f * 1.6732f) /* scale·alpha */

/* Whether the gradient must be computed from the input x. Mish, swish and hard_mish fall before they rise, so
 * two x can have the same y. The other activations listed here approach a limit. In 16 bits, a y near the
 * limit is rounded to the limit, and a gradient computed from y would be 0 (for the logistic in bf16, if x is
 * above 6.3). */
AMP_ANYWHERE int amp_gradient_wants_input(amp_activation a)
{
    return a == AMP_MISH || a == AMP_SWISH || a == AMP_HARD_MISH || a == AMP_LOGISTIC || a == AMP_LOGGY
        || a == AMP_TANH || a == AMP_ELU || a == AMP_SELU;
}

AMP_ANYWHERE float amp_activate_stair(float x)
{
    float whole = floorf(x), half = floorf(x * .5f);
    return whole == 2 * half ? half : (x - whole) + half; /* flat on [2k, 2k+1); rises by 1 on
                                                             [2k+1, 2k+2) */
}

AMP_ANYWHERE float amp_activate_plse(float x)
{
    if (x < -4) return .01f * (x + 4);
    if (x > 4) return .01f * (x - 4) + 1;
    return .125f * x + .5f;
}

AMP_ANYWHERE float amp_activate_lhtan(float x)
{
    if (x < 0) return .001f * x;
    if (x > 1) return .001f * (x - 1) + 1;
    return x;
}

/* Mish, swish and their gradients are computed from e = exp(x). In fp32, for x above 20, the activations
 * equal x and the gradients equal 1. So exp's argument is limited to 20, and e² cannot overflow. With
 * n = e² + 2e:
 *   tanh(log(1 + e)) = n/(n + 2),  mish' = n/(n + 2) + 4x·e(e + 1)/(n + 2)²,
 *   logistic = e/(1 + e),          swish' = logistic·(1 + x/(1 + e)). */
#define AMP_EXP_LIMIT 20.f

AMP_ANYWHERE float amp_exp_low(float x) { return x > AMP_EXP_LIMIT ? AMP_EXP_LIMIT : x; } /* NaN stays NaN */

AMP_ANYWHERE float amp_activate_mish(float x)
{
    float e = expf(amp_exp_low(x)), n = e * (e + 2);
    return x * (n / (n + 2));
}

AMP_ANYWHERE float amp_gradient_mish(float x)
{
    float low = amp_exp_low(x), e = expf(low), n = e * (e + 2), r = 1 / (n + 2);
    return n * r + low * (4 * e * (e + 1) * r * r);
}

AMP_ANYWHERE float amp_activate_swish(float x)
{
    float e = expf(amp_exp_low(x));
    return x * (e / (1 + e));
}

AMP_ANYWHERE float amp_gradient_swish(float x)
{
    float low = amp_exp_low(x), e = expf(low), r = 1 / (1 + e);
    return e * r * (1 + low * r);
}

/* The logistic's gradient at x: logistic(x)·logistic(-x) = tanh'(x/2)/4 = e/(1 + e)² with e = exp(-|x|). */
AMP_ANYWHERE float amp_gradient_logistic(float x)
{
    float e = expf(-fabsf(x)), r = 1 / (1 + e);
    return e * r * r;
}

AMP_ANYWHERE float amp_activate(float x, amp_activation activation)
{
    switch (activation) {
    case AMP_LOGISTIC: return 1 / (1 + expf(-x));
    case AMP_LOGGY: return tanhf(.5f * x); /* = 2/(1+exp(-x)) - 1, without cancellation */
    case AMP_RELU: return x * (float)(x > 0); /* a product, as in Darknet: NaN stays NaN */
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
    case AMP_RELU6: return x < 0 ? 0 : x > 6 ? 6 : x;
    case AMP_MISH: return amp_activate_mish(x);
    case AMP_SWISH: return amp_activate_swish(x);
    case AMP_HARD_MISH: return x > 0 ? x : x <= -2 ? 0 : x * x / 2 + x;
    default: return x; /* AMP_LINEAR */
    }
}

/* The derivative of the activation at x. y: act(x), or x itself if amp_gradient_wants_input. */
AMP_ANYWHERE float amp_gradient(float y, amp_activation activation)
{
    switch (activation) {
    case AMP_LOGISTIC: return amp_gradient_logistic(y);
    case AMP_LOGGY: return 2 * amp_gradient_logistic(y);
    case AMP_RELU: return (float)(y > 0);
    case AMP_RELIE: return y > 0 ? 1 : .01f;
    case AMP_RAMP: return (float)(y > 0) + .1f;
    case AMP_TANH: return 4 * amp_gradient_logistic(2 * y);
    case AMP_PLSE: return y < 0 || y > 1 ? .01f : .125f;
    case AMP_LEAKY: return y > 0 ? 1 : .1f;
    case AMP_ELU: return y >= 0 ? 1 : expf(y);
    case AMP_SELU: return y >= 0 ? AMP_SELU_SCALE : AMP_SELU_ALPHA * expf(y);
    case AMP_STAIR: return (float)(floorf(y) != y);
    case AMP_HARDTAN: return (float)(y > -1 && y < 1);
    case AMP_LHTAN: return y > 0 && y < 1 ? 1 : .001f;
    case AMP_RELU6: return (float)(y > 0 && y < 6);
    case AMP_MISH: return amp_gradient_mish(y);
    case AMP_SWISH: return amp_gradient_swish(y);
    case AMP_HARD_MISH: return y > 0 ? 1 : y <= -2 ? 0 : y + 1;
    default: return 1; /* AMP_LINEAR */
    }
}
