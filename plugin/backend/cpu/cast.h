/* Numbers between fp32 and the 16-bit formats, at the speed of memory: single rows for the element-wise
 * kernels, whole tensors for the backend's `cast`. Every result equals tensor/half.h bit for bit, on every
 * instruction set. */
#ifndef AMP_BACKEND_CPU_CAST_H
#define AMP_BACKEND_CPU_CAST_H

#include "../backend.h"

/* n numbers of a dtype at src → n floats; no alignment needed; the arrays do not overlap. Not parallel. */
void amp_cpu_load_row(amp_dtype dtype, const void *src, float *dst, size_t n);
/* n floats → n numbers of a dtype at dst, each rounded to nearest even. */
void amp_cpu_store_row(amp_dtype dtype, const float *src, void *dst, size_t n);
/* dst[i] = round(dst[i] + src[i]): the sum is in fp32 and rounded once. */
void amp_cpu_add_row(amp_dtype dtype, const float *src, void *dst, size_t n);

/* count numbers in the order they lie in, dst (+)= src, over all threads. */
void amp_cpu_cast_flat(amp_dtype src_dtype, const void *src, amp_dtype dst_dtype, void *dst, size_t count,
                       int accumulate);

/* count floats, rounded to a 16-bit dtype and kept as floats, over all threads. */
void amp_cpu_round_flat(amp_dtype dtype, const float *src, float *dst, size_t count);

#endif
