/* What __builtin_cpu_supports of some compilers does not know (F16C: clang before 17). */
#ifndef AMP_BACKEND_CPU_PROCESSOR_H
#define AMP_BACKEND_CPU_PROCESSOR_H

#if defined(__x86_64__)
#include <cpuid.h>

/* The instruction set alone: whether the system saves its registers is AVX's question. */
static inline int amp_cpu_has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

#endif
