/* Which instruction set's inner loops this processor runs: see rows.h. */
#include "rows.h"

#include <stdlib.h>
#include <string.h>

#include "processor.h"

const amp_cpu_rows *amp_cpu_rows_best(void)
{
    const amp_cpu_rows *tables[] = { amp_cpu_rows_base(), amp_cpu_rows_avx2(), amp_cpu_rows_avx512() };
    const char *cap = getenv("AMP_CPU_ISA");
    int best = 0, widest = (int)amp_cpu_widest();
    for (int i = 1; i <= widest; ++i) {
        if (cap && !strcmp(cap, tables[best]->name)) break;
        if (tables[i]) best = i;
    }
    return tables[best];
}
