/* Matrix products: connected layers, and the backend's gemm. gemm.c is the only file
 * that knows cuBLAS.
 *
 * All matrices are row-major, in device memory. Sums in fp32, in true fp32 for fp32 (no TF32); the same bits
 * in every run. */
#pragma once

#include "state.h"

/* Creates the cuBLAS handle at its first call; to be called before amp_cuda_product. */
amp_status amp_cuda_gemm_start(amp_backend *, amp_error *);
void amp_cuda_gemm_stop(amp_backend *);
/* The library's version, e.g. "cuBLAS 13.0.2"; needs no handle. */
void amp_cuda_gemm_describe(char *text, size_t size);

/* Rows `ld` elements apart; transposed: it stands for its transpose. */
typedef struct amp_cuda_matrix {
    const void *data;
    amp_dtype dtype;
    int ld, transposed;
} amp_cuda_matrix;

/* c = alpha · a b + beta · c: a (m, k), b (k, n), c (m, n), whose data is written. a and b have one dtype; c
 * has that or fp32. */
amp_status amp_cuda_product(amp_backend *, int m, int n, int k, float alpha, amp_cuda_matrix a,
                            amp_cuda_matrix b, float beta, amp_cuda_matrix c, amp_error *);
