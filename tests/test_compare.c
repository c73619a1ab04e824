/* The numbers and the sentences of `darknet amp compare`, from comparisons that are made up. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands/compare/compare.h"

enum { DTYPES = 3, SEEDS = 3, STEPS = 20 };

/* fp32, bf16 and fp16 with three seeds, all done; nothing else is known of them. */
typedef struct made_up {
    amp_comparison c;
    const char *dtypes[DTYPES];
    unsigned seeds[SEEDS];
    amp_run runs[DTYPES * SEEDS];
    amp_log_row rows[DTYPES * SEEDS][STEPS];
} made_up;

static void make_up(made_up *m)
{
    static const char *const names[DTYPES] = { "fp32", "bf16", "fp16" };
    memset(m, 0, sizeof *m);
    m->c = (amp_comparison){ .kind = AMP_COMPARED_DETECTOR, .dtype_count = DTYPES, .seed_count = SEEDS, .dtypes = m->dtypes,
                             .seeds = m->seeds, .runs = m->runs, .batch = 8, .classes = 10 };
    for (int d = 0; d < DTYPES; ++d) {
        m->dtypes[d] = names[d];
        for (int s = 0; s < SEEDS; ++s) {
            int i = d * SEEDS + s;
            m->seeds[s] = (unsigned)s + 1;
            m->runs[i] = (amp_run){ .dtype = names[d], .seed = (unsigned)s + 1, .state = AMP_RUN_DONE, .rows = m->rows[i], .count = STEPS,
                                    .score = { .5, .25 } };
            for (int k = 0; k < STEPS; ++k)
                m->rows[i][k] = (amp_log_row){ .iteration = k + 1, .loss = 2, .avg_loss = 2.5f, .load_seconds = .25, .train_seconds = .25,
                                               .peak_memory_mb = 100 };
        }
    }
}

static void summarize(made_up *m)
{
    amp_error error;
    for (int i = 0; i < DTYPES * SEEDS; ++i) amp_run_statistics(&m->runs[i], m->c.batch);
    assert_int_equal(amp_compare_summarize(&m->c, &error), AMP_OK);
}

static void judge(made_up *m, const char *const *notes)
{
    amp_error error;
    summarize(m);
    assert_int_equal(amp_compare_verdict(&m->c, notes, &error), AMP_OK);
}

static void forget(made_up *m)
{
    for (int i = 0; i < m->c.verdict_count; ++i) free(m->c.verdict[i]);
    free(m->c.verdict);
    free(m->c.summaries);
}

static void set_scores(made_up *m, int dtype, double a, double b, double c)
{
    const double scores[SEEDS] = { a, b, c };
    for (int s = 0; s < SEEDS; ++s) amp_comparison_run(&m->c, dtype, s)->score[0] = scores[s];
}

static int says(const made_up *m, const char *text)
{
    for (int i = 0; i < m->c.verdict_count; ++i) if (strstr(m->c.verdict[i], text)) return 1;
    return 0;
}

static void expect(const made_up *m, const char *text)
{
    if (says(m, text)) return;
    for (int i = 0; i < m->c.verdict_count; ++i) print_message("%s\n", m->c.verdict[i]);
    fail_msg("nothing says: %s", text);
}

static void near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-9 * (1 + fabs(b)))) fail_msg("%.17g, expected %.17g", a, b);
}

/* ---- a run ---- */

static void medians(void **state)
{
    double odd[] = { 3, 1, 2 }, even[] = { 4, 1, 3, 2 };
    (void)state;
    near(amp_median(odd, 3), 2);
    near(amp_median(even, 4), 2.5);
    assert_false(amp_is_number(amp_median(odd, 0)));
}

/* 20 steps: the first two are left out, and with them their times; skipped ones and the highest memory are of all. */
static void a_run_is_measured_without_its_first_tenth(void **state)
{
    made_up m;
    (void)state;
    make_up(&m);
    amp_log_row *rows = m.rows[0];
    for (int k = 0; k < STEPS; ++k) {
        rows[k].train_seconds = k < 2 ? 1000 : k < 11 ? 1 : 2; /* 9 of 1 s, 9 of 2 s */
        rows[k].load_seconds = 1;
        rows[k].peak_memory_mb = k == 0 ? 300 : 100 + k;
    }
    rows[0].found_inf = rows[1].found_inf = rows[7].found_inf = 1;
    amp_run_statistics(&m.runs[0], 8);
    near(m.runs[0].images_per_second, (8. / 2 + 8. / 3) / 2);
    near(m.runs[0].compute_images_per_second, (8. / 1 + 8. / 2) / 2);
    near(m.runs[0].peak_memory_mb, 300);
    assert_int_equal(m.runs[0].skipped, 3);
}

