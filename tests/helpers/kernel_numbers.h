/* Reads, writes and rounds numbers of any dtype, for the tests of kernels. */
#pragma once

#include "tensor/half.h"
#include "tensor/tensor.h"

static inline double unit_roundoff(amp_dtype dtype)
{
    return dtype == AMP_FP32 ? 0x1p-24 : dtype == AMP_BF16 ? 0x1p-8 : 0x1p-11;
}

static inline float rounded(amp_dtype dtype, float value)
{
    if (dtype == AMP_FP16) return amp_fp16_to_float(amp_float_to_fp16(value));
    return dtype == AMP_BF16 ? amp_bf16_to_float(amp_float_to_bf16(value)) : value;
}

static inline float number_of(amp_dtype dtype, const void *data, size_t i)
{
    if (dtype == AMP_FP32) return ((const float *)data)[i];
    amp_half_bits bits = ((const amp_half_bits *)data)[i];
    return dtype == AMP_FP16 ? amp_fp16_to_float(bits) : amp_bf16_to_float(bits);
}

static inline void set_number(amp_dtype dtype, void *data, size_t i, float value)
{
    if (dtype == AMP_FP32) ((float *)data)[i] = value;
    else ((amp_half_bits *)data)[i] = dtype == AMP_FP16 ? amp_float_to_fp16(value) : amp_float_to_bf16(value);
}
