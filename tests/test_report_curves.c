/* The points that the report's charts draw (commands/report_curves.c): medians, last scales, sums of skipped steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "commands/report/report_charts.h"
#include "report_testing.h"

static amp_curves curves_of(const made *m)
{
    amp_curves curves;
    amp_error error;
    if (amp_curves_make(&m->c, &curves, &error) != AMP_OK) fail_msg("%s", error.message);
    return curves;
}

/* 300 steps: three a point. */
static void a_point_is_the_median_of_its_finite_losses(void **unused)
{
    (void)unused;
    made *m = make_comparison(2, 1, 300);
    amp_log_row *rows = m->runs[0].rows;
    static const float losses[] = { 7, 1, 5, INFINITY, 4, NAN, NAN, INFINITY, -INFINITY, 3, NAN, 8 };
    for (int i = 0; i < 12; ++i) rows[i].loss = losses[i];
    amp_curves curves = curves_of(m);
    const double *loss = amp_points_of(&curves.loss, 0);
    assert_int_equal(curves.loss.per_point, 3);
    assert_int_equal(curves.loss.count, 100);
    assert_true(loss[0] == 5 && loss[1] == 4 && loss[3] == 5.5);
    assert_true(loss[2] != loss[2]);
    assert_true(curves.loss.step[0] == 2 && curves.loss.step[99] == 299);
    amp_curves_free(&curves);
    free_comparison(m);
}

static void the_thick_line_is_the_median_of_the_seeds_that_did_not_fail(void **unused)
{
    (void)unused;
    made *m = make_comparison(1, 3, 50);
    for (int s = 0; s < 3; ++s) m->runs[s].rows[9].loss = (float)(10 * s * s + 1); /* 1, 11, 41 */
    amp_curves curves = curves_of(m);
    assert_true(amp_points_of(&curves.middle, 0)[9] == 11);
    amp_curves_free(&curves);
    m->runs[2].state = AMP_RUN_FAILED;
    curves = curves_of(m);
    assert_true(amp_points_of(&curves.middle, 0)[9] == 6);
    amp_curves_free(&curves);
    free_comparison(m);
}

static void scales_are_the_last_and_skips_are_counted(void **unused)
{
    (void)unused;
    made *m = make_comparison(1, 2, 800); /* two a point */
    for (int i = 0; i < 800; ++i) {
        m->runs[0].rows[i].scale = i < 5 ? 4 : 2;
        m->runs[0].rows[i].found_inf = i == 4 || i == 5 || i == 10;
    }
    m->runs[1].count = 400;
    amp_curves curves = curves_of(m);
    const double *scale = amp_points_of(&curves.scale, 0), *skipped = amp_points_of(&curves.skipped, 0);
    assert_true(scale[1] == 4 && scale[2] == 2);
    assert_true(skipped[1] == 0 && skipped[2] == 2 && skipped[5] == 1 && skipped[6] == 0);
    double late = amp_points_of(&curves.scale, 1)[200];
    assert_true(amp_points_of(&curves.scale, 1)[199] == 1 && late != late);
    amp_curves_free(&curves);
    free_comparison(m);
}

typedef void drawer(FILE *, const amp_comparison *, const amp_curves *);

static void draw(drawer *chart, const made *m, char *text, size_t size)
{
    amp_curves curves = curves_of(m);
    FILE *stream = fmemopen(text, size, "w");
    assert_non_null(stream);
    chart(stream, &m->c, &curves);
    fclose(stream);
    amp_curves_free(&curves);
}

static void the_scale_is_drawn_of_those_that_have_one(void **unused)
{
    (void)unused;
    static char text[1 << 20];
    made *m = make_comparison(3, 2, 100);
    draw(amp_chart_scale, m, text, sizeof text);
    assert_non_null(strstr(text, "Scale 1 all the time: fp32, bf16."));
    assert_non_null(strstr(text, "None: fp32, bf16."));
    assert_non_null(strstr(text, "class=\"k2 scale\""));
    assert_null(strstr(text, "class=\"k0 scale\""));
    assert_null(strstr(text, "class=\"k1 skip\""));
    char count[64];
    snprintf(count, sizeof count, "class=\"label\">%ld</text>", m->runs[4].skipped + m->runs[5].skipped);
    assert_non_null(strstr(text, count));
    m->c.dtype_count = 2;
    draw(amp_chart_scale, m, text, sizeof text);
    assert_non_null(strstr(text, "The loss scale was 1 all the time. No step was skipped."));
    assert_null(strstr(text, "<svg"));
    m->c.dtype_count = 3;
    free_comparison(m);
}

/* Least and most of the x at which this class is drawn in the chart's first drawing. */
static void extent(const char *text, const char *class_name, double *low, double *high)
{
    char find[64];
    const char *end = strstr(text, "</svg>");
    int count = 0;
    snprintf(find, sizeof find, "class=\"%s\" d=\"M", class_name);
    for (const char *at = text; (at = strstr(at, find)) && at < end; ++at) {
        double x = strtod(at + strlen(find), NULL);
        if (!count || x < *low) *low = x;
        if (!count || x > *high) *high = x;
        ++count;
    }
    assert_int_equal(count, 3);
}

static void scores_lie_in_proportion(void **unused)
{
    (void)unused;
    static char text[1 << 18];
    made *m = make_comparison(2, 3, 0);
    static const double scores[] = { .50, .51, .52, .50, .53, .56 };
    for (int r = 0; r < 6; ++r) m->runs[r].score[0] = scores[r];
    summarize(m);
    FILE *stream = fmemopen(text, sizeof text, "w");
    assert_non_null(stream);
    amp_chart_score(stream, &m->c, 0);
    fclose(stream);
    double low[2], high[2];
    extent(text, "k0 dot", &low[0], &high[0]);
    extent(text, "k1 dot", &low[1], &high[1]);
    assert_true(high[0] > low[0] && fabs(low[0] - low[1]) < .2);
    assert_true(fabs((high[1] - low[1]) - 3 * (high[0] - low[0])) < .5);
    free_comparison(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_point_is_the_median_of_its_finite_losses),
        cmocka_unit_test(the_thick_line_is_the_median_of_the_seeds_that_did_not_fail),
        cmocka_unit_test(scales_are_the_last_and_skips_are_counted),
        cmocka_unit_test(the_scale_is_drawn_of_those_that_have_one),
        cmocka_unit_test(scores_lie_in_proportion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
