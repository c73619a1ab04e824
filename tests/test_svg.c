/* The axes of charts (commands/svg.c): where a value lies, where the ticks are, and what stands at them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "commands/report/svg.h"

#include <math.h>
#include <string.h>

static void assert_near(double a, double b)
{
    if (!(fabs(a - b) < 1e-6 * (1 + fabs(b)))) fail_msg("%.12g is not %.12g", a, b);
}

/* "0 200 400": the labels of all ticks */
static void assert_labels(const amp_axis *axis, const char *expected)
{
    double ticks[AMP_TICKS];
    char all[1024] = "", one[32];
    int count = amp_axis_ticks(axis, ticks);
    for (int i = 0; i < count; ++i) {
        if (i) strcat(all, " ");
        strcat(all, amp_axis_label(axis, ticks[i], one));
    }
    assert_string_equal(all, expected);
}

static void a_linear_axis_ends_at_ticks(void **unused)
{
    (void)unused;
    amp_axis axis = amp_axis_make(AMP_LINEAR, 0, 1130, 6, 100, 700);
    assert_labels(&axis, "0 200 400 600 800 1000 1200");
    assert_near(amp_axis_at(&axis, 0), 100);
    assert_near(amp_axis_at(&axis, 300), 250);
    assert_near(amp_axis_at(&axis, 1200), 700);
    axis = amp_axis_make(AMP_LINEAR, -3.2, 1, 5, 0, 1);
    assert_labels(&axis, "−4 −3 −2 −1 0 1");
    axis = amp_axis_make(AMP_LINEAR, .9541, .9712, 4, 0, 1);
    assert_labels(&axis, "0.950 0.955 0.960 0.965 0.970 0.975");
    axis = amp_axis_make(AMP_LINEAR, 0, 500000, 5, 0, 1);
    assert_labels(&axis, "0 100k 200k 300k 400k 500k");
    axis = amp_axis_make(AMP_LINEAR, 0, 12345678, 4, 0, 1);
    assert_labels(&axis, "0 5M 10M 15M");
}

static void a_drawing_grows_downwards(void **unused)
{
    (void)unused;
    amp_axis axis = amp_axis_make(AMP_LINEAR, 0, 10, 5, 300, 0);
    assert_near(amp_axis_at(&axis, 0), 300);
    assert_near(amp_axis_at(&axis, 10), 0);
    assert_near(amp_axis_at(&axis, 4), 180);
}

static void equal_ratios_are_equal_lengths_on_a_logarithmic_axis(void **unused)
{
    (void)unused;
    amp_axis axis = amp_axis_make(AMP_LOG10, .5, 500, 6, 0, 300);
    assert_near(amp_axis_at(&axis, .5), 0);
    assert_near(amp_axis_at(&axis, 5), 100);
    assert_near(amp_axis_at(&axis, 50), 200);
    assert_labels(&axis, "0.5 1 2 5 10 20 50 100 200 500");
    axis = amp_axis_make(AMP_LOG10, 1e-30, 1e30, 6, 0, 1);
    double ticks[AMP_TICKS];
    int count = amp_axis_ticks(&axis, ticks);
    assert_in_range(count, 3, 8);
}

static void doublings_have_ticks_of_their_own(void **unused)
{
    (void)unused;
    amp_axis axis = amp_axis_make(AMP_LOG2, 1024, 65536, 6, 0, 600);
    assert_labels(&axis, "1024 2048 4096 8192 16384 32768 65536");
    assert_near(amp_axis_at(&axis, 4096), 200);
    axis = amp_axis_make(AMP_LOG2, 3e-5, 1 << 20, 6, 0, 1);
    assert_labels(&axis, "2⁻¹⁶ 2⁻¹⁰ 2⁻⁴ 2² 2⁸ 2¹⁴ 2²⁰");
    axis = amp_axis_make(AMP_LOG2, 1, 1, 6, 0, 1);
    assert_labels(&axis, "2⁻¹ 2⁰ 2¹");
}

static int letters(const char *text)
{
    int count = 0;
    for (; *text; ++text) count += (*text & 0xc0) != 0x80;
    return count;
}

static void odd_ranges_give_usable_axes(void **unused)
{
    (void)unused;
    static const double ranges[][2] = { { 0, 0 }, { 2.5, 2.5 }, { -7, -7 }, { 1e-300, 1e-300 }, { 1e30, 1e30 }, { -1e38, 3e38 },
        { 5, 1 }, { NAN, 1 }, { 0, INFINITY }, { -INFINITY, INFINITY }, { NAN, NAN }, { 1, 1.0000000001 }, { -1, 0 },
        { 1e-38, 3e38 } };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; ++i)
        for (int kind = AMP_LINEAR; kind <= AMP_LOG2; ++kind)
            for (int wanted = 3; wanted <= 10; ++wanted) {
                double ticks[AMP_TICKS], last = -1;
                amp_axis axis = amp_axis_make((amp_scale_kind)kind, ranges[i][0], ranges[i][1], wanted, 10, 90);
                int count = amp_axis_ticks(&axis, ticks);
                if (!(axis.low < axis.high) || count < 2 || count >= AMP_TICKS)
                    fail_msg("%zu, kind %d: %d ticks", i, kind, count);
                for (int k = 0; k < count; ++k) {
                    double at = amp_axis_at(&axis, ticks[k]);
                    char label[32];
                    if (!(at > last && at >= 10 && at <= 90)) fail_msg("%zu, kind %d: tick %g at %g", i, kind, ticks[k], at);
                    if (letters(amp_axis_label(&axis, ticks[k], label)) > 12) fail_msg("label %s", label);
                    last = at;
                }
            }
}

static void values_beyond_stay_at_the_edge(void **unused)
{
    (void)unused;
    amp_axis axis = amp_axis_make(AMP_LINEAR, 0, 10, 5, 0, 100);
    assert_near(amp_axis_at(&axis, -5), 0);
    assert_near(amp_axis_at(&axis, 1e30), 100);
    assert_near(amp_axis_at(&axis, (double)NAN), 0);
    axis = amp_axis_make(AMP_LOG10, 1, 100, 5, 0, 100);
    assert_near(amp_axis_at(&axis, -1), 0);
    assert_near(amp_axis_at(&axis, 1000), 100);
}

static char *curve_of(const double *x, const double *y, size_t count, char text[512])
{
    FILE *stream = fmemopen(text, 512, "w");
    assert_non_null(stream);
    amp_svg svg = { stream, 100, 100 };
    amp_svg_curve(&svg, x, y, count, "c");
    fclose(stream);
    return text;
}

static void curves_break_where_there_is_no_value(void **unused)
{
    (void)unused;
    static const double x[] = { 0, 1, 2, 3, 4, 5 }, y[] = { 5, 6, NAN, 7, NAN, 8 };
    char text[512];
    assert_string_equal(curve_of(x, y, 6, text),
                        "<path class=\"c\" d=\"M0.0 5.0L1.0 6.0M3.0 7.0h.1M5.0 8.0h.1\"/>\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_linear_axis_ends_at_ticks),
        cmocka_unit_test(a_drawing_grows_downwards),
        cmocka_unit_test(equal_ratios_are_equal_lengths_on_a_logarithmic_axis),
        cmocka_unit_test(doublings_have_ticks_of_their_own),
        cmocka_unit_test(odd_ranges_give_usable_axes),
        cmocka_unit_test(values_beyond_stay_at_the_edge),
        cmocka_unit_test(curves_break_where_there_is_no_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
