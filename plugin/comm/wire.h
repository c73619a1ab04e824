/* Packs floats to send them between ranks: unchanged, or rounded to nearest in 16 bits (bf16 or fp16). */
#pragma once

#include <stddef.h>

#include "../tensor/half.h"
#include "../tensor/tensor.h"

/* If wire is fp32, `packed` may equal `values`, here and in amp_wire_unpack; nothing is then copied. */
static inline void amp_wire_pack(void *packed, const float *values, size_t count, amp_dtype wire)
{
    amp_half_bits *halves = packed;
    if (wire == AMP_FP32 && packed != values) memcpy(packed, values, count * sizeof *values);
    for (size_t i = 0; wire == AMP_BF16 && i < count; i++) halves[i] = amp_float_to_bf16(values[i]);
    for (size_t i = 0; wire == AMP_FP16 && i < count; i++) halves[i] = amp_float_to_fp16(values[i]);
}

static inline void amp_wire_unpack(float *values, const void *packed, size_t count, amp_dtype wire)
{
    const amp_half_bits *halves = packed;
    if (wire == AMP_FP32 && packed != values) memcpy(values, packed, count * sizeof *values);
    for (size_t i = 0; wire == AMP_BF16 && i < count; i++) values[i] = amp_bf16_to_float(halves[i]);
    for (size_t i = 0; wire == AMP_FP16 && i < count; i++) values[i] = amp_fp16_to_float(halves[i]);
}

/* values += packed, in fp32. */
static inline void amp_wire_add(float *values, const void *packed, size_t count, amp_dtype wire)
{
    const float *floats = packed;
    const amp_half_bits *halves = packed;
    for (size_t i = 0; wire == AMP_FP32 && i < count; i++) values[i] += floats[i];
    for (size_t i = 0; wire == AMP_BF16 && i < count; i++) values[i] += amp_bf16_to_float(halves[i]);
    for (size_t i = 0; wire == AMP_FP16 && i < count; i++) values[i] += amp_fp16_to_float(halves[i]);
}
