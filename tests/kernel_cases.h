/* What the tests of the CPU kernels share: tensors filled with chosen or poisoned values, read back as doubles, and the
 * one question "is this the true value rounded once?".
 *
 * Every test file runs its tests once for each instruction set that the machine has (for_each_isa). */
#ifndef KERNEL_CASES_H
#define KERNEL_CASES_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cpu/kernels.h"
#include "backend/cpu/rows.h"
#include "tensor/half.h"

#define COUNT(array) (sizeof (array) / sizeof *(array))

static const amp_dtype all_dtypes[] = { AMP_FP32, AMP_FP16, AMP_BF16 };

static inline double element(const amp_tensor *t, size_t i)
{
    if (t->dtype == AMP_FP32) return (double)((const float *)t->data)[i];
    amp_half_bits h = ((const amp_half_bits *)t->data)[i];
    return (double)(t->dtype == AMP_FP16 ? amp_fp16_to_float(h) : amp_bf16_to_float(h));
}

static inline void set_element(const amp_tensor *t, size_t i, float value)
{
    if (t->dtype == AMP_FP32) ((float *)t->data)[i] = value;
    else ((amp_half_bits *)t->data)[i] = t->dtype == AMP_FP16 ? amp_float_to_fp16(value) : amp_float_to_bf16(value);
}

/* A tensor of NaN, in memory of exactly its size, so that AddressSanitizer sees one element too many. */
static inline amp_tensor poisoned(amp_dtype dtype, int n, int h, int w, int c)
{
    amp_tensor t = { NULL, dtype, AMP_NHWC, { n, c, h, w } };
    t.data = malloc(amp_tensor_bytes(&t));
    assert_non_null(t.data);
    memset(t.data, 0xff, amp_tensor_bytes(&t));
    return t;
}

/* Uniform in [0, 1), the same sequence everywhere. */
static inline float uniform(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) * 0x1p-24f;
}

static inline void fill(const amp_tensor *t, uint32_t seed, float low, float high)
{
    for (size_t i = 0; i < amp_shape_count(t->shape); ++i) set_element(t, i, low + (high - low) * uniform(&seed));
}

static inline amp_tensor filled(amp_dtype dtype, int n, int h, int w, int c, uint32_t seed, float low, float high)
{
    amp_tensor t = poisoned(dtype, n, h, w, c);
    fill(&t, seed, low, high);
    return t;
}

static inline amp_tensor copy_of(const amp_tensor *t)
{
    amp_tensor copy = poisoned(t->dtype, t->shape.n, t->shape.h, t->shape.w, t->shape.c);
    memcpy(copy.data, t->data, amp_tensor_bytes(t));
    return copy;
}

static inline float *filled_array(size_t count, uint32_t seed, float low, float high)
{
    float *a = malloc((count ? count : 1) * sizeof *a);
    assert_non_null(a);
    for (size_t i = 0; i < count; ++i) a[i] = low + (high - low) * uniform(&seed);
    return a;
}

static inline float *array_copy(const float *from, size_t count)
{
    float *a = malloc((count ? count : 1) * sizeof *a);
    assert_non_null(a);
    memcpy(a, from, count * sizeof *a);
    return a;
}

/* The most that rounding `value` to nearest in dtype can move it: half a unit in the last place; half a subnormal. */
static inline double rounding(amp_dtype dtype, double value)
{
    double size = fabs(value);
    if (dtype == AMP_FP32) return fmax(size * 0x1p-24, 0x1p-150);
    if (dtype == AMP_FP16) return fmax(size * 0x1p-11, 0x1p-25);
    return fmax(size * 0x1p-8, 0x1p-134);
}

/* got is `want` rounded once to dtype, where want itself is known to `slack` (the fp32 arithmetic before the rounding).
 * A NaN wants a NaN. */
static inline void assert_rounded(amp_dtype dtype, double got, double want, double slack, const char *what, size_t i)
{
    double error = fabs(got - want), allowed = rounding(dtype, fabs(want) + slack) + slack;
    if (isnan(want) ? isnan(got) : got == want || error <= allowed) return;
    fail_msg("%s[%zu] in %s: got %.9g, want %.9g; off by %.3g where %.3g is allowed (%s)", what, i,
        amp_dtype_name(dtype), got, want, error, allowed, amp_cpu_rows_best()->name);
}

/* A call that must succeed, and one that must be refused with a message. */
#define ASSERT_OK(call) do { \
        amp_error error = { AMP_OK, "" }; \
        amp_error *e = &error; \
        if ((call) != AMP_OK) fail_msg("%s", error.message); \
    } while (0)
#define ASSERT_REFUSED(call) do { \
        amp_error error = { AMP_OK, "" }; \
        amp_error *e = &error; \
        assert_int_not_equal((call), AMP_OK); \
        assert_int_not_equal(error.status, AMP_OK); \
        assert_true(error.message[0] != '\0' && !strchr(error.message, '\n')); \
    } while (0)

/* run(isa) with AMP_CPU_ISA set to each table this machine can run, narrowest first; the sum of what it returns. */
static inline int for_each_isa(int (*run)(const char *isa))
{
    static const char *const names[] = { "sse2", "avx2", "avx512" };
    int failed = 0;
    for (size_t i = 0; i < COUNT(names); ++i) {
        setenv("AMP_CPU_ISA", names[i], 1);
        if (!strcmp(amp_cpu_rows_best()->name, names[i])) failed += run(names[i]);
    }
    unsetenv("AMP_CPU_ISA");
    return failed;
}

#endif
