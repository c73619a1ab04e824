/* Tests the double of cuBLAS: it computes asynchronously, less exactly if the mode allows it, and detects
 * each misuse that it exists for. (graph.c tests cuDNN's double.) The backend's conformance tests, which run
 * on both doubles, check their numbers (test_cuda_double_conv, test_cuda_double_gemm). */
#include "testing.h"

#include "doubles/cublas_double.h"
#include "doubles/cuda_doubles.h"
#include "tensor/half.h"

typedef enum format { FP32, FP16 } format;

static const cudaDataType_t cublas_types[] = { CUDA_R_32F, CUDA_R_16F };
static const size_t sizes[] = { 4, 2 };

/* Memory of the device that this test may look at. */
static void *device(size_t bytes)
{
    void *p = NULL;
    assert_int_equal(cudaMallocManaged(&p, bytes, cudaMemAttachGlobal), cudaSuccess);
    return p;
}

static void fill(format f, void *data, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        float v = (float)rand() / (float)RAND_MAX * 2 - 1;
        if (f == FP32) ((float *)data)[i] = v;
        else ((amp_half_bits *)data)[i] = amp_float_to_fp16(v);
    }
}

static char host_memory[16];

/* A mistake, and what must be said of it: in the list of a function that makes the one of the number `which`,
 * counted from 0, and returns NULL where there are no more. */
#define MISTAKE(text, ...) do { if (which-- == 0) { __VA_ARGS__; return text; } } while (0)

enum { CUBLAS_MISTAKES = 16 };

typedef struct product {
    cublasHandle_t handle;
    cublasOperation_t a_op, b_op;
    int m, n, k, lda, ldb, ldc;
    format in, out;
    float alpha_beta[2];
    const void *alpha, *beta;
    cudaDataType_t a_type, b_type, c_type;
    void *a, *b, *c;
    int64_t a_count, b_count, c_count;
    cublasComputeType_t compute;
    cublasGemmAlgo_t algorithm;
} product;

static cublasHandle_t blas;
static cudaStream_t stream;

static product product_of(int transpose_a, int transpose_b, int m, int n, int k, format in, format out)
{
    product p = { blas, transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
        m, n, k, (transpose_a ? k : m) + 3, (transpose_b ? n : k) + 1, m + 2, in, out, { 1, 0 }, NULL, NULL,
        cublas_types[in], cublas_types[in], cublas_types[out], NULL, NULL, NULL, 0, 0, 0, CUBLAS_COMPUTE_32F,
        CUBLAS_GEMM_DEFAULT };
    p.a_count = (int64_t)p.lda * (transpose_a ? m : k), p.b_count = (int64_t)p.ldb * (transpose_b ? k : n);
    p.c_count = (int64_t)p.ldc * n;
    p.a = device((size_t)p.a_count * sizes[in]), p.b = device((size_t)p.b_count * sizes[in]);
    p.c = device((size_t)p.c_count * sizes[out]);
    fill(in, p.a, p.a_count), fill(in, p.b, p.b_count), fill(out, p.c, p.c_count);
    return p;
}

static cublasStatus_t multiply(const product *p)
{
    const void *alpha = p->alpha ? p->alpha : &p->alpha_beta[0],
        *beta = p->beta ? p->beta : &p->alpha_beta[1];
    return cublasGemmEx(p->handle, p->a_op, p->b_op, p->m, p->n, p->k, alpha, p->a, p->a_type, p->lda, p->b,
        p->b_type, p->ldb, beta, p->c, p->c_type, p->ldc, p->compute, p->algorithm);
}

static void release_product(product *p) { cudaFree(p->a), cudaFree(p->b), cudaFree(p->c); }

static int begin(void **state)
{
    (void)state;
    srand(1);
    cublas_double_reset();
    return cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) || cublasCreate(&blas) ||
        cublasSetStream(blas, stream) ||
        cublasSetMathMode(blas, (cublasMath_t)(CUBLAS_DEFAULT_MATH |
                                               CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION));
}

static int end(void **state)
{
    (void)state;
    cublasDestroy(blas);
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
    if (cublas_double_leaks() || amp_cuda_faults()) print_error("%s\n", amp_cuda_fault());
    int faults = amp_cuda_faults();
    amp_cuda_forget_faults();
    return faults;
}

