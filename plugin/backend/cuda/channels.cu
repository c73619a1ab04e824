/* Channel copies (route), shortcuts and dropout.
 *
 * If only some channels of a tensor are moved, a launch covers a plane: its rows are pixels, and its columns
 * are groups of channels. If all channels are moved, all pixels are treated as one long row. Shortcuts
 * between tensors of different sizes work on one line of pixels at a time. */
#include "kernels.h"

#include "../check.h"
#include "device.cuh"

/* ---- channels ---- */

/* Copies rows of `columns` words. Rows start src_step words apart in src and dst_step words apart in dst. */
template <class W>
__global__ void move_words(const W *src, size_t src_step, W *dst, size_t dst_step, size_t rows,
                           size_t columns)
{
    for (size_t c = amp_thread(); c < columns; c += amp_threads())
        for (size_t r = amp_row(); r < rows; r += amp_rows()) dst[r * dst_step + c] = src[r * src_step + c];
}

/* dst (+)= alpha·src, row by row. */
template <class T, int N>
__global__ void move_scaled(const T *src, size_t src_step, T *dst, size_t dst_step, size_t rows,
                            size_t columns, float alpha, int accumulate)
{
    for (size_t c = amp_thread() * N; c < columns; c += amp_threads() * N) {
        int n = amp_present<N>(c, columns);
        for (size_t r = amp_row(); r < rows; r += amp_rows()) {
            float v[N];
            amp_get(v, src + r * src_step + c, n);
            #pragma unroll
            for (int j = 0; j < N; j++) v[j] *= alpha;
            amp_put_or_add(dst + r * dst_step + c, v, n, accumulate);
        }
    }
}

/* Rows of `columns` elements, which start src_step elements apart in src and dst_step in dst. */
typedef struct channel_rows {
    const char *src;
    char *dst;
    size_t src_step, dst_step, rows, columns;
} channel_rows;

template <class W>
static amp_status run_move_words(amp_backend *backend, const channel_rows *m, size_t element,
                                 amp_error *error)
{
    size_t columns = m->columns * element / sizeof(W);
    amp_plane plane = amp_cuda_plane(backend, m->rows, columns);
    AMP_LAUNCH(backend, plane.blocks, plane.threads, (move_words<W>), (const W *)m->src,
        m->src_step * element / sizeof(W), (W *)m->dst, m->dst_step * element / sizeof(W), m->rows, columns);
    return AMP_OK;
}

/* Copies bits, even those of NaN, in the widest words that divide all addresses and lengths. */
static amp_status run_copy(amp_backend *backend, const channel_rows *m, size_t element, amp_error *error)
{
    if (m->rows == 1) return amp_cuda_copy(backend, m->src, m->dst, m->columns * element, error);
    size_t all = (size_t)m->src | (size_t)m->dst | (m->src_step | m->dst_step | m->columns) * element;
    if (all % 16 == 0) return run_move_words<uint4>(backend, m, element, error);
    if (all % 8 == 0) return run_move_words<uint2>(backend, m, element, error);
    if (all % 4 == 0) return run_move_words<uint32_t>(backend, m, element, error);
    return run_move_words<uint16_t>(backend, m, element, error);
}

amp_status amp_cuda_channels(amp_backend *backend, const amp_tensor *src, int src_first,
                             const amp_tensor *dst, int dst_first, int channels, float alpha, int accumulate,
                             amp_error *error)
{
    AMP_TRY(amp_check_channels(src, src_first, dst, dst_first, channels, error));
    size_t element = amp_dtype_size(src->dtype);
    channel_rows m = { (const char *)src->data + (size_t)src_first * element,
        (char *)dst->data + (size_t)dst_first * element, (size_t)src->shape.c, (size_t)dst->shape.c,
        amp_pixels(src), (size_t)channels };
    if (!m.rows || !m.columns) return AMP_OK;
    if (m.src_step == m.columns && m.dst_step == m.columns) m.columns *= m.rows, m.rows = 1;
    if (alpha == 1 && !accumulate) return run_copy(backend, &m, element, error);
    int wide = amp_wide_rows(m.src, m.rows, m.src_step, src->dtype) &&
        amp_wide_rows(m.dst, m.rows, m.dst_step, dst->dtype);
    AMP_LAUNCH_PLANE(backend, src->dtype, wide, m.rows, m.columns, move_scaled, (const T *)m.src, m.src_step,
                     (T *)m.dst, m.dst_step, m.rows, m.columns, alpha, accumulate);
    return AMP_OK;
}

/* ---- shortcut ---- */

