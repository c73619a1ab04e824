/* Matrix products: connected and locally connected layers, and the backend's gemm. gemm.c is the only file
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

/* A product for each of `places`, of a connected layer 1. x (places, batch, inputs) and w (places, outputs,
 * inputs) are packed; y is (batch, all, outputs) with all ≥ places: an NHWC tensor, of whose pixels these
 * follow each other. */
typedef struct amp_cuda_product {
    int places, batch, inputs, outputs, all;
    amp_dtype dtype;
} amp_cuda_product;

/* y = x·wᵀ */
amp_status amp_cuda_gemm_forward(amp_backend *, const amp_cuda_product *, const void *x, const void *w,
                                 void *y, amp_error *);
/* dx (+)= dy·w; dx_dtype may be fp32 for every dtype. */
amp_status amp_cuda_gemm_backward_data(amp_backend *, const amp_cuda_product *, const void *dy, const void *w,
                                       void *dx, amp_dtype dx_dtype, int accumulate, amp_error *);
/* dw (+)= dyᵀ·x; dw is fp32 for every dtype. */
amp_status amp_cuda_gemm_backward_weights(amp_backend *, const amp_cuda_product *, const void *x,
                                          const void *dy, float *dw, int accumulate, amp_error *);
