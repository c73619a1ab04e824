/* The loops of rows.h. Each is written once, without branches, so that the compiler can vectorise it, and
 * compiled for several instruction sets. Contraction of a·b+c into one fused operation is off, so that all
 * of them round in the same way. */
#include "rows.h"

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
/* no-trapping-math: otherwise gcc keeps branches where a comparison of floats selects a value. */
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

INLINE float clamp(float x) { return least(most(x, 0), 1); }
INLINE float size(float x) { return most(x, -x); }

/* One channel of a colour with saturation s and value v. It is v minus a part of v·s, which depends on the
 * hue: nothing within a sextant of the channel's own hue, all of v·s within a sextant of the opposite hue,
 * and linear in between. */
INLINE float channel(float v, float s, float part) { return clamp(v * (1 - s * clamp(part))); }

INLINE void distort(float *restrict red, float *restrict green, float *restrict blue, size_t count, float hue,
                    float saturation, float exposure)
{
    for (size_t i = 0; i < count; i++) {
        float r = red[i], g = green[i], b = blue[i];
        float v = most(r, most(g, b)), delta = v - least(r, least(g, b));
        float divisor = delta > 0 ? delta : 1;
        float s = delta / (v > 0 ? v : 1);
        float from_red = (g - b) / divisor, from_green = 2 + (b - r) / divisor;
        float h = 4 + (r - g) / divisor; /* in sextants */
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

/* A table of the loops for one instruction set. */
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

const amp_pixel_rows *amp_pixel_rows_best(void)
{
    int index = 0;
    while (amp_pixel_rows_at(index + 1)) index++;
    return amp_pixel_rows_at(index);
}
