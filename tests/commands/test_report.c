/* The report of a comparison (commands/report): what stands in its files is what was measured, and escaped.
 *
 * test_report FOLDER writes a page per case of report_testing.h there instead, for e2e/report_browser.sh. */
#include "testing.h"

#include "report_testing.h"
#include "test_folder.h"

static const char page_file[] = "page";

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

static char *written(amp_output_writer *write, const made *m)
{
    amp_error error;
    if (amp_output_write(page_file, write, &m->c, &error) != AMP_OK) fail_msg("%s", error.message);
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

/* ---- the page: what the browser draws of it is e2e/report_browser.sh's matter ---- */

static int times(const char *text, const char *part)
{
    int count = 0;
    while ((text = strstr(text, part))) ++count, ++text;
    return count;
}

TEST(every_page_holds_its_json_and_nothing_from_elsewhere)
{
    for (int i = 0; i < REPORT_CASES; i++) {
        made *m = report_cases[i].make();
        char *json = written(amp_report_json, m), *page = written(amp_report_html, m);
        assert_holds(page, json);
        assert_lacks(json, "<");
        assert_lacks(json, "&");
        assert_int_equal(strncmp(page, "<!DOCTYPE html>", 15), 0);
        assert_int_equal(times(page, "</script"), 2);
        assert_int_equal(times(page, "http"), 2); /* the names of HTML and SVG */
        assert_lacks(page, "@DATA@");
        assert_lacks(page, "@TABLE@");
        assert_lacks(page, "src=");
        assert_lacks(page, "url(");
        if (strlen(page) > 1000000) fail_msg("%s: %zu bytes", report_cases[i].name, strlen(page));
        free(page);
        free(json);
        free_comparison(m);
    }
}

TEST(without_scripts_there_is_a_table)
{
    made *m = unpleasant_names();
    char *page = written(amp_report_html, m);
    const char *table = strstr(page, "<pre>");
    assert_non_null(table);
    *strstr(page, "</pre>") = 0;
    assert_holds(table, "\nbf16 ");
    assert_holds(table, "a&lt;b&gt;&amp;&quot;c&#39;\xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbd &lt;/title&gt;");
    assert_holds(table, "\xc3\xbc \xe4\xb8\xad");
    free(page);
    free_comparison(m);
}

/* ---- what the charts are drawn of ---- */

/* "1,2,null" of "key": [\n 1,\n 2,\n null\n ] of run number `run` */
static char *array_of(const char *json, int run, const char *key)
{
    static char out[1 << 16];
    char find[64];
    size_t length = 0;
    json = strstr(json, "\"runs\": [");
    for (int r = 0; r <= run; r++) {
        assert_non_null(json);
        json = strstr(json + 1, "\"seed\": ");
    }
    snprintf(find, sizeof find, "\"%s\": [", key);
    json = strstr(json, find);
    assert_non_null(json);
    for (json += strlen(find); *json != ']'; json++) if (*json > ' ') out[length++] = *json;
    out[length] = 0;
    return out;
}

/* 300 steps: three a point. */
TEST(a_point_is_the_median_of_its_finite_losses)
{
    made *m = make_comparison(1, 2, 300);
    static const float losses[] = { 7, 1, 5, INFINITY, 4, NAN, NAN, INFINITY, -INFINITY, 3, NAN, 8 };
    for (int i = 0; i < 300; i++) m->runs[0].rows[i].loss = i < 12 ? losses[i] : 2;
    m->runs[1].count = 100;
    char *json = written(amp_report_json, m);
    assert_int_equal(strncmp(array_of(json, 0, "loss"), "5,4,null,5.5,2,2,", 17), 0);
    assert_int_equal(times(array_of(json, 0, "loss"), ","), 99);
    assert_int_equal(times(array_of(json, 1, "loss"), "null"), 66);
    assert_holds(json, "\"steps_per_loss\": 3,");
    free(json);
    free_comparison(m);
}

/* Five steps of 100,000 are skipped, three of them at the start, and in the middle the scale jumps up for one
 * step. */
TEST(a_long_training_keeps_its_first_scale_and_every_skipped_step)
{
    static const size_t skipped[] = { 0, 1, 60, 50000, 50200 };
    made *m = make_comparison(1, 1, 100000);
    for (size_t i = 0; i < 100000; i++) {
        m->runs[0].rows[i].found_inf = 0;
        m->runs[0].rows[i].scale = i < 1 ? 65536 : i < 2 ? 32768 : i < 60 ? 16384 : 8192;
    }
    m->runs[0].rows[70000].scale = 131072;
    for (size_t k = 0; k < 5; k++) m->runs[0].rows[skipped[k]].found_inf = 1;
    char *json = written(amp_report_json, m);
    /* 50 steps are one column, which shows its first, least, largest and last scale, and one tick */
    assert_string_equal(array_of(json, 0, "scale"), "65536,16384,8192,131072,8192");
    assert_string_equal(array_of(json, 0, "scale_from_step"), "1,3,61,70001,70002");
    assert_string_equal(array_of(json, 0, "skipped_at"), "1,61,50001,50201");
    free(json);
    free_comparison(m);
    m = make_comparison(1, 1, 6); /* a step is a column */
    static const float scales[] = { 8, 4, NAN, NAN, 4, 4 };
    for (size_t i = 0; i < 6; i++) m->runs[0].rows[i].scale = scales[i];
    json = written(amp_report_json, m);
    assert_string_equal(array_of(json, 0, "scale"), "8,4,null,4");
    assert_string_equal(array_of(json, 0, "scale_from_step"), "1,2,3,5");
    free(json);
    free_comparison(m);
}

TEST(half_a_million_steps_stay_short)
{
    made *m = long_training();
    for (size_t i = 0; i < m->runs[1].count; i++) m->runs[1].rows[i].scale = i % 2 ? 4 : 1024;
    char *page = written(amp_report_html, m);
    assert_true(strlen(page) < 300000);
    free(page);
    free_comparison(m);
}

/* ---- the other files ---- */

TEST(csv_has_a_line_per_run)
{
    made *m = make_comparison(2, 2, 10);
    m->runs[3] = (amp_run){ .dtype = "bf16", .seed = 2, .state = AMP_RUN_FAILED, .rows = m->runs[3].rows,
                            .failure = "a, \"b\"" };
    m->runs[2].score[0] = .5;
    m->runs[2].score[1] = .25;
    m->runs[2].images_per_second = 12.5;
    m->runs[2].compute_images_per_second = 15;
    m->runs[2].peak_memory_mb = 51.5;
    char *text = written(amp_report_csv, m);
    assert_holds(text, "dtype,seed,state,steps,skipped,images_per_second,compute_images_per_second,"
                       "peak_memory_mb,map_50,map_50_95,failure\n");
    assert_holds(text, "\nbf16,1,done,10,0,12.5,15,51.5,0.5,0.25,\n");
    assert_holds(text, "\nbf16,2,failed,0,0,,,,,,\"a, \"\"b\"\"\"\n");
    free(text);
    m->c.kind = AMP_COMPARED_CLASSIFIER;
    text = written(amp_report_csv, m);
    assert_holds(text, ",top_1,top_5,");
    free(text);
    free_comparison(m);
}

/* Values that e2e/report_browser.sh looks for. */
static made *known(void)
{
    made *m = typical();
    m->summaries[1].score[0] = (amp_mean){ .mean = .97391, .spread = .00844, .count = 3 };
    m->summaries[1].difference[0].mean = -.2149;
    m->summaries[1].difference[0].error = .3449;
    m->summaries[1].images_per_second.mean = 520.8;
    m->summaries[1].speedup.ratio = 1.3963;
    m->summaries[1].peak_memory_mb.mean = 51.26;
    m->summaries[1].memory_ratio.ratio = .7083;
    m->summaries[1].both = AMP_ACCURACY_AS_GOOD;
    m->summaries[1].difference[0].least = -.7;
    m->summaries[1].difference[0].most = .273;
    m->summaries[1].speedup.least = 1.3;
    m->summaries[1].speedup.most = 1.5;
    m->advice[1] = "fp16-runs: -6.84 points (-9.10 to 1e-05)";
    return m;
}

static amp_status write_case(const char *folder, const char *case_name, made *m, amp_error *error)
{
    static const struct { const char *ending; amp_output_writer *write; } files[] = {
        { "html", amp_report_html }, { "json", amp_report_json }, { "csv", amp_report_csv } };
    amp_status status = AMP_OK;
    for (int i = 0; i < 3 && status == AMP_OK; i++) {
        char name[4096];
        snprintf(name, sizeof name, "%s/%s.%s", folder, case_name, files[i].ending);
        status = amp_output_write(name, files[i].write, &m->c, error);
    }
    free_comparison(m);
    return status;
}

static int write_cases(const char *folder)
{
    amp_error error;
    amp_status status = write_case(folder, "known", known(), &error);
    for (int i = 0; i < REPORT_CASES && status == AMP_OK; i++)
        status = write_case(folder, report_cases[i].name, report_cases[i].make(), &error);
    if (status != AMP_OK) fprintf(stderr, "%s\n", error.message);
    return status != AMP_OK;
}

int main(int argc, char **argv)
{
    if (argc > 1) return write_cases(argv[1]);
    return run_listed_tests("tests", enter_folder, leave_folder);
}
