/* Operations that mainly move elements: channel copies (route), shortcuts, fixed rearrangements (reorg) and
 * dropout.
 *
 * Pixels, or stretches of elements, are divided among threads. A copy without a factor is a memcpy, so that a
 * NaN keeps its bits. */
#include "kernels.h"
#include "blocks.h"
#include "../check.h"

#include <string.h>

/* The number of pixels that a thread takes at a time: as many as fit into AMP_CPU_STRETCH elements, but at
 * least one. */
static size_t pixels_per_stretch(size_t channels)
{
    size_t pixels = AMP_CPU_STRETCH / (channels ? channels : 1);
    return pixels ? pixels : 1;
}

amp_status amp_cpu_channels(amp_backend *backend, const amp_tensor *src, int src_first, const amp_tensor *dst,
    int dst_first, int channels, float alpha, int accumulate, amp_error *error)
{
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    size_t pixels = amp_cpu_pixels(src), from_c = (size_t)src->shape.c, to_c = (size_t)dst->shape.c;
    AMP_TRY(amp_check_channels(src, src_first, dst, dst_first, channels, error));
    int whole = from_c == to_c && from_c == (size_t)channels, exact = alpha == 1 && !accumulate;
    size_t unit = pixels_per_stretch((size_t)channels), units = (pixels + unit - 1) / unit;
    size_t element = amp_dtype_size(src->dtype);
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(pixels * channels))
    for (size_t u = 0; u < units; u++) {
        size_t p = u * unit, end = p + unit < pixels ? p + unit : pixels;
        size_t step = whole ? end - p : 1, count = step * (size_t)channels; /* whole: pixels are contiguous */
        for (; p < end; p += step) {
            const void *from = amp_cpu_at(src, p * from_c + (size_t)src_first);
            void *to = amp_cpu_into(dst, p * to_c + (size_t)dst_first);
            if (exact) memcpy(to, from, count * element);
            else rows->scale(src->dtype, from, to, count, alpha, accumulate);
        }
    }
    return AMP_OK;
}

/* Maps pixels of a tensor with width w to pixels of another tensor (amp_shortcut_grid): in each image, pixel
 * (i·step, j·step) corresponds to pixel (i·other_step, j·other_step) of the other tensor, for i < common_h
 * and j < common_w. */
typedef struct size_map { int w, step, common_h, common_w, other_h, other_w, other_step; } size_map;

/* Returns the other tensor's line that corresponds to `line`, or -1. Lines are numbered across all images. */
static ptrdiff_t map_line(const size_map *m, size_t line, size_t h)
{
    size_t i = line % h, step = (size_t)m->step;
    if (i % step || i / step >= (size_t)m->common_h) return -1;
    return (ptrdiff_t)(line / h * (size_t)m->other_h + i / step * (size_t)m->other_step);
}

/* Returns the other tensor's pixel that corresponds to pixel j of a line, or -1. other_line: what map_line
 * returned for this line. */
static ptrdiff_t map_pixel(const size_map *m, ptrdiff_t other_line, int j)
{
    if (other_line < 0 || j % m->step || j / m->step >= m->common_w) return -1;
    return other_line * m->other_w + (ptrdiff_t)(j / m->step) * m->other_step;
}

/* A shortcut between tensors of different shapes, line by line of y: y = act(alpha·x + beta·from) where
 * pixels correspond, in the channels that both have; y = act(x) elsewhere. */
static void join_sizes(const amp_tensor *x, const amp_tensor *from, const amp_tensor *y,
                       const amp_shortcut_grid *g, float alpha, float beta, amp_activation activation)
{
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    const size_map m = { x->shape.w, g->x_step, g->h, g->w, from->shape.h, from->shape.w, g->from_step };
    size_t h = (size_t)x->shape.h, lines = (size_t)x->shape.n * h, c = (size_t)x->shape.c,
        from_c = (size_t)from->shape.c;
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(amp_shape_count(x->shape)))
    for (size_t line = 0; line < lines; line++) {
        ptrdiff_t other_line = map_line(&m, line, h);
        for (int j = 0; j < m.w; j++) {
            ptrdiff_t p = map_pixel(&m, other_line, j);
            size_t first = (line * (size_t)m.w + (size_t)j) * c, both = p < 0 ? 0 : c < from_c ? c : from_c;
            if (both)
                rows->blend(x->dtype, activation, amp_cpu_at(x, first), amp_cpu_at(from, (size_t)p * from_c),
                            amp_cpu_into(y, first), both, alpha, beta);
            if (both < c)
                rows->activate(x->dtype, activation, amp_cpu_at(x, first + both),
                               amp_cpu_into(y, first + both), c - both);
        }
    }
}

