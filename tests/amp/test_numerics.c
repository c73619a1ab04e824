/* Histograms of exponents: what is counted, and that the predicted losses of fp16 and bf16 equal those of
 * converting the numbers. */
#include "testing.h"

#include <fenv.h>
#include <limits.h>
#include <math.h>

#include "amp/numerics.h"
#include "kernel_numbers.h"
#include "memory_network.h"
#include "tensor/half.h"

static amp_backend memory = { .name = "memory", .allocate = memory_allocate, .release = memory_release,
                              .download = memory_download };

static int bin_of(int exponent) { return exponent - AMP_LEAST_EXPONENT; }

static uint32_t random_state = 1;
static uint32_t random_bits(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state * 2654435761u;
}

/* Random sign and fraction, an exponent from least to most. */
static float random_number(int least, int most)
{
    uint32_t fraction = random_bits() & 0x807fffffu,
        exponent = (uint32_t)(least + 127 + (int)(random_bits() % (unsigned)(most - least + 1)));
    return amp_bits_float(fraction | exponent << 23);
}

/* ---- counting ---- */

/* Counts one by one, with another method than the code's: frexp. */
static void count_slowly(amp_exponents *e, float number)
{
    int exponent;
    if (!amp_is_finite(number)) e->not_finite++;
    else if (number == 0) e->zeros++;
    else {
        frexp((double)number, &exponent);
        e->bins[bin_of(exponent - 1)]++;
        if (fabsf(number) > e->largest) e->largest = fabsf(number);
    }
}

static float any_number(void)
{
    uint32_t kind = random_bits() % 8;
    return kind == 0 ? 0 : kind == 1 ? amp_bits_float(random_bits() & 0x807fffffu)
        : kind == 2 ? amp_bits_float(random_bits() | 0x7f800000u)
         : amp_bits_float(random_bits());
}

TEST(counts_are_right_for_any_length)
{
    static float numbers[100003];
    const size_t lengths[] = { 0, 1, 2, 3, 4, 5, 7, 63, 16383, 16384, 16385, 65536, 100003 };
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        amp_exponents fast = { .zeros = 0 }, slow = { .zeros = 0 };
        for (size_t i = 0; i < lengths[k]; i++) count_slowly(&slow, numbers[i] = any_number());
        amp_exponents_add(&fast, numbers, AMP_FP32, lengths[k]);
        assert_memory_equal(&fast, &slow, sizeof fast);
    }
}

/* ---- observing ---- */

static amp_seen seen_of(amp_seen_kind kind, int layer, amp_tensor tensor)
{
    return (amp_seen){ .kind = kind, .layer = layer, .name = kind == AMP_SEEN_GRADIENT ? "weights" : "x",
                       .tensor = tensor };
}

static void show(amp_numerics *n, amp_seen seen)
{
    amp_observer observer = amp_numerics_observer(n);
    assert_int_equal(observer.see(observer.context, &memory, &seen, NULL), AMP_OK);
}

/* 600,000 numbers are downloaded in several parts, from memory that only the backend can read. */
TEST(tensors_of_every_dtype_and_layout_are_counted_from_the_backends_memory)
{
    const amp_shape shape = { 3, 8, 100, 250 };
    const size_t count = amp_shape_count(shape);
    const amp_dtype dtypes[] = { AMP_FP32, AMP_FP16, AMP_BF16 };
    for (int d = 0; d < 3; d++) {
        for (int layout = AMP_NHWC; layout <= AMP_NCHW; layout++) {
            amp_exponents slow = { .zeros = 0 };
            amp_numerics *n;
            amp_tensor t = { .dtype = dtypes[d], .layout = (amp_layout)layout, .shape = shape };
            n = amp_numerics_create(3, NULL);
            assert_int_equal(memory.allocate(&memory, amp_tensor_bytes(&t), &t.data, NULL), AMP_OK);
            void *here = memory_here(t.data);
            for (size_t i = 0; i < count; i++) {
                float number = any_number();
                amp_half_bits half = (amp_half_bits)random_bits();
                if (dtypes[d] == AMP_FP32) ((float *)here)[i] = number;
                else ((amp_half_bits *)here)[i] = half;
                count_slowly(&slow, number_of(dtypes[d], here, i));
            }
            show(n, seen_of(AMP_SEEN_OUTPUT, 1, t));
            assert_memory_equal(&amp_numerics_of(n, 1)->output, &slow, sizeof slow);
            show(n, seen_of(AMP_SEEN_DELTA, 2, t));
            assert_memory_equal(&amp_numerics_of(n, 2)->delta, &slow, sizeof slow);
            assert_int_equal(amp_exponents_count(&amp_numerics_of(n, 0)->output), 0);
            memory.release(&memory, t.data);
            amp_numerics_free(n);
        }
    }
}

