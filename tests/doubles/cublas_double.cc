#include "cublas_double.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <stdarg.h>
#include <stdio.h>

#include "cuda_doubles.h"
#include "numbers.h"

cublas_double_state cublas_double;

namespace {

using amp_double::number;
using amp_double::overlap;

/* ------------------------------------------------------------------------------------------------ calls */

const cublasStatus_t OK = CUBLAS_STATUS_SUCCESS, BAD = CUBLAS_STATUS_INVALID_VALUE;

__attribute__((format(printf, 2, 3))) cublasStatus_t reject(cublasStatus_t status, const char *format, ...)
{
    char text[sizeof cublas_double.rejection];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!cublas_double.rejected++)
        snprintf(cublas_double.rejection, sizeof cublas_double.rejection, "%s", text);
    amp_cuda_report("cuBLAS: %s", text);
    return status;
}

cublasStatus_t told_to_fail(const char *call)
{
    if (++cublas_double.calls != cublas_double.fail_at) return OK;
    cublas_double.failed = call;
    return cublas_double.failure;
}

#define MAY_FAIL(name) \
    do { \
        cublasStatus_t may_fail_ = told_to_fail(name); \
        if (may_fail_ != OK) return may_fail_; \
    } while (0)

#define CHECK(condition, ...) do { if (!(condition)) return reject(BAD, __VA_ARGS__); } while (0)

struct handle {
    cudaStream_t stream = nullptr;
    int math = CUBLAS_DEFAULT_MATH;
};

std::map<cublasHandle_t, std::unique_ptr<handle>> handles;

handle *find(cublasHandle_t h)
{
    auto at = handles.find(h);
    return at == handles.end() ? nullptr : at->second.get();
}

/* ----------------------------------------------------------------------------------------------- products */

struct matrix { /* rows × columns, column by column, one every ld elements */
    number type;
    int rows, columns, ld;
    void *data;
    size_t bytes() const { return ((size_t)ld * (size_t)(columns - 1) + (size_t)rows) * size_of(type); }
};

struct product { /* c = alpha · op(a) op(b) + beta · c */
    matrix a, b, c;
    bool transpose_a, transpose_b;
    int m, n, k;
    float alpha, beta;
    bool tf32_inputs, short_sums;
};

std::map<product *, std::unique_ptr<product>> products; /* queued */

/* op(matrix), column by column. */
std::vector<float> packed(const matrix &m, bool transpose, bool short_inputs)
{
    int rows = transpose ? m.columns : m.rows, columns = transpose ? m.rows : m.columns;
    std::vector<float> out;
    out.reserve((size_t)rows * (size_t)columns);
    for (int j = 0; j < columns; j++)
        for (int i = 0; i < rows; i++) {
            float v = load(m.type, m.data, transpose ? j + (int64_t)i * m.ld : i + (int64_t)j * m.ld);
            out.push_back(short_inputs && m.type == number::fp32 ? amp_double::tf32(v) : v);
        }
    return out;
}

void multiply(const product &p, std::vector<double> &sums)
{
    enum { STEP = 64 };
    std::vector<float> a = packed(p.a, p.transpose_a, p.tf32_inputs);
    std::vector<float> b = packed(p.b, p.transpose_b, p.tf32_inputs);
    for (int j = 0; j < p.n; j++)
        for (int l = 0; l < p.k; l++) {
            double factor = b[(size_t)l + (size_t)j * (size_t)p.k];
            const float *row = &a[(size_t)l * (size_t)p.m];
            double *to = &sums[(size_t)j * (size_t)p.m];
            for (int i = 0; i < p.m; i++) to[i] += factor * row[i];
            if (p.short_sums && l % STEP == STEP - 1)
                for (int i = 0; i < p.m; i++) to[i] = amp_double::rounded(p.c.type, to[i]);
        }
}

void compute(void *user)
{
    product &p = *static_cast<product *>(user);
    std::vector<double> sums((size_t)p.m * (size_t)p.n);
    if (p.alpha != 0) multiply(p, sums);
    for (int j = 0; j < p.n; j++)
        for (int i = 0; i < p.m; i++) {
            int64_t at = i + (int64_t)j * p.c.ld;
            double v = p.alpha * sums[(size_t)i + (size_t)j * (size_t)p.m];
            store(p.c.type, p.c.data, at,
                  p.beta == 0 ? v : v + (double)p.beta * load(p.c.type, p.c.data, at));
        }
    if (!amp_cuda_of_graph()) products.erase(&p); /* a graph runs it again */
}

