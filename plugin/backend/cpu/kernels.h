/* The CPU backend's own kernels: every operation of backend.h that oneDNN is not asked for, with the vtable's exact
 * signatures, so that cpu.c only lists them.
 *
 * What each computes, in which shapes and with which accumulation, is written once, in ../backend.h. All of them
 *  - read and write NHWC tensors of one dtype, compute in fp32 (sums in double across chunks), round once on store;
 *  - give the same bits for any number of threads and, but for the exponential activations, on any instruction set
 *    (rows.h says how);
 *  - keep no state: the amp_backend they are given may be NULL. Scratch is allocated and freed within the call;
 *  - fail with AMP_BACKEND_FAILED on tensors that break backend.h's conventions, AMP_NO_MEMORY without scratch. */
#ifndef AMP_BACKEND_CPU_KERNELS_H
#define AMP_BACKEND_CPU_KERNELS_H

#include "../backend.h"

/* batchnorm.c */
amp_status amp_cpu_add_bias(amp_backend *, const amp_tensor *y, const float *bias, amp_error *);
amp_status amp_cpu_bias_gradient(amp_backend *, const amp_tensor *dy, float *db, amp_error *);
amp_status amp_cpu_batchnorm_forward_train(amp_backend *, const amp_tensor *x, const amp_tensor *y,
    const amp_batchnorm *, amp_error *);
amp_status amp_cpu_batchnorm_forward_infer(amp_backend *, const amp_tensor *x, const amp_tensor *y,
    const amp_batchnorm *, amp_error *);
amp_status amp_cpu_batchnorm_backward(amp_backend *, const amp_tensor *x, const amp_tensor *y, const amp_tensor *dy,
    const amp_tensor *dx, const amp_batchnorm *, amp_error *);

/* activation.c */
amp_status amp_cpu_activation_forward(amp_backend *, const amp_tensor *x, const amp_tensor *y, amp_activation,
    amp_error *);
amp_status amp_cpu_activation_backward(amp_backend *, const amp_tensor *y, const amp_tensor *dy, const amp_tensor *dx,
    amp_activation, int accumulate, amp_error *);

/* pool.c */
amp_status amp_cpu_maxpool_forward(amp_backend *, const amp_tensor *x, const amp_tensor *y, uint8_t *choice, int size,
    int stride, int pad, amp_error *);
amp_status amp_cpu_maxpool_backward(amp_backend *, const amp_tensor *dy, const uint8_t *choice, const amp_tensor *dx,
    int size, int stride, int pad, int accumulate, amp_error *);
amp_status amp_cpu_avgpool_forward(amp_backend *, const amp_tensor *x, const amp_tensor *y, amp_error *);
amp_status amp_cpu_avgpool_backward(amp_backend *, const amp_tensor *dy, const amp_tensor *dx, int accumulate,
    amp_error *);
amp_status amp_cpu_upsample_forward(amp_backend *, const amp_tensor *x, const amp_tensor *y, int stride, float scale,
    amp_error *);
amp_status amp_cpu_upsample_backward(amp_backend *, const amp_tensor *dy, const amp_tensor *dx, int stride, float scale,
    int accumulate, amp_error *);

/* channels.c */
amp_status amp_cpu_channels(amp_backend *, const amp_tensor *src, int src_first, const amp_tensor *dst, int dst_first,
    int channels, float alpha, int accumulate, amp_error *);
amp_status amp_cpu_shortcut_forward(amp_backend *, const amp_tensor *x, const amp_tensor *from, const amp_tensor *y,
    float alpha, float beta, amp_activation, amp_error *);
amp_status amp_cpu_shortcut_backward(amp_backend *, const amp_tensor *dy, const amp_tensor *dfrom, float beta, int accumulate,
    amp_error *);
amp_status amp_cpu_gather_forward(amp_backend *, const amp_tensor *x, const amp_tensor *y, const int32_t *map,
    amp_error *);
amp_status amp_cpu_gather_backward(amp_backend *, const amp_tensor *dy, const amp_tensor *dx, const int32_t *map,
    int accumulate, amp_error *);
amp_status amp_cpu_dropout(amp_backend *, const amp_tensor *x, const amp_tensor *y, const uint8_t *keep, float scale,
    int accumulate, amp_error *);

/* yolo.c */
amp_status amp_cpu_yolo_loss(amp_backend *, const amp_tensor *x, const float *labels, const amp_yolo_desc *, float loss_scale,
    const amp_tensor *dx, int accumulate, amp_yolo_result *result, amp_error *);
amp_status amp_cpu_yolo_activate(amp_backend *, const amp_tensor *y, int classes, amp_error *);

/* update.c */
amp_status amp_cpu_check_gradients(amp_backend *, const amp_param *, int count, float inverse_scale, int *found_inf,
    double *sum_squares, amp_error *);
amp_status amp_cpu_finish_step(amp_backend *, const amp_step_end *, amp_step_outcome *, amp_error *);
amp_status amp_cpu_keep_statistics(amp_backend *, const amp_statistics *, int count, amp_error *);
amp_status amp_cpu_restore_statistics(amp_backend *, const amp_statistics *, int count, amp_error *);

#endif
