/* The report of a comparison (commands/report_*.c): what stands in the page and in the files is what was measured, and escaped.
 *
 * test_report FOLDER writes a page per case of report_testing.h there instead, for e2e/report_browser.sh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "report_testing.h"

#include <unistd.h>

static char page_file[] = "/tmp/test_report_XXXXXX";

/* The whole file; the caller frees it. */
static char *content(const char *name)
{
    FILE *file = fopen(name, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    size_t size = (size_t)ftell(file);
    char *text = calloc(size + 1, 1);
    rewind(file);
    assert_int_equal(fread(text, 1, size, file), size);
    fclose(file);
    return text;
}

typedef amp_status writer(const amp_comparison *, const char *, amp_error *);

static char *written(writer *write, const made *m)
{
    amp_error error;
    if (write(&m->c, page_file, &error) != AMP_OK) fail_msg("%s", error.message);
    return content(page_file);
}

static void assert_holds(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("'%s' is not in the text", part);
}

static void assert_lacks(const char *text, const char *part)
{
    if (strstr(text, part)) fail_msg("'%s' is in the text: %.80s", part, strstr(text, part));
}

/* ---- well-formed ---- */

static size_t name_length(const char *at) { return strcspn(at, " \t\n/>"); }

static void check_attributes(const char *at, const char *end)
{
    int quoted = 0;
    while (++at < end) {
        if (*at == '"') quoted = !quoted;
        if (*at == '<') fail_msg("< within a tag: %.60s", at);
    }
    if (quoted) fail_msg("an open quotation mark before: %.60s", end);
}

/* Every element that is opened is closed, in order; & begins an entity; nothing comes after <html>. */
static void check_elements(const char *page)
{
    const char *open[64];
    int depth = 0;
    assert_int_equal(strncmp(page, "<!DOCTYPE html>", 15), 0);
    for (const char *at = page + 15; *at; ++at) {
        if (*at == '&' && !strchr("lgqa#", at[1])) fail_msg("& that is no entity: %.40s", at);
        if (*at == '>') fail_msg("> outside of a tag: %.40s", at);
        if (*at != '<') continue;
        const char *end = strchr(at, '>');
        assert_non_null(end);
        check_attributes(at, end);
        if (at[1] == '/') {
            assert_true(depth > 0);
            size_t length = name_length(at + 2);
            if (name_length(open[depth - 1]) != length || strncmp(open[depth - 1], at + 2, length))
                fail_msg("%.20s closes %.20s", at, open[depth - 1]);
            --depth;
        } else if (end[-1] != '/') {
            assert_true(depth < 64);
            open[depth++] = at + 1;
        }
        at = end;
    }
    assert_int_equal(depth, 0);
}

static int is_letter(char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; }

/* "nan" and "inf" as words of their own, in text or attributes, but for sentences: "is inf". */
static void check_numbers(const char *page)
{
    for (const char *at = strstr(page, "</style>"); *at; ++at) {
        if (is_letter(at[-1]) || (strncmp(at, "nan", 3) && strncmp(at, "inf", 3)) || is_letter(at[3])) continue;
        if (strncmp(at - 3, "is ", 3) && strncmp(at - 4, "was ", 4) && strncmp(at - 4, "are ", 4))
            fail_msg("a number that is none: %.60s", at - 30);
    }
}

static void every_case_gives_a_well_formed_page(void **unused)
{
    (void)unused;
    for (int i = 0; i < REPORT_CASES; ++i) {
        made *m = report_cases[i].make();
        char *page = written(amp_report_html, m);
        check_elements(page);
        check_numbers(page);
        if (strlen(page) > 1000000) fail_msg("%s: %zu bytes", report_cases[i].name, strlen(page));
        free(page);
        free_comparison(m);
    }
}

/* ---- content ---- */

static void the_page_holds_what_was_measured(void **unused)
{
    (void)unused;
    made *m = typical();
    m->summaries[1].score[0] = (amp_mean){ .mean = .97391, .spread = .00844, .count = 3 };
    m->summaries[1].difference[0].mean = -.2149;
    m->summaries[1].difference[0].error = .3449;
    m->summaries[1].images_per_second.mean = 520.8;
    m->summaries[1].speedup.ratio = 1.3963;
    m->summaries[1].peak_memory_mb.mean = 51.26;
    m->summaries[1].memory_ratio.ratio = .7083;
    m->runs[5].largest_difference = .98765;
    m->runs[5].relative_difference = .0345678;
    char *page = written(amp_report_html, m);
    static const char *const parts[] = { "97.39 %<small>spread 0.84</small>", "−0.21<small>± 0.34</small>",
        "521<small>1.40×</small>",
        "51.3<small>0.71×</small>",
        ">0.988<", ">0.0346<", "mAP@0.5:0.95", "bf16 is worth it here", "AMD EPYC 9R14",
        "Darknet AMP 1.0 (61c9d02e)", "2026-11-20T19:30:00Z", "160 × 128 pixels, 3 classes", "1200 iterations of 8 images",
        "291 to train with, 73 to validate with", "1, 2, 3", "lang=\"en\"", "scope=\"row\"" };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i) assert_holds(page, parts[i]);
    assert_lacks(page, "Interrupted");
    assert_lacks(page, "http:// ");
    assert_lacks(page, "<script");
    assert_lacks(page, "url(");
    free(page);
    free_comparison(m);
}