/* y = act(alpha·x + beta·from) in the first `both` columns of each row, y = act(x) in the other columns. */
template <class T, int N, int A>
__global__ void shortcut(const T *x, const T *from, size_t from_step, T *y, size_t rows, size_t columns,
                         size_t both, float alpha, float beta, amp_activation given)
{
    const amp_activation activation = amp_chosen<A>(given);
    for (size_t c = amp_thread() * N; c < columns; c += amp_threads() * N) {
        int n = amp_present<N>(c, columns), common = c < both ? amp_present<N>(c, both) : 0;
        for (size_t r = amp_row(); r < rows; r += amp_rows()) {
            float v[N], f[N];
            amp_get(v, x + r * columns + c, n);
            if (common) {
                amp_get(f, from + r * from_step + c, common);
                #pragma unroll
                for (int j = 0; j < N; j++)
                    if (j < common) v[j] = alpha * v[j] + beta * f[j];
            }
            #pragma unroll
            for (int j = 0; j < N; j++) v[j] = amp_activate(v[j], activation);
            amp_put(y + r * columns + c, v, n);
        }
    }
}

/* Which pixels of this tensor and of another one correspond (amp_shortcut_grid): along each axis, pixel
 * i·step corresponds to pixel i·other_step of the other tensor. An image has common_h × common_w such pairs
 * of pixels. */
typedef struct size_map { unsigned h, w, step, common_h, common_w, other_h, other_w, other_step; } size_map;

/* Sets *other to the other tensor's line that corresponds to `line`, and returns 1. Returns 0 if there is
 * none. Lines are numbered across all images. */
__device__ __forceinline__ int map_line(const size_map &m, size_t line, size_t *other)
{
    size_t image = line / m.h;
    unsigned i = (unsigned)(line - image * m.h), at = i / m.step;
    *other = image * m.other_h + at * m.other_step;
    return i == at * m.step && at < m.common_h;
}

/* Like map_line, but for pixel p of a line. line: the other tensor's line that map_line found. */
__device__ __forceinline__ int map_pixel(const size_map &m, size_t line, unsigned p, size_t *other)
{
    unsigned at = p / m.step;
    *other = line * m.other_w + at * m.other_step;
    return p == at * m.step && at < m.common_w;
}

/* columns, other_columns: channels of this tensor and of the other one; both: the smaller of these numbers.
 * All three are multiples of the group size. */
typedef struct two_sizes { size_map m; size_t lines, columns, other_columns, both; } two_sizes;

/* y = act(alpha·x + beta·from) where pixels correspond, y = act(x) elsewhere. */
template <class T, int N>
__global__ void shortcut_sizes(const T *x, const T *from, T *y, two_sizes s, float alpha, float beta,
                               amp_activation activation)
{
    for (size_t line = blockIdx.y; line < s.lines; line += gridDim.y) {
        size_t other_line, other;
        int line_is_mapped = map_line(s.m, line, &other_line);
        for (unsigned p = blockIdx.x * blockDim.y + threadIdx.y; p < s.m.w; p += gridDim.x * blockDim.y) {
            int is_mapped = map_pixel(s.m, other_line, p, &other) && line_is_mapped;
            for (size_t c = (size_t)threadIdx.x * N; c < s.columns; c += (size_t)blockDim.x * N) {
                size_t at = (line * s.m.w + p) * s.columns + c;
                float v[N], f[N];
                amp_get(v, x + at, N);
                if (is_mapped && c < s.both) {
                    amp_get(f, from + other * s.other_columns + c, N);
                    #pragma unroll
                    for (int j = 0; j < N; j++) v[j] = alpha * v[j] + beta * f[j];
                }
                #pragma unroll
                for (int j = 0; j < N; j++) v[j] = amp_activate(v[j], activation);
                amp_put(y + at, v, N);
            }
        }
    }
}

/* dfrom (+)= beta·dy where pixels correspond, dfrom (+)= 0 elsewhere. In `s`, this tensor is dfrom and the
 * other tensor is dy. */
template <class T, int N>
__global__ void shortcut_delta(const T *dy, T *dfrom, two_sizes s, float beta, int accumulate)
{
    for (size_t line = blockIdx.y; line < s.lines; line += gridDim.y) {
        size_t other_line, other;
        int line_is_mapped = map_line(s.m, line, &other_line);
        if (!line_is_mapped && accumulate) continue;
        for (unsigned p = blockIdx.x * blockDim.y + threadIdx.y; p < s.m.w; p += gridDim.x * blockDim.y) {
            int is_mapped = map_pixel(s.m, other_line, p, &other) && line_is_mapped;
            for (size_t c = (size_t)threadIdx.x * N; c < s.columns; c += (size_t)blockDim.x * N) {
                float v[N] = { 0 };
                int moves = is_mapped && c < s.both;
                if (!moves && accumulate) break;
                if (moves) {
                    amp_get(v, dy + other * s.other_columns + c, N);
                    #pragma unroll
                    for (int j = 0; j < N; j++) v[j] *= beta;
                }
                amp_put_or_add(dfrom + (line * s.m.w + p) * s.columns + c, v, N, accumulate);
            }
        }
    }
}

static two_sizes two_sizes_of(amp_shape s, int step, amp_shape other, int other_step,
                              const amp_shortcut_grid *g)
{
    two_sizes t = { { (unsigned)s.h, (unsigned)s.w, (unsigned)step, (unsigned)g->h, (unsigned)g->w,
                      (unsigned)other.h, (unsigned)other.w, (unsigned)other_step }, (size_t)s.n * s.h,
                    (size_t)s.c, (size_t)other.c, (size_t)(s.c < other.c ? s.c : other.c) };
    return t;
}

