/* Convolutions and matrix products with oneDNN. Only onednn*.c and weights_*.c include the library's headers.
 * The operations amp_cpu_conv_* and amp_cpu_gemm* are declared in kernels.h, with all others. */
#pragma once

#include "../backend.h"
#include "rows.h"

/* The library may read this many bytes past a tensor's end, without effect on results: if it adds to fewer
 * channels than a vector has lanes, it loads a whole vector (2.6.3, backward by data in fp32 with AVX-512).
 * The backend allocates this much more for each tensor. */
enum { AMP_ONEDNN_READS_BEHIND = 64 };

/* The library's engine and stream, and one scratch area that all convolutions share, since only one runs at a
 * time. */
typedef struct amp_onednn amp_onednn;

/* A new library object computes in all dtypes until amp_onednn_choose_halves is called. */
amp_status amp_onednn_create(amp_onednn **out, amp_error *error);
void amp_onednn_choose_halves(amp_onednn *library);
void amp_onednn_destroy(amp_onednn *library);

/* Version and instruction set, e.g. "oneDNN 2.6.3, avx512_core_bf16". */
void amp_onednn_describe(char *text, size_t size);
/* What DNNL_MAX_CPU_ISA allows the library: AMX, and the width of vectors. */
int amp_onednn_has_amx(void);
amp_cpu_width amp_onednn_width(void);

/* The primitives and copies of factors that matrix products reuse. They are freed with the backend;
 * amp_cpu_products_free accepts NULL. */
typedef struct amp_cpu_products amp_cpu_products;
void amp_cpu_products_free(amp_cpu_products *, amp_backend *);
