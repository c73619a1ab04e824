/* A backend's casts against the reference in tensor/half.h, bit for bit: every pair of dtypes and layouts,
 * adding or not, whether or not subnormals are flushed to zero; and the operations that move memory. */
#include "kernel_cases.h"
#include "random_numbers.h"

#ifdef __SSE2__
#include <xmmintrin.h>
#endif

/* The bits of `value` in the dtype. */
static uint32_t bits_of(amp_dtype dtype, float value)
{
    if (dtype == AMP_FP32) return amp_float_bits(value);
    return dtype == AMP_FP16 ? amp_float_to_fp16(value) : amp_float_to_bf16(value);
}

static uint32_t stored_bits(amp_dtype dtype, const void *data, size_t i)
{
    return dtype == AMP_FP32 ? ((const uint32_t *)data)[i] : ((const amp_half_bits *)data)[i];
}

static size_t offset(const amp_tensor *t, int n, int c, int h, int w)
{
    amp_shape s = t->shape;
    return t->layout == AMP_NHWC ? (((size_t)n * s.h + h) * s.w + w) * s.c + c
        : (((size_t)n * s.c + c) * s.h + h) * s.w + w;
}

static void check_cast(amp_shape shape, amp_dtype from, amp_layout from_layout, amp_dtype to,
                       amp_layout to_layout, int accumulate, uint64_t seed)
{
    size_t count = amp_shape_count(shape);
    amp_tensor src = { memory(count * amp_dtype_size(from)), from, from_layout, shape };
    amp_tensor dst = { memory(count * amp_dtype_size(to)), to, to_layout, shape };
    amp_tensor old = { memory(count * amp_dtype_size(to)), to, to_layout, shape };
    for (size_t i = 0; i < count; i++) { /* moderate numbers, with an occasional inf */
        float a = (float)(int64_t)next_random(&seed) * 0x1p-60f,
            b = (float)(int64_t)next_random(&seed) * 0x1p-61f;
        set_element(&src, i, i % 97 == 5 ? INFINITY : a);
        set_element(&old, i, b);
    }
    if (accumulate) memcpy(dst.data, old.data, count * amp_dtype_size(to));
    else memset(dst.data, 0xff, count * amp_dtype_size(to));
    ASSERT_OK(CALL(cast, &src, &dst, accumulate, e));
    for (int n = 0; n < shape.n; n++)
    for (int c = 0; c < shape.c; c++)
    for (int h = 0; h < shape.h; h++)
    for (int w = 0; w < shape.w; w++) {
        size_t i = offset(&src, n, c, h, w), o = offset(&dst, n, c, h, w);
        float value = number_of(from, src.data, i) + (accumulate ? number_of(to, old.data, o) : 0);
        if (stored_bits(to, dst.data, o) != bits_of(to, value))
            fail_msg("%dx%dx%dx%d %s %s to %s %s%s: (%d,%d,%d,%d) is %08x, not %08x", shape.n, shape.c,
                     shape.h, shape.w, amp_dtype_name(from), from_layout ? "NCHW" : "NHWC",
                     amp_dtype_name(to), to_layout ? "NCHW" : "NHWC", accumulate ? ", adding" : "", n, c, h,
                     w, stored_bits(to, dst.data, o), bits_of(to, value));
    }
    release(src.data);
    release(dst.data);
    release(old.data);
}