static void a_run_of_few_steps_has_what_they_tell(void **state)
{
    made_up m;
    (void)state;
    make_up(&m);
    m.runs[0].count = 1;
    amp_run_statistics(&m.runs[0], 8);
    near(m.runs[0].images_per_second, 16);
    m.runs[0].count = 0;
    amp_run_statistics(&m.runs[0], 8);
    assert_false(amp_is_number(m.runs[0].images_per_second));
    assert_false(amp_is_number(m.runs[0].peak_memory_mb));
}

/* ---- weights ---- */

static void write_weights(const char *name, int minor, const float *values, size_t count)
{
    FILE *file = fopen(name, "wb");
    int version[3] = { 0, minor, 0 }, narrow = 5;
    size_t wide = 5;
    assert_non_null(file);
    fwrite(version, sizeof version, 1, file);
    if (minor >= 2) fwrite(&wide, sizeof wide, 1, file);
    else fwrite(&narrow, sizeof narrow, 1, file);
    fwrite(values, sizeof *values, count, file);
    assert_int_equal(fclose(file), 0);
}

static void weights_are_compared_behind_their_headers(void **state)
{
    const float a[] = { 1, 2, 3, 4 }, b[] = { 1, 2, 5, 3 }, nan[] = { 1, 2, NAN, 4 };
    double largest, relative;
    (void)state;
    write_weights("compare_a", 2, a, 4);
    write_weights("compare_b", 1, b, 4); /* an old one: its counter has four bytes */
    amp_weights_difference("compare_a", "compare_b", NULL, 0, &largest, &relative);
    near(largest, 2);
    near(relative, sqrt((4. + 1) / (1 + 4 + 25 + 9)));
    amp_weights_difference("compare_a", "compare_a", NULL, 0, &largest, &relative);
    near(largest, 0);
    near(relative, 0);
    write_weights("compare_b", 2, a, 3);
    amp_weights_difference("compare_a", "compare_b", NULL, 0, &largest, &relative);
    assert_false(amp_is_number(largest) || amp_is_number(relative));
    amp_weights_difference("compare_a", "compare_nowhere", NULL, 0, &largest, &relative);
    assert_false(amp_is_number(largest) || amp_is_number(relative));
    write_weights("compare_b", 2, nan, 4);
    amp_weights_difference("compare_b", "compare_a", NULL, 0, &largest, &relative);
    assert_false(amp_is_number(largest) || amp_is_number(relative));
    unlink("compare_a");
    unlink("compare_b");
}

/* Rolling variances are thousands of times as large as weights. */
static void rolling_statistics_are_no_difference(void **state)
{
    static const float a[] = { 1, 2, 500, 600, 3, 4, 700 }, b[] = { 1, 2.5f, 9000, 8000, 3, 4, 1 };
    static const amp_weights_run runs[] = { { 2, 2 }, { 0, 0 }, { 2, 1 } };
    double largest, relative;
    (void)state;
    write_weights("compare_a", 2, a, 7);
    write_weights("compare_b", 2, b, 7);
    amp_weights_difference("compare_b", "compare_a", runs, 3, &largest, &relative);
    near(largest, .5);
    near(relative, sqrt(.25 / (1 + 4 + 9 + 16)));
    amp_weights_difference("compare_b", "compare_a", runs, 1, &largest, &relative); /* what no run tells of counts */
    near(largest, 699);
    unlink("compare_a");
    unlink("compare_b");
}

/* Longer than what is read at a time. */
static void a_difference_at_the_end_of_large_files_is_found(void **state)
{
    enum { MANY = 10000 };
    static float a[MANY];
    double largest, relative;
    (void)state;
    write_weights("compare_a", 2, a, MANY);
    a[MANY - 1] = 3;
    write_weights("compare_b", 2, a, MANY);
    amp_weights_difference("compare_a", "compare_b", NULL, 0, &largest, &relative);
    near(largest, 3);
    near(relative, 1);
    unlink("compare_a");
    unlink("compare_b");
}

