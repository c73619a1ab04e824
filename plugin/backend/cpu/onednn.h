/* Convolutions and matrix products over oneDNN. onednn*.c are the only files that know the library; this is all that they show
 * of it.
 *
 * The amp_cpu_conv_* and amp_cpu_gemm* functions are the backend's entries of these names; backend.h documents them. */
#ifndef AMP_BACKEND_CPU_ONEDNN_H
#define AMP_BACKEND_CPU_ONEDNN_H

#include "../backend.h"
#include "processor.h"

/* The library's engine and stream, and one scratch area that all convolutions share: one runs at a time. */
typedef struct amp_onednn amp_onednn;

amp_status amp_onednn_create(amp_onednn **out, amp_error *error);
void amp_onednn_destroy(amp_onednn *library);

/* Version and instruction set, e.g. "oneDNN 2.6.3, avx512_core_bf16". */
void amp_onednn_describe(char *text, size_t size);
/* How wide the vectors are that DNNL_MAX_CPU_ISA lets the library use. */
amp_cpu_width amp_onednn_width(void);
/* The backend's `supports`: what the instruction set that the library may use (DNNL_MAX_CPU_ISA) is good for. */
amp_support amp_onednn_supports(amp_dtype dtype, char note[256]);

/* The product in fp32, whatever d->dtype is; versions are not looked at. Within a parallel loop by the calling thread alone. */
amp_status amp_onednn_sgemm(const amp_gemm_desc *d, amp_error *error);

amp_status amp_cpu_conv_create(amp_backend *, const amp_conv_desc *, amp_conv **out, amp_error *);
void amp_cpu_conv_destroy(amp_backend *, amp_conv *);
amp_status amp_cpu_conv_load_weights(amp_backend *, const amp_conv_weights *, int count, int *failed, amp_error *);
void amp_cpu_conv_drop_weights(amp_backend *, amp_conv *);
amp_status amp_cpu_conv_forward(amp_backend *, amp_conv *, const void *x, const float *bias, void *y, amp_error *);
amp_status amp_cpu_conv_backward_data(amp_backend *, amp_conv *, const void *dy, void *dx, int accumulate, amp_error *);
amp_status amp_cpu_conv_backward_weights(amp_backend *, amp_conv *, const void *x, const void *dy, float *dw, amp_error *);
void amp_cpu_conv_facts(const amp_backend *, const amp_conv *, amp_conv_facts *out);

/* What products keep between calls; NULL is allowed. */
typedef struct amp_cpu_products amp_cpu_products;
void amp_cpu_products_free(amp_cpu_products *, amp_backend *);

amp_status amp_cpu_gemm(amp_backend *, const amp_gemm_desc *, amp_error *);
void amp_cpu_gemm_drop_copies(amp_backend *);
amp_dtype amp_cpu_gemm_computes(const amp_backend *, amp_dtype);

#endif
