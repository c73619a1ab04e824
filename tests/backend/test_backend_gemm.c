/* Conformance of a backend's matrix products: a table of sizes, transposes and row lengths, in every dtype,
 * against double precision.
 *
 * Factors are rounded to the dtype by tensor/half.h before the reference multiplies them. The allowed
 * difference is the rounding of fp32 sums of k terms in any order, also by hardware that truncates: (k + 2)
 * 2^-23 Σ|terms|. Sums in 16 bits, or a result that was stored in 16 bits, differ by more. The gaps between
 * rows are NaN in the factors, and must not change in c. */
#include "kernel_cases.h"

typedef struct size_case { int m, n, k, a_gap, b_gap, c_gap; } size_case;

static const size_case sizes[] = {
    { 1, 1, 1, 0, 0, 0 }, { 1, 7, 5, 0, 0, 0 }, { 7, 1, 5, 0, 0, 0 }, { 5, 7, 1, 0, 0, 0 },
    { 3, 5, 2, 1, 2, 3 }, { 1, 40, 33, 0, 0, 0 }, { 33, 17, 65, 0, 0, 0 }, { 33, 17, 65, 7, 1, 5 },
    { 16, 64, 32, 0, 0, 0 }, { 16, 64, 32, 16, 32, 64 }, { 64, 48, 16, 0, 0, 0 }, { 31, 64, 33, 0, 0, 0 },
    { 2, 3, 300, 0, 5, 0 }, { 7, 66, 129, 3, 0, 1 },
};
enum { SIZES = COUNT(sizes) };

/* ------------------------------------------------------------------------------------------------ numbers */

/* rows × columns of numbers in [low, high), rows ld apart; NaN in the gaps, and no element after the last. */
static float *matrix(int rows, int columns, int ld, uint32_t seed, float low, float high)
{
    size_t extent = (size_t)(rows - 1) * (size_t)ld + (size_t)columns;
    float *a = memory(extent * sizeof *a);
    for (size_t i = 0; i < extent; i++)
        a[i] = i % (size_t)ld < (size_t)columns ? low + (high - low) * uniform(&seed) : NAN;
    return a;
}

static float *factor(amp_factor *f, int rows, int columns, int gap, int transposed, uint32_t seed, float low,
                     float high)
{
    *f = (amp_factor){ .ld = (transposed ? rows : columns) + gap, .transposed = transposed };
    float *a = transposed ? matrix(columns, rows, f->ld, seed, low, high)
        : matrix(rows, columns, f->ld, seed, low, high);
    f->data = a;
    return a;
}

static double element_of(const amp_factor *f, amp_dtype dtype, int row, int column)
{
    size_t at = f->transposed ? (size_t)column * (size_t)f->ld + (size_t)row
        : (size_t)row * (size_t)f->ld + (size_t)column;
    return (double)rounded(dtype, f->data[at]);
}

/* -------------------------------------------------------------------------------------------- one product */

typedef struct product { amp_gemm_desc d; float *a, *b; size_t c_extent; } product;

static product make(size_case s, int transposes, amp_dtype dtype, float low, float high)
{
    product p = { .d = { .m = s.m, .n = s.n, .k = s.k, .alpha = 1, .beta = 0, .ldc = s.n + s.c_gap,
                         .dtype = dtype } };
    p.a = factor(&p.d.a, s.m, s.k, s.a_gap, transposes & 1, 3, low, high);
    p.b = factor(&p.d.b, s.k, s.n, s.b_gap, transposes >> 1, 5, low, high);
    p.c_extent = (size_t)(s.m - 1) * (size_t)p.d.ldc + (size_t)s.n;
    p.d.c = matrix(s.m, s.n, p.d.ldc, 7, -1, 1);
    return p;
}

static void drop(product *p)
{
    release(p->a);
    release(p->b);
    release(p->d.c);
}

/* Compares element [i, j] with the product of the factors as they are now, added to `old`. */
static void check_element(const product *p, const float *old, int i, int j)
{
    const amp_gemm_desc *d = &p->d;
    size_t at = (size_t)i * (size_t)d->ldc + (size_t)j;
    double sum = 0, terms = 0, kept = d->beta == 0 ? 0 : (double)d->beta * (double)old[at];
    char what[160];
    for (int l = 0; l < d->k; l++) {
        double term = element_of(&d->a, d->dtype, i, l) * element_of(&d->b, d->dtype, l, j);
        sum += term;
        terms += fabs(term);
    }
    snprintf(what, sizeof what, "c of %dx%d by %dx%d in %s, transposed %d %d, rows %d %d %d, alpha %g, "
             "beta %g", d->m, d->k, d->k, d->n, amp_dtype_name(d->dtype), d->a.transposed, d->b.transposed,
             d->a.ld, d->b.ld, d->ldc, (double)d->alpha, (double)d->beta);
    double want = (double)d->alpha * sum + kept,
        slack = (d->k + 2) * 0x1p-23 * (fabs((double)d->alpha) * terms + fabs(kept));
    assert_rounded(AMP_FP32, (double)d->c[at], want, isfinite(slack) ? slack : 0, what, at);
}