TEST(each_kind_of_tensor_is_counted_once_in_its_place)
{
    float two[2] = { 1, 4 };
    amp_numerics *n;
    amp_tensor t = { .data = memory_there(two), .shape = { 1, 2, 1, 1 } };
    n = amp_numerics_create(2, NULL);
    for (int pass = 0; pass < 2; pass++) {
        show(n, seen_of(AMP_SEEN_IMAGE, -1, t));
        show(n, seen_of(AMP_SEEN_INPUT, 0, t));
        show(n, seen_of(AMP_SEEN_OUTPUT, 0, t));
        show(n, seen_of(AMP_SEEN_OUTPUT, 1, t));
        show(n, seen_of(AMP_SEEN_OUTPUT, 1, t)); /* as the engine shows it */
        show(n, seen_of(AMP_SEEN_DELTA, 1, t));
        show(n, seen_of(AMP_SEEN_GRADIENT, 1, t));
        amp_seen other = seen_of(AMP_SEEN_GRADIENT, 1, t);
        other.name = "wf.weights";
        show(n, other);
        other.name = "biases";
        show(n, other);
        amp_numerics_count_gradients(n, 0);
    }
    const amp_layer_numerics *first = amp_numerics_of(n, 0), *second = amp_numerics_of(n, 1);
    assert_int_equal(amp_exponents_count(&first->output), 4);
    assert_int_equal(amp_exponents_count(&first->delta) + amp_exponents_count(&first->gradient), 0);
    assert_int_equal(amp_exponents_count(&second->output), 4);
    assert_int_equal(amp_exponents_count(&second->delta), 4);
    assert_int_equal(amp_exponents_count(&second->gradient), 4); /* of the first pass, for two weights */
    amp_numerics_free(n);
}

/* ---- what is lost ---- */

/* The shares found by converting each number; the halves' least normal number is 2^least. */
static amp_lost converting(const float *numbers, int count, amp_dtype dtype, float scale)
{
    amp_lost lost = { .count = (unsigned long long)count };
    float normal = dtype == AMP_FP16 ? 0x1p-14f : 0x1p-126f;
    double sum = 0, moved = 0;
    for (int i = 0; i < count; i++) {
        float half = fabsf(rounded(dtype, numbers[i] * scale));
        if (amp_is_finite(half)) {
            sum += fabs((double)(numbers[i] * scale));
            moved += fabs(fabs((double)(numbers[i] * scale)) - (double)half);
        }
        if (!amp_is_finite(half)) lost.overflow += 1, lost.overflows = 1;
        else if (half == 0) lost.zero += 1;
        else if (half < normal) lost.subnormal += 1;
    }
    lost.error = sum > 0 ? moved / sum : 0;
    lost.overflow /= count, lost.zero /= count, lost.subnormal /= count;
    return lost;
}

