/* Matrix products: connected layers, and the backend's gemm. gemm.c is the only file
 * that knows cuBLAS.
 *
 * All matrices are row-major, in device memory. Sums in fp32, in true fp32 for fp32 (no TF32); the same bits
 * in every run. */
#pragma once

#include "state.h"

/* Creates the cuBLAS handle at its first call; to be called before the products below. */
amp_status amp_cuda_gemm_start(amp_backend *, amp_error *);
void amp_cuda_gemm_stop(amp_backend *);
/* The library's version, e.g. "cuBLAS 13.0.2"; needs no handle. */
void amp_cuda_gemm_describe(char *text, size_t size);

/* A connected layer's: x (batch, inputs), w (outputs, inputs), y (batch, outputs). */
typedef struct amp_cuda_product {
    int batch, inputs, outputs;
    amp_dtype dtype;
} amp_cuda_product;

/* y = x·wᵀ */
amp_status amp_cuda_gemm_forward(amp_backend *, const amp_cuda_product *, const void *x, const void *w,
                                 void *y, amp_error *);
/* dx (+)= dy·w */
amp_status amp_cuda_gemm_backward_data(amp_backend *, const amp_cuda_product *, const void *dy, const void *w,
                                       void *dx, int accumulate, amp_error *);
/* dw (+)= dyᵀ·x; dw is fp32 for every dtype. */
amp_status amp_cuda_gemm_backward_weights(amp_backend *, const amp_cuda_product *, const void *x,
                                          const void *dy, float *dw, int accumulate, amp_error *);
