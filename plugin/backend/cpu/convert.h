/* The innermost loops of cast.c, one set per instruction set, chosen while running: the plugin is built once for all
 * x86-64 machines and must not meet an instruction that its machine lacks. */
#ifndef AMP_BACKEND_CPU_CONVERT_H
#define AMP_BACKEND_CPU_CONVERT_H

#include <stddef.h>

#include "../../tensor/half.h"

typedef struct amp_converters {
    const char *name;                                                  /* of the instruction set */
    void (*from_fp16)(const amp_half_bits *src, float *dst, size_t n);
    void (*from_bf16)(const amp_half_bits *src, float *dst, size_t n);
    void (*to_fp16)(const float *src, amp_half_bits *dst, size_t n);
    void (*to_bf16)(const float *src, amp_half_bits *dst, size_t n);
    /* dst[i] += src[i] */
    void (*add)(const float *src, float *dst, size_t n);
    /* dst (columns × rows) = transpose of src (rows × columns); row lengths in floats. */
    void (*transpose)(const float *src, size_t src_stride, float *dst, size_t dst_stride, size_t rows, size_t columns);

    /* For weights_copy.c, where a float's 32 bits hold two bf16. dst[i] = (even[i], odd[i]), even[i] rounded in the low half. */
    void (*pair_bf16)(const float *even, const float *odd, float *dst, size_t n);
    /* count times 16 halves each of low and high, taken in turns: dst[0] = low[0], dst[1] = high[0], dst[2] = low[1]...
     * src_stride is in floats, dst_stride in halves; dst and its stride are multiples of 64 bytes. */
    void (*zip)(const float *low, const float *high, size_t src_stride, amp_half_bits *dst, size_t dst_stride, size_t count);
} amp_converters;

/* The sets this build has, best last; entry 0 is plain C. Returns how many of them may run here
 * (amp_cpu_widest). */
int amp_converter_sets(const amp_converters *const **sets);

/* The best set for this machine. */
const amp_converters *amp_best_converters(void);

#endif