/* 1/2048, 2^-23 and 1/1024 of three bins are on the other side of the limit (bf16: 1/256, 2^-23, 1/128). */
TEST(shares_are_those_of_real_conversions)
{
    enum { COUNT = 200000 };
    static float numbers[COUNT];
    const struct { amp_dtype dtype; int least, most; float scale; } cases[] = {
        { AMP_FP16, -40, 20, 1 }, { AMP_FP16, -40, 20, 1024 }, { AMP_FP16, -30, -10, 1 },
        { AMP_FP16, -60, 0, 65536 }, { AMP_FP16, 10, 20, 0.125f }, { AMP_FP16, -10, 10, 1 },
        { AMP_BF16, 100, 127, 1 }, { AMP_BF16, -126, -110, 1 }, { AMP_BF16, -126, -110, 0x1p-10f },
        { AMP_BF16, 90, 120, 0x1p10f }, { AMP_BF16, -10, 10, 1 } };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        amp_exponents e = { .zeros = 0 };
        for (int i = 0; i < COUNT; i++) numbers[i] = random_number(cases[k].least, cases[k].most);
        amp_exponents_add(&e, numbers, AMP_FP32, COUNT);
        amp_lost said = amp_numerics_lost(&e, cases[k].dtype, cases[k].scale),
            real = converting(numbers, COUNT, cases[k].dtype, cases[k].scale);
        double bin = 1.0 / (cases[k].most - cases[k].least + 1),
            part = bin / (cases[k].dtype == AMP_FP16 ? 1024 : 128);
        double tolerance = 1.5 * part + 5 * sqrt(part / COUNT);
        assert_int_equal(said.count, COUNT);
        assert_int_equal(said.overflows, real.overflows);
        assert_true(fabs(said.overflow - real.overflow) <= tolerance);
        assert_true(fabs(said.zero - real.zero) <= 1e-5);
        assert_true(fabs(said.subnormal - real.subnormal) <= tolerance);
        assert_true(said.error > real.error * .97 && said.error < real.error * 1.03);
        if (real.overflow == 0) assert_true(said.overflow == 0);
    }
}

/* bf16's limits are among fp32's subnormals. */
TEST(bf16_loses_what_conversion_of_subnormals_loses)
{
    enum { COUNT = 100000 };
    static float numbers[COUNT];
    amp_exponents e = { .zeros = 0 };
    for (int i = 0; i < COUNT; i++)
        numbers[i] = amp_bits_float(1 + random_bits() % (0x00800000u >> random_bits() % 23));
    amp_exponents_add(&e, numbers, AMP_FP32, COUNT);
    amp_lost said = amp_numerics_lost(&e, AMP_BF16, 1), real = converting(numbers, COUNT, AMP_BF16, 1);
    assert_true(real.zero > 0.3 && real.zero < 0.9 && real.subnormal > 0.1);
    assert_true(fabs(said.zero - real.zero) < 0.001);
    assert_true(fabs(said.subnormal - real.subnormal) < 0.002);
    assert_true(said.overflow == 0);
}

TEST(limits_are_where_rounding_puts_them)
{
    const struct { amp_dtype dtype; float number; int overflows, zero, subnormal; } cases[] = {
        { AMP_FP16, 65504, 0, 0, 0 }, { AMP_FP16, 65519.996f, 0, 0, 0 }, { AMP_FP16, 65520, 1, 0, 0 },
        { AMP_FP16, -65536, 1, 0, 0 }, { AMP_FP16, 0x1p-14f, 0, 0, 0 }, { AMP_FP16, 0x1p-15f, 0, 0, 1 },
        { AMP_FP16, 0x1.000002p-25f, 0, 0, 1 }, { AMP_FP16, 0x1.fffffep-26f, 0, 1, 0 },
        { AMP_BF16, 0x1.fep127f, 0, 0, 0 }, { AMP_BF16, 0x1.fefffep127f, 0, 0, 0 },
        { AMP_BF16, 0x1.ffp127f, 1, 0, 0 }, { AMP_BF16, 0x1p-126f, 0, 0, 0 },
        { AMP_BF16, 0x1p-133f, 0, 0, 1 }, { AMP_BF16, 0x1p-135f, 0, 1, 0 }, { AMP_FP32, 0x1p-149f, 0, 0, 1 },
        { AMP_FP32, 0x1.fffffep127f, 0, 0, 0 } };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        amp_exponents e = { .zeros = 0 };
        amp_exponents_add(&e, &cases[k].number, AMP_FP32, 1);
        amp_lost said = amp_numerics_lost(&e, cases[k].dtype, 1);
        assert_int_equal(said.overflows, cases[k].overflows);
        assert_true(said.overflow == cases[k].overflows);
        assert_true(said.zero == cases[k].zero);
        assert_true(said.subnormal == cases[k].subnormal);
        if (cases[k].dtype == AMP_FP32) continue;
        float half = rounded(cases[k].dtype, cases[k].number);
        assert_int_equal(!amp_is_finite(half), cases[k].overflows);
        assert_int_equal(half == 0, cases[k].zero);
    }
}

/* A tenth of the numbers becomes 0, which is negligible beside the rest; or nothing becomes 0, and a tenth of
 * the sum is rounding error. */
