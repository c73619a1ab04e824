/* Memory that the backend takes for itself. The operations of memory.c and upload.c are declared in
 * kernels.h. */
#ifndef AMP_BACKEND_CUDA_MEMORY_H
#define AMP_BACKEND_CUDA_MEMORY_H

#include "state.h"

/* upload.c: gives page-locked memory back. */
void amp_cuda_staging_free(amp_backend *);

/* amp_cudnn_settings.reserve: cuDNN's workspace. backend is an amp_backend. trim gives it back if it is
 * larger than the backend's workspace_needed. */
amp_status amp_cuda_reserve(void *backend, size_t bytes, void **memory, amp_error *);
void amp_cuda_trim(amp_backend *);

#endif
