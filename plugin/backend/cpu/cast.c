/* Casts between dtypes and layouts.
 *
 * A piece of the source is widened into an fp32 buffer in the L1 cache, and transposed there if the layouts
 * differ; the result is rounded once when it is stored. So there is one conversion loop per dtype (rows.h),
 * not per pair of dtypes and layouts. This costs no time, because memory limits the speed of casts. */
#include "kernels.h"

#include <string.h>

#include "../check.h"
#include "blocks.h"

enum {
    PIECE = 2048, /* floats per buffer: two buffers fit in the L1 cache, with room for data */
    TILE_CHANNELS = 64
};

static size_t min_size(size_t a, size_t b) { return a < b ? a : b; }

/* Casts n ≤ PIECE numbers, whose order does not change. */
static void cast_piece(const amp_cpu_rows *rows, amp_dtype from, const void *src, amp_dtype to, void *dst,
                       size_t n, int accumulate)
{
    if (from == AMP_FP32) rows->narrow(to, src, dst, n, accumulate);
    else if (from == to && !accumulate) memcpy(dst, src, n * amp_dtype_size(to));
    else if (to == AMP_FP32 && !accumulate) rows->widen(from, src, dst, n);
    else {
        float row[PIECE];
        rows->widen(from, src, row, n);
        rows->narrow(to, row, dst, n, accumulate);
    }
}

void amp_cpu_cast_flat(amp_dtype src_dtype, const void *src, amp_dtype dst_dtype, void *dst, size_t count,
                       int accumulate)
{
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    size_t from = amp_dtype_size(src_dtype), to = amp_dtype_size(dst_dtype);
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(count))
    for (size_t i = 0; i < count; i += PIECE)
        cast_piece(rows, src_dtype, (const char *)src + i * from, dst_dtype, (char *)dst + i * to,
                   min_size(PIECE, count - i), accumulate);
}

void amp_cpu_round_flat(amp_dtype dtype, const float *src, float *dst, size_t count)
{
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(count))
    for (size_t i = 0; i < count; i += PIECE) {
        amp_half_bits half[PIECE];
        size_t n = min_size(PIECE, count - i);
        rows->narrow(dtype, src + i, half, n, 0);
        rows->widen(dtype, half, dst + i, n);
    }
}

/* Casts and transposes one tile of one image. src: rows × columns, with row stride src_length; dst: its
 * transpose, with row stride dst_length. A row of src is a channel for NCHW → NHWC, else a pixel. */
static void transpose_tile(const amp_cpu_rows *loops, amp_dtype from, const char *src, size_t src_length,
                           amp_dtype to, char *dst, size_t dst_length, size_t rows, size_t columns,
                           int accumulate)
{
    float in[PIECE], out[PIECE];
    size_t from_size = amp_dtype_size(from), to_size = amp_dtype_size(to);
    const float *tile = in;
    size_t tile_length = columns;
    if (from == AMP_FP32) tile = (const float *)src, tile_length = src_length;
    else if (columns == src_length) loops->widen(from, src, in, rows * columns);
    else for (size_t r = 0; r < rows; r++)
        loops->widen(from, src + r * src_length * from_size, in + r * columns, columns);
    loops->transpose(tile, tile_length, out, rows, rows, columns);
    if (rows == dst_length) loops->narrow(to, out, dst, rows * columns, accumulate);
    else for (size_t c = 0; c < columns; c++)
        loops->narrow(to, out + c * rows, dst + c * dst_length * to_size, rows, accumulate);
}

/* Casts between NCHW and NHWC, image by image, in tiles of at most TILE_CHANNELS channels. In both tensors,
 * the rows of a full tile are whole cache lines. If an image has fewer channels, a tile is contiguous in
 * NHWC. */
static void cast_transposed(const amp_tensor *src, const amp_tensor *dst, int accumulate)
{
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    size_t channels = (size_t)src->shape.c, pixels = (size_t)src->shape.h * src->shape.w;
    size_t tile_channels = min_size(channels, TILE_CHANNELS);
    size_t tile_pixels = min_size(pixels, PIECE / tile_channels);
    size_t across = (channels + tile_channels - 1) / tile_channels;
    size_t down = (pixels + tile_pixels - 1) / tile_pixels;
    size_t tiles = (size_t)src->shape.n * across * down;
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(amp_shape_count(src->shape)))
    for (size_t t = 0; t < tiles; t++) {
        size_t image = t / (across * down) * channels * pixels;
        size_t pixel = t / across % down * tile_pixels, channel = t % across * tile_channels;
        size_t c = min_size(tile_channels, channels - channel), p = min_size(tile_pixels, pixels - pixel);
        size_t planar = image + channel * pixels + pixel, interleaved = image + pixel * channels + channel;
        if (src->layout == AMP_NCHW)
            transpose_tile(rows, src->dtype, amp_cpu_at(src, planar), pixels, dst->dtype,
                           amp_cpu_into(dst, interleaved), channels, c, p, accumulate);
        else
            transpose_tile(rows, src->dtype, amp_cpu_at(src, interleaved), channels, dst->dtype,
                           amp_cpu_into(dst, planar), pixels, p, c, accumulate);
    }
}

amp_status amp_cpu_cast(amp_backend *backend, const amp_tensor *src, const amp_tensor *dst, int accumulate,
                        amp_error *error)
{
    amp_shape a = src->shape;
    AMP_TRY(amp_check_cast(src, dst, error));
    if (!amp_shape_count(a)) return AMP_OK;
    /* with one channel or one pixel, both layouts have the same order */
    if (src->layout == dst->layout || a.c == 1 || (size_t)a.h * a.w == 1)
        amp_cpu_cast_flat(src->dtype, src->data, dst->dtype, dst->data, amp_shape_count(a), accumulate);
    else cast_transposed(src, dst, accumulate);
    return AMP_OK;
}
