/* The backend's entries for memory, which backend.h documents. */
#ifndef AMP_BACKEND_CPU_MEMORY_H
#define AMP_BACKEND_CPU_MEMORY_H

#include "../backend.h"

/* `bytes` of 64-byte aligned memory with undefined contents; freed with free(). *out is NULL for 0 bytes. */
amp_status amp_cpu_memory(size_t bytes, void **out, amp_error *error);

amp_status amp_cpu_allocate(amp_backend *, size_t bytes, void **out, amp_error *);
void amp_cpu_release(amp_backend *, void *memory);
amp_status amp_cpu_upload(amp_backend *, void *memory, const void *from, size_t bytes, amp_error *);
amp_status amp_cpu_upload_later(amp_backend *, void *memory, const void *from, size_t bytes, amp_error *);
amp_status amp_cpu_stage(amp_backend *, void *memory, size_t bytes, void **host, amp_error *);
amp_status amp_cpu_download(amp_backend *, void *to, const void *memory, size_t bytes, amp_error *);
amp_status amp_cpu_synchronize(amp_backend *, amp_error *);
amp_status amp_cpu_zero(amp_backend *, void *memory, size_t bytes, amp_error *);
amp_status amp_cpu_scale(amp_backend *, float *array, size_t count, float factor, amp_error *);

#endif
