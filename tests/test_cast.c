/* Casts against the definition in tensor/half.h, bit for bit: all 65536 halves, random and awkward floats, every pair of
 * dtypes and layouts, adding or not, and each instruction set that this machine has. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifdef __SSE2__
#include <xmmintrin.h>
#endif

#include "../plugin/backend/cpu/cast.h"
#include "../plugin/backend/cpu/convert.h"

enum { HALVES = 65536, RANDOMS = 1 << 20 };

/* ------------------------------------------------------------------------------------------------ numbers */

static uint64_t next_random(uint64_t *state) /* splitmix64 */
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static float get(amp_dtype dtype, const void *data, size_t i)
{
    if (dtype == AMP_FP32) return ((const float *)data)[i];
    amp_half_bits bits = ((const amp_half_bits *)data)[i];
    return dtype == AMP_FP16 ? amp_fp16_to_float(bits) : amp_bf16_to_float(bits);
}

/* The bits that `value` has in the dtype. */
static uint32_t bits_of(amp_dtype dtype, float value)
{
    if (dtype == AMP_FP32) return amp_float_bits(value);
    return dtype == AMP_FP16 ? amp_float_to_fp16(value) : amp_float_to_bf16(value);
}

static uint32_t stored_bits(amp_dtype dtype, const void *data, size_t i)
{
    return dtype == AMP_FP32 ? ((const uint32_t *)data)[i] : ((const amp_half_bits *)data)[i];
}

/* Floats around every decision that rounding makes: each half and its neighbours, ties and theirs, subnormals, limits,
 * NaNs of all kinds, and random bits. */
static size_t awkward_floats(float **out)
{
    size_t count = 0, capacity = HALVES * 12 + RANDOMS + 16;
    uint32_t *bits = malloc(capacity * sizeof *bits);
    assert_non_null(bits);
    for (uint32_t h = 0; h < HALVES; ++h) {
        uint32_t fp16 = amp_float_bits(amp_fp16_to_float((amp_half_bits)h)), bf16 = h << 16;
        for (int d = -1; d <= 1; ++d) {
            bits[count++] = fp16 + d;
            bits[count++] = fp16 + 0x1000 + d; /* halfway to the next fp16, where that is normal */
            bits[count++] = bf16 + d;
            bits[count++] = bf16 + 0x8000 + d;
        }
    }
    uint64_t state = 7;
    for (int i = 0; i < RANDOMS; ++i) bits[count++] = (uint32_t)next_random(&state);
    *out = (float *)bits;
    return count;
}

/* A program linked with -Ofast, as Darknet is, starts with the processor set to flush subnormals to zero. Switch that on
 * or off; returns 0 where there is no such switch. */
static int flush_subnormals(int on)
{
#ifdef __SSE2__
    enum { FLUSH_TO_ZERO = 0x8000, DENORMALS_ARE_ZERO = 0x0040 };
    unsigned both = FLUSH_TO_ZERO | DENORMALS_ARE_ZERO;
    _mm_setcsr(on ? _mm_getcsr() | both : _mm_getcsr() & ~both);
    return 1;
#else
    (void)on;
    return 0;
#endif
}

/* ------------------------------------------------------------------------------------------------ rows */

static void all_halves_widen_as_defined(void **state)
{
    (void)state;
    const amp_converters *const *sets;
    int count = amp_converter_sets(&sets);
    static amp_half_bits halves[HALVES];
    static uint32_t got[HALVES];
    for (int h = 0; h < HALVES; ++h) halves[h] = (amp_half_bits)h;
    for (int s = 0; s < count; ++s) {
        print_message("%s\n", sets[s]->name);
        sets[s]->from_fp16(halves, (float *)got, HALVES);
        for (int h = 0; h < HALVES; ++h) assert_int_equal(got[h], amp_float_bits(amp_fp16_to_float((amp_half_bits)h)));
        sets[s]->from_bf16(halves, (float *)got, HALVES);
        for (int h = 0; h < HALVES; ++h) assert_int_equal(got[h], (uint32_t)h << 16);
    }
}

static void halves_survive_the_way_to_fp32_and_back(void **state)
{
    (void)state;
    static amp_half_bits halves[HALVES], back[HALVES];
    static float wide[HALVES];
    static const amp_dtype dtypes[] = { AMP_FP16, AMP_BF16 };
    for (int h = 0; h < HALVES; ++h) halves[h] = (amp_half_bits)h;
    for (int t = 0; t < 2; ++t) {
        uint32_t infinity = dtypes[t] == AMP_FP16 ? 0x7c00 : 0x7f80, quiet = dtypes[t] == AMP_FP16 ? 0x200 : 0x40;
        amp_cpu_load_row(dtypes[t], halves, wide, HALVES);
        amp_cpu_store_row(dtypes[t], wide, back, HALVES);
        for (uint32_t h = 0; h < HALVES; ++h) /* NaNs come back quiet, all else as it was */
            assert_int_equal(back[h], (h & 0x7fff) > infinity ? h | quiet : h);
    }
}

