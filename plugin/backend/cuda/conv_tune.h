/* Timing cuDNN's engines for a convolution that is being created. */
#pragma once

#include "conv_plan.h"
#include "state.h"

/* Bytes of the three tensors. */
typedef struct amp_cuda_conv_bytes { size_t x, w, y; } amp_cuda_conv_bytes;

/* Times up to settings.tune engines of each plan that was not timed yet, and makes the fastest its current
 * one. NULL plans are skipped. If there is not enough memory for the timing, plans stay as they are. */
amp_status amp_cuda_conv_tune(amp_backend *, amp_conv_plan *const *plans, int count,
                              const amp_cuda_conv_bytes *, amp_error *);
