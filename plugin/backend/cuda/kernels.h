/* The CUDA backend's own kernels: every operation of backend.h that cuDNN and cuBLAS are not asked for, with the vtable's
 * exact signatures, so that cuda.c only lists them.
 *
 * What each computes is written once, in ../backend.h. All of them read and write NHWC tensors in device memory, compute
 * in fp32 and round once on store, move 16 bytes at a time where channels and alignment allow, are deterministic (no
 * floating-point atomics), and queue their work on the backend's stream. */
#ifndef AMP_BACKEND_CUDA_KERNELS_H
#define AMP_BACKEND_CUDA_KERNELS_H

#include "state.h"

#ifdef __cplusplus
extern "C" {
#endif

/* norm.cu */
amp_status amp_cuda_bias_gradient(amp_backend *, const amp_tensor *dy, float *db, amp_error *);
amp_status amp_cuda_batchnorm_forward_train(amp_backend *, const amp_tensor *x, const amp_tensor *y, const float *scale,
    const float *bias, float *mean, float *variance, float *rolling_mean, float *rolling_variance, amp_activation,
    amp_error *);
amp_status amp_cuda_batchnorm_forward_infer(amp_backend *, const amp_tensor *x, const amp_tensor *y, const float *scale,
    const float *bias, const float *rolling_mean, const float *rolling_variance, amp_activation, amp_error *);
amp_status amp_cuda_batchnorm_backward(amp_backend *, const amp_tensor *x, const amp_tensor *y, const amp_tensor *dy,
    const amp_tensor *dx, const float *scale, const float *bias, const float *mean, const float *variance, float *dscale,
    float *dbias, amp_activation, amp_error *);

/* elementwise.cu */
amp_status amp_cuda_activation_forward(amp_backend *, const amp_tensor *x, const amp_tensor *y, amp_activation,
    amp_error *);
amp_status amp_cuda_activation_backward(amp_backend *, const amp_tensor *y, const amp_tensor *dy, const amp_tensor *dx,
    amp_activation, int accumulate, amp_error *);

/* pool.cu */
amp_status amp_cuda_maxpool_forward(amp_backend *, const amp_tensor *x, const amp_tensor *y, uint8_t *choice, int size,
    int stride, int pad, amp_error *);
amp_status amp_cuda_maxpool_backward(amp_backend *, const amp_tensor *dy, const uint8_t *choice, const amp_tensor *dx,
    int size, int stride, int pad, int accumulate, amp_error *);
amp_status amp_cuda_avgpool_forward(amp_backend *, const amp_tensor *x, const amp_tensor *y, amp_error *);
amp_status amp_cuda_avgpool_backward(amp_backend *, const amp_tensor *dy, const amp_tensor *dx, int accumulate,
    amp_error *);
amp_status amp_cuda_upsample_forward(amp_backend *, const amp_tensor *x, const amp_tensor *y, int stride, float scale,
    amp_error *);
amp_status amp_cuda_upsample_backward(amp_backend *, const amp_tensor *dy, const amp_tensor *dx, int stride, float scale,
    int accumulate, amp_error *);

/* channels.cu */
amp_status amp_cuda_channels(amp_backend *, const amp_tensor *src, int src_first, const amp_tensor *dst, int dst_first,
    int channels, float alpha, int accumulate, amp_error *);
amp_status amp_cuda_shortcut_forward(amp_backend *, const amp_tensor *x, const amp_tensor *from, const amp_tensor *y,
    float alpha, float beta, amp_activation, amp_error *);
amp_status amp_cuda_shortcut_backward(amp_backend *, const amp_tensor *dy, const amp_tensor *dfrom, float beta, int accumulate,
    amp_error *);
amp_status amp_cuda_gather_forward(amp_backend *, const amp_tensor *x, const amp_tensor *y, const int32_t *map,
    amp_error *);
amp_status amp_cuda_gather_backward(amp_backend *, const amp_tensor *dy, const amp_tensor *dx, const int32_t *map,
    int accumulate, amp_error *);
amp_status amp_cuda_dropout(amp_backend *, const amp_tensor *x, const amp_tensor *y, const uint8_t *keep, float scale,
    int accumulate, amp_error *);

/* yolo.cu */
amp_status amp_cuda_yolo_loss(amp_backend *, const amp_tensor *x, const float *labels, const amp_yolo_desc *, float loss_scale,
    const amp_tensor *dx, int accumulate, amp_yolo_result *result, amp_error *);
amp_status amp_cuda_yolo_activate(amp_backend *, const amp_tensor *y, int classes, amp_error *);

/* update.cu */
amp_status amp_cuda_check_gradients(amp_backend *, const amp_param *, int count, float inverse_scale, int *found_inf,
    double *sum_squares, amp_error *);
amp_status amp_cuda_finish_step(amp_backend *, const amp_step_end *, amp_step_outcome *, amp_error *);
amp_status amp_cuda_keep_statistics(amp_backend *, const amp_statistics *, int count, amp_error *);
amp_status amp_cuda_restore_statistics(amp_backend *, const amp_statistics *, int count, amp_error *);

/* table.cu: gives back what the backend's tables hold, and the verdict; destroy calls it. */
void amp_cuda_tables_destroy(amp_cuda_backend *);
void amp_cuda_table_release(amp_backend *, amp_cuda_table *); /* the same for one that another has; it is empty then */

/* weights.cu: from the masters' OIHW (k, c/groups, size_h, size_w) in fp32 to KRSC (k, size_h, size_w, c/groups) in a 16-bit dtype
 * or fp32, of as many convolutions as there are in one launch. The table is kept for a list that does not change. */
typedef struct amp_cuda_weights {
    const float *oihw;
    void *krsc;
    amp_dtype dtype; /* of krsc */
    int k, c, size_h, size_w;
} amp_cuda_weights;
amp_status amp_cuda_weights_to_krsc(amp_backend *, amp_cuda_table *, const amp_cuda_weights *, int count, amp_error *);

/* cast.cu: any two dtypes and layouts; and cuDNN's gradient of weights, in KRSC, times factor, added to one in OIHW. */
amp_status amp_cuda_cast(amp_backend *, const amp_tensor *src, const amp_tensor *dst, int accumulate, amp_error *);
amp_status amp_cuda_scale(amp_backend *, float *array, size_t count, float factor, amp_error *);
amp_status amp_cuda_gradient_from_krsc(amp_backend *, const void *krsc, amp_dtype, float factor, float *oihw, int k, int c,
    int size_h, int size_w, amp_error *);
amp_status amp_cuda_add_bias(amp_backend *, const amp_tensor *y, const float *bias, amp_error *);

/* windows.cu: what `places` places from `first` on read of x, as columns (places, n, size, size, c) in the dtype; and from the fp32
 * columns of all places of `images` images, from dx on, what those images' pixels get. */
amp_status amp_cuda_window_columns(amp_backend *, const amp_local_desc *, int first, int places, const void *x, void *columns,
    amp_error *);
amp_status amp_cuda_window_delta(amp_backend *, const amp_local_desc *, int images, const float *columns, void *dx, int accumulate,
    amp_error *);

#ifdef __cplusplus
}
#endif
#endif