static int same_size(const amp_tensor *a, const amp_tensor *b)
{
    return a->shape.h == b->shape.h && a->shape.w == b->shape.w;
}

static amp_status shortcut_equal(amp_backend *backend, const amp_tensor *x, const amp_tensor *from,
                                 const amp_tensor *y, float alpha, float beta, amp_activation activation,
                                 amp_error *error)
{
    size_t c = (size_t)x->shape.c, from_c = (size_t)from->shape.c;
    size_t rows = amp_pixels(x), columns = c, from_step = from_c, both = c < from_c ? c : from_c;
    if (c == from_c) both = from_step = columns *= rows, rows = 1;
    int wide = amp_wide_rows(x->data, rows, c, x->dtype) && amp_wide_rows(y->data, rows, c, y->dtype) &&
        amp_wide_rows(from->data, rows, from_c, from->dtype);
    AMP_CUDA_BY_DTYPE(x->dtype, AMP_CUDA_BY_GROUP(wide, {
        amp_plane plane = amp_cuda_plane(backend, rows, amp_divide_up(columns, N));
        AMP_CUDA_BY_ACTIVATION(activation,
            AMP_LAUNCH(backend, plane.blocks, plane.threads, (shortcut<T, N, A>), (const T *)x->data,
                       (const T *)from->data, from_step, (T *)y->data, rows, columns, both, alpha, beta,
                       activation));
    }));
    return AMP_OK;
}

amp_status amp_cuda_shortcut_forward(amp_backend *backend, const amp_tensor *x, const amp_tensor *from,
    const amp_tensor *y, float alpha, float beta, amp_activation activation, amp_error *error)
{
    amp_shortcut_grid grid;
    AMP_TRY(amp_check_pair("shortcut", x, y, 1, error));
    AMP_TRY(amp_check_shortcut(x, from, &grid, error));
    if (!amp_shape_count(x->shape)) return AMP_OK;
    if (same_size(x, from)) return shortcut_equal(backend, x, from, y, alpha, beta, activation, error);
    int wide = amp_cuda_wide(x) && amp_cuda_wide(from) && amp_cuda_wide(y);
    two_sizes s = two_sizes_of(x->shape, grid.x_step, from->shape, grid.from_step, &grid);
    AMP_LAUNCH_LINES(backend, x, wide, shortcut_sizes, (const T *)x->data, (const T *)from->data,
                     (T *)y->data, s, alpha, beta, activation);
    return AMP_OK;
}

amp_status amp_cuda_shortcut_backward(amp_backend *backend, const amp_tensor *dy, const amp_tensor *dfrom,
                                      float beta, int accumulate, amp_error *error)
{
    amp_shortcut_grid grid;
    AMP_TRY(amp_check_shortcut(dy, dfrom, &grid, error));
    if (same_size(dy, dfrom) && dy->shape.c >= dfrom->shape.c)
        return amp_cuda_channels(backend, dy, 0, dfrom, 0, dfrom->shape.c, beta, accumulate, error);
    if (!amp_shape_count(dfrom->shape)) return AMP_OK;
    int wide = amp_cuda_wide(dy) && amp_cuda_wide(dfrom);
    two_sizes s = two_sizes_of(dfrom->shape, grid.from_step, dy->shape, grid.x_step, &grid);
    AMP_LAUNCH_LINES(backend, dfrom, wide, shortcut_delta, (const T *)dy->data, (T *)dfrom->data, s, beta,
                     accumulate);
    return AMP_OK;
}

/* ---- dropout ---- */

/* y (+)= keep ? scale·x : 0. */
template <class T, int N>
__global__ void drop(const T *x, T *y, const uint8_t *keep, size_t count, float scale, int accumulate)
{
    for (size_t i = amp_thread() * N; i < count; i += amp_threads() * N) {
        int n = amp_present<N>(i, count);
        uint8_t kept[N] = { 0 };
        float v[N];
        amp_read(kept, keep + i, n);
        amp_get(v, x + i, n);
        #pragma unroll
        for (int j = 0; j < N; j++) v[j] = kept[j] ? scale * v[j] : 0; /* a dropped NaN must become 0 */
        amp_put_or_add(y + i, v, n, accumulate);
    }
}

amp_status amp_cuda_dropout(amp_backend *backend, const amp_tensor *x, const amp_tensor *y,
                            const uint8_t *keep, float scale, int accumulate, amp_error *error)
{
    AMP_TRY(amp_check_pair("dropout", x, y, 1, error));
    size_t count = amp_shape_count(x->shape);
    if (!count) return AMP_OK;
    int wide = amp_aligned(x->data) && amp_aligned(y->data) &&
        amp_aligned(keep, 16 / amp_dtype_size(x->dtype));
    AMP_LAUNCH_ALONG(backend, x->dtype, wide, count, drop, (const T *)x->data, (T *)y->data, keep, count,
                     scale, accumulate);
    return AMP_OK;
}