TEST(error_is_by_size_and_not_by_number)
{
    float numbers[1000];
    amp_exponents tail = { .zeros = 0 }, low = { .zeros = 0 };
    for (int i = 0; i < 1000; i++) numbers[i] = i % 10 ? random_number(-5, 0) : random_number(-40, -30);
    amp_exponents_add(&tail, numbers, AMP_FP32, 1000);
    amp_lost lost = amp_numerics_lost(&tail, AMP_FP16, 1);
    assert_true(lost.zero == .1 && lost.error < .0003);
    for (int i = 0; i < 1000; i++) numbers[i] = random_number(-23, -22);
    amp_exponents_add(&low, numbers, AMP_FP32, 1000);
    lost = amp_numerics_lost(&low, AMP_FP16, 1);
    assert_true(lost.zero == 0 && lost.error > .05);
    assert_true(amp_numerics_lost(&low, AMP_FP16, 1024).error < .0003);
    /* A smaller error than the format can have. */
    assert_int_equal(amp_numerics_least_scale(&low, AMP_FP16, .00001), INT_MAX);
}

TEST(nothing_is_lost_of_nothing)
{
    amp_exponents e = { .zeros = 9, .not_finite = 2 };
    amp_lost lost = amp_numerics_lost(&e, AMP_FP16, 1);
    assert_true(lost.count == 0 && lost.overflow == 0 && lost.zero == 0 && lost.subnormal == 0
                && lost.error == 0 && !lost.overflows);
    assert_int_equal(amp_numerics_most_scale(&e, AMP_FP16), INT_MAX);
    assert_int_equal(amp_numerics_least_scale(&e, AMP_FP16, 0.01), INT_MIN);
}

TEST(a_scale_that_is_no_power_of_two_counts_as_the_one_below)
{
    float number = 64;
    amp_exponents e = { .zeros = 0 };
    amp_exponents_add(&e, &number, AMP_FP32, 1);
    assert_false(amp_numerics_lost(&e, AMP_FP16, 1023).overflows); /* counts as 512 */
    assert_true(amp_numerics_lost(&e, AMP_FP16, 1024).overflows);
}

/* amp_numerics_most_scale and _least_scale are the last scales for which conversion has no overflow, or a
 * small enough error. */
TEST(the_range_of_scales_ends_where_conversion_begins_to_lose)
{
    enum { COUNT = 20000 };
    static float numbers[COUNT];
    const amp_dtype dtypes[] = { AMP_FP16, AMP_BF16 };
    for (int round = 0; round < 60; round++) {
        int least = -80 + (int)(random_bits() % 60), most = least + 1 + (int)(random_bits() % 30);
        amp_exponents e = { .zeros = 0 };
        for (int i = 0; i < COUNT; i++) numbers[i] = random_number(least, most);
        for (int i = 0; round % 3 == 0 && i < COUNT; i++) /* one just overflows, and it is the largest */
            if (fabsf(numbers[i]) >= ldexpf(1, most)) numbers[i] = i ? numbers[i] / 2 : numbers[i];
        if (round % 3 == 0) numbers[0] = ldexpf(65520, most - 15);
        amp_exponents_add(&e, numbers, AMP_FP32, COUNT);
        amp_dtype dtype = dtypes[round % 2];
        int top = amp_numerics_most_scale(&e, dtype), bottom = amp_numerics_least_scale(&e, dtype, 0.05);
        if (top < 127) {
            assert_true(converting(numbers, COUNT, dtype, ldexpf(1, top)).overflow == 0);
            assert_true(converting(numbers, COUNT, dtype, ldexpf(1, top + 1)).overflow > 0);
        }
        if (bottom > -80) { /* or the scaled numbers are fp32's subnormals before they are converted */
            assert_true(converting(numbers, COUNT, dtype, ldexpf(1, bottom)).error <= 0.05 * 1.03);
            assert_true(converting(numbers, COUNT, dtype, ldexpf(1, bottom - 1)).error > 0.05 * .97);
        }
    }
}

int main(void)
{
    /* Because of Darknet's -Ofast this program treats subnormals as 0; the references here must not. */
    fesetenv(FE_DFL_ENV);
    return run_listed_tests("tests", NULL, NULL);
}
