/* The CUDA backend's operations: amp_cuda_<operation> for each operation of backend.h, which says what it
 * computes. README.md says which file holds which.
 *
 * The kernels, of all that cuDNN and cuBLAS do not compute, read and write NHWC tensors in device memory,
 * compute in fp32 and round once on store, move 16 bytes at a time where channels and alignment allow, are
 * deterministic (no floating-point atomics), and queue their work on the backend's stream. */
#pragma once

#include "../operations.h"
#include "state.h"

#ifdef __cplusplus
extern "C" {
#endif

#define AMP_CUDA_DECLARE(operation) AMP_BACKEND_FUNCTION(operation) amp_cuda_##operation;
AMP_BACKEND_OPERATIONS(AMP_CUDA_DECLARE)
#undef AMP_CUDA_DECLARE

/* ---- what else the backend's other files call of the .cu files ---- */

/* table.cu: frees one table, which is empty then; and, for destroy, all of the backend's tables and
 * update.cu's decision. */
void amp_cuda_table_release(amp_backend *, amp_cuda_table *);
void amp_cuda_tables_destroy(amp_cuda_backend *);

/* weights.cu: from the masters' OIHW (k, c/groups, size_h, size_w) in fp32 to KRSC (k, size_h, size_w,
 * c/groups) in a 16-bit dtype or fp32, of as many convolutions as there are in one launch. The table is kept
 * for a list that does not change. */
typedef struct amp_cuda_weights {
    const float *oihw;
    void *krsc;
    amp_dtype dtype; /* of krsc */
    int k, c, size_h, size_w;
} amp_cuda_weights;
amp_status amp_cuda_weights_to_krsc(amp_backend *, amp_cuda_table *, const amp_cuda_weights *, int count,
                                    amp_error *);

/* cast.cu: cuDNN's gradient of weights, in KRSC, times factor, added to one in OIHW. */
amp_status amp_cuda_gradient_from_krsc(amp_backend *, const void *krsc, amp_dtype, float factor, float *oihw,
                                       int k, int c, int size_h, int size_w, amp_error *);

/* times.cu: operation_times of backend.h; and, for destroy, gives back what it takes. */
amp_status amp_cuda_operation_times(amp_backend *, amp_operation_times *, amp_error *);
void amp_cuda_times_free(amp_cuda_backend *);

/* spin.cu: keeps all multiprocessors busy for that many cycles of the GPU's clock. */
amp_status amp_cuda_spin(amp_backend *, long long cycles, amp_error *);

#ifdef __cplusplus
}
#endif
