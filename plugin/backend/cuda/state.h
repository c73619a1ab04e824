/* What the files of the CUDA backend share: the backend's state, scratch memory, and how a CUDA status
 * becomes an amp_error.
 *
 * Everything is queued on one stream, in order; the host waits only where backend.h says so or hands a number
 * back. All tensors, parameters and statistics are device memory. Whoever calls the backend has its device as
 * the current one. Included by C (cuda.c, conv.c) and by CUDA C++ (the kernels). */
#pragma once

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "../backend.h"

struct cublasContext;
struct amp_cudnn;
struct amp_kept;

/* What the environment asks for; see cuda.c. */
typedef struct amp_cuda_settings {
    int tune;          /* how many of cuDNN's engines are timed for each pass of a convolution; 0: none */
    int deterministic; /* the same bits in every run */
    int ranges;        /* layers and phases are named for NVIDIA's profilers */
} amp_cuda_settings;

/* A list of arrays and how blocks share their work, on the device; see table.cuh. */
typedef struct amp_cuda_table {
    void *rows;   /* the list as it lies there; NULL: none does */
    size_t bytes; /* of rows */
    unsigned cuts;
    void *memory; /* on the device: rows, then cuts; with room for more */
    size_t room;
} amp_cuda_table;

typedef struct amp_cuda_backend {
    amp_backend base; /* first: an amp_backend * is one of these */
    int device, multiprocessors;
    int major, minor; /* compute capability */
    amp_cuda_settings settings;
    cudaStream_t stream;
    struct cublasContext *cublas; /* NULL until the first connected layer or gemm; gemm.c's */
    struct amp_kept *kept;        /* gemm.c's copies of factors */
    struct amp_cudnn *cudnn;
    void *scratch;                /* see amp_cuda_scratch */
    size_t scratch_bytes;
    void *workspace;              /* cuDNN's: apart from scratch, because a weight gradient lies there
                                     meanwhile */
    size_t workspace_bytes, workspace_needed; /* needed: the most that any convolution's plan asks for */
    unsigned long moved;          /* counts the changes of where scratch and workspace lie */
    int recording;                /* pass.c's: the stream captures a graph, and nothing runs */
    int timed;                    /* conv_tune.c's: the clocks were brought up for timing */
    cudaEvent_t uploaded;         /* the sources of all uploads so far were read; */
    int uploads_pending;          /* whether there was one since uploads_done */
    cudaStream_t ahead;           /* upload_ahead's copies; NULL until the first; */
    cudaEvent_t ahead_free, ahead_done; /* upload.c's: the memory of the next is free, the last is done */
    struct amp_cuda_staging *staging; /* upload.c's */
    amp_cuda_table step, statistics, arrays; /* update.cu's: of finish_step; of statistics alone; of what is
                                                only checked */
    amp_cuda_table weights;       /* weights.cu's, of all convolutions */
    struct amp_cuda_spare *spares; /* memory.c's: of dropped copies of weights, until the next are loaded */
    void *verdict;                /* update.cu's: pinned, what the device found; NULL until it is asked */
    cudaEvent_t judged;           /* ... and that it is there */
} amp_cuda_backend;

static inline amp_cuda_backend *amp_cuda_of(const amp_backend *backend)
{
    return (amp_cuda_backend *)backend;
}

/* Fills *error from a CUDA status that is not cudaSuccess: what failed, CUDA's name and words for it, file
 * and line. */
amp_status amp_cuda_fail(cudaError_t status, const char *call, const char *file, int line, amp_error *error);

/* Leave the calling function, which has `error`, if a CUDA call fails. */
#define AMP_CUDA_TRY(call) do { cudaError_t amp_cuda_status_ = (call); \
        if (amp_cuda_status_ != cudaSuccess) \
            return amp_cuda_fail(amp_cuda_status_, #call, __FILE__, __LINE__, error); \
    } while (0)

/* Device memory, of which allocate's is one kind; 256-byte aligned, *out is NULL for 0 bytes. `what` is for
 * the message: "no memory for 12 MiB of <what>". release waits for what is queued; NULL is allowed. */
amp_status amp_cuda_take(amp_backend *backend, size_t bytes, const char *what, void **out, amp_error *error);
void amp_cuda_release(amp_backend *backend, void *memory);

/* *out: at least `bytes` of device memory, 256-byte aligned, contents undefined, for the kernels of one
 * operation: the next call hands out the same memory. Grows when needed (that waits for the stream). */
amp_status amp_cuda_scratch(amp_backend *backend, size_t bytes, void **out, amp_error *error);

#ifdef __cplusplus
}
#endif
