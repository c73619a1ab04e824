/* Max pooling and global average pooling.
 *
 * In max pooling each thread writes one pack of one pixel: of y in forward, and of dx in backward, where it
 * collects the deltas of all windows that cover its pixel. A block stays within one row of pixels. Average
 * pooling sums with columns.cuh. */
#include "kernels.h"

#include <float.h>

#include "../check.h"
#include "columns.cuh"

enum { POOL_THREADS = 128 };

/* x (h, w, packs) is pooled to y (out_h, out_w, packs) in each image. */
typedef struct windows {
    int h, w, out_h, out_w, packs, size, stride, offset;
    unsigned across; /* blocks per row of the tensor that is written */
} windows;

/* What a thread computes: one pack of channels of one pixel. */
typedef struct spot {
    int image, row, column, pack;
} spot;

/* Sets *s to this thread's pack in a tensor of height × width pixels. Returns false beyond the row's end. */
static __device__ __forceinline__ bool spot_of(const windows &g, int height, int width, spot *s)
{
    unsigned line = blockIdx.x / g.across, at = blockIdx.x % g.across * POOL_THREADS + threadIdx.x;
    s->image = (int)(line / height);
    s->row = (int)(line % height);
    s->column = (int)(at / g.packs);
    s->pack = (int)(at % g.packs);
    return s->column < width;
}

/* ---- choices ---- */

/* The choices of a pack (see maxpool_forward in backend.h), read and written together. */
template <int N> struct choices;
template <> struct choices<8> {
    uint2 bytes;
    __device__ __forceinline__ int get(int i) const { return (int)((i < 4 ? bytes.x : bytes.y) >> 8
                                                                   * (i % 4) & 255); }
    __device__ __forceinline__ void set(const int (&v)[8])
    {
        bytes.x = (unsigned)(v[0] | v[1] << 8 | v[2] << 16) | (unsigned)v[3] << 24;
        bytes.y = (unsigned)(v[4] | v[5] << 8 | v[6] << 16) | (unsigned)v[7] << 24;
    }
};
template <> struct choices<4> {
    unsigned bytes;
    __device__ __forceinline__ int get(int i) const { return (int)(bytes >> 8 * i & 255); }
    __device__ __forceinline__ void set(const int (&v)[4])
    {
        bytes = (unsigned)(v[0] | v[1] << 8 | v[2] << 16) | (unsigned)v[3] << 24;
    }
};
template <> struct choices<1> {
    uint8_t byte;
    __device__ __forceinline__ int get(int) const { return byte; }
    __device__ __forceinline__ void set(const int (&v)[1]) { byte = (uint8_t)v[0]; }
};

enum { NONE = 255 };

/* ---- max pooling ---- */

/* The first of equal maxima is chosen, and NaN never is. */
template <class P>
__global__ void __launch_bounds__(POOL_THREADS) maxpool(const P *__restrict__ x, P *__restrict__ y,
    choices<P::count> *__restrict__ choice, windows g)
{
    spot s;
    if (!spot_of(g, g.out_h, g.out_w, &s)) return;
    int top = s.row * g.stride - g.offset, left = s.column * g.stride - g.offset;
    int r1 = min(g.size, g.h - top), m0 = max(0, -left), m1 = min(g.size, g.w - left);
    float best[P::count];
    int which[P::count];
    #pragma unroll
    for (int i = 0; i < P::count; i++) {
        best[i] = -FLT_MAX;
        which[i] = NONE;
    }
    for (int r = max(0, -top); r < r1; r++) {
        const P *line = x + ((size_t)s.image * g.h + (top + r)) * g.w * g.packs + s.pack;
        #pragma unroll 2
        for (int m = m0; m < m1; m++) {
            P p = line[(size_t)(left + m) * g.packs];
            #pragma unroll
            for (int i = 0; i < P::count; i++) {
                float v = p.get(i);
                if (v > best[i]) {
                    best[i] = v;
                    which[i] = r * g.size + m;
                }
            }
        }
    }
    size_t at = (((size_t)s.image * g.out_h + s.row) * g.out_w + s.column) * g.packs + s.pack;
    P out;
    #pragma unroll
    for (int i = 0; i < P::count; i++) out.set(i, best[i]);
    y[at] = out;
    choice[at].set(which);
}

