/* Nearest-neighbour upsampling and its gradient. Each pixel of the small image corresponds to a square of
 * stride × stride pixels of the large one. Both kernels loop over the small image, so they read or write each
 * image only once. A group is 16 bytes if a pixel consists of whole groups, otherwise one number. So no group
 * is incomplete. */
#include "kernels.h"

#include "../check.h"
#include "device.cuh"

/* Rounds a group (16 bytes or one number) to T. The caller then stores it several times. */
template <class T, int N> __device__ __forceinline__ uint4 round_group(const T *as, const float (&v)[N])
{
    unsigned word[4];
    amp_words(word, as, v);
    return make_uint4(word[0], word[1], word[2], word[3]);
}
template <class T> __device__ __forceinline__ T round_group(const T *, const float (&v)[1])
{
    return amp_store<T>(v[0]);
}

/* y[i,j] = scale·x[i/stride, j/stride]. blockIdx.y runs over the lines of all images of x, and blockIdx.x
 * over the pixels of a line. */
template <class T, int N>
__global__ void upsample(const T *x, T *y, size_t lines, size_t width, size_t channels, int stride,
                         float scale)
{
    size_t long_line = width * stride * channels;
    for (size_t line = blockIdx.y; line < lines; line += gridDim.y)
        for (size_t p = (size_t)blockIdx.x * blockDim.y + threadIdx.y; p < width; p += (size_t)gridDim.x
             * blockDim.y)
            for (size_t c = (size_t)threadIdx.x * N; c < channels; c += (size_t)blockDim.x * N) {
                T *to = y + line * stride * long_line + p * stride * channels + c;
                float v[N];
                amp_get(v, x + (line * width + p) * channels + c, N);
                #pragma unroll
                for (int j = 0; j < N; j++) v[j] *= scale;
                auto rounded = round_group(x, v);
                for (int r = 0; r < stride; r++)
                    #pragma unroll 1 /* otherwise nvcc would store some copies 4 bytes at a time */
                    for (int m = 0; m < stride; m++)
                        *reinterpret_cast<decltype(rounded) *>(to + r * long_line + m * channels) = rounded;
            }
}

/* dx[i,j] (+)= scale·Σ dy over the pixel's square, summed in row order. */
template <class T, int N>
__global__ void upsample_delta(const T *dy, T *dx, size_t lines, size_t width, size_t channels, int stride,
                               float scale, int accumulate)
{
    size_t long_line = width * stride * channels;
    for (size_t line = blockIdx.y; line < lines; line += gridDim.y)
        for (size_t p = (size_t)blockIdx.x * blockDim.y + threadIdx.y; p < width; p += (size_t)gridDim.x
             * blockDim.y)
            for (size_t c = (size_t)threadIdx.x * N; c < channels; c += (size_t)blockDim.x * N) {
                const T *from = dy + line * stride * long_line + p * stride * channels + c;
                float total[N] = { 0 }, v[N];
                for (int r = 0; r < stride; r++)
                    for (int m = 0; m < stride; m++) {
                        amp_get(v, from + r * long_line + m * channels, N);
                        #pragma unroll
                        for (int j = 0; j < N; j++) total[j] += v[j];
                    }
                #pragma unroll
                for (int j = 0; j < N; j++) total[j] *= scale;
                amp_put_or_add(dx + (line * width + p) * channels + c, total, N, accumulate);
            }
}

/* ---- launchers ---- */

amp_status amp_cuda_upsample_forward(amp_backend *backend, const amp_tensor *x, const amp_tensor *y,
                                     int stride, float scale, amp_error *error)
{
    AMP_TRY(amp_check_upsample(x, y, stride, error));
    if (!amp_shape_count(x->shape)) return AMP_OK;
    int wide = amp_cuda_wide(x) && amp_cuda_wide(y);
    AMP_LAUNCH_LINES(backend, x, wide, upsample, (const T *)x->data, (T *)y->data,
                     (size_t)x->shape.n * x->shape.h, (size_t)x->shape.w, (size_t)x->shape.c, stride, scale);
    return AMP_OK;
}

amp_status amp_cuda_upsample_backward(amp_backend *backend, const amp_tensor *dy, const amp_tensor *dx,
                                      int stride, float scale, int accumulate, amp_error *error)
{
    AMP_TRY(amp_check_upsample(dx, dy, stride, error));
    if (!amp_shape_count(dx->shape)) return AMP_OK;
    int wide = amp_cuda_wide(dx) && amp_cuda_wide(dy);
    AMP_LAUNCH_LINES(backend, dx, wide, upsample_delta, (const T *)dy->data, (T *)dx->data,
                     (size_t)dx->shape.n * dx->shape.h, (size_t)dx->shape.w, (size_t)dx->shape.c, stride,
                     scale, accumulate);
    return AMP_OK;
}