TEST(tensors_of_any_dtype_and_layout)
{
    NEEDS(cast);
    static const amp_shape shapes[] = {
        { 1, 1, 1, 1 }, { 2, 3, 5, 7 }, { 1, 3, 64, 67 }, { 2, 16, 13, 13 }, { 1, 255, 13, 13 },
        { 2, 64, 9, 8 }, { 1, 65, 7, 33 }, { 1, 130, 3, 3 }, { 3, 1, 17, 19 }, { 4, 77, 1, 1 },
        { 1, 2, 100, 100 }, { 1, 1024, 4, 5 },
        { 2, 3, 40, 52 }, { 3, 3, 13, 27 }, { 2, 4, 33, 31 }, { 2, 4, 16, 20 }, { 3, 1, 24, 32 }, /* images */
    };
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (amp_dtype from = AMP_FP32; from <= AMP_BF16; from++)
            for (amp_dtype to = AMP_FP32; to <= AMP_BF16; to++)
                for (int layouts = 0; layouts < 4; layouts++)
                    for (int accumulate = 0; accumulate < 2; accumulate++)
                        check_cast(shapes[s], from, layouts & 1, to, layouts >> 1, accumulate, s + 1);
}

/* A program linked with -Ofast, like Darknet, starts with flush-to-zero. Switches that on or off, for this
 * thread; returns 0 if the processor has no such mode. */
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

/* All halves, and floats around every decision in rounding: each half of both dtypes, the tie between it and
 * the next one, and the neighbours of both. */
static void check_halves(amp_dtype half, int flushing)
{
    enum { HALVES = 65536 };
    const int of_each = machine.slow ? 8 : 16;
    const size_t count = HALVES * (size_t)of_each;
    amp_tensor halves = poisoned(half, 1, 64, 64, HALVES / 4096),
        wide = poisoned(AMP_FP32, 1, 64, 64, HALVES / 4096),
        floats = poisoned(AMP_FP32, of_each, 64, 64, HALVES / 4096),
        back = poisoned(half, of_each, 64, 64, HALVES / 4096);
    for (int h = 0; h < HALVES; h++) ((amp_half_bits *)halves.data)[h] = (amp_half_bits)h;
    for (size_t i = 0; i < count; i++) {
        static const uint32_t beside[8] = { 0, 1, (uint32_t)-1, 0x1000, 0x0fff, 0x1001, 0x8000, 0x8001 };
        amp_half_bits bits = (amp_half_bits)(i / (size_t)of_each);
        int is_other = i % (size_t)of_each >= 8; /* of the other dtype */
        float value = (half == AMP_FP16) != is_other ? amp_fp16_to_float(bits) : amp_bf16_to_float(bits);
        ((uint32_t *)floats.data)[i] = amp_float_bits(value) + beside[i % 8];
    }
    flush_subnormals(flushing);
    ASSERT_OK(CALL(cast, &halves, &wide, 0, e));
    ASSERT_OK(CALL(cast, &floats, &back, 0, e));
    flush_subnormals(0);
    for (size_t h = 0; h < HALVES; h++) {
        float got = ((const float *)wide.data)[h], want = number_of(half, halves.data, h);
        if (isnan(want) ? !isnan(got) : amp_float_bits(got) != amp_float_bits(want))
            fail_msg("%s %04zx widens to %08x, not %08x", amp_dtype_name(half), h, amp_float_bits(got),
                     amp_float_bits(want));
    }
    for (size_t i = 0; i < count; i++) {
        float value = ((const float *)floats.data)[i];
        uint32_t got = stored_bits(half, back.data, i), want = bits_of(half, value);
        if (isnan(value) ? !isnan(number_of(half, back.data, i)) : got != want)
            fail_msg("%08x narrows to %s %04x, not %04x", amp_float_bits(value), amp_dtype_name(half), got,
                     want);
    }
    release(halves.data); release(wide.data); release(floats.data); release(back.data);
}

TEST(all_halves_and_the_floats_about_them)
{
    NEEDS(cast);
    for (amp_dtype half = AMP_FP16; half <= AMP_BF16; half++) check_halves(half, 0);
}

TEST(flush_to_zero_changes_nothing)
{
    NEEDS(cast);
    if (strcmp(machine.name, "cpu") || !flush_subnormals(0)) skip();
    machine.set_processors(backend, 1); /* or other threads would work without it */
    for (amp_dtype half = AMP_FP16; half <= AMP_BF16; half++) check_halves(half, 1);
    machine.set_processors(backend, 0);
}