bool number_of(cudaDataType type, number *out)
{
    switch (type) {
    case CUDA_R_32F: *out = number::fp32; return true;
    case CUDA_R_16F: *out = number::fp16; return true;
    case CUDA_R_16BF: *out = number::bf16; return true;
    default: return false;
    }
}

/* A scalar must be the host's to read now. */
bool on_host(const void *p)
{
    cudaPointerAttributes attributes;
    return p && cudaPointerGetAttributes(&attributes, p) == cudaSuccess
        && attributes.type != cudaMemoryTypeDevice;
}

cublasStatus_t check_matrix(const char *name, const matrix &m)
{
    CHECK(m.ld >= std::max(1, m.rows), "%s: leading dimension %d of %d rows", name, m.ld, m.rows);
    CHECK((uintptr_t)m.data % size_of(m.type) == 0, "%s: %p is not aligned", name, m.data);
    CHECK(amp_cuda_is_device(m.data, m.bytes(), "cublasGemmEx"), "%s is not %zu bytes of device memory", name,
          m.bytes());
    return OK;
}

cublasStatus_t check_product(const product &p)
{
    const struct { const char *name; const matrix *m; } all[] = { { "A", &p.a }, { "B", &p.b },
                                                                  { "C", &p.c } };
    for (auto &it : all) {
        cublasStatus_t status = check_matrix(it.name, *it.m);
        if (status != OK) return status;
        CHECK(it.m == &p.c || !overlap(it.m->data, it.m->bytes(), p.c.data, p.c.bytes()), "C overlaps %s",
              it.name);
    }
    return OK;
}

}

/* ------------------------------------------------------------------------------------------ the interface */

extern "C" {

void cublas_double_reset(void)
{
    handles.clear();
    products.clear();
    cublas_double = {};
}

int cublas_double_leaks(void)
{
    if (cublas_double.handles)
        amp_cuda_report("cuBLAS: %d handles were not destroyed", cublas_double.handles);
    return cublas_double.handles;
}

const char *cublasGetStatusName(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    default: return "a status that the double does not use";
    }
}

const char *cublasGetStatusString(cublasStatus_t status) { return cublasGetStatusName(status); }

cublasStatus_t cublasCreate_v2(cublasHandle_t *out)
{
    MAY_FAIL("cublasCreate");
    CHECK(out, "cublasCreate: NULL");
    std::unique_ptr<handle> h(new handle());
    *out = (cublasHandle_t)h.get();
    handles[*out] = std::move(h);
    ++cublas_double.handles;
    return OK;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t h)
{
    if (!handles.erase(h)) return reject(CUBLAS_STATUS_NOT_INITIALIZED, "cublasDestroy: no handle");
    --cublas_double.handles;
    return OK;
}

cublasStatus_t cublasGetProperty(libraryPropertyType part, int *value)
{
    CHECK(value, "cublasGetProperty: NULL");
    *value = part == MAJOR_VERSION ? CUBLAS_VER_MAJOR : part == MINOR_VERSION ? CUBLAS_VER_MINOR
        : CUBLAS_VER_PATCH;
    return OK;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t h, cudaStream_t stream)
{
    MAY_FAIL("cublasSetStream");
    handle *it = find(h);
    if (!it) return reject(CUBLAS_STATUS_NOT_INITIALIZED, "cublasSetStream: no handle");
    it->stream = stream;
    return OK;
}

cublasStatus_t cublasGetStream_v2(cublasHandle_t h, cudaStream_t *stream)
{
    handle *it = find(h);
    if (!it || !stream) return reject(CUBLAS_STATUS_NOT_INITIALIZED, "cublasGetStream: no handle");
    *stream = it->stream;
    return OK;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t h, cublasMath_t mode)
{
    MAY_FAIL("cublasSetMathMode");
    handle *it = find(h);
    if (!it) return reject(CUBLAS_STATUS_NOT_INITIALIZED, "cublasSetMathMode: no handle");
    int base = mode & ~CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
    CHECK(base == CUBLAS_DEFAULT_MATH || base == CUBLAS_TF32_TENSOR_OP_MATH, "cublasSetMathMode: %d",
          (int)mode);
    it->math = mode;
    return OK;
}

