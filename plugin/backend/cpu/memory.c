/* The CPU backend's memory is ordinary memory: an upload is a plain copy, and no function waits. */
#include "kernels.h"

#include <string.h>

#include "onednn.h"

enum { ALIGNMENT = 64 }; /* a cache line, and the widest vector */

amp_status amp_cpu_allocate(amp_backend *backend, size_t bytes, void **out, amp_error *error)
{
    *out = NULL;
    if (!bytes) return AMP_OK;
    size_t padded = (bytes + AMP_ONEDNN_READS_BEHIND + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    *out = padded > bytes ? aligned_alloc(ALIGNMENT, padded) : NULL; /* padded may have wrapped around */
    if (!*out)
        return amp_fail(error, AMP_NO_MEMORY,
                        "no memory for %zu MiB: use a smaller batch or more subdivisions", bytes >> 20);
    return AMP_OK;
}

void amp_cpu_release(amp_backend *backend, void *memory)
{
    free(memory);
}

amp_status amp_cpu_upload(amp_backend *backend, void *memory, const void *from, size_t bytes,
                          amp_error *error)
{
    if (bytes) memcpy(memory, from, bytes);
    return AMP_OK;
}

/* If `from` comes from stage, it is `memory` itself, and needs no copy. */
amp_status amp_cpu_upload_later(amp_backend *backend, void *memory, const void *from, size_t bytes,
                                amp_error *error)
{
    return memory == from ? AMP_OK : amp_cpu_upload(backend, memory, from, bytes, error);
}

amp_status amp_cpu_upload_ahead(amp_backend *backend, void *memory, const void *from, size_t bytes,
                                amp_error *error)
{
    return amp_cpu_upload_later(backend, memory, from, bytes, error);
}

amp_status amp_cpu_stage(amp_backend *backend, void *memory, size_t bytes, void **source, amp_error *error)
{
    *source = memory;
    return AMP_OK;
}

amp_status amp_cpu_download(amp_backend *backend, void *to, const void *memory, size_t bytes,
                            amp_error *error)
{
    return amp_cpu_upload(backend, to, memory, bytes, error);
}

amp_status amp_cpu_download_later(amp_backend *backend, const void *memory, size_t bytes, void **to,
                                  amp_error *error)
{
    return amp_cpu_stage(backend, (void *)memory, bytes, to, error);
}

amp_status amp_cpu_synchronize(amp_backend *backend, amp_error *error)
{
    return AMP_OK;
}

amp_status amp_cpu_uploads_done(amp_backend *backend, amp_error *error)
{
    return amp_cpu_synchronize(backend, error);
}

amp_status amp_cpu_zero(amp_backend *backend, void *memory, size_t bytes, amp_error *error)
{
    if (bytes) memset(memory, 0, bytes);
    return AMP_OK;
}

amp_status amp_cpu_scale(amp_backend *backend, float *array, size_t count, float factor, amp_error *error)
{
    for (size_t i = 0; i < count; i++) array[i] *= factor;
    return AMP_OK;
}