/* dx is the sum of dy over the windows that have chosen the pixel, in row order in fp32, rounded once. The
 * windows that cover the pixel are i0 to i1-1 vertically, and j0 to j1-1 horizontally. */
template <class P> __global__ void __launch_bounds__(POOL_THREADS) maxpool_delta(const P *__restrict__ dy,
    const choices<P::count> *__restrict__ choice, P *__restrict__ dx, windows g, int accumulate)
{
    spot s;
    if (!spot_of(g, g.h, g.w, &s)) return;
    int down = s.row + g.offset, right = s.column + g.offset;
    int i0 = down < g.size ? 0 : (down - g.size) / g.stride + 1, i1 = min(g.out_h, down / g.stride + 1);
    int j0 = right < g.size ? 0 : (right - g.size) / g.stride + 1, j1 = min(g.out_w, right / g.stride + 1);
    size_t at = (((size_t)s.image * g.h + s.row) * g.w + s.column) * g.packs + s.pack;
    float total[P::count] = {};
    P out = {};
    if (accumulate) out = dx[at];
    #pragma unroll
    for (int i = 0; i < P::count; i++) total[i] = out.get(i);
    for (int wi = i0; wi < i1; wi++)
        for (int wj = j0; wj < j1; wj++) {
            size_t from = (((size_t)s.image * g.out_h + wi) * g.out_w + wj) * g.packs + s.pack;
            int place = (down - wi * g.stride) * g.size + right - wj * g.stride;
            choices<P::count> chosen = choice[from];
            P p = dy[from];
            #pragma unroll
            for (int i = 0; i < P::count; i++)
                if (chosen.get(i) == place) total[i] += p.get(i);
        }
    #pragma unroll
    for (int i = 0; i < P::count; i++) out.set(i, total[i]);
    dx[at] = out;
}

/* written: the tensor that the kernel writes: y in forward, dx in backward. Sets *blocks to the number of
 * blocks that its pixels need. */
static windows windows_make(const amp_tensor *x, const amp_tensor *y, const amp_tensor *written, bool wide,
                            int size, int stride, int pad, size_t *blocks)
{
    windows g = { x->shape.h, x->shape.w, y->shape.h, y->shape.w, amp_cuda_packs(x, wide), size, stride,
                  pad / 2, 0 };
    g.across = (unsigned)amp_divide_up((size_t)written->shape.w * g.packs, POOL_THREADS);
    *blocks = (size_t)written->shape.n * written->shape.h * g.across;
    return g;
}

amp_status amp_cuda_maxpool_forward(amp_backend *backend, const amp_tensor *x, const amp_tensor *y,
                                    uint8_t *choice, int size, int stride, int pad, amp_error *error)
{
    size_t blocks;
    AMP_TRY(amp_check_maxpool(x, y, error));
    bool wide = amp_cuda_wide(x) && amp_cuda_wide(y) && amp_aligned(choice, 8);
    windows g = windows_make(x, y, y, wide, size, stride, pad, &blocks);
    if (blocks == 0) return AMP_OK;
    AMP_CUDA_BY_PACK(x->dtype, wide, AMP_LAUNCH(backend, (unsigned)blocks, POOL_THREADS, maxpool<P>,
                                                (const P *)x->data, (P *)y->data, (choices<P::count> *)choice,
                                                g));
    return AMP_OK;
}

