/* Functions of memory.c, upload.c and pass.c that are not operations of kernels.h. */
#pragma once

#include "state.h"

/* upload.c: frees its page-locked memory, and the stream and events of upload_ahead. */
void amp_cuda_uploads_free(amp_backend *);

/* amp_cuda_reserve provides cuDNN's workspace: it implements amp_cudnn_settings.reserve, and `backend` is an
 * amp_backend. amp_cuda_trim frees the workspace if it is larger than the backend's workspace_needed. */
amp_status amp_cuda_reserve(void *backend, size_t bytes, void **memory, amp_error *);
void amp_cuda_trim(amp_backend *);

/* pass.c: described in backend.h. */
amp_status amp_cuda_pass_begin(amp_backend *, amp_recorded_pass **pass, int *repeated, amp_error *);
amp_status amp_cuda_pass_end(amp_backend *, amp_recorded_pass **pass, int whole, amp_error *);
void amp_cuda_pass_free(amp_backend *, amp_recorded_pass *);

/* Spare memory: when a network is resized, its new copies of weights reuse the memory of the old ones.
 * amp_cuda_spare_get takes a block of exactly `bytes` from the list, or allocates one. Reuse needs no wait,
 * because all reads and writes of a block are queued on one stream. */
void amp_cuda_spare_put(amp_backend *, void *memory, size_t bytes);
amp_status amp_cuda_spare_get(amp_backend *, size_t bytes, const char *what, void **out, amp_error *);
void amp_cuda_spares_free(amp_backend *);