/* The width of the next rectangle with this class; *at goes behind it. */
static double next_width(const char **at, const char *class_name)
{
    double width = -1;
    char end[64];
    const char *rectangle;
    snprintf(end, sizeof end, "class=\"%s\"", class_name);
    *at = strstr(*at, end);
    assert_non_null(*at);
    for (rectangle = *at; strncmp(rectangle, "<rect", 5); --rectangle) {}
    assert_int_equal(sscanf(strstr(rectangle, " width="), " width=\"%lf", &width), 1);
    ++*at;
    return width;
}

/* Drawn in tenths, and so is the bar that gave the unit. */
static void assert_width(double width, double expected)
{
    if (!(fabs(width - expected) < .25)) fail_msg("%g wide, not %g", width, expected);
}

static void bars_are_as_long_as_their_numbers(void **unused)
{
    (void)unused;
    made *m = typical();
    static const char *const full[] = { "k0 bar", "k1 bar", "k2 bar" };
    static const char *const light[] = { "k0 bar light", "k1 bar light", "k2 bar light" };
    static const char *const charts[] = { "throughput-wide", "throughput-narrow" };
    static const char *const memories[] = { "memory-wide", "memory-narrow" };
    char *page = written(amp_report_html, m);
    for (int shape = 0; shape < 2; ++shape) {
        const char *at = strstr(page, charts[shape]);
        double unit = next_width(&at, full[0]) / m->summaries[0].images_per_second.mean;
        assert_true(unit > 0);
        for (int d = 0; d < 3; ++d) {
            const char *here = strstr(page, charts[shape]);
            assert_width(next_width(&here, full[d]), unit * m->summaries[d].images_per_second.mean);
            assert_width(next_width(&here, light[d]), unit * m->summaries[d].compute_images_per_second.mean);
        }
        at = strstr(page, memories[shape]);
        unit = next_width(&at, full[0]) / m->summaries[0].peak_memory_mb.mean;
        for (int d = 1; d < 3; ++d)
            assert_width(next_width(&at, full[d]), unit * m->summaries[d].peak_memory_mb.mean);
    }
    free(page);
    free_comparison(m);
}

static void names_are_escaped(void **unused)
{
    (void)unused;
    made *m = unpleasant_names();
    char *page = written(amp_report_html, m);
    assert_lacks(page, "<script");
    assert_holds(page, "a&lt;b&gt;&amp;&quot;c&#39;\xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbd &lt;/title&gt;");
    assert_holds(page, "ü \xe4\xb8\xad");
    free(page);
    free_comparison(m);
}

static void an_interrupted_comparison_says_so(void **unused)
{
    (void)unused;
    made *m = interrupted();
    char *page = written(amp_report_html, m);
    assert_holds(page, "<strong>Interrupted:</strong> 3 of 9 runs are done");
    assert_holds(page, "not begun");
    free(page);
    free_comparison(m);
}

static void failures_are_told(void **unused)
{
    (void)unused;
    made *m = all_failed();
    char *page = written(amp_report_html, m);
    assert_holds(page, "6 of 6 runs failed");
    assert_holds(page, "amp: step 3: every gradient is inf &lt;or&gt; &quot;NaN&quot; &amp; so on");
    free(page);
    free_comparison(m);
}

static void a_run_that_blew_up_leaves_the_others_readable(void **unused)
{
    (void)unused;
    made *m = diverging();
    char *page = written(amp_report_html, m);
    assert_holds(page, "A run that failed goes beyond the upper edge");
    assert_lacks(page, ">1e+");
    free(page);
    free_comparison(m);
}

static void minus_signs_are_minus_signs(void **unused)
{
    (void)unused;
    made *m = negative();
    char sentence[] = "bf16-run: -6.84 points (95 % interval -9 to 1e-05)";
    m->verdict[0] = sentence;
    m->c.title = "a-1.cfg";
    char *page = written(amp_report_html, m);
    assert_holds(page, "bf16-run: −6.84 points (95 % interval −9 to 1e-05)");
    assert_holds(page, "a-1.cfg · <span class=\"date\">2026-11-20T");
    assert_holds(page, "class=\"tick\">−100</text>");
    assert_lacks(page, ">-");
    free(page);
    free_comparison(m);
}

/* Drawing them must not take time by their square: CTest would end this then. */
static void half_a_million_steps_make_a_small_page(void **unused)
{
    (void)unused;
    made *m = long_training();
    char *page = written(amp_report_html, m);
    assert_true(strlen(page) < 200000);
    assert_holds(page, "median of 5000 steps");
    free(page);
    free_comparison(m);
}