static void check(const product *p, const float *old)
{
    for (int i = 0; i < p->d.m; i++)
        for (int j = 0; j < p->d.n; j++) check_element(p, old, i, j);
    for (size_t i = 0; i < p->c_extent; i++)
        if (i % (size_t)p->d.ldc >= (size_t)p->d.n && memcmp(&p->d.c[i], &old[i], sizeof *old))
            fail_msg("c[%zu], between rows, was written", i);
}

static void run_and_check(product *p)
{
    float *old = array_copy(p->d.c, p->c_extent);
    ASSERT_OK(CALL(gemm, &p->d, e));
    check(p, old);
    release(old);
}

/* ---------------------------------------------------------------------------------------------- the table */

static void agrees_with_double_precision(void **state)
{
    const amp_dtype dtype = *(const amp_dtype *)*state;
    static const struct { float alpha, beta; } scales[] = { { 1, 0 }, { 1, 1 }, { -.75f, 0 }, { 2.5f, .5f } };
    NEEDS(gemm);
    for (size_t s = 0; s < SIZES; s++)
        for (int transposes = 0; transposes < 4; transposes++)
            for (size_t k = 0; k < COUNT(scales); k++) {
                product p = make(sizes[s], transposes, dtype, -1, 1);
                p.d.alpha = scales[k].alpha;
                p.d.beta = scales[k].beta;
                run_and_check(&p);
                run_and_check(&p); /* whatever was cached for the first product */
                drop(&p);
            }
}

/* Positive terms, with which a sum in 16 bits stops growing, in bf16 after 256 terms, in fp16 after 2048; and
 * a sum beyond fp16's range, whose terms are not. */
TEST(sums_are_fp32)
{
    NEEDS(gemm);
    for (size_t t = 0; t < COUNT(all_dtypes); t++)
        for (int transposes = 0; transposes < 4; transposes++) {
            product p = make((size_case){ 5, 6, 4100, 0, 0, 0 }, transposes, all_dtypes[t], .25f, 1),
                    large = make((size_case){ 33, 34, 40, 0, 0, 0 }, transposes, all_dtypes[t], 100, 200);
            run_and_check(&p);
            p.d.beta = 1;
            run_and_check(&p);
            run_and_check(&large);
            assert_true(large.d.c[0] > 65504);
            drop(&p);
            drop(&large);
        }
}

/* -------------------------------------------------------------------------------------------- inf and NaN */

TEST(beta_0_overwrites_whatever_was_there)
{
    NEEDS(gemm);
    for (size_t t = 0; t < COUNT(all_dtypes); t++)
        for (size_t s = 0; s < SIZES; s++) {
            product p = make(sizes[s], s % 4, all_dtypes[t], -1, 1);
            for (size_t i = 0; i < p.c_extent; i++) p.d.c[i] = i % 3 ? NAN : INFINITY;
            run_and_check(&p);
            drop(&p);
        }
}

TEST(inf_and_nan_reach_their_rows_and_no_other)
{
    static const float bad[] = { INFINITY, -INFINITY, NAN };
    NEEDS(gemm);
    for (size_t t = 0; t < COUNT(all_dtypes); t++)
        for (size_t b = 0; b < COUNT(bad); b++)
            for (size_t s = 0; s < SIZES; s++) {
                product p = make(sizes[s], (int)(s + b) % 4, all_dtypes[t], .5f, 1);
                p.a[0] = bad[b];
                if (p.d.n > 2) p.b[p.d.b.transposed ? p.d.b.ld : 1] = bad[2 - b];
                run_and_check(&p);
                p.d.beta = 1; /* and existing numbers in c stay */
                run_and_check(&p);
                drop(&p);
            }
}

