/* The CPU backend's conversions against the reference in tensor/half.h, bit for bit, with each instruction
 * set of this machine: whether or not subnormals are flushed to zero, and within bounds. test_backend_cast.c
 * tests casts in other respects. */
#include <math.h>
#include "testing.h"

#ifdef __SSE2__
#include <xmmintrin.h>
#endif

#include "random_numbers.h"
#include "rows_testing.h"

enum { HALVES = 65536, RANDOMS = 1 << 20 };

/* ---- numbers ---- */

/* Floats around every decision in rounding: each half and its neighbours, ties and their neighbours,
 * subnormals, limits, NaNs of all kinds, and random bits. */
static size_t awkward_floats(float **out)
{
    size_t count = 0, capacity = HALVES * 12 + RANDOMS + 16;
    uint32_t *bits = malloc(capacity * sizeof *bits);
    assert_non_null(bits);
    for (uint32_t h = 0; h < HALVES; h++) {
        uint32_t fp16 = amp_float_bits(amp_fp16_to_float((amp_half_bits)h)), bf16 = h << 16;
        for (int d = -1; d <= 1; d++) {
            bits[count++] = fp16 + d;
            bits[count++] = fp16 + 0x1000 + d; /* halfway to the next fp16, where that is normal */
            bits[count++] = bf16 + d;
            bits[count++] = bf16 + 0x8000 + d;
        }
    }
    uint64_t state = 7;
    for (int i = 0; i < RANDOMS; i++) bits[count++] = (uint32_t)next_random(&state);
    *out = (float *)bits;
    return count;
}

/* A program linked with -Ofast, like Darknet, starts with flush-to-zero. Switches that on or off; returns 0
 * if the processor has no such mode. */
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

/* ---- rows ---- */

static void check_widening(int flushing)
{
    const amp_cpu_rows *sets[3];
    int count = rows_of_this_machine(sets);
    static amp_half_bits halves[HALVES];
    static uint32_t got[HALVES];
    for (int h = 0; h < HALVES; h++) halves[h] = (amp_half_bits)h;
    for (int s = 0; s < count; s++)
        for (int bf16 = 0; bf16 < 2; bf16++) {
            if (flushing) flush_subnormals(1);
            sets[s]->widen(bf16 ? AMP_BF16 : AMP_FP16, halves, (float *)got, HALVES);
            flush_subnormals(0);
            for (uint32_t h = 0; h < HALVES; h++) {
                float fp16 = amp_fp16_to_float((amp_half_bits)h);
                assert_int_equal(got[h], bf16 ? h << 16 : amp_float_bits(fp16));
            }
        }
}

static void check_rounding(int flushing)
{
    float *floats;
    size_t n = awkward_floats(&floats);
    const amp_cpu_rows *sets[3];
    int count = rows_of_this_machine(sets);
    amp_half_bits *got = malloc(n * sizeof *got);
    assert_non_null(got);
    for (int s = 0; s < count; s++)
        for (int bf16 = 0; bf16 < 2; bf16++) {
            if (flushing) flush_subnormals(1);
            sets[s]->narrow(bf16 ? AMP_BF16 : AMP_FP16, floats, got, n, 0);
            flush_subnormals(0);
            for (size_t i = 0; i < n; i++) {
                amp_half_bits want = bf16 ? amp_float_to_bf16(floats[i]) : amp_float_to_fp16(floats[i]);
                if (got[i] != want)
                    fail_msg("%s: %s of %08x is %04x, not %04x", sets[s]->name, bf16 ? "bf16" : "fp16",
                             amp_float_bits(floats[i]), got[i], want);
            }
        }
    free(got);
    free(floats);
}

TEST(flush_to_zero_changes_nothing)
{
    for (int flushing = 0; flushing < 1 + flush_subnormals(0); flushing++) {
        check_widening(flushing);
        check_rounding(flushing);
    }
}

/* Every length up to a few vectors, at odd addresses: elements after the row are not touched. */
TEST(rows_of_any_length_stay_within_bounds)
{
    const amp_cpu_rows *sets[3];
    int count = rows_of_this_machine(sets);
    for (int s = 0; s < count; s++)
        for (size_t n = 0; n <= 70; n++) {
            /* exact blocks from malloc: the sanitizer detects reads past them, the guard detects writes */
            amp_half_bits *half = malloc((n + 2) * sizeof *half), *to = malloc((n + 2) * sizeof *to);
            float *wide = malloc((n + 2) * sizeof *wide), *sum = malloc((n + 2) * sizeof *sum);
            assert_true(half && to && wide && sum);
            for (size_t i = 0; i < n + 2; i++)
                half[i] = (amp_half_bits)(0x3c00 + i), to[i] = 0xabcd, wide[i] = 99, sum[i] = 5;
            sets[s]->widen(AMP_FP16, half + 1, wide + 1, n);
            sets[s]->narrow(AMP_FP16, wide + 1, to + 1, n, 0);
            sets[s]->narrow(AMP_FP32, wide + 1, sum + 1, n, 1);
            for (size_t i = 0; i < n; i++) {
                assert_int_equal(to[i + 1], half[i + 1]);
                assert_true(sum[i + 1] == wide[i + 1] + 5);
            }
            assert_true(to[0] == 0xabcd && to[n + 1] == 0xabcd && sum[0] == 5 && sum[n + 1] == 5);
            assert_true(wide[0] == 99 && wide[n + 1] == 99);
            sets[s]->widen(AMP_BF16, half + 1, wide + 1, n);
            sets[s]->narrow(AMP_BF16, wide + 1, to + 1, n, 0);
            for (size_t i = 0; i < n; i++) assert_int_equal(to[i + 1], half[i + 1]);
            assert_true(to[0] == 0xabcd && to[n + 1] == 0xabcd && wide[0] == 99 && wide[n + 1] == 99);
            free(half);
            free(to);
            free(wide);
            free(sum);
        }
}

int main(void) { return run_listed_tests("casts", NULL, NULL); }
