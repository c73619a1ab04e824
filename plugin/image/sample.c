/* Samples images bilinearly: see sample.h. Each row of samples takes two steps. The bytes of the pixels that
 * the row needs are gathered, channel by channel. Then vectorised loops compute the weighted sums. */
#include "sample.h"

#include <math.h>
#include <stdlib.h>

/* ---- the positions of samples ---- */

int amp_samples_allocate(amp_samples *samples, int count)
{
    size_t n = (size_t)(count > 0 ? count : 1);
    int *indices = malloc(2 * n * (sizeof *indices + sizeof(float)));
    if (!indices) return 0;
    float *weights = (float *)(indices + 2 * n);
    *samples = (amp_samples){ count, indices, indices + n, weights, weights + n };
    return 1;
}

void amp_samples_free(amp_samples *samples) { free(samples->first); }

static int clamp(int i, int length) { return i < 0 ? 0 : i >= length ? length - 1 : i; }

/* Places sample i at position begin + x, between two pixels. A pixel outside the axis is replaced by the
 * nearest one on the axis. Returns the left pixel's index, counted from `begin`. */
static int set_sample(amp_samples *samples, int i, float x, int begin, int length)
{
    int left = (int)x;
    samples->first[i] = clamp(begin + left, length);
    samples->second[i] = clamp(begin + left + 1, length);
    samples->second_weight[i] = x - (float)left;
    samples->first_weight[i] = 1 - samples->second_weight[i];
    return left;
}

void amp_samples_place(amp_samples *samples, int first, int placed, int length)
{
    /* Darknet's source computes x / placed * length, but gcc's -Ofast turns that into x times this scale,
     * which rounds differently. The results must be those of the compiled program. */
    float scale = (float)length * (1 / (float)placed);
    for (int i = 0; i < samples->count; i++) {
        int left = set_sample(samples, i, (float)(first + i) * scale, 0, length);
        if (left >= length) samples->first_weight[i] = 0;
        if (left + 1 >= length) samples->second_weight[i] = 0;
    }
}

void amp_samples_crop(amp_samples *samples, int begin, int cropped, int length)
{
    int last = samples->count - 1;
    float scale = (float)(cropped - 1) / (float)(last > 0 ? last : 1);
    for (int i = 0; i < last; i++) set_sample(samples, i, (float)i * scale, begin, length);
    set_sample(samples, last, (float)(cropped - 1), begin, length);
}

/* Pixel j of the reduced axis lies in the middle of the photo's pixels reduction·j to reduction·(j+1) - 1.
 * The sum of a sample's two weights stays the same. (The sum is below 1 if amp_samples_place set the weight
 * of a pixel outside the axis to 0.) */
void amp_samples_reduce(amp_samples *samples, int reduction, int length)
{
    for (int i = 0; reduction > 1 && i < samples->count; i++) {
        float sum = samples->first_weight[i] + samples->second_weight[i];
        int is_between = samples->second[i] > samples->first[i];
        float x = (float)samples->first[i] + (is_between ? samples->second_weight[i] : 0);
        x = (x - (float)(reduction - 1) / 2) / (float)reduction;
        int left = (int)floorf(x);
        samples->first[i] = clamp(left, length);
        samples->second[i] = clamp(left + 1, length);
        samples->second_weight[i] = sum * (x - (float)left);
        samples->first_weight[i] = sum - samples->second_weight[i];
    }
}

/* ---- sampling ---- */

/* Returns the fastest loops that this processor can run. */
static const amp_pixel_rows *best_rows(void)
{
    int index = 0;
    while (amp_pixel_rows_at(index + 1)) index++;
    return amp_pixel_rows_at(index);
}

/* Copies the pixels that the samples need from one row of pixels to `gathered`, as (c,2,count) bytes: for
 * each channel, the left pixels of all samples, then the right ones. */
static inline void gather_channels(const unsigned char *row, const amp_samples *columns, int c,
                                   unsigned char *gathered)
{
    size_t count = (size_t)columns->count, channels = (size_t)c;
    for (size_t i = 0; i < count; i++) {
        const unsigned char *first = row + (size_t)columns->first[i] * channels;
        const unsigned char *second = row + (size_t)columns->second[i] * channels;
        for (size_t k = 0; k < channels; k++) {
            gathered[2 * k * count + i] = first[k];
            gathered[(2 * k + 1) * count + i] = second[k];
        }
    }
}

static void gather(const unsigned char *row, const amp_samples *columns, int c, unsigned char *gathered)
{
    if (c == 3) gather_channels(row, columns, 3, gathered); /* the constant lets the compiler unroll a loop */
    else gather_channels(row, columns, c, gathered);
}