amp_status amp_cpu_shortcut_forward(amp_backend *backend, const amp_tensor *x, const amp_tensor *from,
    const amp_tensor *y, float alpha, float beta, amp_activation activation, amp_error *error)
{
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    size_t count = amp_shape_count(x->shape);
    amp_shortcut_grid grid;
    AMP_TRY(amp_check_pair("shortcut", x, y, 1, error));
    AMP_TRY(amp_check_shortcut(x, from, &grid, error));
    if (x->shape.h != from->shape.h || x->shape.w != from->shape.w || x->shape.c != from->shape.c) {
        join_sizes(x, from, y, &grid, alpha, beta, activation);
        return AMP_OK;
    }
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(count))
    for (size_t first = 0; first < count; first += AMP_CPU_STRETCH)
        rows->blend(x->dtype, activation, amp_cpu_at(x, first), amp_cpu_at(from, first),
                    amp_cpu_into(y, first), amp_cpu_stretch_count(count, first), alpha, beta);
    return AMP_OK;
}

amp_status amp_cpu_shortcut_backward(amp_backend *backend, const amp_tensor *dy, const amp_tensor *dfrom,
                                     float beta, int accumulate, amp_error *error)
{
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    amp_shortcut_grid g;
    AMP_TRY(amp_check_shortcut(dy, dfrom, &g, error));
    int same = dy->shape.h == dfrom->shape.h && dy->shape.w == dfrom->shape.w;
    if (same && dy->shape.c >= dfrom->shape.c)
        return amp_cpu_channels(backend, dy, 0, dfrom, 0, dfrom->shape.c, beta, accumulate, error);
    const size_map m = { dfrom->shape.w, g.from_step, g.h, g.w, dy->shape.h, dy->shape.w, g.x_step };
    size_t h = (size_t)dfrom->shape.h, lines = (size_t)dfrom->shape.n * h, c = (size_t)dfrom->shape.c,
        dy_c = (size_t)dy->shape.c;
    size_t both = c < dy_c ? c : dy_c, element = amp_dtype_size(dfrom->dtype);
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(amp_shape_count(dfrom->shape)))
    for (size_t line = 0; line < lines; line++) {
        ptrdiff_t other_line = map_line(&m, line, h);
        if (other_line < 0 && accumulate) continue;
        for (int j = 0; j < m.w; j++) {
            size_t first = (line * (size_t)m.w + (size_t)j) * c;
            ptrdiff_t p = map_pixel(&m, other_line, j);
            size_t moved = p < 0 ? 0 : both;
            if (moved)
                rows->scale(dy->dtype, amp_cpu_at(dy, (size_t)p * dy_c), amp_cpu_into(dfrom, first), moved,
                            beta, accumulate);
            if (!accumulate) memset(amp_cpu_into(dfrom, first + moved), 0, (c - moved) * element);
        }
    }
    return AMP_OK;
}

/* to[i] ← from[map[i]], or 0 if map[i] is negative. Elements have `size` bytes, 4 or 2. */
static void gather_words(size_t size, const void *from, void *to, const int32_t *map, size_t count)
{
    if (size == 4)
        for (size_t i = 0; i < count; i++)
            ((uint32_t *)to)[i] = map[i] < 0 ? 0 : ((const uint32_t *)from)[map[i]];
    else
        for (size_t i = 0; i < count; i++)
            ((uint16_t *)to)[i] = map[i] < 0 ? 0 : ((const uint16_t *)from)[map[i]];
}

amp_status amp_cpu_gather(amp_backend *backend, const amp_tensor *x, const amp_tensor *y, const int32_t *map,
                          int accumulate, amp_error *error)
{
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    AMP_TRY(amp_check_pair("gather", x, y, 0, error));
    size_t image = amp_shape_image(y->shape), stretches = amp_cpu_stretches(image),
        images = (size_t)y->shape.n;
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(images * image))
    for (size_t u = 0; u < images * stretches; u++) {
        uint32_t gathered[AMP_CPU_STRETCH];
        size_t first = u % stretches * AMP_CPU_STRETCH, count = amp_cpu_stretch_count(image, first);
        void *to = amp_cpu_into(y, u / stretches * image + first);
        gather_words(amp_dtype_size(x->dtype), amp_cpu_at(x, u / stretches * amp_shape_image(x->shape)),
                     accumulate ? gathered : to, map + first, count);
        if (accumulate) rows->scale(x->dtype, gathered, to, count, 1, 1);
    }
    return AMP_OK;
}

amp_status amp_cpu_dropout(amp_backend *backend, const amp_tensor *x, const amp_tensor *y,
                           const uint8_t *keep, float scale, int accumulate, amp_error *error)
{
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    size_t count = amp_shape_count(x->shape);
    AMP_TRY(amp_check_pair("dropout", x, y, 1, error));
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(count))
    for (size_t first = 0; first < count; first += AMP_CPU_STRETCH)
        rows->mask(x->dtype, amp_cpu_at(x, first), amp_cpu_into(y, first), keep + first,
                   amp_cpu_stretch_count(count, first), scale, accumulate);
    return AMP_OK;
}
