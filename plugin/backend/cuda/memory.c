/* Allocates, frees and copies device memory, and manages the two blocks that operations share: scratch and
 * cuDNN's workspace.
 *
 * Each free first waits for the stream, because queued kernels may still use the memory. */
#include "kernels.h"
#include "memory.h"

#include <stdlib.h>

enum { UNIT = 256, BLOCK_UNIT = 1 << 20 }; /* allocations are multiples of UNIT; the two shared blocks grow in
                                              steps of BLOCK_UNIT, so that they do not grow at every layer */

/* Rounds `bytes` up to a multiple of `unit`. Returns 0 if the result would overflow. */
static size_t round_up(size_t bytes, size_t unit)
{
    return bytes > SIZE_MAX - unit ? 0 : (bytes + unit - 1) / unit * unit;
}

/* Fails with a message that says how much memory was needed and is free, and what the user can change. */
static amp_status no_memory(const amp_cuda_backend *cuda, size_t bytes, const char *what, amp_error *error)
{
    size_t unused = 0, total = 0;
    char there[128] = "", fits[64] = "a smaller batch, more subdivisions";
    amp_cuda_clear_error();
    if (cudaMemGetInfo(&unused, &total) == cudaSuccess) {
        snprintf(there, sizeof there, ": %zu of %zu MiB of GPU %d are free", unused >> 20, total >> 20,
                 cuda->device);
        if (unused && bytes / unused >= 1 && bytes / unused < 64)
            snprintf(fits, sizeof fits, "about %zu times as many subdivisions, a smaller batch",
                     bytes / unused + 1);
    } else {
        amp_cuda_clear_error();
    }
    return amp_fail(error, AMP_NO_MEMORY, "no memory for %zu MiB of %s%s; use %s or dtype=fp16",
                    (bytes >> 20) + (bytes % (1 << 20) != 0), what, there, fits);
}

amp_status amp_cuda_malloc(amp_backend *backend, size_t bytes, const char *what, void **out, amp_error *error)
{
    size_t rounded = round_up(bytes, UNIT);
    *out = NULL;
    if (!bytes) return AMP_OK;
    cudaError_t status = rounded ? cudaMalloc(out, rounded) : cudaErrorMemoryAllocation;
    if (status == cudaSuccess) return AMP_OK;
    *out = NULL;
    if (status == cudaErrorMemoryAllocation) return no_memory(amp_cuda_of(backend), bytes, what, error);
    return amp_cuda_fail(status, "cudaMalloc", __FILE__, __LINE__, error);
}

/* An error here comes from work that was queued earlier. It is cleared, so that the next launch does not
 * report it as its own. A permanent error is reported by the next call that returns a status. */
void amp_cuda_release(amp_backend *backend, void *memory)
{
    if (!memory) return;
    cudaError_t waited = cudaStreamSynchronize(amp_cuda_of(backend)->stream), freed = cudaFree(memory);
    if (waited != cudaSuccess || freed != cudaSuccess) amp_cuda_clear_error();
}

amp_status amp_cuda_allocate(amp_backend *backend, size_t bytes, void **out, amp_error *error)
{
    return amp_cuda_malloc(backend, bytes, "activations and parameters", out, error);
}

/* ---- spare memory ---- */

struct amp_cuda_spare { struct amp_cuda_spare *next; void *memory; size_t bytes; };

/* Appends the block to the list; amp_cuda_spare_get searches from the start. Layers allocate their blocks in
 * the order in which they released them, so each layer gets its old memory back, and the table of weights.cu
 * stays the same. */
void amp_cuda_spare_put(amp_backend *backend, void *memory, size_t bytes)
{
    amp_cuda_backend *cuda = amp_cuda_of(backend);
    struct amp_cuda_spare *one = memory ? malloc(sizeof *one) : NULL;
    if (!one) {
        amp_cuda_release(backend, memory);
        return;
    }
    *one = (struct amp_cuda_spare){ NULL, memory, bytes };
    struct amp_cuda_spare **end = &cuda->spares;
    while (*end) end = &(*end)->next;
    *end = one;
}

amp_status amp_cuda_spare_get(amp_backend *backend, size_t bytes, const char *what, void **out,
                              amp_error *error)
{
    for (struct amp_cuda_spare **at = &amp_cuda_of(backend)->spares, *one; (one = *at); at = &one->next) {
        if (one->bytes != bytes) continue;
        *out = one->memory;
        *at = one->next;
        free(one);
        return AMP_OK;
    }
    return amp_cuda_malloc(backend, bytes, what, out, error);
}