int amp_sample_image(const amp_pixels *image, const amp_samples *columns, const amp_samples *rows,
                     float *planes, size_t plane, size_t stride)
{
    const amp_pixel_rows *loops = best_rows();
    size_t count = (size_t)columns->count, channels = (size_t)image->c;
    size_t length = (size_t)image->w * channels, size = 2 * channels * count;
    unsigned char *near = malloc(2 * size + 1), *far = near + size;
    if (!near) return 0;
    for (int y = 0; y < rows->count; y++) {
        gather(image->bytes + (size_t)rows->first[y] * length, columns, image->c, near);
        gather(image->bytes + (size_t)rows->second[y] * length, columns, image->c, far);
        for (size_t k = 0; k < channels; k++)
            loops->sample(near + 2 * k * count, far + 2 * k * count, columns->first_weight,
                          columns->second_weight, rows->first_weight[y], rows->second_weight[y],
                          planes + k * plane + (size_t)y * stride, count);
    }
    free(near);
    return 1;
}

void amp_distort_image(float *planes, size_t count, float hue, float saturation, float exposure)
{
    best_rows()->distort(planes, planes + count, planes + 2 * count, count, hue, saturation, exposure);
}

/* ---- the loops ---- */

/* Each loop is written once and compiled for several instruction sets. It has no branches, so that the
 * compiler can vectorise it. The compiler must not contract a·b+c to a fused multiply-add, so that all
 * versions round in the same way. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
/* Without no-trapping-math, gcc would keep branches where a comparison of floats selects a value. */
#pragma GCC optimize("fp-contract=off", "no-trapping-math", "tree-vectorize")
#endif

#define INLINE static inline __attribute__((always_inline))

INLINE void sample(const unsigned char *restrict near, const unsigned char *restrict far,
                   const float *restrict first_weight, const float *restrict second_weight,
                   float near_weight, float far_weight, float *restrict y, size_t count)
{
    near_weight /= 255;
    far_weight /= 255;
    for (size_t i = 0; i < count; i++) {
        float first = near_weight * (float)near[i] + far_weight * (float)far[i];
        float second = near_weight * (float)near[count + i] + far_weight * (float)far[count + i];
        y[i] = first_weight[i] * first + second_weight[i] * second;
    }
}

INLINE float least(float a, float b) { return a < b ? a : b; }
INLINE float most(float a, float b) { return a > b ? a : b; }

INLINE float to_unit(float x) { return least(most(x, 0), 1); }
INLINE float size(float x) { return most(x, -x); }

/* One RGB channel of an HSV colour: v - part·v·s. After clamping to 0 … 1, `part` is 0 within 60° of the
 * channel's own hue, 1 within 60° of the opposite hue, and linear in between. */
INLINE float channel(float v, float s, float part) { return to_unit(v * (1 - s * to_unit(part))); }

INLINE void distort(float *restrict red, float *restrict green, float *restrict blue, size_t count, float hue,
                    float saturation, float exposure)
{
    for (size_t i = 0; i < count; i++) {
        float r = red[i], g = green[i], b = blue[i];
        float v = most(r, most(g, b)), delta = v - least(r, least(g, b));
        float divisor = delta > 0 ? delta : 1;
        float s = delta / (v > 0 ? v : 1);
        float from_red = (g - b) / divisor, from_green = 2 + (b - r) / divisor;
        float h = 4 + (r - g) / divisor; /* hue in sextants (60°) */
        h = g == v ? from_green : h;
        h = r == v ? from_red : h;
        h = h < 0 ? h + 6 : h;

        h = h + hue * 6;
        h = h > 6 ? h - 6 : h;
        h = h < 0 ? h + 6 : h;
        s = s * saturation;
        v = v * exposure;
        red[i] = channel(v, s, 2 - size(h - 3));
        green[i] = channel(v, s, size(h - 2) - 1);
        blue[i] = channel(v, s, size(h - 4) - 1);
    }
}

/* Defines both loops for one instruction set, and the struct with pointers to them. */
#define ROWS(isa, target) \
    target static void sample_##isa(const unsigned char *near, const unsigned char *far, \
                                    const float *first_weight, const float *second_weight, \
                                    float near_weight, float far_weight, float *y, size_t count) \
    { \
        sample(near, far, first_weight, second_weight, near_weight, far_weight, y, count); \
    } \
    target static void distort_##isa(float *r, float *g, float *b, size_t count, float hue, \
                                     float saturation, float exposure) \
    { \
        distort(r, g, b, count, hue, saturation, exposure); \
    } \
    static const amp_pixel_rows rows_##isa = { #isa, sample_##isa, distort_##isa }

ROWS(base, );
#if defined(__x86_64__)
ROWS(avx2, __attribute__((target("avx2"))));
ROWS(avx512, __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))));
#endif

const amp_pixel_rows *amp_pixel_rows_at(int index)
{
#if defined(__x86_64__)
    if (index == 1 && __builtin_cpu_supports("avx2")) return &rows_avx2;
    if (index == 2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) return &rows_avx512;
#endif
    return index == 0 ? &rows_base : NULL;
}
