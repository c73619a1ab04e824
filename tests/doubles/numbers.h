/* Numbers in device memory, for the doubles of libraries: fp32, fp16 and bf16, read exactly and
 * written rounded once. */
#ifndef AMP_DOUBLES_NUMBERS_H
#define AMP_DOUBLES_NUMBERS_H

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tensor/half.h"

namespace amp_double {

enum class number { fp32, fp16, bf16 };

inline size_t size_of(number type) { return type == number::fp32 ? 4 : 2; }

inline float load(number type, const void *data, int64_t i)
{
    if (type == number::fp32) return static_cast<const float *>(data)[i];
    amp_half_bits bits = static_cast<const amp_half_bits *>(data)[i];
    return type == number::fp16 ? amp_fp16_to_float(bits) : amp_bf16_to_float(bits);
}

/* v to the nearest number of so many bits after the leading one, ties to even. */
inline double shorten(double v, int bits, int least_exponent)
{
    uint64_t all, unit_of_all = 1ull << (52 - bits);
    std::memcpy(&all, &v, sizeof all);
    int exponent = (int)(all >> 52 & 0x7ff) - 1023;
    if (exponent >= least_exponent && exponent < 1024) {
        all = (all + unit_of_all / 2 - 1 + (all / unit_of_all & 1)) & ~(unit_of_all - 1);
        std::memcpy(&v, &all, sizeof v);
        return v;
    }
    if (v == 0 || !std::isfinite(v)) return v;
    exponent = std::ilogb(v);
    int unit = (exponent < least_exponent ? least_exponent : exponent) - bits;
    return std::ldexp(std::rint(std::ldexp(v, -unit)), unit);
}

/* v as a number of the type, rounded once; beyond its range, infinity. */
inline float rounded(number type, double v)
{
    if (type == number::fp32) return static_cast<float>(v);
    if (type == number::bf16) return static_cast<float>(shorten(v, 7, -126));
    float f = static_cast<float>(shorten(v, 10, -14));
    return std::fabs(f) > 65504 ? std::copysign(HUGE_VALF, f) : f;
}

inline void store(number type, void *data, int64_t i, double v)
{
    float f = rounded(type, v);
    if (type == number::fp32) static_cast<float *>(data)[i] = f;
    else static_cast<amp_half_bits *>(data)[i] = type == number::fp16 ? amp_float_to_fp16(f)
        : amp_float_to_bf16(f);
}

/* What TF32 Tensor Cores make of an fp32 input. */
inline float tf32(float v) { return static_cast<float>(shorten(v, 10, -126)); }

inline bool overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    return (const char *)a < (const char *)b + b_bytes && (const char *)b < (const char *)a + a_bytes;
}

}

#endif