static void check_rounding(int flushing)
{
    float *floats;
    size_t n = awkward_floats(&floats);
    const amp_converters *const *sets;
    int count = amp_converter_sets(&sets);
    amp_half_bits *got = malloc(n * sizeof *got);
    assert_non_null(got);
    for (int s = 0; s < count; ++s) {
        if (flushing) flush_subnormals(1);
        sets[s]->to_fp16(floats, got, n);
        flush_subnormals(0);
        for (size_t i = 0; i < n; ++i)
            if (got[i] != amp_float_to_fp16(floats[i]))
                fail_msg("%s: fp16 of %08x is %04x, not %04x", sets[s]->name, amp_float_bits(floats[i]), got[i],
                         amp_float_to_fp16(floats[i]));
        if (flushing) flush_subnormals(1);
        sets[s]->to_bf16(floats, got, n);
        flush_subnormals(0);
        for (size_t i = 0; i < n; ++i)
            if (got[i] != amp_float_to_bf16(floats[i]))
                fail_msg("%s: bf16 of %08x is %04x, not %04x", sets[s]->name, amp_float_bits(floats[i]), got[i],
                         amp_float_to_bf16(floats[i]));
    }
    free(got);
    free(floats);
}

static void floats_round_as_defined(void **state)
{
    (void)state;
    check_rounding(0);
}

static void flush_to_zero_changes_nothing(void **state)
{
    if (!flush_subnormals(0)) skip();
    check_rounding(1);
    flush_subnormals(1);
    all_halves_widen_as_defined(state);
    halves_survive_the_way_to_fp32_and_back(state);
    flush_subnormals(0);
}

/* Every length up to a few vectors, at odd addresses: nothing beyond the row is touched. */
static void rows_of_any_length_stay_within_bounds(void **state)
{
    (void)state;
    const amp_converters *const *sets;
    int count = amp_converter_sets(&sets);
    for (int s = 0; s < count; ++s)
        for (size_t n = 0; n <= 70; ++n) {
            /* exact blocks from malloc: the sanitizer sees reads beyond them, the guard catches writes */
            amp_half_bits *half = malloc((n + 2) * sizeof *half), *to = malloc((n + 2) * sizeof *to);
            float *wide = malloc((n + 2) * sizeof *wide), *sum = malloc((n + 2) * sizeof *sum);
            assert_true(half && to && wide && sum);
            for (size_t i = 0; i < n + 2; ++i) half[i] = (amp_half_bits)(0x3c00 + i), to[i] = 0xabcd, wide[i] = 99, sum[i] = 5;
            sets[s]->from_fp16(half + 1, wide + 1, n);
            sets[s]->to_fp16(wide + 1, to + 1, n);
            sets[s]->add(wide + 1, sum + 1, n);
            for (size_t i = 0; i < n; ++i) {
                assert_int_equal(to[i + 1], half[i + 1]);
                assert_true(sum[i + 1] == wide[i + 1] + 5);
            }
            assert_true(to[0] == 0xabcd && to[n + 1] == 0xabcd && sum[0] == 5 && sum[n + 1] == 5);
            assert_true(wide[0] == 99 && wide[n + 1] == 99);
            sets[s]->from_bf16(half + 1, wide + 1, n);
            sets[s]->to_bf16(wide + 1, to + 1, n);
            for (size_t i = 0; i < n; ++i) assert_int_equal(to[i + 1], half[i + 1]);
            assert_true(to[0] == 0xabcd && to[n + 1] == 0xabcd && wide[0] == 99 && wide[n + 1] == 99);
            free(half);
            free(to);
            free(wide);
            free(sum);
        }
}

static void transposes_any_size(void **state)
{
    (void)state;
    const amp_converters *const *sets;
    int count = amp_converter_sets(&sets);
    float src[40 * 40], dst[40 * 40];
    for (int i = 0; i < 40 * 40; ++i) src[i] = (float)i;
    for (int s = 0; s < count; ++s)
        for (size_t rows = 1; rows <= 33; ++rows)
            for (size_t columns = 1; columns <= 33; ++columns)
                for (int padded = 0; padded < 2; ++padded) {
                    size_t from = padded ? 40 : columns, to = padded ? 40 : rows;
                    for (int i = 0; i < 40 * 40; ++i) dst[i] = -1;
                    sets[s]->transpose(src, from, dst, to, rows, columns);
                    for (size_t c = 0; c < columns; ++c)
                        for (size_t r = 0; r < rows; ++r) assert_true(dst[c * to + r] == src[r * from + c]);
                    assert_true(dst[columns * to] == -1 && (!padded || dst[rows] == -1));
                }
}

/* ------------------------------------------------------------------------------------------------ tensors */

static size_t offset(const amp_tensor *t, int n, int c, int h, int w)
{
    amp_shape s = t->shape;
    return t->layout == AMP_NHWC ? (((size_t)n * s.h + h) * s.w + w) * s.c + c : (((size_t)n * s.c + c) * s.h + h) * s.w + w;
}

