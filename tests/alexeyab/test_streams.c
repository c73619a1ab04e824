/* AlexeyAB's Darknet, built with GPU=1 CUDNN=1, on doubles of CUDA's libraries: on which stream its own
 * layers run. It has one of its own, which nothing is in order with; once a network under AMP is asked for,
 * all runs on the default stream, also by handles of cuDNN and cuBLAS that another network made before. */
#include "testing.h"

#include "dark_cuda.h"
#include "doubles/cuda_doubles.h"

/* The hook, which the .cfg decides in a program (host/program/cfg.c). */
static int under_amp;
int darknet_amp_default_stream(void) { return under_amp; }

static cudaStream_t stream_of_cudnn(void)
{
    cudaStream_t stream = NULL;
    assert_int_equal(cudnnGetStream(cudnn_handle(), &stream), CUDNN_STATUS_SUCCESS);
    return stream;
}

static cudaStream_t stream_of_cublas(void)
{
    cudaStream_t stream = NULL;
    assert_int_equal(cublasGetStream(blas_handle(), &stream), CUBLAS_STATUS_SUCCESS);
    return stream;
}

TEST(handles_made_before_amp_come_to_the_default_stream)
{
    cudnnHandle_t of_cudnn = cudnn_handle();
    cublasHandle_t of_cublas = blas_handle();
    cudaStream_t own = get_cuda_stream();
    assert_non_null(own);
    assert_ptr_equal(stream_of_cudnn(), own);
    assert_ptr_equal(stream_of_cublas(), own);
    under_amp = 1;
    assert_null(get_cuda_stream());
    assert_null(switch_stream(3));
    assert_ptr_equal(cudnn_handle(), of_cudnn);
    assert_ptr_equal(blas_handle(), of_cublas);
    for (int again = 0; again < 2; again++) {
        assert_null(stream_of_cudnn());
        assert_null(stream_of_cublas());
    }
    assert_string_equal(amp_cuda_fault(), "");
}

int main(void) { return run_listed_tests("alexeyab_streams", NULL, NULL); }
