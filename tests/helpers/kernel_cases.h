/* Helpers for the tests of a backend: the backend under test, tensors filled with chosen or poisoned values
 * and read back as doubles, and the check "is this the true value rounded once?".
 *
 * Every test file runs its tests once for each variant of its machine (conformance/machine.h):
 * for_each_variant. */
#ifndef KERNEL_CASES_H
#define KERNEL_CASES_H

#include <math.h>

#include "testing.h"

#include "conformance/machine.h"
#include "kernel_numbers.h"

static const amp_dtype all_dtypes[] = { AMP_FP32, AMP_FP16, AMP_BF16 };

static amp_backend *backend; /* under test */
static const char *variant;  /* name of the machine's variant */

/* An operation of the backend, as an argument of ASSERT_OK or ASSERT_REFUSED, which supply its last
 * argument. */
#define CALL(operation, ...) backend->operation(backend, __VA_ARGS__)
/* At the start of a test: skips it if the backend lacks this operation. */
#define NEEDS(operation) do { \
        if (machine.partial && !backend->operation) skip(); \
        assert_non_null(backend->operation); \
    } while (0)

/* Memory of exactly that size that both the backend and the test may access; the test releases it. */
static inline void *memory(size_t bytes)
{
    void *p = machine.allocate(bytes);
    assert_non_null(p);
    return p;
}

static inline void release(void *p) { machine.release(p); }

static inline double element(const amp_tensor *t, size_t i) { return number_of(t->dtype, t->data, i); }

static inline void set_element(const amp_tensor *t, size_t i, float value)
{
    set_number(t->dtype, t->data, i, value);
}

/* A tensor of NaN, in memory of exactly its size, so that AddressSanitizer detects accesses past its end. */
static inline amp_tensor poisoned(amp_dtype dtype, int n, int h, int w, int c)
{
    amp_tensor t = { NULL, dtype, AMP_NHWC, { n, c, h, w } };
    t.data = memory(amp_tensor_bytes(&t));
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
    for (size_t i = 0; i < amp_shape_count(t->shape); i++)
        set_element(t, i, low + (high - low) * uniform(&seed));
}

static inline amp_tensor filled(amp_dtype dtype, int n, int h, int w, int c, uint32_t seed, float low,
                                float high)
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
    float *a = memory((count ? count : 1) * sizeof *a);
    for (size_t i = 0; i < count; i++) a[i] = low + (high - low) * uniform(&seed);
    return a;
}

static inline float *array_copy(const float *from, size_t count)
{
    float *a = memory((count ? count : 1) * sizeof *a);
    memcpy(a, from, count * sizeof *a);
    return a;
}

/* The most that rounding `value` to nearest in dtype can change it: half a unit in the last place; half a
 * subnormal. */
static inline double rounding(amp_dtype dtype, double value)
{
    double size = fabs(value);
    if (dtype == AMP_FP32) return fmax(size * 0x1p-24, 0x1p-150);
    if (dtype == AMP_FP16) return fmax(size * 0x1p-11, 0x1p-25);
    return fmax(size * 0x1p-8, 0x1p-134);
}

/* Asserts that got is `want` rounded once to dtype, where want itself has an error of at most `slack` (the
 * fp32 arithmetic before the rounding). If want is NaN, got must be NaN. */
static inline void assert_rounded(amp_dtype dtype, double got, double want, double slack, const char *what,
                                  size_t i)
{
    double error = fabs(got - want), allowed = rounding(dtype, fabs(want) + slack) + slack;
    if (isnan(want) ? isnan(got) : got == want || error <= allowed) return;
    fail_msg("%s[%zu] in %s: got %.9g, want %.9g; off by %.3g where %.3g is allowed (%s)", what, i,
        amp_dtype_name(dtype), got, want, error, allowed, variant);
}

/* Asserts the same numbers bit for bit, ignoring NaN payloads. */
static inline void assert_same(const amp_tensor *a, const amp_tensor *b)
{
    size_t size = amp_dtype_size(a->dtype);
    for (size_t i = 0; i < amp_shape_count(a->shape); i++) {
        const char *left = (const char *)a->data + i * size, *right = (const char *)b->data + i * size;
        if (!memcmp(left, right, size) || (isnan(element(a, i)) && isnan(element(b, i)))) continue;
        fail_msg("element %zu in %s: %.9g and %.9g (%s)", i, amp_dtype_name(a->dtype), element(a, i),
                 element(b, i), variant);
    }
}

/* A call that must succeed, and one that must fail with a message. */
#define ASSERT_OK(call) do { \
        amp_error error = { AMP_OK, "" }; \
        amp_error *e = &error; \
        machine.begin(); \
        amp_status status_ = (call); \
        const char *seen_ = machine.finish(backend); \
        if (status_ != AMP_OK) fail_msg("%s", error.message); \
        if (seen_) fail_msg("%s", seen_); \
    } while (0)
#define ASSERT_REFUSED(call) do { \
        amp_error error = { AMP_OK, "" }; \
        amp_error *e = &error; \
        machine.begin(); \
        amp_status status_ = (call); \
        const char *seen_ = machine.finish(backend); \
        assert_int_not_equal(status_, AMP_OK); \
        assert_int_equal(error.status, status_); \
        assert_true(error.message[0] != '\0' && !strchr(error.message, '\n')); \
        if (seen_) fail_msg("%s", seen_); \
    } while (0)

/* Calls run() with a separate backend, after `change` (may be NULL) has modified it; not at all if that
 * returns 0. */
static inline int with_changed(int (*run)(void), const char *name, int (*change)(amp_backend *))
{
    amp_error error = { AMP_OK, "" };
    backend = machine.create(&error);
    if (!backend) {
        fprintf(stderr, "%s: %s\n", machine.name, error.message);
        return 1;
    }
    variant = name;
    int failed = !change || change(backend) ? run() : 0;
    backend->destroy(backend);
    backend = NULL;
    return failed;
}

static inline int with_variant(int (*run)(void), const char *name) { return with_changed(run, name, NULL); }

/* The same with halves computed natively, if the backend would only store them. */
static inline int with_halves_computed(int (*run)(void))
{
    return machine.compute_halves ? with_changed(run, "halves computed", machine.compute_halves) : 0;
}

/* The same for each variant of the machine, or only for the preferred one; returns the sum of run's
 * results. */
static inline int for_each_variant(int (*run)(void))
{
    int failed = 0;
    for (const char *const *v = machine.variants; *v; v++)
        if (machine.select(*v)) failed += with_variant(run, *v);
    machine.select(NULL);
    return failed;
}

static inline int run_listed(void) { return run_listed_tests(variant, NULL, NULL); }
static inline int with_one_variant(int (*run)(void)) { return with_variant(run, "default"); }

#endif
