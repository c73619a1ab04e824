/* The CPU backend's object, and the library that it computes convolutions and matrix products with, oneDNN.
 * Only onednn*.c and weights_*.c include the library's own headers. The operations amp_cpu_conv_* and
 * amp_cpu_gemm* are declared in kernels.h, with all others. */
#pragma once

#include "../backend.h"
#include "rows.h"

/* The library's engine and stream, and one scratch area that all convolutions share, since only one runs at a
 * time. */
typedef struct amp_onednn amp_onednn;

/* The primitives and copies of factors that matrix products reuse (onednn_gemm.c). They are freed with the
 * backend; amp_cpu_products_free accepts NULL. */
typedef struct amp_cpu_products amp_cpu_products;
void amp_cpu_products_free(amp_cpu_products *, amp_backend *);

/* amp_cpu_backend_create returns a pointer to the first member. */
typedef struct amp_cpu_backend {
    amp_backend base; /* must be first, so that a pointer to it can be cast to amp_cpu_backend * */
    amp_onednn *library;
    amp_cpu_products *products; /* NULL until the first product in fp16 or bf16 */
} amp_cpu_backend;

static inline amp_onednn *amp_cpu_library(amp_backend *backend)
{
    return ((amp_cpu_backend *)backend)->library;
}

/* After amp_onednn_create, every dtype is used for arithmetic. amp_onednn_choose_halves makes a 16-bit dtype
 * a storage format if arithmetic in this dtype is slower than in fp32, or if the library lacks kernels for
 * it. */
amp_status amp_onednn_create(amp_onednn **out, amp_error *error);
void amp_onednn_choose_halves(amp_onednn *library);
void amp_onednn_destroy(amp_onednn *library);

/* Writes the library's version and instruction set to text, e.g. "oneDNN 2.6.3, avx512_core_bf16". */
void amp_onednn_describe(char *text, size_t size);
/* What the library can use on this CPU, as far as DNNL_MAX_CPU_ISA allows: amp_onednn_has_amx returns whether
 * it can use AMX, and amp_onednn_width returns its widest vectors. */
int amp_onednn_has_amx(void);
amp_cpu_width amp_onednn_width(void);

/* The library may read this many bytes past the end of a tensor, without effect on results. So
 * amp_cpu_allocate makes each block this much larger, since a tensor may end where the block ends. Seen in
 * 2.6.3, in backward by data in fp32 with AVX-512: when the library adds to a tensor with few channels, it
 * loads a whole vector, which has more lanes than a pixel has channels. */
enum { AMP_ONEDNN_READS_BEHIND = 64 };
