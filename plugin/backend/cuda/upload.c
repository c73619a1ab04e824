/* Uploads that the host does not wait for, and the page-locked memory that their sources may lie in.
 *
 * They are in the order of the stream like everything else; an event behind the last one tells when all their
 * sources were read. What was handed out of the staging blocks until then is free again, so a training step
 * asks CUDA for such memory the first time only.
 *
 * Images go ahead of it on a stream of their own, so that a pass's backward goes on while the next one's
 * images arrive. Three orders are kept: a copy waits for all that was queued before the last such copy, the
 * last users of its memory (ahead_may); what is queued behind a copy waits for it (ahead_is); and so does the
 * host in uploads_done. */
#include <stdlib.h>

#include "kernels.h"
#include "memory.h"

enum { LINE = 64, LEAST_BLOCK = 1 << 20 };

/* A block of page-locked memory, handed out from its start; room and used are bytes. */
struct amp_cuda_staging {
    struct amp_cuda_staging *next;
    char *memory;
    size_t room, used;
};

static amp_status add_block(amp_cuda_backend *cuda, size_t bytes, amp_error *error)
{
    struct amp_cuda_staging *block = calloc(1, sizeof *block);
    if (!block) return amp_fail(error, AMP_NO_MEMORY, "no memory for a block of page-locked memory");
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

amp_status amp_cuda_stage(amp_backend *backend, void *memory, size_t bytes, void **host, amp_error *error)
{
    amp_cuda_backend *cuda = amp_cuda_of(backend);
    size_t lines = (bytes + LINE - 1) / LINE * LINE;
    (void)memory; /* on the device: the program cannot write there */
    *host = NULL;
    if (!bytes) return AMP_OK;
    if (!block_with(cuda, lines)) AMP_TRY(add_block(cuda, lines, error));
    struct amp_cuda_staging *block = block_with(cuda, lines);
    *host = block->memory + block->used;
    block->used += lines;
    return AMP_OK;
}

/* From pageable memory CUDA has read all of it on return, and may wait before. */
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

/* For the first copy, which waits for all that is queued. The default stream, where Darknet's own layers run,
 * must not wait for these copies. */
static amp_status make_ahead(amp_cuda_backend *cuda, amp_error *error)
{
    if (cuda->ahead) return AMP_OK;
    if (!cuda->ahead_may) AMP_CUDA_TRY(cudaEventCreateWithFlags(&cuda->ahead_may, cudaEventDisableTiming));
    if (!cuda->ahead_is) AMP_CUDA_TRY(cudaEventCreateWithFlags(&cuda->ahead_is, cudaEventDisableTiming));
    AMP_CUDA_TRY(cudaEventRecord(cuda->ahead_may, cuda->stream));
    AMP_CUDA_TRY(cudaStreamCreateWithFlags(&cuda->ahead, cudaStreamNonBlocking));
    return AMP_OK;
}

amp_status amp_cuda_upload_ahead(amp_backend *backend, void *memory, const void *from, size_t bytes,
                                 amp_error *error)
{
    amp_cuda_backend *cuda = amp_cuda_of(backend);
    if (!bytes) return AMP_OK;
    AMP_TRY(make_ahead(cuda, error));
    AMP_CUDA_TRY(cudaStreamWaitEvent(cuda->ahead, cuda->ahead_may, 0)); /* as the last copy recorded it */
    AMP_CUDA_TRY(cudaEventRecord(cuda->ahead_may, cuda->stream));
    cuda->uploads_pending = 1;
    AMP_CUDA_TRY(cudaMemcpyAsync(memory, from, bytes, cudaMemcpyDefault, cuda->ahead));
    AMP_CUDA_TRY(cudaEventRecord(cuda->ahead_is, cuda->ahead));
    AMP_CUDA_TRY(cudaStreamWaitEvent(cuda->stream, cuda->ahead_is, 0));
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

/* At the end, with nothing queued any more. */
void amp_cuda_end_uploads(amp_backend *backend)
{
    amp_cuda_backend *cuda = amp_cuda_of(backend);
    if (cuda->ahead) cudaStreamDestroy(cuda->ahead);
    if (cuda->ahead_is) cudaEventDestroy(cuda->ahead_is);
    if (cuda->ahead_may) cudaEventDestroy(cuda->ahead_may);
    while (cuda->staging) {
        struct amp_cuda_staging *block = cuda->staging;
        cuda->staging = block->next;
        cudaFreeHost(block->memory);
        free(block);
    }
}
