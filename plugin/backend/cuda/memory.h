/* What memory.c, upload.c and pass.c define besides the operations that kernels.h declares. */
#pragma once

#include "state.h"

/* upload.c: frees page-locked memory, and the stream and events of upload_ahead. */
void amp_cuda_uploads_free(amp_backend *);

/* amp_cuda_reserve implements amp_cudnn_settings.reserve, which provides cuDNN's workspace; its `backend` is
 * an amp_backend. amp_cuda_trim frees the workspace if it is larger than the backend's workspace_needed. */
amp_status amp_cuda_reserve(void *backend, size_t bytes, void **memory, amp_error *);
void amp_cuda_trim(amp_backend *);

/* pass.c: see backend.h. */
amp_status amp_cuda_pass_begin(amp_backend *, amp_recorded_pass **pass, int *repeated, amp_error *);
amp_status amp_cuda_pass_end(amp_backend *, amp_recorded_pass **pass, int whole, amp_error *);
void amp_cuda_pass_free(amp_backend *, amp_recorded_pass *);

/* When the network is resized, the memory of its copies of weights is reused, since their sizes stay the
 * same. put adds memory to a list; get takes memory of exactly `bytes` from the list, or allocates it.
 * Neither waits to reuse memory, since all of it is written and read in the stream's order. free frees the
 * whole list. */
void amp_cuda_spare_put(amp_backend *, void *memory, size_t bytes);
amp_status amp_cuda_spare_get(amp_backend *, size_t bytes, const char *what, void **out, amp_error *);
void amp_cuda_spares_free(amp_backend *);