/* 16-byte accesses need 16-byte alignment; at other addresses the results are the same. */
TEST(addresses_of_any_alignment)
{
    NEEDS(cast);
    for (size_t from = 0; from < 3; from++)
        for (size_t to = 0; to < 3; to++)
            for (size_t shift = 1; shift < 9; shift++) {
                size_t from_size = amp_dtype_size(all_dtypes[from]), to_size = amp_dtype_size(all_dtypes[to]),
                    count = 8 * 40;
                amp_tensor src = filled(all_dtypes[from], 1, 1, 8, 40, 3, -2, 2),
                    dst = poisoned(all_dtypes[to], 1, 1, 8, 40);
                amp_tensor odd_src = src, odd_dst = dst;
                char *a = memory(count * from_size + shift * from_size),
                    *b = memory(count * to_size + shift * to_size);
                odd_src.data = a + shift * from_size, odd_dst.data = b + shift * to_size;
                memcpy(odd_src.data, src.data, count * from_size);
                ASSERT_OK(CALL(cast, &src, &dst, 0, e));
                ASSERT_OK(CALL(cast, &odd_src, &odd_dst, 0, e));
                assert_memory_equal(dst.data, odd_dst.data, count * to_size);
                ASSERT_OK(CALL(cast, &src, &odd_dst, 0, e));
                assert_memory_equal(dst.data, odd_dst.data, count * to_size);
                release(src.data); release(dst.data); release(a); release(b);
            }
}

TEST(refuses_two_shapes)
{
    NEEDS(cast);
    amp_error error = { 0 };
    amp_tensor src = { NULL, AMP_FP32, AMP_NHWC, { 1, 2, 3, 4 } },
        dst = { NULL, AMP_FP32, AMP_NHWC, { 1, 2, 4, 3 } };
    src.data = memory(24 * sizeof(float)), dst.data = memory(24 * sizeof(float));
    machine.begin();
    assert_int_equal(CALL(cast, &src, &dst, 0, &error), AMP_BAD_NETWORK);
    assert_null(machine.finish(backend));
    assert_non_null(strstr(error.message, "1x2x3x4"));
    assert_non_null(strstr(error.message, "1x2x4x3"));
    src.shape.n = dst.shape.n = 0;
    dst.shape = src.shape;
    ASSERT_OK(CALL(cast, &src, &dst, 0, e)); /* nothing to do */
    release(src.data); release(dst.data);
}

TEST(scale_multiplies_as_fp32_does)
{
    static const size_t sizes[] = { 0, 1, 3, 4, 257, 100003 };
    NEEDS(scale);
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (size_t shift = 0; shift < 2; shift++) { /* also at an address that is not aligned to 16 bytes */
            size_t n = sizes[s];
            float *array = filled_array(n + shift, 5, -3, 3), *old;
            if (n > 2) array[shift] = INFINITY, array[shift + 1] = NAN, array[n - 1] = 1e-42f;
            old = array_copy(array, n + shift);
            ASSERT_OK(CALL(scale, array + shift, n, 1024.3f, e));
            if (shift) assert_memory_equal(array, old, sizeof *array);
            for (size_t i = shift; i < n + shift; i++) {
                volatile float want = old[i] * 1024.3f;
                assert_true(isnan(want) ? isnan(array[i]) : array[i] == want);
            }
            release(array); release(old);
        }
}

