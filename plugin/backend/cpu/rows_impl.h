/* The inner loops of the CPU backend, written once for every instruction set: rows_base.c, rows_avx2.c and
 * rows_avx512.c include this file, each with its AMP_ROWS_LANES_* and AMP_ROWS_NAME. rows.h describes the
 * loops; lanes.h has the vector operations.
 *
 * Contraction of a·b+c into one fused operation is off, so that every instruction set rounds in the same way.
 * This costs no time, because memory limits these loops. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

#include <float.h>

#include "../activate.h"
#include "lanes.h"
#include "rows.h"
#include "winograd.h"

/* exp(x) for x ≤ 20, within two units in the last place; 0 below -87, just before results become subnormal.
 * Let k be x/ln 2 rounded to an integer, and r = x - k·ln 2. Then exp(x) = 2^k·exp(r), and |r| ≤ ln 2/2.
 *  - exp(r) is its series up to r^7, which has an error of 5e-9.
 *  - Adding `bias` rounds x/ln 2 to an integer. The lowest bits of t are then k + 127, the exponent bits of
 *    2^k.
 *  - ln 2 is written as a sum of two constants. The first, 355/512, has so few digits that its product with k
 *    is exact. */
AMP_INLINE vf vexp(vf x)
{
    const vf bias = vset(0x1.8p23f + 127);
    vf t = x * vset(1.44269504f) + bias, k = t - bias;
    vf r = x - k * vset(355.f / 512) - k * vset(-2.12194440e-4f);
    vf p = vset(1.f / 5040) * r + vset(1.f / 720);
    p = ((p * r + vset(1.f / 120)) * r + vset(1.f / 24)) * r + vset(1.f / 6);
    p = ((p * r + vset(.5f)) * r + vset(1)) * r + vset(1);
    return vselect(vgt(vset(-87), x), vset(0), p * vexponent(t));
}

/* Mish, swish and their gradients, with the formulas of activate.h. */
AMP_INLINE vf vexp_low(vf x) { return vselect(vgt(x, vset(AMP_EXP_LIMIT)), vset(AMP_EXP_LIMIT), x); }

AMP_INLINE vf vmish(vf x)
{
    vf e = vexp(vexp_low(x)), n = e * (e + vset(2));
    return x * (n / (n + vset(2)));
}

AMP_INLINE vf vmish_gradient(vf x)
{
    vf low = vexp_low(x), e = vexp(low);
    vf n = e * (e + vset(2)), r = vset(1) / (n + vset(2));
    return n * r + low * (vset(4) * e * (e + vset(1)) * r * r);
}

AMP_INLINE vf vswish(vf x)
{
    vf e = vexp(vexp_low(x));
    return x * (e / (vset(1) + e));
}

AMP_INLINE vf vswish_gradient(vf x)
{
    vf low = vexp_low(x), e = vexp(low);
    vf r = vset(1) / (vset(1) + e);
    return e * r * (vset(1) + low * r);
}

/* amp_activate and amp_gradient of a vector. `act`: see AMP_BY_ACTIVATION. */
AMP_INLINE vf vactivate(vf x, amp_activation act)
{
    float lane[VL];
    if (act == AMP_LINEAR) return x;
    if (act == AMP_LEAKY) return vmax(x, x * vset(.1f)); /* x > .1x if and only if x > 0; NaN stays NaN */
    if (act == AMP_RELU) return x * vselect(vgt(x, vset(0)), vset(1), vset(0));
    if (act == AMP_MISH) return vmish(x);
    if (act == AMP_SWISH) return vswish(x);
    vstore(lane, 0, VL, x, AMP_FP32);
    for (int i = 0; i < VL; i++) lane[i] = amp_activate(lane[i], act);
    return vload(lane, 0, VL, AMP_FP32);
}

AMP_INLINE vf vgradient(vf v, amp_activation act)
{
    float lane[VL];
    if (act == AMP_LINEAR) return vset(1);
    if (act == AMP_LEAKY) return vselect(vgt(v, vset(0)), vset(1), vset(.1f));
    if (act == AMP_RELU) return vselect(vgt(v, vset(0)), vset(1), vset(0));
    if (act == AMP_MISH) return vmish_gradient(v);
    if (act == AMP_SWISH) return vswish_gradient(v);
    vstore(lane, 0, VL, v, AMP_FP32);
    for (int i = 0; i < VL; i++) lane[i] = amp_gradient(lane[i], act);
    return vload(lane, 0, VL, AMP_FP32);
}

/* Stores v, or adds it to the destination. */
AMP_INLINE void vput(void *p, size_t i, int n, vf v, int accumulate, amp_dtype dtype)
{
    if (accumulate) v = vload(p, i, n, dtype) + v;
    vstore(p, i, n, v, dtype);
}

AMP_INLINE void *into(void *p, size_t i, amp_dtype dtype) { return (char *)p + i * amp_dtype_size(dtype); }

static void widen(amp_dtype dtype, const void *src, float *dst, size_t count)
{
    AMP_BY_DTYPE(dtype, AMP_LANES(count, vstore(dst, i, n, vload(src, i, n, dt), AMP_FP32)));
}

static void narrow(amp_dtype dtype, const float *src, void *dst, size_t count, int accumulate)
{
    if (accumulate) AMP_BY_DTYPE(dtype, AMP_LANES(count, vput(dst, i, n, vload(src, i, n, AMP_FP32), 1, dt)));
    else AMP_BY_DTYPE(dtype, AMP_LANES(count, vstore(dst, i, n, vload(src, i, n, AMP_FP32), dt)));
}

#include "rows_copy.h"
#include "rows_norm.h"
#include "rows_elementwise.h"
#include "rows_pool.h"
#include "rows_update.h"
#include "rows_winograd.h"

#define ROW(loop) .loop = loop,
static const amp_cpu_rows rows = {
    .name = AMP_ROWS_NAME,
    ROW(widen) ROW(narrow) ROW(transpose) ROW(pair_bf16) ROW(zip) ROW(lines) ROW(end_copies)
    ROW(sum) ROW(moments) ROW(normalize) ROW(delta_sums) ROW(normalize_delta)
    ROW(activate) ROW(gradient) ROW(blend) ROW(product) ROW(scale) ROW(spread) ROW(mask)
    ROW(maxpool) ROW(maxpool_delta) ROW(upsample) ROW(upsample_delta)
    ROW(sgd) ROW(adam) ROW(squares)
    AMP_ROWS_WINOGRAD
};
