/* What __builtin_cpu_supports of some compilers does not know (F16C: clang before 17). */
#ifndef AMP_BACKEND_CPU_PROCESSOR_H
#define AMP_BACKEND_CPU_PROCESSOR_H

#if defined(__x86_64__)
#include <cpuid.h>
#include <stdatomic.h>

/* The instruction set alone: whether the system saves its registers is AVX's question. Asked once: in a virtual machine CPUID
 * leaves it and takes tens of microseconds, and every call of a kernel comes through here. */
static inline int amp_cpu_has_f16c(void)
{
    enum { UNKNOWN, NO, YES };
    static atomic_int answer;
    int known = atomic_load_explicit(&answer, memory_order_relaxed);
    if (known == UNKNOWN) {
        unsigned a, b, c, d;
        known = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) ? YES : NO;
        atomic_store_explicit(&answer, known, memory_order_relaxed);
    }
    return known == YES;
}
#endif

#endif
