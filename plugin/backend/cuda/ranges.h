/* Names for NVIDIA's profilers: backend.h's range_push and range_pop. */
#ifndef AMP_BACKEND_CUDA_RANGES_H
#define AMP_BACKEND_CUDA_RANGES_H

#include "state.h"

void amp_cuda_range_push(amp_backend *, const char *name);
void amp_cuda_range_pop(amp_backend *);

#endif
