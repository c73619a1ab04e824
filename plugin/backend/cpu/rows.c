/* Which instruction set's inner loops this processor runs: see rows.h. */
#include "rows.h"

#include <stdlib.h>
#include <string.h>

#include "processor.h"

/* How wide the processor is: 0 baseline, 1 AVX2 with FMA and F16C, 2 x86-64-v4. */
static int processor_width(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !amp_cpu_has_f16c()) return 0;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512cd") || !__builtin_cpu_supports("avx512dq") ||
        !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("bmi2")) return 1;
    return 2;
#else
    return 0;
#endif
}

const amp_cpu_rows *amp_cpu_rows_best(void)
{
    const amp_cpu_rows *tables[] = { amp_cpu_rows_base(), amp_cpu_rows_avx2(), amp_cpu_rows_avx512() };
    const char *cap = getenv("AMP_CPU_ISA");
    int best = 0, width = processor_width();
    for (int i = 1; i <= width; ++i) {
        if (cap && !strcmp(cap, tables[best]->name)) break;
        if (tables[i]) best = i;
    }
    return tables[best];
}
