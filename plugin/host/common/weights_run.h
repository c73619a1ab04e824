/* Floats as they lie in a .weights file: so many that are learnt, then so many rolling means and variances. Apart from
 * weights_check.h for those who do not want Darknet's headers. */
#ifndef AMP_HOST_WEIGHTS_RUN_H
#define AMP_HOST_WEIGHTS_RUN_H

#include <stddef.h>

typedef struct amp_weights_run { size_t learnt, statistics; } amp_weights_run;

#endif
