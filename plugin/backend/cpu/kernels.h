/* The CPU backend's operations: amp_cpu_<operation> for each operation of backend.h, which describes results,
 * shapes and accumulation. README.md lists the files that define them.
 *
 * Operations that oneDNN does not compute:
 *  - read and write NHWC tensors of one dtype, compute in fp32 (long sums in double), and round once when
 *    they store;
 *  - give the same bits for any number of threads and, except for the exponential activations, on any
 *    instruction set (rows.h explains how);
 *  - keep no state, so their amp_backend may be NULL;
 *  - fail with AMP_BACKEND_FAILED on tensors that break backend.h's rules. If there is no memory for
 *    scratch, the program ends (amp_allocated). */
#pragma once

#include "../operations.h"

#define AMP_CPU_DECLARE(operation) AMP_BACKEND_FUNCTION(operation) amp_cpu_##operation;
AMP_BACKEND_OPERATIONS(AMP_CPU_DECLARE)
#undef AMP_CPU_DECLARE

/* cast.c: converts arrays between fp32 and the 16-bit formats, on all threads. Every result has the same bits
 * as with tensor/half.h. */

/* dst = src, or dst += src if accumulate is set. */
void amp_cpu_cast_flat(amp_dtype src_dtype, const void *src, amp_dtype dst_dtype, void *dst, size_t count,
                       int accumulate);

/* Rounds `count` floats to a 16-bit dtype and stores the results as floats. */
void amp_cpu_round_flat(amp_dtype dtype, const float *src, float *dst, size_t count);