/* ---- the other files ---- */

static void csv_has_a_line_per_run(void **unused)
{
    (void)unused;
    made *m = make_comparison(2, 2, 10);
    m->runs[3] = (amp_run){ .dtype = "bf16", .seed = 2, .state = AMP_RUN_FAILED, .rows = m->runs[3].rows,
                            .failure = "a, \"b\"" };
    m->runs[2].score[0] = .5;
    m->runs[2].score[1] = .25;
    m->runs[2].images_per_second = 12.5;
    m->runs[2].compute_images_per_second = 15;
    m->runs[2].peak_memory_mb = 51.5;
    m->runs[2].largest_difference = .125;
    m->runs[2].relative_difference = (double)NAN;
    char *text = written(amp_report_csv, m);
    assert_holds(text, "dtype,seed,state,steps,skipped,images_per_second,compute_images_per_second,peak_memory_mb,map_50,"
                       "map_50_95,largest_difference,relative_difference,failure\n");
    assert_holds(text, "\nbf16,1,done,10,0,12.5,15,51.5,0.5,0.25,0.125,,\n");
    assert_holds(text, "\nbf16,2,failed,0,0,,,,,,,,\"a, \"\"b\"\"\"\n");
    free(text);
    m->c.kind = AMP_COMPARED_CLASSIFIER;
    text = written(amp_report_csv, m);
    assert_holds(text, ",top_1,top_5,");
    free(text);
    free_comparison(m);
}

static void json_holds_the_same(void **unused)
{
    (void)unused;
    made *m = unpleasant_names();
    m->runs[0].score[0] = .5;
    m->summaries[2].difference[0].error = (double)NAN;
    char *text = written(amp_report_json, m);
    assert_holds(text, "\"map_50\": 0.5,");
    assert_holds(text, "\"standard_error\": null");
    assert_holds(text, "\"state\": \"failed\"");
    assert_holds(text, "\"iterations\": 1200");
    assert_holds(text, "\"steps_per_loss\": 12");
    free(text);
    free_comparison(m);
}

static void the_table_has_a_line_per_dtype(void **unused)
{
    (void)unused;
    made *m = typical();
    FILE *stream = fopen(page_file, "w");
    assert_non_null(stream);
    m->summaries[2].speedup.ratio = .9734;
    amp_report_table(&m->c, stream);
    fclose(stream);
    char *text = content(page_file);
    assert_holds(text, "\nbf16 ");
    assert_holds(text, "0.97x");
    assert_holds(text, "\nfp16 is not worth it");
    assert_lacks(text, "nan");
    free(text);
    free_comparison(m);
}

static void a_folder_that_is_missing_is_one_line(void **unused)
{
    (void)unused;
    made *m = typical();
    amp_error error;
    static writer *const writers[] = { amp_report_html, amp_report_json, amp_report_csv };
    for (int i = 0; i < 3; ++i) {
        assert_int_equal(writers[i](&m->c, "/no/such/folder/report", &error), AMP_IO_FAILED);
        assert_holds(error.message, "/no/such/folder/report");
    }
    free_comparison(m);
}

static int write_cases(const char *folder)
{
    for (int i = 0; i < REPORT_CASES; ++i) {
        char name[4096];
        amp_error error;
        made *m = report_cases[i].make();
        snprintf(name, sizeof name, "%s/%s.html", folder, report_cases[i].name);
        amp_status status = amp_report_html(&m->c, name, &error);
        snprintf(name, sizeof name, "%s/%s.json", folder, report_cases[i].name);
        if (status == AMP_OK) status = amp_report_json(&m->c, name, &error);
        snprintf(name, sizeof name, "%s/%s.csv", folder, report_cases[i].name);
        if (status == AMP_OK) status = amp_report_csv(&m->c, name, &error);
        free_comparison(m);
        if (status == AMP_OK) continue;
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_gives_a_well_formed_page),
        cmocka_unit_test(the_page_holds_what_was_measured),
        cmocka_unit_test(bars_are_as_long_as_their_numbers),
        cmocka_unit_test(names_are_escaped),
        cmocka_unit_test(an_interrupted_comparison_says_so),
        cmocka_unit_test(failures_are_told),
        cmocka_unit_test(a_run_that_blew_up_leaves_the_others_readable),
        cmocka_unit_test(minus_signs_are_minus_signs),
        cmocka_unit_test(half_a_million_steps_make_a_small_page),
        cmocka_unit_test(csv_has_a_line_per_run),
        cmocka_unit_test(json_holds_the_same),
        cmocka_unit_test(the_table_has_a_line_per_dtype),
        cmocka_unit_test(a_folder_that_is_missing_is_one_line),
    };
    if (argc > 1) return write_cases(argv[1]);
    int file = mkstemp(page_file);
    if (file < 0) return 1;
    close(file);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(page_file);
    return failed;
}
