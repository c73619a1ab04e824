/* The inner loops for the baseline of the architecture (SSE2 on x86-64, NEON on aarch64): plain C, which the
 * compiler vectorises. The other instruction sets must give the same results. See rows.h. */
#define AMP_ROWS_LANES_BASE
#if defined(__aarch64__)
#define AMP_ROWS_NAME "neon"
#else
#define AMP_ROWS_NAME "sse2"
#endif
#include "rows_impl.h"

const amp_cpu_rows *amp_cpu_rows_base(void) { return &rows; }
