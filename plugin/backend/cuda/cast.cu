/* Casts between dtypes and layouts (NCHW, NHWC): dst = factor·src or dst += factor·src. Also converts the
 * gradient of weights from KRSC (convolutions) to OIHW (Darknet), multiplies fp32 arrays by a factor, and
 * adds biases. */
#include "kernels.h"

#include "../check.h"
#include "transpose.cuh"

/* Elements per group: 16 bytes in 16-bit dtypes, 32 bytes in fp32. */
enum { CAST_GROUP = 8 };

/* dst (+)= factor·src, element by element; dst may be src. */
template <class S, class D, int N>
__global__ void cast_flat(const S *src, D *dst, size_t count, float factor, int accumulate)
{
    for (size_t i = amp_thread() * N; i < count; i += amp_threads() * N) {
        int n = amp_present<N>(i, count);
        float v[N];
        amp_get(v, src + i, n);
        #pragma unroll
        for (int j = 0; j < N; j++) v[j] *= factor;
        amp_put_or_add(dst + i, v, n, accumulate);
    }
}

/* y[r][c] += bias[c]. A thread reads its biases once and uses them for all its rows. */
template <class T, int N>
__global__ void add_bias(T *y, const float *bias, size_t rows, size_t channels)
{
    for (size_t c = amp_thread() * N; c < channels; c += amp_threads() * N) {
        int n = amp_present<N>(c, channels);
        float b[N];
        amp_get(b, bias + c, n);
        for (size_t r = amp_row(); r < rows; r += amp_rows()) {
            float v[N];
            amp_get(v, y + r * channels + c, n);
            #pragma unroll
            for (int j = 0; j < N; j++) v[j] += b[j];
            amp_put(y + r * channels + c, v, n);
        }
    }
}

/* ---- launchers ---- */

/* operand: a cast's source or destination. scaling: dst (+)= factor·src. */
typedef struct operand { void *data; amp_dtype dtype; } operand;
typedef struct scaling { float factor; int accumulate; } scaling;

/* Runs a statement with `S` and `D` as the C++ types of the dtypes `src` and `dst`. */
#define BY_TWO_DTYPES(src, dst, ...) \
    AMP_CUDA_BY_DTYPE(src, typedef T S; AMP_CUDA_BY_DTYPE(dst, typedef T D; __VA_ARGS__))

static amp_status flat(amp_backend *backend, operand src, operand dst, size_t count, scaling how,
                       amp_error *error)
{
    if (src.dtype == dst.dtype && how.factor == 1 && !how.accumulate)
        return amp_cuda_copy(backend, src.data, dst.data, count * amp_dtype_size(src.dtype), error);
    int wide = amp_aligned(src.data) && amp_aligned(dst.data);
    unsigned blocks = amp_cuda_blocks(backend, wide ? amp_divide_up(count, CAST_GROUP) : count);
    BY_TWO_DTYPES(src.dtype, dst.dtype, {
        if (wide)
            AMP_LAUNCH(backend, blocks, AMP_CUDA_THREADS, (cast_flat<S, D, CAST_GROUP>), (const S *)src.data,
                       (D *)dst.data, count, how.factor, how.accumulate);
        else
            AMP_LAUNCH(backend, blocks, AMP_CUDA_THREADS, (cast_flat<S, D, 1>), (const S *)src.data,
                       (D *)dst.data, count, how.factor, how.accumulate);
    });
    return AMP_OK;
}

/* dst (+)= factor·srcᵀ for each of `images` matrices of rows × columns. */
static amp_status transposed(amp_backend *backend, operand src, operand dst, size_t images, size_t rows,
                             size_t columns, scaling how, amp_error *error)
{
    if (!images || !rows || !columns) return AMP_OK;
    if (rows == 1 || columns == 1) return flat(backend, src, dst, images * rows * columns, how, error);
    amp_tiling tiling = amp_tiling_of(src.data, src.dtype, dst.data, dst.dtype, images, (unsigned)rows,
                                      (unsigned)columns);
    size_t tiles = amp_tiling_count(tiling), most = amp_cuda_most_blocks(backend);
    size_t across = tiles < most ? tiles : most;
    dim3 blocks((unsigned)across, amp_cuda_down(backend, across, images));
    BY_TWO_DTYPES(src.dtype, dst.dtype, AMP_LAUNCH(backend, blocks, AMP_CUDA_THREADS, (transpose<S, D>),
        (const S *)src.data, (D *)dst.data, images, tiling, how.factor, how.accumulate));
    return AMP_OK;
}

amp_status amp_cuda_cast(amp_backend *backend, const amp_tensor *src, const amp_tensor *dst, int accumulate,
    amp_error *error)
{
    AMP_TRY(amp_check_cast(src, dst, error));
    size_t images = (size_t)src->shape.n, channels = (size_t)src->shape.c,
        pixels = (size_t)src->shape.h * src->shape.w;
    operand from = { src->data, src->dtype }, to = { dst->data, dst->dtype };
    scaling how = { 1, accumulate };
    if (!amp_shape_count(src->shape)) return AMP_OK;
    if (src->layout == dst->layout) return flat(backend, from, to, images * channels * pixels, how, error);
    if (src->layout == AMP_NCHW) return transposed(backend, from, to, images, channels, pixels, how, error);
    return transposed(backend, from, to, images, pixels, channels, how, error);
}

amp_status amp_cuda_gradient_from_krsc(amp_backend *backend, const void *krsc, amp_dtype dtype, float factor,
                                       float *oihw, int k, int c, int size_h, int size_w, amp_error *error)
{
    operand gradient = { (void *)krsc, dtype }, sum = { oihw, AMP_FP32 };
    scaling how = { factor, 1 };
    return transposed(backend, gradient, sum, (size_t)k, (size_t)size_h * size_w, (size_t)c, how, error);
}

amp_status amp_cuda_scale(amp_backend *backend, float *array, size_t count, float factor, amp_error *error)
{
    operand same = { array, AMP_FP32 };
    scaling how = { factor, 0 };
    return count && factor != 1 ? flat(backend, same, same, count, how, error) : AMP_OK;
}

amp_status amp_cuda_add_bias(amp_backend *backend, const amp_tensor *y, const float *bias, amp_error *error)
{
    AMP_TRY(amp_check_pair("bias", y, y, 1, error));
    size_t rows = amp_pixels(y), channels = (size_t)y->shape.c;
    if (!rows || !channels) return AMP_OK;
    int wide = amp_aligned(bias) && amp_wide_rows(y->data, rows, channels, y->dtype);
    AMP_LAUNCH_PLANE(backend, y->dtype, wide, rows, channels, add_bias, (T *)y->data, bias, rows, channels);
    return AMP_OK;
}