/* ---- over the seeds ---- */

static void summaries_are_paired_by_seed(void **state)
{
    made_up m;
    (void)state;
    make_up(&m);
    set_scores(&m, 0, .50, .60, .70);
    set_scores(&m, 1, .51, .60, .73);
    const double seconds[] = { .2, .1, .4 }; /* against .5: ratios 2.5, 5, 1.25 */
    for (int s = 0; s < SEEDS; ++s)
        for (int k = 0; k < STEPS; ++k) {
            amp_log_row *row = &m.rows[SEEDS + s][k];
            row->load_seconds = row->train_seconds = seconds[s] / 2;
            row->peak_memory_mb = 50 + s;
            row->found_inf = k < s;
            row->avg_loss = (float)s;
        }
    summarize(&m);
    const amp_dtype_summary *s = &m.c.summaries[1];
    near(s->score[0].mean, 1.84 / 3);
    near(s->score[0].spread, .22);
    assert_int_equal(s->score[0].count, 3);
    near(s->score_difference[0], 4. / 3); /* 1, 0 and 3 points */
    near(s->score_error[0], sqrt(((1 - 4. / 3) * (1 - 4. / 3) + 16. / 9 + (3 - 4. / 3) * (3 - 4. / 3)) / 2 / 3));
    near(s->score_difference[1], 0);
    near(s->score_error[1], 0);
    near(s->speedup, 2.5);
    near(s->compute_speedup, 2.5);
    near(s->memory_ratio, .51);
    near(s->loss.mean, 1);
    near(s->skipped.mean, 1);
    near(m.c.summaries[0].speedup, 1);
    forget(&m);
}

static void what_is_not_done_is_left_out(void **state)
{
    made_up m;
    (void)state;
    make_up(&m);
    set_scores(&m, 0, .5, .6, .9);
    set_scores(&m, 1, .4, .6, .1);
    amp_comparison_run(&m.c, 1, 2)->state = AMP_RUN_FAILED;
    amp_comparison_run(&m.c, 0, 1)->state = AMP_RUN_TRAINING;
    summarize(&m);
    const amp_dtype_summary *s = &m.c.summaries[1];
    assert_int_equal(s->failed, 1);
    assert_int_equal(s->score[0].count, 2);
    near(s->score[0].mean, .5);
    near(s->score_difference[0], -10); /* the first seed alone is done in both */
    assert_false(amp_is_number(s->score_error[0]));
    assert_int_equal(m.c.summaries[0].score[0].count, 2);
    assert_int_equal(s->loss.count, 2);
    near(s->speedup, 1); /* speed is known before a training is over, but not of one that failed */
    assert_int_equal(s->images_per_second.count, 2);
    forget(&m);
}

static void nothing_is_known_of_nothing(void **state)
{
    made_up m;
    (void)state;
    make_up(&m);
    for (int i = 0; i < DTYPES * SEEDS; ++i) {
        m.runs[i].state = AMP_RUN_WAITING;
        m.runs[i].count = 0;
    }
    judge(&m, NULL);
    assert_int_equal(m.c.summaries[1].score[0].count, 0);
    assert_false(amp_is_number(m.c.summaries[1].speedup));
    expect(&m, "bf16: no mAP@0.5 to compare");
    assert_false(says(&m, "images/s"));
    forget(&m);
}

/* ---- the verdict ---- */

static void the_interval_is_students(void **state)
{
    (void)state;
    assert_false(amp_is_number(amp_confidence_factor(1)));
    near(amp_confidence_factor(2), 12.706);
    near(amp_confidence_factor(3), 4.303);
    near(amp_confidence_factor(31), 2.042);
    near(amp_confidence_factor(1000), 1.96);
}