/* Also to infinity, if a number is beyond the dtype's range; subnormals are kept. */
TEST(factors_are_rounded_to_nearest_even)
{
    static const float numbers[] = { 65519.996f, 65520, -70000, 2049, 2051, 1.00390625f, 1.01171875f,
                                     0x1p-14f, 0x1p-24f, 0x1.8p-24f, 0x1p-25f, 0x1.8p-25f, 3.4e38f,
                                     -3.3961775e38f, 1e-30f, 0 };
    NEEDS(gemm);
    for (size_t t = 0; t < COUNT(all_dtypes); t++)
        for (int k = 1; k <= 64; k += 63) { /* alone, and among others that are multiplied by 0 */
            product p = make((size_case){ COUNT(numbers), 2, k, 0, 0, 0 }, 0, all_dtypes[t], 1, 1);
            for (int l = 0; l < k; l++) p.b[2 * l] = p.b[2 * l + 1] = l ? 0 : 1;
            for (size_t i = 0; i < COUNT(numbers); i++) p.a[i * (size_t)k] = numbers[i];
            ASSERT_OK(CALL(gemm, &p.d, e));
            for (size_t i = 0; i < COUNT(numbers); i++) {
                float want = rounded(all_dtypes[t], numbers[i]);
                if (p.d.c[2 * i] != want || p.d.c[2 * i + 1] != want)
                    fail_msg("%g in %s: got %g and %g, want %g", (double)numbers[i],
                             amp_dtype_name(all_dtypes[t]), (double)p.d.c[2 * i], (double)p.d.c[2 * i + 1],
                             (double)want);
            }
            drop(&p);
        }
}

/* ----------------------------------------------------------------------------------------------- versions */

static void renew(float *array, size_t count, uint32_t seed)
{
    for (size_t i = 0; i < count; i++) array[i] = uniform(&seed) - .5f;
}

/* With the old version, the product is that of either the old or the new factor, not of a mixture. */
TEST(a_version_stands_for_its_contents)
{
    NEEDS(gemm);
    for (size_t t = 0; t < COUNT(all_dtypes); t++)
        for (int which = 0; which < 2; which++) {
            product p = make((size_case){ 9, 40, 50, 0, 0, 0 }, which, all_dtypes[t], -1, 1);
            amp_factor *f = which ? &p.d.a : &p.d.b;
            float *array = which ? p.a : p.b;
            const size_t count = which ? 9 * 50 : 50 * 40, bytes = p.c_extent * sizeof(float);
            float *then = memory(bytes), *now = memory(bytes);
            f->version = 1;
            run_and_check(&p);
            run_and_check(&p);
            memcpy(then, p.d.c, bytes);
            renew(array, count, 11);
            ASSERT_OK(CALL(gemm, &p.d, e));
            memcpy(now, p.d.c, bytes);
            f->version = 2;
            run_and_check(&p); /* new version, new contents */
            assert_true(!memcmp(now, then, bytes) || !memcmp(now, p.d.c, bytes));
            renew(array, count, 12);
            f->version = 1; /* another version than the last; numbers may be reused */
            run_and_check(&p);
            renew(array, count, 13);
            backend->gemm_drop_copies(backend); /* of all versions */
            run_and_check(&p);
            renew(array, count, 14);
            f->version = 0;
            run_and_check(&p);
            release(then);
            release(now);
            drop(&p);
            backend->gemm_drop_copies(backend);
        }
}

/* One address and one version for several arrays. */
TEST(copies_are_told_apart_by_extent_and_dtype)
{
    NEEDS(gemm);
    product p = make((size_case){ 9, 40, 50, 0, 0, 0 }, 0, AMP_BF16, -1, 1);
    p.d.b.version = 1;
    run_and_check(&p);
    renew(p.b, 50 * 40, 21);
    p.d.dtype = AMP_FP16;
    run_and_check(&p);
    renew(p.b, 50 * 40, 22);
    p.d.k = 49;
    run_and_check(&p);
    drop(&p);
    backend->gemm_drop_copies(backend);
}

/* Forward and backward multiply by the same weights, in other positions. */
TEST(one_copy_serves_both_sides_and_both_directions)
{
    NEEDS(gemm);
    for (size_t t = 0; t < COUNT(all_dtypes); t++)
        for (int side = 0; side < 2; side++)
            for (int transposed = 0; transposed < 2; transposed++) {
                product p = make((size_case){ 36, 36, 36, 0, 0, 0 }, side ? transposed : transposed << 1,
                                 all_dtypes[t], -1, 1);
                (side ? &p.d.a : &p.d.b)->version = 5;
                run_and_check(&p);
                (side ? &p.d.a : &p.d.b)->transposed ^= 1;
                run_and_check(&p);
                amp_factor other = p.d.a;
                p.d.a = p.d.b;
                p.d.b = other;
                run_and_check(&p);
                drop(&p);
                backend->gemm_drop_copies(backend);
            }
}

