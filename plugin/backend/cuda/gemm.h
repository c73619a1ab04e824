/* Matrix products, for connected layers and the backend's gemm. gemm.c is the only file that uses cuBLAS.
 *
 * All matrices are row-major and in device memory. Sums are in fp32; fp32 factors are not rounded to TF32.
 * Results have the same bits in every run. */
#pragma once

#include "state.h"

/* Creates the cuBLAS handle on the first call. Must be called before amp_cuda_product. */
amp_status amp_cuda_gemm_start(amp_backend *, amp_error *);
void amp_cuda_gemm_stop(amp_backend *);
/* The library's version, e.g. "cuBLAS 13.0.2"; needs no handle. */
void amp_cuda_gemm_describe(char *text, size_t size);

/* A matrix whose rows start `ld` elements apart. transposed = 1: the product uses its transpose. */
typedef struct amp_cuda_matrix {
    const void *data;
    amp_dtype dtype;
    int ld, transposed;
} amp_cuda_matrix;

/* c = alpha·a·b + beta·c, with a (m, k), b (k, n) and c (m, n). Writes to c.data, although it is const. a and
 * b have the same dtype; c has that dtype or fp32. */
amp_status amp_cuda_product(amp_backend *, int m, int n, int k, float alpha, amp_cuda_matrix a,
                            amp_cuda_matrix b, float beta, amp_cuda_matrix c, amp_error *);