static cublasStatus_t enqueue(cublasHandle_t h, cublasOperation_t op_a, cublasOperation_t op_b, int m,
    int n, int k, const void *alpha, const void *a, cudaDataType a_type, int lda, const void *b,
    cudaDataType b_type, int ldb, const void *beta, void *c, cudaDataType c_type, int ldc,
    cublasComputeType_t compute_type, cublasGemmAlgo_t algorithm)
{
    handle *it = find(h);
    if (!it) return reject(CUBLAS_STATUS_NOT_INITIALIZED, "cublasGemmEx: no handle");
    CHECK(op_a == CUBLAS_OP_N || op_a == CUBLAS_OP_T, "cublasGemmEx: operation %d on A", (int)op_a);
    CHECK(op_b == CUBLAS_OP_N || op_b == CUBLAS_OP_T, "cublasGemmEx: operation %d on B", (int)op_b);
    CHECK(m > 0 && n > 0 && k > 0, "cublasGemmEx: sizes %d, %d, %d", m, n, k);
    CHECK(on_host(alpha) && on_host(beta), "cublasGemmEx: alpha and beta are to be the host's");
    CHECK(algorithm == CUBLAS_GEMM_DEFAULT, "cublasGemmEx: algorithm %d", (int)algorithm);
    if (compute_type != CUBLAS_COMPUTE_32F)
        return reject(CUBLAS_STATUS_NOT_SUPPORTED, "cublasGemmEx: not computed in fp32 (type %d)",
                      (int)compute_type);
    number a_number, b_number, c_number;
    if (!number_of(a_type, &a_number) || !number_of(b_type, &b_number) || !number_of(c_type, &c_number) ||
        a_number != b_number ||
        (c_number != a_number && c_number != number::fp32))
        return reject(CUBLAS_STATUS_NOT_SUPPORTED, "cublasGemmEx: types %d, %d and %d", (int)a_type,
            (int)b_type, (int)c_type);

    std::unique_ptr<product> p(new product());
    p->transpose_a = op_a == CUBLAS_OP_T, p->transpose_b = op_b == CUBLAS_OP_T;
    p->a = { a_number, p->transpose_a ? k : m, p->transpose_a ? m : k, lda, const_cast<void *>(a) };
    p->b = { b_number, p->transpose_b ? n : k, p->transpose_b ? k : n, ldb, const_cast<void *>(b) };
    p->c = { c_number, m, n, ldc, c };
    p->m = m, p->n = n, p->k = k;
    p->alpha = *static_cast<const float *>(alpha), p->beta = *static_cast<const float *>(beta);
    p->tf32_inputs = (it->math & 15) == CUBLAS_TF32_TENSOR_OP_MATH;
    p->short_sums = c_number != number::fp32
        && !(it->math & CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
    cublasStatus_t status = check_product(*p);
    if (status != OK) return status;
    product *key = p.get();
    CHECK(amp_cuda_enqueue(it->stream, "cublasGemmEx", compute, key),
          "cublasGemmEx: the handle's stream is gone");
    products[key] = std::move(p);
    ++cublas_double.products;
    cublas_double.unaligned += a_number != number::fp32 && ((uintptr_t)a | (uintptr_t)b) % 16;
    cublas_double.factors = a_type, cublas_double.result = c_type, cublas_double.computes = compute_type;
    return OK;
}

cublasStatus_t cublasGemmEx(cublasHandle_t h, cublasOperation_t op_a, cublasOperation_t op_b, int m,
    int n, int k, const void *alpha, const void *a, cudaDataType a_type, int lda, const void *b,
    cudaDataType b_type, int ldb, const void *beta, void *c, cudaDataType c_type, int ldc,
    cublasComputeType_t compute_type, cublasGemmAlgo_t algorithm)
{
    MAY_FAIL("cublasGemmEx");
    return enqueue(h, op_a, op_b, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta, c, c_type, ldc,
                   compute_type, algorithm);
}

}
