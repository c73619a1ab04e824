/* The points that the report's charts draw (commands/report): medians of losses; scales and skipped steps, of which none may get lost. */
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

static int times(const char *text, const char *end, const char *part)
{
    int count = 0;
    while ((text = strstr(text, part)) && text < end) ++count, ++text;
    return count;
}

/* Where the first path with this class begins; it ends before *end. */
static const char *path_of(const char *text, const char *class_name, const char **end)
{
    char find[64];
    snprintf(find, sizeof find, "class=\"%s\" d=\"", class_name);
    const char *at = strstr(text, find);
    assert_non_null(at);
    at += strlen(find);
    *end = strchr(at, '"');
    return at;
}

/* Five steps of 100,000 are skipped, three of them at once at the start, and in the middle the scale jumps up for one step. */
static void a_long_training_shows_its_first_scale_and_every_skipped_step(void **unused)
{
    (void)unused;
    static char text[1 << 20];
    static const size_t skipped[] = { 0, 1, 2, 50000, 50200 };
    made *m = make_comparison(3, 1, 100000);
    amp_run *run = &m->runs[2];
    run->skipped = 5;
    for (size_t i = 0; i < run->count; ++i) {
        run->rows[i].found_inf = 0;
        run->rows[i].scale = i == 0 ? 65536 : i == 1 ? 32768 : i == 2 ? 16384 : i == 70000 ? 131072 : 8192;
    }
    for (size_t k = 0; k < 5; ++k) run->rows[skipped[k]].found_inf = 1;
    draw(amp_chart_scale, m, text, sizeof text);
    assert_non_null(strstr(text, ">2¹⁷</text>"));
    assert_non_null(strstr(text, ">2¹³</text>"));
    const char *end, *line = path_of(text, "k2 scale", &end);
    double x, y, down, at, top, low, to;
    int used = 0;
    /* from 65536, which of the four doublings is one below the top, to 8192 at the bottom; a peak to the top and back */
    assert_int_equal(sscanf(line, "M%lf %lfV%lfH%lfV%lfV%lfH%lf%n", &x, &y, &down, &at, &top, &low, &to, &used), 7);
    assert_true(line + used == end && low == down && top < y && y < down);
    assert_true(fabs((down - y) / (down - top) - 3. / 4) < .01);
    assert_true(fabs((at - x) / (to - x) - .7) < .002);
    const char *ticks = path_of(text, "k2 skip", &end); /* two steps that are 0.2 % of the chart apart are two ticks */
    assert_int_equal(times(ticks, end, "M"), 3);
    assert_int_equal(times(text, text + strlen(text), "class=\"label\">5</text>"), 2);
    free_comparison(m);
}

/* What jumps at every step does not make the page long, and a scale that is none breaks the line. */
static void a_scale_that_jumps_at_every_step_is_drawn_from_end_to_end(void **unused)
{
    (void)unused;
    static char text[1 << 20];
    made *m = make_comparison(3, 1, 200000);
    for (size_t i = 0; i < m->runs[2].count; ++i) {
        m->runs[2].rows[i].scale = i % 2 ? 4 : 1024;
        if (i >= 50000 && i < 100000) m->runs[2].rows[i].scale = NAN;
    }
    draw(amp_chart_scale, m, text, sizeof text);
    const char *end, *line = path_of(text, "k2 scale", &end);
    assert_int_equal(times(line, end, "M"), 2);
    assert_in_range(end - line, 5000, 50000);
    free_comparison(m);
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
    /* the axis begins at 50 %, and its break, two slanting lines, lies to the left of all marks */
    int slanting = 0;
    for (const char *at = text; (at = strstr(at, "<path d=\"M")) && at < strstr(text, "</svg>"); ++at) {
        double x[2], y[2];
        if (sscanf(at, "<path d=\"M%lf %lfL%lf %lf", &x[0], &y[0], &x[1], &y[1]) != 4 || x[0] == x[1] || y[0] == y[1]) continue;
        ++slanting;
        assert_true(x[0] < low[0] && x[1] < low[0]);
    }
    assert_int_equal(slanting, 2);
    free_comparison(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_point_is_the_median_of_its_finite_losses),
        cmocka_unit_test(the_thick_line_is_the_median_of_the_seeds_that_did_not_fail),
        cmocka_unit_test(a_long_training_shows_its_first_scale_and_every_skipped_step),
        cmocka_unit_test(a_scale_that_jumps_at_every_step_is_drawn_from_end_to_end),
        cmocka_unit_test(the_scale_is_drawn_of_those_that_have_one),
        cmocka_unit_test(scores_lie_in_proportion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
