/* What moves elements without windows or statistics: channel copies (route), shortcuts, fixed rearrangements (reorg)
 * and dropout.
 *
 * Threads share out pixels or stretches of elements. An unscaled copy is memcpy: the bits, NaN payloads included. */
#include "kernels.h"
#include "blocks.h"
#include "../check.h"
#include "../../tensor/half.h"

#include <string.h>

/* Pixels that make a thread's unit of work of about one stretch. */
static size_t pixels_per_stretch(size_t channels)
{
    size_t pixels = AMP_CPU_STRETCH / (channels ? channels : 1);
    return pixels ? pixels : 1;
}

amp_status amp_cpu_channels(amp_backend *backend, const amp_tensor *src, int src_first, const amp_tensor *dst,
    int dst_first, int channels, float alpha, int accumulate, amp_error *error)
{
    (void)backend;
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    size_t pixels = amp_cpu_pixels(src), from_c = (size_t)src->shape.c, to_c = (size_t)dst->shape.c;
    AMP_TRY(amp_check_channels(src, src_first, dst, dst_first, channels, error));
    int whole = from_c == to_c && from_c == (size_t)channels, exact = alpha == 1 && !accumulate;
    size_t unit = pixels_per_stretch((size_t)channels), units = (pixels + unit - 1) / unit;
    size_t element = amp_dtype_size(src->dtype);
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(pixels * channels))
    for (size_t u = 0; u < units; ++u) {
        size_t p = u * unit, end = p + unit < pixels ? p + unit : pixels;
        size_t step = whole ? end - p : 1, count = step * (size_t)channels; /* equal strides: one run */
        for (; p < end; p += step) {
            const void *from = amp_cpu_at(src, p * from_c + (size_t)src_first);
            void *to = amp_cpu_into(dst, p * to_c + (size_t)dst_first);
            if (exact) memcpy(to, from, count * element);
            else rows->scale(src->dtype, from, to, count, alpha, accumulate);
        }
    }
    return AMP_OK;
}

amp_status amp_cpu_shortcut_forward(amp_backend *backend, const amp_tensor *x, const amp_tensor *from,
    const amp_tensor *y, float alpha, float beta, amp_activation activation, amp_error *error)
{
    (void)backend;
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    size_t pixels = amp_cpu_pixels(x), c = (size_t)x->shape.c, from_c = (size_t)from->shape.c;
    AMP_TRY(amp_check_shortcut(x, from, y, error));
    size_t both = c < from_c ? c : from_c, unit = pixels_per_stretch(c), units = (pixels + unit - 1) / unit;
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(pixels * c))
    for (size_t u = 0; u < units; ++u) {
        size_t p = u * unit, end = p + unit < pixels ? p + unit : pixels;
        size_t step = c == from_c ? end - p : 1;
        for (; p < end; p += step) {
            rows->blend(x->dtype, activation, amp_cpu_at(x, p * c), amp_cpu_at(from, p * from_c),
                amp_cpu_into(y, p * c), step * both, alpha, beta);
            if (both < c)
                rows->activate(x->dtype, activation, amp_cpu_at(x, p * c + both), amp_cpu_into(y, p * c + both),
                    c - both);
        }
    }
    return AMP_OK;
}

amp_status amp_cpu_gather_forward(amp_backend *backend, const amp_tensor *x, const amp_tensor *y, const int32_t *map,
    amp_error *error)
{
    (void)backend;
    AMP_TRY(amp_check_gather(x, y, error));
    size_t image = amp_shape_image(y->shape), stretches = amp_cpu_stretches(image), images = (size_t)y->shape.n;
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(images * image))
    for (size_t u = 0; u < images * stretches; ++u) {
        size_t s = u % stretches, first = s * AMP_CPU_STRETCH, count = amp_cpu_stretch_count(image, s);
        const void *from = amp_cpu_at(x, u / stretches * amp_shape_image(x->shape));
        void *to = amp_cpu_into(y, u / stretches * image + first);
        const int32_t *entry = map + first;
        if (amp_dtype_size(x->dtype) == 4)
            for (size_t i = 0; i < count; ++i)
                ((uint32_t *)to)[i] = entry[i] < 0 ? 0 : ((const uint32_t *)from)[entry[i]];
        else
            for (size_t i = 0; i < count; ++i)
                ((uint16_t *)to)[i] = entry[i] < 0 ? 0 : ((const uint16_t *)from)[entry[i]];
    }
    return AMP_OK;
}

/* One image's dx[map[i]] += dy[i], an element at a time: the places are scattered. */
static void scatter(amp_dtype dtype, const void *dy, void *dx, const int32_t *map, size_t count)
{
    const amp_half_bits *from = dy;
    amp_half_bits *to = dx;
    for (size_t i = 0; i < count; ++i) {
        if (map[i] < 0) continue;
        if (dtype == AMP_FP32)
            ((float *)dx)[map[i]] += ((const float *)dy)[i];
        else if (dtype == AMP_FP16)
            to[map[i]] = amp_float_to_fp16(amp_fp16_to_float(to[map[i]]) + amp_fp16_to_float(from[i]));
        else
            to[map[i]] = amp_float_to_bf16(amp_bf16_to_float(to[map[i]]) + amp_bf16_to_float(from[i]));
    }
}

amp_status amp_cpu_gather_backward(amp_backend *backend, const amp_tensor *dy, const amp_tensor *dx,
    const int32_t *map, int accumulate, amp_error *error)
{
    (void)backend;
    AMP_TRY(amp_check_gather(dx, dy, error));
    size_t from = amp_shape_image(dy->shape), to = amp_shape_image(dx->shape), images = (size_t)dy->shape.n;
    /* by whole images: two entries of a map may name one element */
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(images * from))
    for (size_t n = 0; n < images; ++n) {
        if (!accumulate) memset(amp_cpu_into(dx, n * to), 0, to * amp_dtype_size(dx->dtype));
        scatter(dx->dtype, amp_cpu_at(dy, n * from), amp_cpu_into(dx, n * to), map, from);
    }
    return AMP_OK;
}

amp_status amp_cpu_dropout(amp_backend *backend, const amp_tensor *x, const amp_tensor *y, const uint8_t *keep,
    float scale, int accumulate, amp_error *error)
{
    (void)backend;
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    size_t count = amp_shape_count(x->shape);
    AMP_TRY(amp_check_pair("dropout", x, y, 1, error));
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(count))
    for (size_t s = 0; s < amp_cpu_stretches(count); ++s) {
        size_t first = s * AMP_CPU_STRETCH;
        rows->mask(x->dtype, amp_cpu_at(x, first), amp_cpu_into(y, first), keep + first,
            amp_cpu_stretch_count(count, s), scale, accumulate);
    }
    return AMP_OK;
}
