/* multiply: y (+)= x·s. multiply_sums: sums of products, e.g. ds = Σ dy·x. s has the shape of x, one number
 * for each channel of an image, or one number for each pixel.
 *
 * A launch covers a plane: its rows are pixels, and its columns are groups of channels. If both tensors have
 * the same shape, each is treated as one long row. */
#include "kernels.h"

#include "../check.h"
#include "columns.cuh"

/* y (+)= x·s. Row r of x is multiplied by row r / rows_each of s. A row of s has `columns` numbers, or a
 * single number if `one` is 1. */
template <class T, int N>
__global__ void multiply(const T *x, const T *s, T *y, size_t rows, size_t columns, size_t rows_each, int one,
                         int accumulate)
{
    for (size_t c = amp_thread() * N; c < columns; c += amp_threads() * N) {
        int n = amp_present<N>(c, columns);
        for (size_t r = amp_row(); r < rows; r += amp_rows()) {
            float v[N], f[N];
            size_t row = rows_each > 1 ? r / rows_each : r;
            amp_get(v, x + r * columns + c, n);
            if (!one) amp_get(f, s + row * columns + c, n);
            float each = one ? amp_load(s[row]) : 0;
            #pragma unroll
            for (int j = 0; j < N; j++) v[j] *= one ? each : f[j];
            amp_put_or_add(y + r * columns + c, v, n, accumulate);
        }
    }
}

template <class T> static __device__ __forceinline__ void put_sum(T *s, double sum, int accumulate)
{
    float total[1] = { (float)sum };
    amp_put_or_add(s, total, 1, accumulate);
}

/* s[n,c] (+)= Σ a·b over the pixels of an image. A block takes some packs (groups of channels) of one image,
 * and sums each pack over all pixels. */
template <class P, class T> __global__ void __launch_bounds__(AMP_COLUMN_THREADS) sum_pixels(
    const P *__restrict__ a, const P *__restrict__ b, T *s, amp_columns c, int accumulate)
{
    amp_column at = amp_column_of(c, blockIdx.x);
    __shared__ amp_column_sums<P::count> sums;
    const size_t image = at.image * c.rows;
    sums.clear();
    for (size_t row = at.first; row < at.end;) {
        float run[P::count] = {};
        for (int r = 0; r < AMP_COLUMN_RUN && row < at.end; r++, row += at.step) {
            P left = a[(image + row) * c.packs + at.pack], right = b[(image + row) * c.packs + at.pack];
            #pragma unroll
            for (int i = 0; i < P::count; i++) run[i] += left.get(i) * right.get(i);
        }
        #pragma unroll
        for (int i = 0; i < P::count; i++) sums.add(i, (double)run[i]);
    }
    if (!sums.fold(c) || at.pack >= c.packs) return;
    for (int i = 0; i < P::count; i++)
        put_sum(s + (at.image * (size_t)c.packs + at.pack) * P::count + i, sums.get(i), accumulate);
}

enum { SUM_THREADS = 64 };

/* s[p] (+)= Σ a·b over the channels of pixel p. A block sums one pixel at a time. */
template <class T> __global__ void __launch_bounds__(SUM_THREADS) sum_channels(const T *a, const T *b, T *s,
    size_t pixels, size_t channels, int accumulate)
{
    __shared__ double tree[SUM_THREADS];
    int t = (int)threadIdx.x;
    for (size_t p = blockIdx.x; p < pixels; p += gridDim.x) {
        double sum = 0;
        for (size_t c = t; c < channels; c += SUM_THREADS)
            sum += (double)amp_load(a[p * channels + c]) * (double)amp_load(b[p * channels + c]);
        tree[t] = sum;
        for (int half = SUM_THREADS / 2; half > 0; half /= 2) {
            __syncthreads();
            if (t < half) tree[t] += tree[t + half];
        }
        if (t == 0) put_sum(s + p, tree[0], accumulate);
        __syncthreads();
    }
}

amp_status amp_cuda_multiply(amp_backend *backend, const amp_tensor *x, const amp_tensor *s,
                             const amp_tensor *y, int accumulate, amp_error *error)
{
    amp_factor_of of;
    AMP_TRY(amp_check_pair("product", x, y, 1, error));
    AMP_TRY(amp_check_multiply(x, s, &of, error));
    if (!amp_shape_count(x->shape)) return AMP_OK;
    int wide = of == AMP_FACTOR_OF_ELEMENT
        ? amp_aligned(x->data) && amp_aligned(y->data) && amp_aligned(s->data)
        : amp_cuda_wide(x) && amp_cuda_wide(y) && (of == AMP_FACTOR_OF_PIXEL || amp_cuda_wide(s));
    size_t rows = amp_pixels(x), columns = (size_t)x->shape.c;
    size_t rows_each = of == AMP_FACTOR_OF_CHANNEL ? (size_t)x->shape.h * x->shape.w : 1;
    if (of == AMP_FACTOR_OF_ELEMENT) columns *= rows, rows = 1;
    AMP_LAUNCH_PLANE(backend, x->dtype, wide, rows, columns, multiply, (const T *)x->data, (const T *)s->data,
                     (T *)y->data, rows, columns, rows_each, of == AMP_FACTOR_OF_PIXEL, accumulate);
    return AMP_OK;
}

amp_status amp_cuda_multiply_sums(amp_backend *backend, const amp_tensor *a, const amp_tensor *b,
                                  const amp_tensor *s, int accumulate, amp_error *error)
{
    amp_factor_of of;
    AMP_TRY(amp_check_pair("sums of products", a, b, 1, error));
    AMP_TRY(amp_check_multiply(a, s, &of, error));
    if (of == AMP_FACTOR_OF_ELEMENT) return amp_cuda_multiply(backend, a, b, s, accumulate, error);
    if (!amp_shape_count(a->shape)) return AMP_OK;
    if (of == AMP_FACTOR_OF_PIXEL) {
        size_t pixels = amp_pixels(a), most = amp_cuda_most_blocks(backend);
        unsigned blocks = (unsigned)(pixels < most ? pixels : most);
        AMP_CUDA_BY_DTYPE(a->dtype, AMP_LAUNCH(backend, blocks, SUM_THREADS, (sum_channels<T>),
            (const T *)a->data, (const T *)b->data, (T *)s->data, pixels, (size_t)a->shape.c, accumulate));
        return AMP_OK;
    }
    bool wide = amp_cuda_wide(a) && amp_cuda_wide(b);
    amp_columns c = amp_columns_whole((size_t)a->shape.h * a->shape.w, (unsigned)a->shape.n,
                                      amp_cuda_packs(a, wide));
    AMP_CUDA_BY_PACK(a->dtype, wide, AMP_LAUNCH(backend, amp_columns_blocks(&c), AMP_COLUMN_THREADS,
        (sum_pixels<P, T>), (const P *)a->data, (const P *)b->data, (T *)s->data, c, accumulate));
    return AMP_OK;
}
