/* Timing cuDNN's engines for a convolution that is being created. */
#pragma once

#include "conv_plan.h"
#include "state.h"

/* Bytes of the three tensors. */
typedef struct amp_cuda_conv_bytes { size_t x, w, y; } amp_cuda_conv_bytes;

/* Gives each of the plans that was not timed yet (NULL ones are passed over) the fastest of as many of its
 * engines as settings.tune says. Where memory for the timing is short, plans stay as they are. */
amp_status amp_cuda_conv_tune(amp_backend *, amp_conv_plan *const *plans, int count,
                              const amp_cuda_conv_bytes *, amp_error *);
