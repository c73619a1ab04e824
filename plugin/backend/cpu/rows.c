/* Chooses the instruction set of the inner loops: see rows.h. */
#include "rows.h"

#include <stdatomic.h>
#include <string.h>

#include "onednn.h"

#if defined(__x86_64__)
#include <cpuid.h>

/* Asks CPUID, because __builtin_cpu_supports of clang before 17 does not know F16C. The caller's check for
 * AVX2 also checks that the operating system saves the registers. */
static int has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static amp_cpu_width processor(void)
{
    __builtin_cpu_init(); /* makes __builtin_cpu_supports check the operating system too */
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !has_f16c()) return AMP_CPU_BASE;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512cd") || !__builtin_cpu_supports("avx512dq") ||
        !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("bmi2")) return AMP_CPU_AVX2;
    return AMP_CPU_AVX512;
}
#else
static amp_cpu_width processor(void) { return AMP_CPU_BASE; }
#endif

/* Caches the answer: every kernel call asks, and CPUID takes tens of microseconds in a virtual machine. */
amp_cpu_width amp_cpu_widest(void)
{
    static atomic_int known; /* 1 + the answer; 0: no answer yet */
    int answer = atomic_load_explicit(&known, memory_order_relaxed);
    if (!answer) {
        amp_cpu_width width = processor(), allowed = amp_onednn_width();
        answer = 1 + (int)(width < allowed ? width : allowed);
        atomic_store_explicit(&known, answer, memory_order_relaxed);
    }
    return (amp_cpu_width)(answer - 1);
}

const amp_cpu_rows *amp_cpu_rows_best(void)
{
    const amp_cpu_rows *tables[] = { amp_cpu_rows_base(), amp_cpu_rows_avx2(), amp_cpu_rows_avx512() };
    const char *cap = getenv("AMP_CPU_ISA");
    int best = 0, widest = (int)amp_cpu_widest();
    for (int i = 1; i <= widest; i++) {
        if (cap && !strcmp(cap, tables[best]->name)) break;
        if (tables[i]) best = i;
    }
    return tables[best];
}
