/* Memory that the backend takes for itself. The operations of memory.c and upload.c are declared in
 * kernels.h. */
#pragma once

#include "state.h"

/* upload.c: gives back page-locked memory, and what copies ahead of the stream. */
void amp_cuda_end_uploads(amp_backend *);

/* amp_cudnn_settings.reserve: cuDNN's workspace. backend is an amp_backend. trim gives it back if it is
 * larger than the backend's workspace_needed. */
amp_status amp_cuda_reserve(void *backend, size_t bytes, void **memory, amp_error *);
void amp_cuda_trim(amp_backend *);

/* pass.c: see backend.h. */
amp_status amp_cuda_pass_begin(amp_backend *, amp_recorded_pass **pass, int *repeated, amp_error *);
amp_status amp_cuda_pass_end(amp_backend *, amp_recorded_pass **pass, int whole, amp_error *);
void amp_cuda_pass_free(amp_backend *, amp_recorded_pass *);

/* Memory that one network size's copies of weights lay in, for those of the next, which are as large: without
 * a wait, since all of them are written and read in the stream's order. spare leaves it here, take_spare is
 * amp_cuda_take where there is none of that size, free_spares gives what nobody took back to the device. */
void amp_cuda_spare(amp_backend *, void *memory, size_t bytes);
amp_status amp_cuda_take_spare(amp_backend *, size_t bytes, const char *what, void **out, amp_error *);
void amp_cuda_free_spares(amp_backend *);
