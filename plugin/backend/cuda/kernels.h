/* The CUDA backend's operations: amp_cuda_<operation> for each operation of backend.h, which describes them.
 * README.md says which file defines which operation.
 *
 * cuDNN computes convolutions and cuBLAS computes matrix products. Our own kernels compute everything else.
 * They read and write NHWC tensors in device memory, 16 bytes at a time if channels and alignment allow. They
 * compute in fp32, round once when they store, and are deterministic (no floating-point atomics). All work is
 * queued on the backend's stream. */
#pragma once

#include "../operations.h"
#include "state.h"

#ifdef __cplusplus
extern "C" {
#endif

#define AMP_CUDA_DECLARE(operation) AMP_BACKEND_FUNCTION(operation) amp_cuda_##operation;
AMP_BACKEND_OPERATIONS(AMP_CUDA_DECLARE)
#undef AMP_CUDA_DECLARE

/* ---- other functions of the .cu files ---- */

/* table.cu: release leaves the table empty; destroy frees all tables and update.cu's decision. */
void amp_cuda_table_release(amp_backend *, amp_cuda_table *);
void amp_cuda_tables_destroy(amp_cuda_backend *);

/* weights.cu: copies the weights of `count` convolutions in one launch, from fp32 masters in OIHW order (k,
 * c/groups, size_h, size_w) to KRSC order (k, size_h, size_w, c/groups) in fp32 or 16 bits. The table is
 * reused as long as the list does not change. */
typedef struct amp_cuda_weights {
    const float *oihw;
    void *krsc;
    amp_dtype dtype; /* dtype of krsc */
    int k, c, size_h, size_w;
} amp_cuda_weights;
amp_status amp_cuda_weights_to_krsc(amp_backend *, amp_cuda_table *, const amp_cuda_weights *, int count,
                                    amp_error *);

/* cast.cu: oihw += factor·krsc. krsc: a gradient of weights, from cuDNN or cuBLAS. */
amp_status amp_cuda_gradient_from_krsc(amp_backend *, const void *krsc, amp_dtype, float factor, float *oihw,
                                       int k, int c, int size_h, int size_w, amp_error *);

/* times.cu: operation_times of backend.h; amp_cuda_times_free frees the memory for it. */
amp_status amp_cuda_operation_times(amp_backend *, amp_operation_times *, amp_error *);
void amp_cuda_times_free(amp_cuda_backend *);

/* spin.cu: keeps all multiprocessors busy for `cycles` cycles of the GPU's clock. */
amp_status amp_cuda_spin(amp_backend *, long long cycles, amp_error *);

#ifdef __cplusplus
}
#endif
