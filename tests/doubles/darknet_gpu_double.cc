/* Darknet's own CUDA kernels (blas_kernels.cu and its like), and what of cuBLAS only Darknet calls, for the
 * double of the CUDA runtime: each call is queued on the default stream, and then runs Darknet's CPU function
 * on device memory. Those that no network of tests/cuda/host.c needs are left out. */
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <curand.h>

extern "C" {
#include "activations.h"
#include "blas.h"
#include "col2im.h"
#include "convolutional_layer.h"
#include "im2col.h"
}

#define DARKNET_STREAM nullptr
#include "darknet_kernels.h"

extern "C" {

void fill_gpu(int n, float a, float *x, int ix) { KERNEL(fill_cpu(n, a, x, ix)); }
void copy_gpu(int n, float *x, int ix, float *y, int iy) { KERNEL(copy_cpu(n, x, ix, y, iy)); }
void axpy_gpu(int n, float a, float *x, int ix, float *y, int iy) { KERNEL(axpy_cpu(n, a, x, ix, y, iy)); }
void scal_gpu(int n, float a, float *x, int ix) { KERNEL(scal_cpu(n, a, x, ix)); }
void mul_gpu(int n, float *x, int ix, float *y, int iy) { KERNEL(mul_cpu(n, x, ix, y, iy)); }
void pow_gpu(int n, float a, float *x, int ix, float *y, int iy) { KERNEL(pow_cpu(n, a, x, ix, y, iy)); }
void const_gpu(int n, float a, float *x, int ix) { KERNEL(const_cpu(n, a, x, ix)); }
void constrain_gpu(int n, float a, float *x, int ix)
{
    KERNEL(for (int i = 0; i < n; i++) x[i * ix] = std::fmin(a, std::fmax(-a, x[i * ix])));
}
void activate_array_gpu(float *x, int n, ACTIVATION a) { KERNEL(activate_array(x, n, a)); }
void gradient_array_gpu(float *x, int n, ACTIVATION a, float *delta)
{
    KERNEL(gradient_array(x, n, a, delta));
}
void add_bias_gpu(float *x, float *biases, int batch, int n, int size)
{
    KERNEL(add_bias(x, biases, batch, n, size));
}
void backward_bias_gpu(float *db, float *delta, int batch, int n, int size)
{
    KERNEL(backward_bias(db, delta, batch, n, size));
}
void l2_gpu(int n, float *x, float *truth, float *delta, float *error)
{
    KERNEL(l2_cpu(n, x, truth, delta, error));
}
void softmax_gpu(float *x, int n, int batch, int batch_offset, int groups, int group_offset, int stride,
                 float temp, float *y)
{
    KERNEL(softmax_cpu(x, n, batch, batch_offset, groups, group_offset, stride, temp, y));
}
void softmax_x_ent_gpu(int n, float *x, float *truth, float *delta, float *error)
{
    KERNEL(softmax_x_ent_cpu(n, x, truth, delta, error));
}
void logistic_x_ent_gpu(int n, float *x, float *truth, float *delta, float *error)
{
    KERNEL(logistic_x_ent_cpu(n, x, truth, delta, error));
}
void weighted_sum_gpu(float *a, float *b, float *s, int n, float *c)
{
    KERNEL(weighted_sum_cpu(a, b, s, n, c));
}
void weighted_delta_gpu(float *a, float *b, float *s, float *da, float *db, float *ds, int n, float *dc)
{
    KERNEL(weighted_delta_cpu(a, b, s, da, db, ds, n, dc));
}
void mult_add_into_gpu(int n, float *a, float *b, float *c) { KERNEL(mult_add_into_cpu(n, a, b, c)); }
void l2normalize_gpu(float *x, float *dx, int batch, int filters, int spatial)
{
    /* An all-zero vector stays, unlike in l2normalize_cpu. */
    KERNEL(for (int b = 0; b < batch; b++) for (int i = 0; i < spatial; i++) {
        float *at = x + (size_t)b * filters * spatial + i, *dat = dx + (size_t)b * filters * spatial + i,
            sum = 0;
        for (int f = 0; f < filters; f++) sum += at[f * spatial] * at[f * spatial];
        sum = sum == 0 ? 1 : std::sqrt(sum);
        for (int f = 0; f < filters; f++) {
            at[f * spatial] /= sum;
            dat[f * spatial] = (1 - at[f * spatial]) / sum;
        }
    });
}
void im2col_gpu(float *x, int c, int h, int w, int size, int stride, int pad, float *y)
{
    KERNEL(im2col_cpu(x, c, h, w, size, stride, pad, y));
}
void col2im_gpu(float *x, int c, int h, int w, int size, int stride, int pad, float *y)
{
    KERNEL(col2im_cpu(x, c, h, w, size, stride, pad, y));
}

/* What is not a kernel, and yet in convolutional_kernels.cu. */
static void move_convolutional(layer l, void (*move)(float *, float *, size_t))
{
    move(l.weights_gpu, l.weights, (size_t)l.nweights);
    move(l.biases_gpu, l.biases, (size_t)l.n);
    move(l.weight_updates_gpu, l.weight_updates, (size_t)l.nweights);
    move(l.bias_updates_gpu, l.bias_updates, (size_t)l.n);
    if (!l.batch_normalize) return;
    move(l.scales_gpu, l.scales, (size_t)l.n);
    move(l.rolling_mean_gpu, l.rolling_mean, (size_t)l.n);
    move(l.rolling_variance_gpu, l.rolling_variance, (size_t)l.n);
}
void pull_convolutional_layer(layer l) { move_convolutional(l, cuda_pull_array); }
void push_convolutional_layer(layer l) { move_convolutional(l, cuda_push_array); }

cublasStatus_t cublasSgemm_v2(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                              const float *alpha, const float *a, int lda, const float *b, int ldb,
                              const float *beta, float *c, int ldc)
{
    float scale = *alpha, keep = *beta;
    KERNEL(for (int j = 0; j < n; j++) for (int i = 0; i < m; i++) {
        double sum = 0;
        for (int l = 0; l < k; l++)
            sum += (double)a[ta == CUBLAS_OP_N ? i + l * lda : l + i * lda] *
                b[tb == CUBLAS_OP_N ? l + j * ldb : j + l * ldb];
        c[i + j * ldc] = (float)(scale * sum + (keep == 0 ? 0 : (double)keep * c[i + j * ldc]));
    });
    return CUBLAS_STATUS_SUCCESS;
}

}