void amp_cuda_spares_free(amp_backend *backend)
{
    amp_cuda_backend *cuda = amp_cuda_of(backend);
    while (cuda->spares) {
        struct amp_cuda_spare *one = cuda->spares;
        cuda->spares = one->next;
        amp_cuda_release(backend, one->memory);
        free(one);
    }
}

/* ---- shared blocks ---- */

/* Makes *block at least `bytes` large; its contents are lost if it grows. */
static amp_status grow(amp_backend *backend, void **block, size_t *held, size_t bytes, const char *what,
                       amp_error *error)
{
    if (bytes <= *held) return AMP_OK;
    size_t rounded = round_up(bytes, BLOCK_UNIT);
    if (amp_cuda_of(backend)->recording)
        return amp_fail(error, AMP_BACKEND_FAILED, "%s cannot grow while a pass is being captured into a "
                        "CUDA graph", what);
    amp_cuda_of(backend)->moved++;
    amp_cuda_release(backend, *block); /* frees first, so that old and new block need not fit into memory
                                          together */
    *held = 0;
    AMP_TRY(amp_cuda_malloc(backend, rounded ? rounded : bytes, what, block, error));
    *held = rounded;
    return AMP_OK;
}

amp_status amp_cuda_scratch(amp_backend *backend, size_t bytes, void **out, amp_error *error)
{
    amp_cuda_backend *cuda = amp_cuda_of(backend);
    *out = NULL;
    AMP_TRY(grow(backend, &cuda->scratch, &cuda->scratch_bytes, bytes, "scratch", error));
    *out = cuda->scratch;
    return AMP_OK;
}

amp_status amp_cuda_reserve(void *owner, size_t bytes, void **memory, amp_error *error)
{
    amp_cuda_backend *cuda = amp_cuda_of(owner);
    *memory = NULL;
    AMP_TRY(grow(owner, &cuda->workspace, &cuda->workspace_bytes, bytes, "cuDNN's workspace", error));
    *memory = cuda->workspace;
    return AMP_OK;
}

void amp_cuda_trim(amp_backend *backend)
{
    amp_cuda_backend *cuda = amp_cuda_of(backend);
    if (cuda->workspace_bytes <= round_up(cuda->workspace_needed, BLOCK_UNIT)) return;
    cuda->moved++;
    amp_cuda_release(backend, cuda->workspace);
    cuda->workspace = NULL;
    cuda->workspace_bytes = 0;
}

/* ---- copying ---- */

/* Sets *answer to 1 if `memory` is device memory, else 0. */
static amp_status lies_on_device(const void *memory, int *answer, amp_error *error)
{
    struct cudaPointerAttributes attributes;
    AMP_CUDA_TRY(cudaPointerGetAttributes(&attributes, memory));
    *answer = attributes.type == cudaMemoryTypeDevice;
    return AMP_OK;
}

/* Waits only if `from` is CPU memory. The caller may overwrite CPU memory after the return, and without the
 * wait, CUDA might still be reading it (if it is page-locked). Device memory is overwritten only by later
 * work on the same stream. */
amp_status amp_cuda_upload(amp_backend *backend, void *memory, const void *from, size_t bytes,
                           amp_error *error)
{
    int from_device = 0;
    if (!bytes) return AMP_OK;
    AMP_TRY(lies_on_device(from, &from_device, error));
    AMP_CUDA_TRY(cudaMemcpyAsync(memory, from, bytes, cudaMemcpyDefault, amp_cuda_of(backend)->stream));
    return from_device ? AMP_OK : amp_cuda_synchronize(backend, error);
}

amp_status amp_cuda_download(amp_backend *backend, void *to, const void *memory, size_t bytes,
                             amp_error *error)
{
    if (!bytes) return AMP_OK;
    AMP_CUDA_TRY(cudaMemcpyAsync(to, memory, bytes, cudaMemcpyDefault, amp_cuda_of(backend)->stream));
    return amp_cuda_synchronize(backend, error);
}

amp_status amp_cuda_zero(amp_backend *backend, void *memory, size_t bytes, amp_error *error)
{
    if (!bytes) return AMP_OK;
    AMP_CUDA_TRY(cudaMemsetAsync(memory, 0, bytes, amp_cuda_of(backend)->stream));
    return AMP_OK;
}

amp_status amp_cuda_synchronize(amp_backend *backend, amp_error *error)
{
    AMP_CUDA_TRY(cudaStreamSynchronize(amp_cuda_of(backend)->stream));
    return AMP_OK;
}
