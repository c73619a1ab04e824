/* Tables on the device: see table.cuh. */
#include "table.cuh"

#include <stdlib.h>
#include <string.h>

#include "device.cuh"
#include "kernels.h"

void *amp_cuda_table_rows(size_t row_bytes, int count)
{
    return amp_allocated(calloc((size_t)count + 1, row_bytes));
}

static const amp_cuda_work *work_of(const amp_cuda_table *t, size_t row_bytes, int i)
{
    return (const amp_cuda_work *)((const char *)t->rows + (size_t)i * row_bytes);
}

static void cut(const amp_cuda_table *t, size_t row_bytes, int count, amp_cuda_cut *cuts)
{
    for (int i = 0; i < count; i++) {
        const amp_cuda_work *w = work_of(t, row_bytes, i);
        for (size_t first = 0; first < w->units; first += (size_t)w->share, cuts++) {
            size_t left = w->units - first;
            cuts->first = first, cuts->row = i, cuts->count = left < (size_t)w->share ? (int)left : w->share;
        }
    }
}

static amp_status make_room(amp_backend *backend, amp_cuda_table *t, size_t bytes, amp_error *error)
{
    if (bytes <= t->room) return AMP_OK;
    amp_cuda_of(backend)->moved++; /* so that no recorded pass reads the old table */
    amp_cuda_release(backend, t->memory);
    t->memory = NULL;
    t->room = 0;
    AMP_TRY(amp_cuda_malloc(backend, bytes, "lists of arrays", &t->memory, error));
    t->room = bytes;
    return AMP_OK;
}

static amp_status send(cudaStream_t stream, void *to, const void *from, size_t bytes, amp_error *error)
{
    AMP_CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream));
    AMP_CUDA_TRY(cudaStreamSynchronize(stream));
    return AMP_OK;
}

/* Uploads rows and cuts. Kernels that read the old rows and cuts may be queued; the upload follows them on
 * the same stream. */
static amp_status fill(amp_backend *backend, amp_cuda_table *t, size_t row_bytes, int count, amp_error *error)
{
    size_t cuts = 0;
    for (int i = 0; i < count; i++) {
        const amp_cuda_work *w = work_of(t, row_bytes, i);
        cuts += amp_divide_up(w->units, (size_t)w->share);
    }
    t->cuts = (unsigned)cuts;
    if (!cuts) return AMP_OK;
    if (amp_cuda_of(backend)->recording) /* a recording can neither allocate nor wait */
        return amp_fail(error, AMP_BACKEND_FAILED, "a list of arrays changed while a pass was being captured "
                        "into a CUDA graph");
    size_t bytes = t->bytes + cuts * sizeof(amp_cuda_cut);
    AMP_TRY(make_room(backend, t, bytes, error));
    char *image = (char *)amp_allocated(malloc(bytes));
    memcpy(image, t->rows, t->bytes);
    cut(t, row_bytes, count, (amp_cuda_cut *)(image + t->bytes));
    amp_status status = send(amp_cuda_of(backend)->stream, t->memory, image, bytes, error);
    free(image);
    return status;
}

static void clear(amp_cuda_table *t)
{
    free(t->rows);
    t->rows = NULL;
    t->cuts = 0;
}

amp_status amp_cuda_table_set(amp_backend *backend, amp_cuda_table *t, void *rows, size_t row_bytes,
                              int count, amp_error *error)
{
    size_t bytes = (size_t)count * row_bytes;
    if (t->rows && t->bytes == bytes && !memcmp(t->rows, rows, bytes)) {
        free(rows);
        return AMP_OK;
    }
    clear(t);
    t->rows = rows;
    t->bytes = bytes;
    amp_status status = fill(backend, t, row_bytes, count, error);
    if (status != AMP_OK) clear(t);
    return status;
}

void amp_cuda_table_release(amp_backend *backend, amp_cuda_table *t)
{
    clear(t);
    amp_cuda_release(backend, t->memory);
    t->memory = NULL;
    t->room = 0;
}

/* Errors are ignored. */
void amp_cuda_tables_destroy(amp_cuda_backend *cuda)
{
    amp_cuda_table *all[] = { &cuda->step, &cuda->statistics, &cuda->arrays, &cuda->weights };
    for (amp_cuda_table *t : all) amp_cuda_table_release(&cuda->base, t);
    if (cuda->decision) cudaFreeHost(cuda->decision);
    if (cuda->decided) cudaEventDestroy(cuda->decided);
}
