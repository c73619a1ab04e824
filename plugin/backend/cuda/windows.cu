/* The windows of a locally connected layer: for each place of its output, the inputs that it reads as the
 * rows of a matrix, and the way back.
 * columns is (places, images, size·size, channels): a row of channels is one pixel of the image, so that
 * both kernels move whole rows. The way back gathers: each pixel adds up the windows that contain it, in
 * their order, so that no two threads write one pixel. */
#include "kernels.h"

#include "device.cuh"

/* What a kernel needs of amp_local_desc. */
typedef struct geometry { size_t images, h, w, c, out_h, out_w; int size, stride, pad; } geometry;

template <class T, int N>
__global__ void window_columns(const T *x, T *columns, geometry g, size_t first, size_t rows)
{
    size_t window = (size_t)g.size * g.size;
    for (size_t c = amp_thread() * N; c < g.c; c += amp_threads() * N) {
        int n = amp_present<N>(c, g.c);
        for (size_t r = amp_row(); r < rows; r += amp_rows()) {
            size_t tap = r % window, image = r / window % g.images, place = first + r / window / g.images;
            /* Below 0 is beyond any size once it is unsigned. */
            size_t i = place / g.out_w * g.stride + tap / g.size - g.pad,
                j = place % g.out_w * g.stride + tap % g.size - g.pad;
            float v[N] = {};
            if (i < g.h && j < g.w) amp_get(v, x + ((image * g.h + i) * g.w + j) * g.c + c, n);
            amp_put(columns + r * g.c + c, v, n);
        }
    }
}

template <class T, int N>
__global__ void window_delta(const float *columns, T *dx, geometry g, size_t rows, int accumulate)
{
    size_t window = (size_t)g.size * g.size;
    for (size_t c = amp_thread() * N; c < g.c; c += amp_threads() * N) {
        int n = amp_present<N>(c, g.c);
        for (size_t r = amp_row(); r < rows; r += amp_rows()) {
            size_t j = r % g.w + g.pad, i = r / g.w % g.h + g.pad, image = r / g.w / g.h;
            float sum[N] = {};
            for (size_t tap = 0; tap < window; tap++) {
                size_t down = i - tap / g.size, right = j - tap % g.size;
                if (i < tap / g.size || j < tap % g.size || down % g.stride || right % g.stride) continue;
                down /= g.stride, right /= g.stride;
                if (down >= g.out_h || right >= g.out_w) continue;
                float v[N];
                amp_get(v, columns + (((down * g.out_w + right) * g.images + image) * window + tap) * g.c + c,
                        n);
                #pragma unroll
                for (int k = 0; k < N; k++) sum[k] += v[k];
            }
            amp_put_or_add(dx + r * g.c + c, sum, n, accumulate);
        }
    }
}

/* ---- launchers ---- */

static geometry geometry_of(const amp_local_desc *d, int images)
{
    geometry g = { (size_t)images, (size_t)d->x.h, (size_t)d->x.w, (size_t)d->x.c, (size_t)d->y.h,
                   (size_t)d->y.w, d->size, d->stride, d->pad };
    return g;
}

static int wide_rows(const amp_local_desc *d, const void *a, const void *b)
{
    return amp_aligned(a) && amp_aligned(b) && (size_t)d->x.c * amp_dtype_size(d->dtype) % 16 == 0;
}

amp_status amp_cuda_window_columns(amp_backend *backend, const amp_local_desc *d, int first, int places,
                                   const void *x, void *columns, amp_error *error)
{
    geometry g = geometry_of(d, d->x.n);
    size_t rows = (size_t)places * g.images * (size_t)d->size * d->size;
    AMP_LAUNCH_PLANE(backend, d->dtype, wide_rows(d, x, columns), rows, g.c, window_columns, (const T *)x,
                     (T *)columns, g, (size_t)first, rows);
    return AMP_OK;
}

amp_status amp_cuda_window_delta(amp_backend *backend, const amp_local_desc *d, int images,
                                 const float *columns, void *dx, int accumulate, amp_error *error)
{
    geometry g = geometry_of(d, images);
    size_t rows = g.images * g.h * g.w;
    AMP_LAUNCH_PLANE(backend, d->dtype, wide_rows(d, dx, columns), rows, g.c, window_delta, columns, (T *)dx,
                     g, rows, accumulate);
    return AMP_OK;
}
