/* What `darknet amp log` counts in a training's log, and that a log which is still being written is read. */
#include <math.h>
#include "testing.h"

#include "commands/log/log.h"
#include "test_folder.h"

enum { ROWS = 1000 };
static amp_log_row rows[ROWS];

/* A quiet training: the norm goes through 1, 2 and 3, loss and rate fall, the scale stays. */
static int quiet(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS; i++)
        rows[i] = (amp_log_row){ .iteration = i + 1, .loss = 10 - i * .005f, .scale = 1024,
                                 .learning_rate = i < 500 ? .1f : .01f, .grad_norm = 1 + i % 3,
                                 .images_per_second = i < 750 ? 100 : 50, .load_seconds = .25,
                                 .train_seconds = .75, .wire = -1, .spike = AMP_LOG_NO_RULE };
    return 0;
}

static amp_log_summary summary(size_t count)
{
    amp_log_summary s;
    amp_log_summarize(rows, count, &s);
    return s;
}

TEST_WITH(a_quiet_training_has_nothing_to_warn_of, quiet, NULL)
{
    amp_log_summary s = summary(ROWS);
    assert_int_equal(s.rows, ROWS);
    assert_int_equal(s.first, 1);
    assert_int_equal(s.last, ROWS);
    assert_int_equal(s.skipped + s.spikes + s.clusters + s.raised + s.lowered, 0);
    assert_false(s.scale_falls);
    assert_true(s.norm_grows == 0);
    assert_true(s.seconds == ROWS && s.load_seconds == ROWS / 4);
    assert_true(s.images_per_second == 100 && s.images_lately == 50);
    for (int q = 0; q < 4; q++) {
        assert_true(s.norm[q] == 2);
        assert_true(fabs(s.loss[q] - (10 - (q * 250 + 124.5) * .005)) < 1e-5);
    }
    assert_true((float)s.least_rate == .01f && (float)s.most_rate == .1f && (float)s.last_rate == .01f);
}

TEST_WITH(skipped_steps_are_counted_in_clusters, quiet, NULL)
{
    const int skipped[] = { 3, 5, 16, 200, 900, 901 }; /* 5 to 16: ten steps lie between them */
    for (size_t i = 0; i < COUNT(skipped); i++) {
        rows[skipped[i]].found_inf = 1;
        rows[skipped[i]].grad_norm = NAN;
        rows[skipped[i]].loss = INFINITY;
    }
    amp_log_summary s = summary(ROWS);
    assert_int_equal(s.skipped, 6);
    assert_int_equal(s.clusters, 3);
    assert_int_equal(s.largest_cluster, 3);
    assert_int_equal(s.cluster_first, 4);
    assert_int_equal(s.cluster_last, 17);
    assert_int_equal(s.spikes, 0);
}

TEST_WITH(a_spike_is_far_above_the_median_of_the_steps_before, quiet, NULL)
{
    rows[5].grad_norm = 1000;   /* among the first ones, which are only collected */
    rows[300].grad_norm = 40;   /* the median is 2: not above 20 times */
    rows[400].grad_norm = 41;
    rows[500].loss = 10 * 20;
    amp_log_summary s = summary(ROWS);
    assert_int_equal(s.spikes, 2);
    assert_int_equal(s.spike[0].iteration, 401);
    assert_false(s.spike[0].by_loss);
    assert_true(s.spike[0].value == 41 && s.spike[0].median == 2);
    assert_int_equal(s.spike[1].iteration, 501);
    assert_true(s.spike[1].by_loss);
    assert_true(s.largest_norm.value == 1000 && s.largest_norm.iteration == 6);
}

/* With a factor of its own, or where the log begins late. */
TEST_WITH(what_the_training_called_a_spike_is_one, quiet, NULL)
{
    for (int i = 0; i < ROWS; i++) rows[i].spike = AMP_LOG_NO_SPIKE;
    rows[3].spike = AMP_LOG_SPIKE;      /* the median is not known */
    rows[400].grad_norm = 41;           /* it did not say so */
    rows[500].spike = AMP_LOG_SPIKE;
    rows[500].grad_norm = 10;           /* 5 times the median */
    rows[600].spike = AMP_LOG_DROPPED;
    rows[600].loss = 10 * 30;
    for (int i = 601; i < ROWS; i++) rows[i].iteration = i;
    amp_log_summary s = summary(ROWS);
    assert_int_equal(s.spikes, 3);
    assert_int_equal(s.dropped, 1);
    assert_int_equal(s.skipped, 1);
    assert_true(s.spike[0].iteration == 4 && s.spike[0].median == 0);
    assert_true(s.spike[1].iteration == 501 && !s.spike[1].by_loss && s.spike[1].median == 2);
    assert_true(s.spike[2].by_loss && s.spike[2].dropped && !s.spike[1].dropped);
}

/* The window is the last 128 steps: where the norm rises for good, only the first steps stand out. */
TEST_WITH(what_lasts_is_no_spike, quiet, NULL)
{
    for (int i = 400; i < ROWS; i++) rows[i].grad_norm = 100;
    assert_int_equal(summary(ROWS).spikes, AMP_SPIKE_WINDOW / 2);
}

