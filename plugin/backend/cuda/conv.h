/* Convolutions and connected layers: the vtable's exact signatures. */
#ifndef AMP_BACKEND_CUDA_CONV_H
#define AMP_BACKEND_CUDA_CONV_H

#include "state.h"

amp_status amp_cuda_conv_create(amp_backend *, const amp_conv_desc *, amp_conv **out, amp_error *);
void amp_cuda_conv_destroy(amp_backend *, amp_conv *);
amp_status amp_cuda_conv_load_weights(amp_backend *, const amp_conv_weights *, int count, int *failed, amp_error *);
void amp_cuda_conv_drop_weights(amp_backend *, amp_conv *);
amp_status amp_cuda_conv_forward(amp_backend *, amp_conv *, const void *x, const float *bias, void *y, amp_error *);
amp_status amp_cuda_conv_backward_data(amp_backend *, amp_conv *, const void *dy, void *dx, int accumulate, amp_error *);
amp_status amp_cuda_conv_backward_weights(amp_backend *, amp_conv *, const void *x, const void *dy, float *dw, amp_error *);
void amp_cuda_conv_facts(const amp_backend *, const amp_conv *, amp_conv_facts *out);

#endif