amp_status amp_cuda_maxpool_backward(amp_backend *backend, const amp_tensor *dy, const uint8_t *choice,
    const amp_tensor *dx, int size, int stride, int pad, int accumulate, amp_error *error)
{
    size_t blocks;
    AMP_TRY(amp_check_maxpool(dx, dy, error));
    bool wide = amp_cuda_wide(dx) && amp_cuda_wide(dy) && amp_aligned(choice, 8);
    windows g = windows_make(dx, dy, dx, wide, size, stride, pad, &blocks);
    if (blocks == 0) return AMP_OK;
    AMP_CUDA_BY_PACK(dx->dtype, wide, AMP_LAUNCH(backend, (unsigned)blocks, POOL_THREADS, maxpool_delta<P>,
                                                 (const P *)dy->data, (const choices<P::count> *)choice,
                                                 (P *)dx->data, g, accumulate));
    return AMP_OK;
}

/* ---- average pooling ---- */

/* y is the mean over the pixels of an image. A block takes some packs (groups of channels) of one image,
 * and sums each pack over all pixels. */
template <class P> __global__ void __launch_bounds__(AMP_COLUMN_THREADS) average(const P *__restrict__ x,
        P *__restrict__ y, amp_columns c)
{
    amp_column at = amp_column_of(c, blockIdx.x);
    __shared__ amp_column_sums<P::count> sums;
    sums.clear();
    amp_columns_sum(x, c, at, sums);
    if (!sums.fold(c) || at.pack >= c.packs) return;
    P out;
    #pragma unroll
    for (int i = 0; i < P::count; i++) out.set(i, (float)(sums.get(i) / (double)c.rows));
    y[at.image * (size_t)c.packs + at.pack] = out;
}

/* dx (+)= dy/(h·w) */
template <class P> __global__ void __launch_bounds__(AMP_COLUMN_THREADS) share_out(const P *__restrict__ dy,
    P *__restrict__ dx, amp_columns c, int accumulate)
{
    amp_column at = amp_column_of(c, blockIdx.x);
    if (at.first >= at.end) return;
    P share = dy[at.image * (size_t)c.packs + at.pack];
    float each[P::count];
    #pragma unroll
    for (int i = 0; i < P::count; i++) {
        each[i] = share.get(i) / (float)c.rows;
        share.set(i, each[i]);
    }
    P *image = dx + at.image * c.rows * c.packs;
    for (size_t row = at.first; row < at.end; row += at.step) {
        P *to = image + row * c.packs + at.pack;
        P out = share;
        if (accumulate) {
            out = *to;
            #pragma unroll
            for (int i = 0; i < P::count; i++) out.set(i, out.get(i) + each[i]);
        }
        *to = out;
    }
}

amp_status amp_cuda_avgpool_forward(amp_backend *backend, const amp_tensor *x, const amp_tensor *y,
                                    amp_error *error)
{
    AMP_TRY(amp_check_avgpool(x, y, error));
    if (amp_shape_count(x->shape) == 0) return AMP_OK;
    bool wide = amp_cuda_wide(x) && amp_cuda_wide(y);
    amp_columns c = amp_columns_whole((size_t)x->shape.h * x->shape.w, (unsigned)x->shape.n,
                                      amp_cuda_packs(x, wide));
    AMP_CUDA_BY_PACK(x->dtype, wide, AMP_LAUNCH(backend, amp_columns_blocks(&c), AMP_COLUMN_THREADS,
                                                average<P>, (const P *)x->data, (P *)y->data, c));
    return AMP_OK;
}

amp_status amp_cuda_avgpool_backward(amp_backend *backend, const amp_tensor *dy, const amp_tensor *dx,
                                     int accumulate, amp_error *error)
{
    AMP_TRY(amp_check_avgpool(dx, dy, error));
    if (amp_shape_count(dx->shape) == 0) return AMP_OK;
    bool wide = amp_cuda_wide(dx) && amp_cuda_wide(dy);
    amp_columns c = amp_columns_make((size_t)dx->shape.h * dx->shape.w, (unsigned)dx->shape.n,
                                     amp_cuda_packs(dx, wide));
    AMP_CUDA_BY_PACK(dx->dtype, wide, AMP_LAUNCH(backend, amp_columns_blocks(&c), AMP_COLUMN_THREADS,
                                                 share_out<P>, (const P *)dy->data, (P *)dx->data, c,
                                                 accumulate));
    return AMP_OK;
}