static void accuracy_is_judged_by_mean_and_interval(void **state)
{
    static const struct { double scores[SEEDS]; const char *says; } cases[] = {
        { { .501, .602, .699 }, ": as good, with a loss of more than 1 point ruled out." },          /* +.1 +.2 -.1 */
        { { .49, .61, .69 }, ": within 1 point, though 3 seeds do not rule out a larger loss." },    /* -1 +1 -1 */
        { { .45, .55, .65 }, ": worse by more than 1 point." },                                      /* -5 -5 -5 */
        { { .49, .60, .64 }, ": more than 1 point lower, though 3 seeds do not settle it." },        /* -1 0 -6 */
        { { .55, .65, .75 }, ": better." },                                                          /* +5 +5 +5 */
        { { .51, .60, .76 }, ": nothing is lost on average, and 3 seeds cannot tell the gain from chance." } }; /* +1 0 +6 */
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        made_up m;
        make_up(&m);
        set_scores(&m, 0, .5, .6, .7);
        set_scores(&m, 1, cases[i].scores[0], cases[i].scores[1], cases[i].scores[2]);
        judge(&m, NULL);
        expect(&m, cases[i].says);
        forget(&m);
    }
}

static void the_sentence_holds_the_numbers(void **state)
{
    made_up m;
    (void)state;
    make_up(&m);
    set_scores(&m, 0, .5, .6, .7);
    set_scores(&m, 1, .49, .61, .69);
    judge(&m, NULL);
    expect(&m, "bf16: mAP@0.5 59.67 % against 60.00 % in fp32, -0.33 points (95 % interval of 3 seeds -3.20 to +2.54): ");
    forget(&m);
}

static void a_classifier_has_half_a_point(void **state)
{
    made_up m;
    (void)state;
    make_up(&m);
    m.c.kind = AMP_COMPARED_CLASSIFIER;
    set_scores(&m, 0, .5, .6, .7);
    set_scores(&m, 1, .493, .592, .693);
    judge(&m, NULL);
    expect(&m, "bf16: top-1 59.27 % against 60.00 %");
    expect(&m, "worse by more than 0.5 points");
    expect(&m, "fp16: top-1 50.00 % against 60.00 %");
    forget(&m);
}

static void one_seed_cannot_tell(void **state)
{
    made_up m;
    (void)state;
    make_up(&m);
    m.c.seed_count = 1;
    for (int d = 0; d < DTYPES; ++d) m.c.runs[d] = m.runs[d * SEEDS];
    for (int i = 0; i < DTYPES; ++i) amp_run_statistics(&m.c.runs[i], 8);
    amp_error error;
    assert_int_equal(amp_compare_summarize(&m.c, &error), AMP_OK);
    assert_int_equal(amp_compare_verdict(&m.c, NULL, &error), AMP_OK);
    expect(&m, "One seed cannot tell");
    assert_false(says(&m, "within"));
    forget(&m);
}

static void what_has_learnt_nothing_is_not_judged(void **state)
{
    made_up m;
    (void)state;
    make_up(&m);
    set_scores(&m, 0, .001, .002, .001);
    set_scores(&m, 1, .001, .001, .001);
    judge(&m, NULL);
    expect(&m, "neither has learnt enough");
    expect(&m, "fp16: mAP@0.5 50.00 % against 0.13 %"); /* one of the two has */
    forget(&m);
}

static void set_seconds(made_up *m, int dtype, double load, double train)
{
    for (int s = 0; s < SEEDS; ++s)
        for (int k = 0; k < STEPS; ++k) {
            m->rows[dtype * SEEDS + s][k].load_seconds = load;
            m->rows[dtype * SEEDS + s][k].train_seconds = train;
        }
}

static void speed_is_judged_and_explained(void **state)
{
    static const char *const notes[DTYPES] = { NULL, "bf16 is only stored here", "fp16 is only stored here" };
    made_up m;
    (void)state;
    make_up(&m);
    set_seconds(&m, 0, .1, .4);
    set_seconds(&m, 1, .1, .2);
    set_seconds(&m, 2, .1, .39);
    judge(&m, notes);
    expect(&m, "bf16: faster: 1.67 times the images/s of fp32 (26.7 against 16.0; without loading 2.00 times, 40.0 against 20.0), "
               "with 1.00 times the peak memory (100 against 100 MB).");
    assert_false(says(&m, notes[1]));
    expect(&m, "fp16: not worth it for speed, below 1.1 times: 1.02 times the images/s");
    expect(&m, " MB); fp16 is only stored here.");
    assert_int_equal(m.c.verdict_count, 4); /* of each dtype but fp32 two: accuracy; speed and memory */
    forget(&m);

    make_up(&m);
    set_seconds(&m, 0, .4, .1);
    set_seconds(&m, 1, .4, .06);
    set_seconds(&m, 2, .4, .5);
    judge(&m, notes);
    expect(&m, "without loading 1.67 times, 133.3 against 80.0), with 1.00 times the peak memory (100 against 100 MB); loading the images "
               "holds it back.");
    expect(&m, "fp16: slower: 0.56 times the images/s of fp32 (8.9 against 16.0; without loading 0.20 times, 16.0 against 80.0)");
    forget(&m);
}

