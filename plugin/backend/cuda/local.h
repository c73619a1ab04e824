/* Locally connected layers: the vtable's exact signatures. */
#ifndef AMP_BACKEND_CUDA_LOCAL_H
#define AMP_BACKEND_CUDA_LOCAL_H

#include "state.h"

amp_status amp_cuda_local_create(amp_backend *, const amp_local_desc *, amp_local **out, amp_error *);
void amp_cuda_local_destroy(amp_backend *, amp_local *);
amp_status amp_cuda_local_load_weights(amp_backend *, amp_local *, const float *weights, amp_error *);
void amp_cuda_local_drop_weights(amp_backend *, amp_local *);
amp_status amp_cuda_local_forward(amp_backend *, amp_local *, const void *x, void *y, amp_error *);
amp_status amp_cuda_local_backward_data(amp_backend *, amp_local *, const void *dy, void *dx, int accumulate, amp_error *);
amp_status amp_cuda_local_backward_weights(amp_backend *, amp_local *, const void *x, const void *dy, float *dw, amp_error *);
void amp_cuda_local_facts(const amp_backend *, const amp_local *, amp_conv_facts *out);

#endif