static void check_cast(amp_shape shape, amp_dtype from, amp_layout from_layout, amp_dtype to, amp_layout to_layout,
                       int accumulate, uint64_t seed)
{
    size_t count = amp_shape_count(shape);
    amp_tensor src = { malloc(count * amp_dtype_size(from)), from, from_layout, shape };
    amp_tensor dst = { malloc(count * amp_dtype_size(to)), to, to_layout, shape };
    amp_tensor old = { malloc(count * amp_dtype_size(to)), to, to_layout, shape };
    assert_true(src.data && dst.data && old.data);
    for (size_t i = 0; i < count; ++i) { /* moderate numbers, an inf now and then */
        float a = (float)(int64_t)next_random(&seed) * 0x1p-60f, b = (float)(int64_t)next_random(&seed) * 0x1p-61f;
        uint32_t a_bits = bits_of(from, i % 97 == 5 ? INFINITY : a), b_bits = bits_of(to, b);
        if (from == AMP_FP32) ((uint32_t *)src.data)[i] = a_bits; else ((amp_half_bits *)src.data)[i] = (amp_half_bits)a_bits;
        if (to == AMP_FP32) ((uint32_t *)old.data)[i] = b_bits; else ((amp_half_bits *)old.data)[i] = (amp_half_bits)b_bits;
    }
    if (accumulate) memcpy(dst.data, old.data, count * amp_dtype_size(to));
    else memset(dst.data, 0xff, count * amp_dtype_size(to));
    amp_error error;
    assert_int_equal(amp_cpu_cast(NULL, &src, &dst, accumulate, &error), AMP_OK);
    for (int n = 0; n < shape.n; ++n)
    for (int c = 0; c < shape.c; ++c)
    for (int h = 0; h < shape.h; ++h)
    for (int w = 0; w < shape.w; ++w) {
        size_t i = offset(&src, n, c, h, w), o = offset(&dst, n, c, h, w);
        float value = get(from, src.data, i) + (accumulate ? get(to, old.data, o) : 0);
        if (stored_bits(to, dst.data, o) != bits_of(to, value))
            fail_msg("%dx%dx%dx%d %s %s to %s %s%s: (%d,%d,%d,%d) is %08x, not %08x", shape.n, shape.c, shape.h, shape.w,
                     amp_dtype_name(from), from_layout ? "NCHW" : "NHWC", amp_dtype_name(to), to_layout ? "NCHW" : "NHWC",
                     accumulate ? ", adding" : "", n, c, h, w, stored_bits(to, dst.data, o), bits_of(to, value));
    }
    free(src.data);
    free(dst.data);
    free(old.data);
}

static void tensors_of_any_dtype_and_layout(void **state)
{
    (void)state;
    static const amp_shape shapes[] = {
        { 1, 1, 1, 1 }, { 2, 3, 5, 7 }, { 1, 3, 64, 67 }, { 2, 16, 13, 13 }, { 1, 255, 13, 13 }, { 2, 64, 9, 8 },
        { 1, 65, 7, 33 }, { 1, 130, 3, 3 }, { 3, 1, 17, 19 }, { 4, 77, 1, 1 }, { 1, 2, 100, 100 }, { 1, 1024, 4, 5 },
    };
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; ++s)
        for (amp_dtype from = AMP_FP32; from <= AMP_BF16; ++from)
            for (amp_dtype to = AMP_FP32; to <= AMP_BF16; ++to)
                for (int layouts = 0; layouts < 4; ++layouts)
                    for (int accumulate = 0; accumulate < 2; ++accumulate)
                        check_cast(shapes[s], from, layouts & 1, to, layouts >> 1, accumulate, s + 1);
}

static void refuses_two_shapes(void **state)
{
    (void)state;
    float data[64] = { 0 };
    amp_error error = { 0 };
    amp_tensor src = { data, AMP_FP32, AMP_NHWC, { 1, 2, 3, 4 } }, dst = { data + 32, AMP_FP32, AMP_NHWC, { 1, 2, 4, 3 } };
    assert_int_equal(amp_cpu_cast(NULL, &src, &dst, 0, &error), AMP_BAD_NETWORK);
    assert_non_null(strstr(error.message, "1x2x3x4"));
    assert_non_null(strstr(error.message, "1x2x4x3"));
    src.shape.n = dst.shape.n = 0;
    dst.shape = src.shape;
    assert_int_equal(amp_cpu_cast(NULL, &src, &dst, 0, &error), AMP_OK); /* nothing to do */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_halves_widen_as_defined),
        cmocka_unit_test(halves_survive_the_way_to_fp32_and_back),
        cmocka_unit_test(floats_round_as_defined),
        cmocka_unit_test(flush_to_zero_changes_nothing),
        cmocka_unit_test(rows_of_any_length_stay_within_bounds),
        cmocka_unit_test(transposes_any_size),
        cmocka_unit_test(tensors_of_any_dtype_and_layout),
        cmocka_unit_test(refuses_two_shapes),
    };
    return cmocka_run_group_tests_name("casts", tests, NULL, NULL);
}
