/* The CPU backend's object, and oneDNN, the library that computes convolutions and matrix products. Only
 * onednn*.c and weights_*.c include the library's own headers. */
#pragma once

#include "../backend.h"
#include "rows.h"

/* The library's engine and stream, and one scratch area, which convolutions and matrix products share: only
 * one of them runs at a time. */
typedef struct amp_onednn amp_onednn;

/* The primitives and copies of factors that onednn_gemm.c caches. amp_cpu_products_free accepts NULL. */
typedef struct amp_cpu_products amp_cpu_products;
void amp_cpu_products_free(amp_cpu_products *, amp_backend *);

typedef struct amp_cpu_backend {
    amp_backend base; /* must be first: its address is cast to amp_cpu_backend * */
    amp_onednn *library;
    amp_cpu_products *products; /* NULL until the first product in fp16 or bf16 */
} amp_cpu_backend;

static inline amp_onednn *amp_cpu_library(amp_backend *backend)
{
    return ((amp_cpu_backend *)backend)->library;
}

/* After amp_onednn_create, the library computes in every dtype. amp_onednn_choose_halves makes a 16-bit dtype
 * a storage format if the library is slower in it than in fp32 or lacks kernels for it. */
amp_status amp_onednn_create(amp_onednn **out, amp_error *error);
void amp_onednn_choose_halves(amp_onednn *library);
void amp_onednn_destroy(amp_onednn *library);

/* Writes the library's version and instruction set to text, e.g. "oneDNN 2.6.3, avx512_core_bf16". */
void amp_onednn_describe(char *text, size_t size);
/* Whether the library can use AMX, and the widest vectors that it can use. DNNL_MAX_CPU_ISA limits both. */
int amp_onednn_has_amx(void);
amp_cpu_width amp_onednn_width(void);

/* The library may read this many bytes past the end of a tensor, without effect on results. So
 * amp_cpu_allocate makes each block this much larger. Seen in 2.6.3 with AVX-512, in the fp32 data gradient
 * (dx): to add to a tensor with few channels, the library loads a whole vector. */
enum { AMP_ONEDNN_READS_BEHIND = 64 };
