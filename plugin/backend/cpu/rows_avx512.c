/* The inner loops for AVX-512 (the build compiles *_avx512.c with -march=x86-64-v4). Without this flag, the
 * table is NULL. See rows.h. */
#include "rows.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)

#define AMP_ROWS_LANES_AVX512
#define AMP_ROWS_NAME "avx512"
#include "rows_impl.h"

const amp_cpu_rows *amp_cpu_rows_avx512(void) { return &rows; }

#else

const amp_cpu_rows *amp_cpu_rows_avx512(void) { return NULL; }

#endif
