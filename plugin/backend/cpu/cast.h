/* Numbers between fp32 and the 16-bit formats in the order they lie in, at the speed of memory and over all
 * threads. Every result equals tensor/half.h bit for bit, on every instruction set. */
#pragma once

#include "../backend.h"

/* dst (+)= src. */
void amp_cpu_cast_flat(amp_dtype src_dtype, const void *src, amp_dtype dst_dtype, void *dst, size_t count,
                       int accumulate);

/* count floats, rounded to a 16-bit dtype and kept as floats. */
void amp_cpu_round_flat(amp_dtype dtype, const float *src, float *dst, size_t count);