TEST(zero_and_upload_set_those_bytes_and_no_other)
{
    NEEDS(zero);
    NEEDS(upload);
    static const size_t sizes[] = { 0, 1, 2, 63, 4096, 100001 };
    for (size_t s = 0; s < COUNT(sizes); s++) {
        size_t n = sizes[s];
        unsigned char *bytes = memory(n + 2), *from = malloc(n + 1);
        assert_non_null(from);
        memset(bytes, 0xff, n + 2);
        for (size_t i = 0; i < n; i++) from[i] = (unsigned char)(i * 7 + 1);
        ASSERT_OK(CALL(upload, bytes + 1, from, n, e));
        assert_memory_equal(bytes + 1, from, n);
        assert_true(bytes[0] == 0xff && bytes[n + 1] == 0xff);
        ASSERT_OK(CALL(zero, bytes + 1, n, e));
        for (size_t i = 0; i < n; i++) assert_int_equal(bytes[i + 1], 0);
        assert_true(bytes[0] == 0xff && bytes[n + 1] == 0xff);
        release(bytes); free(from);
    }
}

/* After upload returns, the program may overwrite its memory. */
TEST(upload_has_taken_its_copy_on_return)
{
    NEEDS(upload);
    unsigned char from[100], *to = memory(sizeof from);
    amp_error error = { AMP_OK, "" };
    memset(from, 1, sizeof from);
    machine.begin();
    amp_status status = CALL(upload, to, from, sizeof from, &error);
    memset(from, 2, sizeof from);
    assert_null(machine.finish(backend));
    assert_int_equal(status, AMP_OK);
    for (size_t i = 0; i < sizeof from; i++) assert_int_equal(to[i], 1);
    release(to);
}

/* The test does not touch staged memory, or the program's own, between upload_later and uploads_done, and
 * overwrites both afterwards. Memory staged at the same time does not overlap. */
TEST(later_uploads_have_taken_their_copy_when_done)
{
    enum { BYTES = 70001, PARTS = 4 }; /* the last part comes from the program's memory */
    NEEDS(upload_later);
    unsigned char *to = memory(PARTS * BYTES), *mine = malloc(BYTES);
    assert_non_null(mine);
    for (int round = 1; round < 4; round++) {
        void *host[PARTS] = { [PARTS - 1] = mine };
        amp_error error = { AMP_OK, "" };
        memset(to, 0xff, PARTS * BYTES);
        machine.begin();
        for (int p = 0; p < PARTS - 1; p++)
            assert_int_equal(CALL(stage, to + p * BYTES, BYTES, &host[p], &error), AMP_OK);
        for (int p = 0; p < PARTS; p++) memset(host[p], 10 * p + round, BYTES);
        for (int p = PARTS - 1; p >= 0; --p)
            assert_int_equal(CALL(upload_later, to + p * BYTES, host[p], BYTES, &error), AMP_OK);
        assert_int_equal(CALL(upload_later, to, host[0], 0, &error), AMP_OK);
        assert_int_equal(CALL(uploads_done, &error), AMP_OK);
        for (int p = 0; p < PARTS; p++) if (host[p] != to + p * BYTES) memset(host[p], 0xee, BYTES);
        assert_int_equal(CALL(uploads_done, &error), AMP_OK);
        assert_null(machine.finish(backend));
        for (int i = 0; i < PARTS * BYTES; i++) assert_int_equal(to[i], 10 * (i / BYTES) + round);
    }
    release(to); free(mine);
}

TEST(a_later_download_is_there_when_uploads_are_done)
{
    enum { BYTES = 70001 };
    NEEDS(download_later);
    unsigned char *from = memory(BYTES);
    void *copy;
    amp_error error = { AMP_OK, "" };
    memset(from, 7, BYTES);
    machine.begin();
    assert_int_equal(CALL(zero, from, 300, &error), AMP_OK);
    assert_int_equal(CALL(download_later, from, BYTES, &copy, &error), AMP_OK);
    assert_int_equal(CALL(uploads_done, &error), AMP_OK);
    assert_null(machine.finish(backend));
    for (int i = 0; i < BYTES; i++) assert_int_equal(((unsigned char *)copy)[i], i < 300 ? 0 : 7);
    release(from);
}

int main(void) { return for_each_variant(run_listed); }
