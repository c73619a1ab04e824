/* The inner loops for AVX2 with FMA and F16C (the build compiles *_avx2.c with -mavx2 -mfma -mf16c). Without
 * these flags, the table is NULL. See rows.h. */
#include "rows.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

#define AMP_ROWS_LANES_AVX2
#define AMP_ROWS_NAME "avx2"
#include "rows_impl.h"

const amp_cpu_rows *amp_cpu_rows_avx2(void) { return &rows; }

#else

const amp_cpu_rows *amp_cpu_rows_avx2(void) { return NULL; }

#endif
