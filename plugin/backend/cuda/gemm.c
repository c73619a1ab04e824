/* Matrix products by cuBLAS. cuBLAS is column-major, so it reads a row-major matrix as its transpose. We
 * therefore let it compute the transposed product, cᵀ = bᵀ·aᵀ. */
#include "gemm.h"

#include <cublas_v2.h>

#include "../check.h"
#include "../factor_cache.h"
#include "kernels.h"

static amp_status cublas_fail(cublasStatus_t status, const char *call, int line, amp_error *error)
{
    int unsupported = status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH;
    amp_status kind = unsupported ? AMP_UNSUPPORTED : AMP_BACKEND_FAILED;
    if (status == CUBLAS_STATUS_ALLOC_FAILED) kind = AMP_NO_MEMORY;
    amp_cuda_clear_error();
    return amp_fail(error, kind, "cuBLAS: %s (gemm.c:%d): %s, %s", call, line, cublasGetStatusName(status),
                    cublasGetStatusString(status));
}

#define CUBLAS_TRY(name, ...) do { cublasStatus_t status_ = name(__VA_ARGS__); \
        if (status_ != CUBLAS_STATUS_SUCCESS) return cublas_fail(status_, #name, __LINE__, error); \
    } while (0)

/* Sets the stream, and forbids sums in 16 bits, which cuBLAS may use for 16-bit factors by default. */
static amp_status set_up(const amp_cuda_backend *cuda, cublasHandle_t handle, amp_error *error)
{
    CUBLAS_TRY(cublasSetStream, handle, cuda->stream);
    const int math = CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
    CUBLAS_TRY(cublasSetMathMode, handle, (cublasMath_t)math);
    return AMP_OK;
}

amp_status amp_cuda_gemm_start(amp_backend *backend, amp_error *error)
{
    amp_cuda_backend *cuda = amp_cuda_of(backend);
    cublasHandle_t handle;
    if (cuda->cublas) return AMP_OK;
    CUBLAS_TRY(cublasCreate, &handle);
    amp_status status = set_up(cuda, handle, error);
    if (status == AMP_OK) cuda->cublas = handle;
    else cublasDestroy(handle);
    return status;
}

void amp_cuda_gemm_stop(amp_backend *backend)
{
    amp_cuda_backend *cuda = amp_cuda_of(backend);
    amp_cuda_gemm_drop_copies(backend);
    if (cuda->cublas) cublasDestroy(cuda->cublas); /* errors are ignored */
    cuda->cublas = NULL;
}

void amp_cuda_gemm_describe(char *text, size_t size)
{
    int version[3] = { 0, 0, 0 };
    static const libraryPropertyType parts[3] = { MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL };
    for (int i = 0; i < 3; i++)
        if (cublasGetProperty(parts[i], &version[i]) != CUBLAS_STATUS_SUCCESS) version[i] = 0;
    snprintf(text, size, "cuBLAS %d.%d.%d", version[0], version[1], version[2]);
}

static cudaDataType_t type_of(amp_dtype dtype)
{
    return dtype == AMP_FP32 ? CUDA_R_32F : dtype == AMP_FP16 ? CUDA_R_16F : CUDA_R_16BF;
}

static cublasOperation_t as(amp_cuda_matrix m) { return m.transposed ? CUBLAS_OP_T : CUBLAS_OP_N; }

amp_status amp_cuda_product(amp_backend *backend, int m, int n, int k, float alpha, amp_cuda_matrix a,
                            amp_cuda_matrix b, float beta, amp_cuda_matrix c, amp_error *error)
{
    CUBLAS_TRY(cublasGemmEx, amp_cuda_of(backend)->cublas, as(b), as(a), n, m, k, &alpha, b.data,
               type_of(b.dtype), b.ld, a.data, type_of(a.dtype), a.ld, &beta, (void *)c.data,
               type_of(c.dtype), c.ld, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    return AMP_OK;
}

/* ---- gemm ---- */

static amp_status round_to(amp_backend *backend, const float *from, amp_dtype dtype, void *to, size_t count,
                           amp_error *error)
{
    const amp_shape flat = { 1, (int)count, 1, 1 };
    const amp_tensor src = { (void *)from, AMP_FP32, AMP_NHWC, flat }, dst = { to, dtype, AMP_NHWC, flat };
    return amp_cuda_cast(backend, &src, &dst, 0, error);
}

/* Sets *out to the factor, rounded to the dtype: a cached copy, or one in `scratch` if f->version is 0. */
static amp_status prepare(amp_backend *backend, const amp_factor *f, size_t count, amp_dtype dtype,
                          void *scratch, const void **out, amp_error *error)
{
    amp_factor_copy *entry;
    *out = scratch;
    if (!f->version) return round_to(backend, f->data, dtype, scratch, count, error);
    AMP_TRY(amp_factor_copy_find(&amp_cuda_of(backend)->factors, backend, f->data, count, dtype,
                                 count * amp_dtype_size(dtype), &entry, error));
    *out = entry->copy;
    if (entry->version == f->version) return AMP_OK;
    AMP_TRY(round_to(backend, f->data, dtype, entry->copy, count, error));
    entry->version = f->version;
    return AMP_OK;
}

/* Rounds both factors. Both results are 16-byte aligned, as cuBLAS's fastest kernels require. */
static amp_status prepare_both(amp_backend *backend, const amp_gemm_desc *d, const void **a, const void **b,
                               amp_error *error)
{
    const size_t a_count = amp_gemm_a_extent(d), b_count = amp_gemm_b_extent(d),
        element = amp_dtype_size(d->dtype);
    const size_t a_bytes = d->a.version ? 0 : (a_count * element + 255) / 256 * 256,
        b_bytes = d->b.version ? 0 : b_count * element;
    void *scratch;
    AMP_TRY(amp_cuda_scratch(backend, a_bytes + b_bytes, &scratch, error));
    AMP_TRY(prepare(backend, &d->a, a_count, d->dtype, scratch, a, error));
    return prepare(backend, &d->b, b_count, d->dtype, b_bytes ? (char *)scratch + a_bytes : NULL, b, error);
}

amp_status amp_cuda_gemm(amp_backend *backend, const amp_gemm_desc *d, amp_error *error)
{
    const void *a = d->a.data, *b = d->b.data;
    AMP_TRY(amp_check_gemm(d, error));
    AMP_TRY(amp_cuda_gemm_start(backend, error));
    if (d->dtype != AMP_FP32) AMP_TRY(prepare_both(backend, d, &a, &b, error));
    return amp_cuda_product(backend, d->m, d->n, d->k, d->alpha,
                            (amp_cuda_matrix){ a, d->dtype, d->a.ld, d->a.transposed },
                            (amp_cuda_matrix){ b, d->dtype, d->b.ld, d->b.transposed }, d->beta,
                            (amp_cuda_matrix){ d->c, AMP_FP32, d->ldc, 0 }, error);
}

void amp_cuda_gemm_drop_copies(amp_backend *backend)
{
    amp_factor_copies_free(&amp_cuda_of(backend)->factors, backend);
}

amp_dtype amp_cuda_gemm_computes(const amp_backend *backend, amp_dtype dtype) { return dtype; }