/* A math mode that allows less exact sums gives less exact sums, and TF32 less exact inputs. */
TEST_WITH(math_modes_show, begin, end)
{
    static const struct { cublasMath_t mode; format f; } modes[] = { { CUBLAS_DEFAULT_MATH, FP16 },
        { CUBLAS_TF32_TENSOR_OP_MATH, FP32 } };
    for (size_t i = 0; i < COUNT(modes); i++) {
        product good = product_of(0, 0, 20, 20, 300, modes[i].f, modes[i].f), bad = good;
        bad.c = device((size_t)bad.c_count * sizes[bad.out]);
        memcpy(bad.c, good.c, (size_t)bad.c_count * sizes[bad.out]);
        assert_int_equal(cublasSetMathMode(blas,
                                           (cublasMath_t)CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION),
            CUBLAS_STATUS_SUCCESS);
        assert_int_equal(multiply(&good), CUBLAS_STATUS_SUCCESS);
        assert_int_equal(cublasSetMathMode(blas, modes[i].mode), CUBLAS_STATUS_SUCCESS);
        assert_int_equal(multiply(&bad), CUBLAS_STATUS_SUCCESS);
        cudaStreamSynchronize(stream);
        assert_memory_not_equal(good.c, bad.c, (size_t)bad.c_count * sizes[bad.out]);
        cudaFree(bad.c);
        release_product(&good);
    }
}

TEST_WITH(products_run_late, begin, end)
{
    product p = product_of(0, 0, 4, 4, 4, FP32, FP32);
    float before = *(float *)p.c;
    assert_int_equal(multiply(&p), CUBLAS_STATUS_SUCCESS);
    assert_float_equal(*(float *)p.c, before, 0);
    cudaStreamSynchronize(stream);
    assert_true(*(float *)p.c != before);
    release_product(&p);
}

static const char *spoil_product(product *p, int which)
{
    MISTAKE("operation 2 on A", p->a_op = CUBLAS_OP_C);
    MISTAKE("sizes 4, 4, 0", p->k = 0);
    MISTAKE("A: leading dimension", p->lda = p->m - 1);
    MISTAKE("B: leading dimension", p->ldb = p->k - 1);
    MISTAKE("C: leading dimension", p->ldc = p->m - 1);
    MISTAKE("C is not", p->ldc += 1);
    MISTAKE("types", p->b_type = CUDA_R_16BF);
    MISTAKE("types", p->c_type = CUDA_R_16BF);
    MISTAKE("not computed in fp32", p->compute = CUBLAS_COMPUTE_16F);
    MISTAKE("algorithm", p->algorithm = CUBLAS_GEMM_ALGO3);
    MISTAKE("to be the host's", cudaMalloc((void **)&p->alpha, 4));
    MISTAKE("A is not", p->a = host_memory);
    MISTAKE("B: 0x", p->b = (char *)p->b + 1);
    MISTAKE("C is not", p->c = NULL);
    MISTAKE("C overlaps A", p->c = p->a);
    MISTAKE("no handle", p->handle = NULL);
    return NULL;
}

TEST_WITH(misuse_of_products_is_seen, begin, end)
{
    assert_null(spoil_product(NULL, CUBLAS_MISTAKES));
    for (int i = 0; i < CUBLAS_MISTAKES; i++) {
        product p = product_of(0, 0, 4, 4, 4, FP16, FP16), all_right = p;
        const char *text = spoil_product(&p, i);
        assert_int_not_equal(multiply(&p), CUBLAS_STATUS_SUCCESS);
        if (cublas_double.rejected != 1 || !strstr(cublas_double.rejection, text))
            fail_msg("misuse %d: %d seen, \"%s\", not \"%s\"", i, cublas_double.rejected,
                     cublas_double.rejection, text);
        assert_true(amp_cuda_faults() > 0);
        amp_cuda_forget_faults();
        cublas_double.rejected = 0;
        if (p.alpha) cudaFree((void *)p.alpha);
        release_product(&all_right);
    }
    assert_int_equal(cublas_double.products, 0);
    assert_int_equal(cublas_double_leaks(), 1);
    amp_cuda_forget_faults();
}

int main(void) { return run_listed_tests("tests", NULL, NULL); }
