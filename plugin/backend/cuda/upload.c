/* Asynchronous copies, and staging: page-locked memory for the data to be copied.
 *
 * After each copy, the event `uploaded` is recorded on the backend's stream. uploads_done waits for the
 * event's most recent recording. All copies are then complete, and the blocks of staging memory can be
 * reused.
 *
 * upload_ahead prefetches images: it copies on a separate stream (`ahead`) while the backend's stream still
 * computes the previous pass. Three waits keep the order:
 *  - A copy waits for everything that was queued on the backend's stream before the previous copy. This
 *    includes all readers of the buffer that the copy overwrites (event ahead_free).
 *  - Work that is queued on the backend's stream after a copy waits for that copy (event ahead_done).
 *  - The program waits for the copy in uploads_done, as for all other copies. */
#include <stdlib.h>

#include "kernels.h"
#include "memory.h"

enum { LINE = 64, LEAST_BLOCK = 1 << 20 };

/* A block of page-locked memory, handed out piece by piece from its start. room, used: bytes. */
struct amp_cuda_staging {
    struct amp_cuda_staging *next;
    char *memory;
    size_t room, used;
};

static amp_status add_block(amp_cuda_backend *cuda, size_t bytes, amp_error *error)
{
    struct amp_cuda_staging *block = amp_allocated(calloc(1, sizeof *block));
    block->room = bytes < LEAST_BLOCK ? LEAST_BLOCK : bytes;
    cudaError_t status = cudaMallocHost((void **)&block->memory, block->room);
    if (status != cudaSuccess) {
        free(block);
        return amp_cuda_fail(status, "cudaMallocHost", __FILE__, __LINE__, error);
    }
    block->next = cuda->staging;
    cuda->staging = block;
    return AMP_OK;
}

static struct amp_cuda_staging *block_with(const amp_cuda_backend *cuda, size_t bytes)
{
    struct amp_cuda_staging *block = cuda->staging;
    while (block && block->room - block->used < bytes) block = block->next;
    return block;
}

/* Hands out page-locked memory, because the CPU cannot write to `memory`, which is on the device. */
amp_status amp_cuda_stage(amp_backend *backend, void *memory, size_t bytes, void **source, amp_error *error)
{
    amp_cuda_backend *cuda = amp_cuda_of(backend);
    size_t lines = (bytes + LINE - 1) / LINE * LINE;
    *source = NULL;
    if (!bytes) return AMP_OK;
    if (!block_with(cuda, lines)) AMP_TRY(add_block(cuda, lines, error));
    struct amp_cuda_staging *block = block_with(cuda, lines);
    *source = block->memory + block->used;
    block->used += lines;
    return AMP_OK;
}

/* If `from` is pageable memory, the call may wait, and CUDA has read all of `from` on return. */
amp_status amp_cuda_upload_later(amp_backend *backend, void *memory, const void *from, size_t bytes,
                                 amp_error *error)
{
    amp_cuda_backend *cuda = amp_cuda_of(backend);
    if (!bytes) return AMP_OK;
    cuda->uploads_pending = 1;
    AMP_CUDA_TRY(cudaMemcpyAsync(memory, from, bytes, cudaMemcpyDefault, cuda->stream));
    AMP_CUDA_TRY(cudaEventRecord(cuda->uploaded, cuda->stream));
    return AMP_OK;
}

amp_status amp_cuda_download_later(amp_backend *backend, const void *memory, size_t bytes, void **to,
                                   amp_error *error)
{
    AMP_TRY(amp_cuda_stage(backend, NULL, bytes, to, error));
    return amp_cuda_upload_later(backend, *to, memory, bytes, error);
}

/* Creates the stream `ahead` and its events. The first copy waits for everything queued so far. The stream is
 * non-blocking: the default stream, on which Darknet's own layers run, does not wait for the copies. */
static amp_status make_ahead(amp_cuda_backend *cuda, amp_error *error)
{
    if (cuda->ahead) return AMP_OK;
    if (!cuda->ahead_free) AMP_CUDA_TRY(cudaEventCreateWithFlags(&cuda->ahead_free, cudaEventDisableTiming));
    if (!cuda->ahead_done) AMP_CUDA_TRY(cudaEventCreateWithFlags(&cuda->ahead_done, cudaEventDisableTiming));
    AMP_CUDA_TRY(cudaEventRecord(cuda->ahead_free, cuda->stream));
    AMP_CUDA_TRY(cudaStreamCreateWithFlags(&cuda->ahead, cudaStreamNonBlocking));
    return AMP_OK;
}

amp_status amp_cuda_upload_ahead(amp_backend *backend, void *memory, const void *from, size_t bytes,
                                 amp_error *error)
{
    amp_cuda_backend *cuda = amp_cuda_of(backend);
    if (!bytes) return AMP_OK;
    AMP_TRY(make_ahead(cuda, error));
    AMP_CUDA_TRY(cudaStreamWaitEvent(cuda->ahead, cuda->ahead_free, 0)); /* recorded by the previous call */
    AMP_CUDA_TRY(cudaEventRecord(cuda->ahead_free, cuda->stream));
    cuda->uploads_pending = 1;
    AMP_CUDA_TRY(cudaMemcpyAsync(memory, from, bytes, cudaMemcpyDefault, cuda->ahead));
    AMP_CUDA_TRY(cudaEventRecord(cuda->ahead_done, cuda->ahead));
    AMP_CUDA_TRY(cudaStreamWaitEvent(cuda->stream, cuda->ahead_done, 0));
    AMP_CUDA_TRY(cudaEventRecord(cuda->uploaded, cuda->stream));
    return AMP_OK;
}

amp_status amp_cuda_uploads_done(amp_backend *backend, amp_error *error)
{
    amp_cuda_backend *cuda = amp_cuda_of(backend);
    if (cuda->uploads_pending) AMP_CUDA_TRY(cudaEventSynchronize(cuda->uploaded));
    cuda->uploads_pending = 0;
    for (struct amp_cuda_staging *block = cuda->staging; block; block = block->next) block->used = 0;
    return AMP_OK;
}

/* Call this at the end, when no work is queued any more. */
void amp_cuda_uploads_free(amp_backend *backend)
{
    amp_cuda_backend *cuda = amp_cuda_of(backend);
    if (cuda->ahead) cudaStreamDestroy(cuda->ahead);
    if (cuda->ahead_done) cudaEventDestroy(cuda->ahead_done);
    if (cuda->ahead_free) cudaEventDestroy(cuda->ahead_free);
    while (cuda->staging) {
        struct amp_cuda_staging *block = cuda->staging;
        cuda->staging = block->next;
        cudaFreeHost(block->memory);
        free(block);
    }
}
