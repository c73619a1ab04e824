/* What the files of the CUDA backend share: the backend's state, its scratch memory, and the conversion of a
 * CUDA status to an amp_error.
 *
 * All work except the copies of upload_ahead is queued on one stream, in order. The CPU waits only where
 * backend.h says so, or where an operation returns a number. All tensors, parameters and statistics are in
 * device memory. The caller must have made the backend's device the current one. */
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
    int tune;          /* number of cuDNN's engines to time for each pass of a convolution; 0: none */
    int deterministic; /* 1: the same bits in every run */
    int ranges;        /* 1: name layers and phases for NVIDIA's profilers */
} amp_cuda_settings;

/* A list of arrays in device memory: see table.cuh. */
typedef struct amp_cuda_table {
    void *rows;   /* the CPU's copy of the rows; NULL: the table is empty */
    size_t bytes; /* size of `rows` */
    unsigned cuts;
    void *memory; /* device memory of `room` bytes: the rows, then the cuts */
    size_t room;
} amp_cuda_table;

typedef struct amp_cuda_backend {
    amp_backend base; /* must be first: amp_cuda_of casts an amp_backend * */
    int device, multiprocessors;
    int major, minor; /* compute capability */
    amp_cuda_settings settings;
    cudaStream_t stream;
    struct cublasContext *cublas; /* gemm.c's handle; NULL until the first connected layer or gemm */
    struct amp_factor_copy *factors;        /* gemm.c's cache of rounded matrix factors */
    struct amp_cudnn *cudnn;
    struct amp_conv_plans *plans; /* conv.c's cache of cuDNN plans, for all convolutions */
    void *scratch;                /* scratch memory: see amp_cuda_scratch */
    size_t scratch_bytes;
    void *workspace;              /* cuDNN's workspace; scratch may hold a weight gradient at the same time */
    size_t workspace_bytes, workspace_needed; /* workspace_needed: the most that any plan needs */
    unsigned long moved;          /* how often the address of scratch, workspace or a table has changed */
    int recording;                /* 1: the stream captures a graph (pass.c): operations do not run */
    int timed;                    /* 1: conv.c has raised the GPU's clocks from idle */
    cudaEvent_t uploaded;         /* recorded after each upload; complete when its source has been read */
    int uploads_pending;          /* 1: there was an upload since the previous uploads_done */
    cudaStream_t ahead;           /* the stream for upload_ahead's copies; NULL until the first such copy */
    cudaEvent_t ahead_free, ahead_done; /* events: the next copy may start; the previous copy is done */
    struct amp_cuda_staging *staging; /* upload.c's blocks of page-locked memory */
    amp_cuda_table step, statistics, arrays; /* update.cu's tables */
    amp_cuda_table weights;       /* weights.cu's table of all convolutions' weights */
    struct amp_cuda_times *times; /* times.cu's state; NULL until the first call of operation_times */
    struct amp_cuda_spare *spares; /* blocks that memory.c keeps for reuse; they held copies of
                                      weights that have been dropped */
    void *decision;               /* update.cu's most recent decision, in page-locked memory; or NULL */
    cudaEvent_t decided;          /* event recorded after the decision has been copied to the CPU */
} amp_cuda_backend;

static inline amp_cuda_backend *amp_cuda_of(const amp_backend *backend)
{
    return (amp_cuda_backend *)backend;
}

/* Clears CUDA's last error, which the check after the next launch would report as an error of that launch. */
static inline void amp_cuda_clear_error(void) { (void)cudaGetLastError(); }

/* Fills *error from a CUDA status that is not cudaSuccess. Also clears CUDA's last error. */
amp_status amp_cuda_fail(cudaError_t status, const char *call, const char *file, int line, amp_error *error);

/* Makes the GPU with this number the current one. Fails if this program cannot compute on it: there is no
 * driver, another program has exclusive use of it, or no kernels were compiled for it. */
amp_status amp_cuda_find(int gpu, amp_error *error);

/* Returns from the calling function if a CUDA call fails. That function must have a parameter `error`. */
#define AMP_CUDA_TRY(call) do { cudaError_t amp_cuda_status_ = (call); \
        if (amp_cuda_status_ != cudaSuccess) \
            return amp_cuda_fail(amp_cuda_status_, #call, __FILE__, __LINE__, error); \
    } while (0)

/* Allocates device memory, 256-byte aligned. *out is NULL for 0 bytes. `what` describes the memory in the
 * error: "no memory for 12 MiB of <what>". amp_cuda_release waits for the stream and frees the memory, which
 * may be NULL. */
amp_status amp_cuda_malloc(amp_backend *, size_t bytes, const char *what, void **out, amp_error *);
void amp_cuda_release(amp_backend *backend, void *memory);

/* Sets *out to at least `bytes` of device memory, 256-byte aligned, with undefined contents. Only the kernels
 * of one operation may use it: the next call returns the same memory or, after waiting for the stream, a
 * larger block. */
amp_status amp_cuda_scratch(amp_backend *backend, size_t bytes, void **out, amp_error *error);

#ifdef __cplusplus
}
#endif
