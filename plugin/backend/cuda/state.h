/* What the files of the CUDA backend share: the backend's state, scratch memory, and how a CUDA status
 * becomes an amp_error.
 *
 * Everything but the copies of upload_ahead is queued on one stream, in order. The CPU waits only where
 * backend.h says so or an operation returns a number. All tensors, parameters and statistics are in device
 * memory. The caller must have made the backend's device the current one. This header is for C (cuda.c,
 * conv.c) and for CUDA C++ (the kernels). */
#pragma once

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "../backend.h"

struct cublasContext;
struct amp_cudnn;
struct amp_conv_plans;
struct amp_factor_copy;

/* Settings from the environment; see cuda.c. */
typedef struct amp_cuda_settings {
    int tune;          /* how many of cuDNN's engines are timed for each pass of a convolution; 0: none */
    int deterministic; /* the same bits in every run */
    int ranges;        /* layers and phases are named for NVIDIA's profilers */
} amp_cuda_settings;

/* A list of arrays and how blocks share their work, on the device; see table.cuh. */
typedef struct amp_cuda_table {
    void *rows;   /* the CPU's copy of the rows on the device; NULL: there are none */
    size_t bytes; /* of rows */
    unsigned cuts;
    void *memory; /* on the device: rows, then cuts; `room` bytes */
    size_t room;
} amp_cuda_table;

typedef struct amp_cuda_backend {
    amp_backend base; /* must be first: amp_cuda_of casts an amp_backend * */
    int device, multiprocessors;
    int major, minor; /* compute capability */
    amp_cuda_settings settings;
    cudaStream_t stream;
    struct cublasContext *cublas; /* gemm.c's handle; NULL until the first connected layer or gemm */
    struct amp_factor_copy *factors;        /* gemm.c's cached copies of factors */
    struct amp_cudnn *cudnn;
    struct amp_conv_plans *plans; /* cuDNN's plans of all convolutions; conv.c uses them */
    void *scratch;                /* see amp_cuda_scratch */
    size_t scratch_bytes;
    void *workspace;              /* for cuDNN; separate from scratch, which holds a weight gradient at the
                                     same time */
    size_t workspace_bytes, workspace_needed; /* needed: the largest that any convolution's plan needs */
    unsigned long moved;          /* how often scratch, workspace or a table got another address */
    int recording;                /* 1: the stream captures a graph, and nothing runs (pass.c) */
    int timed;                    /* 1: the GPU's clocks have been raised from idle for timing (conv.c) */
    cudaEvent_t uploaded;         /* recorded after each upload: completes when the source has been read */
    int uploads_pending;          /* 1: there was an upload since uploads_done */
    cudaStream_t ahead;           /* the stream of upload_ahead's copies; NULL until the first */
    cudaEvent_t ahead_free, ahead_done; /* upload.c's events: the next copy's memory is free; the last copy is
                                           done */
    struct amp_cuda_staging *staging; /* upload.c's */
    amp_cuda_table step, statistics, arrays; /* update.cu's tables for finish_step, copy_statistics and
                                                check_gradients */
    amp_cuda_table weights;       /* weights.cu's, of all convolutions */
    struct amp_cuda_times *times; /* times.cu's; NULL until the first call of operation_times */
    struct amp_cuda_spare *spares; /* memory.c's list of the memory of dropped copies of weights, kept until
                                      the next copies are made */
    void *decision;               /* update.cu's last decision, page-locked; NULL before the first */
    cudaEvent_t decided;          /* recorded after the copy of the decision to the CPU */
} amp_cuda_backend;

static inline amp_cuda_backend *amp_cuda_of(const amp_backend *backend)
{
    return (amp_cuda_backend *)backend;
}

/* Clears CUDA's last error, which the check after the next launch would otherwise report as that launch's. */
static inline void amp_cuda_clear_error(void) { (void)cudaGetLastError(); }

/* Fills *error from a CUDA status that is not cudaSuccess: the call, CUDA's name and message for the status,
 * file and line. Clears CUDA's last error. */
amp_status amp_cuda_fail(cudaError_t status, const char *call, const char *file, int line, amp_error *error);

/* Makes the GPU with this number the current one. Fails if this program cannot compute on it: there is no
 * driver, another program has exclusive use of it, or no kernels were compiled for it. */
amp_status amp_cuda_find(int gpu, amp_error *error);

/* Returns from the calling function if a CUDA call fails. That function must have a parameter `error`. */
#define AMP_CUDA_TRY(call) do { cudaError_t amp_cuda_status_ = (call); \
        if (amp_cuda_status_ != cudaSuccess) \
            return amp_cuda_fail(amp_cuda_status_, #call, __FILE__, __LINE__, error); \
    } while (0)

/* Allocates device memory, 256-byte aligned. *out is NULL for 0 bytes. `what` names it in the error: "no
 * memory for 12 MiB of <what>". amp_cuda_release frees it, after a wait for the stream; NULL is allowed. */
amp_status amp_cuda_malloc(amp_backend *, size_t bytes, const char *what, void **out, amp_error *);
void amp_cuda_release(amp_backend *backend, void *memory);

/* Sets *out to at least `bytes` of device memory, 256-byte aligned, with undefined contents. It is only for
 * the kernels of one operation, since the next call returns the same memory. If that is too small, the call
 * waits for the stream and replaces it by a larger block. */
amp_status amp_cuda_scratch(amp_backend *backend, size_t bytes, void **out, amp_error *error);

#ifdef __cplusplus
}
#endif
