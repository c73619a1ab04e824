/* Scalar conversions between fp32 and the two 16-bit formats, in integer arithmetic that no compiler flag can
 * change. They round to nearest, ties to even (IEEE 754-2019, 4.3.1), and overflow to infinity. NaN stays a
 * (quiet) NaN, and fp16 keeps subnormals. Tests compare the backends' vectorised conversions with these. */
#pragma once

#include <stdint.h>
#include <string.h>

typedef uint16_t amp_half_bits; /* a number in either format */

static inline uint32_t amp_float_bits(float value)
{
    uint32_t bits; memcpy(&bits, &value, sizeof bits); return bits;
}
static inline float amp_bits_float(uint32_t bits)
{
    float value; memcpy(&value, &bits, sizeof value); return value;
}

/* Whether `value` is neither inf nor NaN. Compares bits, because -Ofast optimises isfinite away. */
static inline int amp_is_finite(float value) { return (amp_float_bits(value) & 0x7f800000u) != 0x7f800000u; }

static inline int amp_all_finite(const float *values, size_t count)
{
    unsigned bad = 0; /* no early exit from the loop, so that it can be vectorised */
    for (size_t i = 0; i < count; i++) bad |= !amp_is_finite(values[i]);
    return !bad;
}

static inline float amp_bf16_to_float(amp_half_bits h) { return amp_bits_float((uint32_t)h << 16); }

static inline amp_half_bits amp_float_to_bf16(float value)
{
    uint32_t bits = amp_float_bits(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (amp_half_bits)((bits >> 16) | 0x0040u);
    return (amp_half_bits)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

static inline float amp_fp16_to_float(amp_half_bits h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = (h >> 10) & 0x1fu, mantissa = h & 0x3ffu;
    if (exponent == 0x1f)
        return amp_bits_float(sign | 0x7f800000u | (mantissa << 13) | (mantissa ? 0x00400000u : 0));
    if (exponent) return amp_bits_float(sign | ((exponent + 112) << 23) | (mantissa << 13));
    /* subnormal: mantissa * 2^-24, exact in fp32 */
    float magnitude = (float)mantissa * 0x1p-24f;
    return amp_bits_float(sign | amp_float_bits(magnitude));
}

static inline amp_half_bits amp_float_to_fp16(float value)
{
    uint32_t bits = amp_float_bits(value), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return (amp_half_bits)(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
    if (magnitude >= 0x477ff000u) return (amp_half_bits)(sign | 0x7c00u); /* 65520 and above round to inf */
    if (magnitude < 0x38800000u) {                                        /* below 2^-14: subnormal or zero */
        uint32_t shift = 126 - (magnitude >> 23), mantissa = (magnitude & 0x7fffffu) | 0x800000u;
        if (shift > 24) return (amp_half_bits)sign;
        uint32_t kept = mantissa >> shift, rest = mantissa & ((1u << shift) - 1), halfway = 1u << (shift - 1);
        kept += rest > halfway || (rest == halfway && (kept & 1u));
        return (amp_half_bits)(sign | kept);
    }
    uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    return (amp_half_bits)(sign | ((rounded - 0x38000000u) >> 13));
}