/* Ten steps, of which the first is left out: cold caches would make a verdict. */
static void a_few_steps_tell_nothing_of_speed(void **state)
{
    static const char *const notes[DTYPES] = { NULL, "bf16 is only stored here", "fp16 is only stored here" };
    made_up m;
    (void)state;
    make_up(&m);
    set_seconds(&m, 0, .1, .4);
    set_seconds(&m, 1, .1, .2);
    set_seconds(&m, 2, .1, .5);
    amp_comparison_run(&m.c, 1, 2)->count = 10;
    judge(&m, notes);
    expect(&m, "bf16: too few steps to judge its speed (9; from 10 on): 1.67 times the images/s of fp32");
    expect(&m, "fp16: slower: 0.83 times"); /* its trainings and fp32's are long enough */
    forget(&m);

    make_up(&m);
    set_seconds(&m, 0, .1, .4);
    set_seconds(&m, 1, .1, .2);
    amp_comparison_run(&m.c, 1, 2)->count = 11;
    judge(&m, notes);
    expect(&m, "bf16: faster: 1.67 times");
    forget(&m);

    make_up(&m);
    amp_comparison_run(&m.c, 0, 0)->count = 2;
    judge(&m, notes);
    expect(&m, "bf16: too few steps to judge its speed (2; from 10 on)");
    expect(&m, "fp16: too few steps to judge its speed (2; from 10 on)");
    assert_false(says(&m, notes[1]) || says(&m, notes[2]));
    forget(&m);
}

static void failures_skips_and_an_interruption_are_told(void **state)
{
    made_up m;
    (void)state;
    make_up(&m);
    m.c.interrupted = 1;
    amp_run *failed = amp_comparison_run(&m.c, 2, 1);
    failed->state = AMP_RUN_FAILED;
    snprintf(failed->failure, sizeof failed->failure, "gradients stay inf");
    for (int k = 0; k < 3; ++k) m.rows[1 * SEEDS + 2][k].found_inf = 1;
    judge(&m, NULL);
    assert_int_equal(strncmp(m.c.verdict[0], "Interrupted: 8 of 9 trainings are done", 38), 0);
    expect(&m, "fp16: 1 of 3 trainings failed and are left out; seed 2: gradients stay inf");
    expect(&m, "bf16: 1.0 steps of a training were skipped on average");
    expect(&m, "fp16: mAP@0.5 50.00 % against 50.00 % in fp32, +0.00 points (95 % interval of 2 seeds");
    forget(&m);
}

static void one_dtype_has_no_rival(void **state)
{
    made_up m;
    (void)state;
    make_up(&m);
    m.c.dtype_count = 1;
    judge(&m, NULL);
    assert_int_equal(m.c.verdict_count, 1);
    expect(&m, "Only fp32 was trained");
    forget(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(medians), cmocka_unit_test(a_run_is_measured_without_its_first_tenth),
        cmocka_unit_test(a_run_of_few_steps_has_what_they_tell), cmocka_unit_test(weights_are_compared_behind_their_headers),
        cmocka_unit_test(rolling_statistics_are_no_difference),
        cmocka_unit_test(a_difference_at_the_end_of_large_files_is_found), cmocka_unit_test(summaries_are_paired_by_seed),
        cmocka_unit_test(what_is_not_done_is_left_out), cmocka_unit_test(nothing_is_known_of_nothing),
        cmocka_unit_test(the_interval_is_students), cmocka_unit_test(accuracy_is_judged_by_mean_and_interval),
        cmocka_unit_test(the_sentence_holds_the_numbers), cmocka_unit_test(a_classifier_has_half_a_point),
        cmocka_unit_test(one_seed_cannot_tell), cmocka_unit_test(what_has_learnt_nothing_is_not_judged),
        cmocka_unit_test(speed_is_judged_and_explained),
        cmocka_unit_test(a_few_steps_tell_nothing_of_speed), cmocka_unit_test(failures_skips_and_an_interruption_are_told),
        cmocka_unit_test(one_dtype_has_no_rival) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
