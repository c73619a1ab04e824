/* The CPU backend's tables of inner loops that this machine can run. */
#ifndef ROWS_TESTING_H
#define ROWS_TESTING_H

#include "backend/cpu/rows.h"

static int rows_of_this_machine(const amp_cpu_rows *out[3])
{
    const amp_cpu_rows *all[3] = { amp_cpu_rows_base(), amp_cpu_rows_avx2(), amp_cpu_rows_avx512() };
    int count = 0;
    for (int i = 0; i <= (int)amp_cpu_widest(); i++)
        if (all[i]) out[count++] = all[i];
    return count;
}

#endif