TEST(both_factors_may_have_versions)
{
    NEEDS(gemm);
    for (size_t t = 0; t < COUNT(all_dtypes); t++) {
        product p = make((size_case){ 9, 40, 50, 0, 0, 0 }, 3, all_dtypes[t], -1, 1);
        p.d.a.version = p.d.b.version = 1;
        run_and_check(&p);
        run_and_check(&p);
        renew(p.a, 9 * 50, 41);
        p.d.a.version = 2;
        run_and_check(&p);
        drop(&p);
        backend->gemm_drop_copies(backend);
    }
}

/* ----------------------------------------------------------------------------------------------- the rest */

/* More shapes than a backend may cache. */
TEST(many_shapes_in_turn)
{
    NEEDS(gemm);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 100; i++) {
            product p = make((size_case){ 1 + i % 7, 1 + i / 7, 32 + i % 3, 0, 0, 0 }, i % 4,
                             AMP_BF16, -1, 1);
            run_and_check(&p);
            drop(&p);
        }
}

TEST(gives_the_same_bits_twice)
{
    NEEDS(gemm);
    for (size_t t = 0; t < COUNT(all_dtypes); t++)
        for (int transposes = 0; transposes < 4; transposes++) {
            product p = make((size_case){ 65, 130, 257, 0, 0, 0 }, transposes, all_dtypes[t], -1, 1);
            ASSERT_OK(CALL(gemm, &p.d, e));
            float *first = array_copy(p.d.c, p.c_extent);
            p.d.b.version = 9;
            ASSERT_OK(CALL(gemm, &p.d, e));
            assert_memory_equal(first, p.d.c, p.c_extent * sizeof *first);
            release(first);
            drop(&p);
            backend->gemm_drop_copies(backend);
        }
}

TEST(computes_in_the_dtype_or_in_fp32)
{
    NEEDS(gemm_computes);
    assert_int_equal(backend->gemm_computes(backend, AMP_FP32), AMP_FP32);
    for (size_t t = 0; t < COUNT(all_dtypes); t++) {
        char note[256];
        amp_dtype computes = backend->gemm_computes(backend, all_dtypes[t]);
        assert_true(computes == all_dtypes[t] || computes == AMP_FP32);
        if (backend->supports(backend, all_dtypes[t], note) == AMP_SUPPORT_NATIVE)
            assert_int_equal(computes, all_dtypes[t]);
    }
}

TEST(refuses_what_is_no_product)
{
    NEEDS(gemm);
    product p = make((size_case){ 4, 5, 6, 0, 0, 0 }, 0, AMP_BF16, -1, 1);
    const amp_gemm_desc good = p.d;
    p.d.m = 0;
    ASSERT_REFUSED(CALL(gemm, &p.d, e));
    p.d = good, p.d.k = 0;
    ASSERT_REFUSED(CALL(gemm, &p.d, e));
    p.d = good, p.d.a.ld = 5;
    ASSERT_REFUSED(CALL(gemm, &p.d, e));
    p.d = good, p.d.b.transposed = 1;
    ASSERT_REFUSED(CALL(gemm, &p.d, e));
    p.d = good, p.d.ldc = 4;
    ASSERT_REFUSED(CALL(gemm, &p.d, e));
    p.d = good, p.d.b.ld = 1 << 30;
    ASSERT_REFUSED(CALL(gemm, &p.d, e));
    p.d = good;
    drop(&p);
}

static int run(void)
{
    static struct CMUnitTest table[COUNT(all_dtypes)];
    static char names[COUNT(all_dtypes)][64];
    for (size_t t = 0; t < COUNT(all_dtypes); t++) {
        snprintf(names[t], sizeof names[t], "agrees_with_double_precision, %s",
                 amp_dtype_name(all_dtypes[t]));
        table[t] = (struct CMUnitTest){ names[t], agrees_with_double_precision, NULL, NULL,
                                        (void *)&all_dtypes[t] };
    }
    int failed = _cmocka_run_group_tests("products agree with double precision", table, COUNT(all_dtypes),
                                         NULL, NULL);
    return run_listed_tests(variant, NULL, NULL) + failed;
}

int main(void) { return for_each_variant(run) + with_halves_computed(run); }
