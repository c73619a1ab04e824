/* The inner loops for the baseline of the architecture (SSE2 on x86-64): plain C that also defines the
 * results. See rows.h. */
#define AMP_ROWS_LANES_BASE
#define AMP_ROWS_NAME "sse2"
#include "rows_impl.h"

const amp_cpu_rows *amp_cpu_rows_base(void) { return &rows; }