TEST_WITH(of_many_spikes_the_largest_are_kept, quiet, NULL)
{
    for (int i = 0; i < 20; i++) rows[200 + 40 * i].grad_norm = 100 + (i * 7) % 20;
    amp_log_summary s = summary(ROWS);
    assert_int_equal(s.spikes, 20);
    for (int i = 0; i < AMP_SPIKES_KEPT; i++) {
        assert_true(s.spike[i].value >= 110);
        if (i) assert_true(s.spike[i].iteration > s.spike[i - 1].iteration);
    }
}

TEST_WITH(a_scale_that_only_falls_at_the_end_is_a_collapse, quiet, NULL)
{
    for (int i = 0; i < ROWS; i++) rows[i].scale = i < 10 ? 65536 >> i : 1024;
    assert_false(summary(ROWS).scale_falls); /* it finds its level */
    for (int i = 0; i < 50; i++) rows[ROWS - 50 + i].scale = 1024 >> i / 10;
    assert_false(summary(ROWS).scale_falls); /* by 16 */
    rows[ROWS - 1].scale = 32;
    amp_log_summary s = summary(ROWS);
    assert_true(s.scale_falls);
    assert_true(s.least_scale.value == 32 && s.least_scale.iteration == ROWS);
    assert_true(s.first_scale == 65536 && s.most_scale.value == 65536 && s.raised == 1);
    rows[ROWS - 20].scale = 2048;
    assert_false(summary(ROWS).scale_falls); /* it grew in between */
}

TEST_WITH(a_norm_that_grows_tenfold_is_a_collapse, quiet, NULL)
{
    for (int i = 750; i < ROWS; i++) rows[i].grad_norm *= 10;
    assert_true(summary(ROWS).norm_grows == 0);
    for (int i = 750; i < ROWS; i++) rows[i].grad_norm *= 1.5;
    assert_true(summary(ROWS).norm_grows == 15);
}

/* Of steps that were made: one that was skipped has no norm. */
TEST_WITH(a_norm_that_stays_0_is_counted, quiet, NULL)
{
    assert_int_equal(summary(ROWS).zero_norms, 0);
    for (int i = ROWS - 12; i < ROWS; i++) rows[i].grad_norm = 0;
    rows[ROWS - 3].grad_norm = NAN;
    rows[ROWS - 3].found_inf = 1;
    amp_log_summary s = summary(ROWS);
    assert_int_equal(s.zero_norms, 11);
    assert_int_equal(s.zero_since, rows[ROWS - 12].iteration);
    rows[ROWS - 1].grad_norm = .5;
    assert_int_equal(summary(ROWS).zero_norms, 0);
}

TEST_WITH(short_logs_are_summarized, quiet, NULL)
{
    for (size_t count = 1; count < 9; count++) {
        amp_log_summary s = summary(count);
        assert_int_equal(s.rows, count);
        assert_false(s.norm_grows > 0 || s.scale_falls);
    }
    rows[0].grad_norm = rows[0].loss = NAN;
    rows[0].found_inf = 1;
    amp_log_summary s = summary(1);
    assert_true(isnan(s.largest_norm.value) && isnan(s.norm[3]));
    assert_int_equal(s.largest_cluster, 1);
}

TEST_WITH(the_picture_has_a_line_for_each_panel_and_no_number_that_is_none, quiet, NULL)
{
    for (size_t count = 1; count <= ROWS; count += 333) {
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);
        rows[0].loss = NAN;
        amp_log_draw(out, "a<b&c.csv", rows, count);
        fclose(out);
        int lines = 0;
        for (const char *at = text; (at = strstr(at, "<polyline")); at++) lines++;
        assert_int_equal(lines, 3);
        assert_non_null(strstr(text, "a&lt;b&amp;c.csv"));
        assert_null(strstr(text, "nan"));
        assert_null(strstr(text, "inf"));
        free(text);
    }
}

/* ---- reading ---- */

#define ROW "1,2,3,0.1,1,0,5,6,7,8,9,10,,"

static amp_status read_log(size_t *count, amp_error *error)
{
    amp_log_rows read = { 0 };
    amp_status status = amp_log_rows_read("log.csv", &read, error);
    *count = read.count;
    free(read.row);
    return status;
}

TEST_WITH(a_log_that_is_being_written_is_read_and_another_file_is_refused, enter_folder, leave_folder)
{
    amp_error error;
    size_t count;
    put_file("log.csv", AMP_LOG_COLUMNS "\n" ROW "\n" ROW "\n1,2,3,0.");
    assert_int_equal(read_log(&count, &error), AMP_OK);
    assert_int_equal(count, 2);
    put_file("log.csv", AMP_LOG_COLUMNS "\n" ROW "\n1,2,3,0.\n" ROW "\n");
    assert_int_equal(read_log(&count, &error), AMP_BAD_CONFIG);
    assert_non_null(strstr(error.message, ".csv:3: not a line of a training log"));
    put_file("log.csv", ROW "\n" ROW "\n");
    assert_int_equal(read_log(&count, &error), AMP_BAD_CONFIG);
    assert_non_null(strstr(error.message, ".csv:1: not a line of a training log"));
    unlink("log.csv");
    assert_int_equal(read_log(&count, &error), AMP_BAD_CONFIG);
}

int main(void) { return run_listed_tests("a training's log", NULL, NULL); }
