/* Floats as they lie in a .weights file, layer by layer. */
#pragma once

#include <stddef.h>

/* So many that are learnt, then so many rolling means and variances. */
typedef struct amp_weights_run { size_t learnt, statistics; } amp_weights_run;

enum { AMP_WEIGHTS_RUNS = 8 }; /* of one layer, at most: lstm has eight connected layers */
