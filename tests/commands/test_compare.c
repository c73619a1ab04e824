/* The numbers, the verdicts and the advice of `darknet amp compare`, from comparisons that are made up. */
#include "testing.h"

#include <math.h>
#include <unistd.h>

#include "commands/compare/comparison.h"

enum { DTYPES = 3, SEEDS = 3, STEPS = 60 }; /* enough to judge speeds by */

/* fp32, bf16 and fp16 with three seeds, all done; nothing else is known of them. Anew for each test. */
static struct {
    amp_comparison c;
    const char *dtypes[DTYPES];
    amp_run runs[DTYPES * SEEDS];
    amp_log_row rows[DTYPES * SEEDS][STEPS];
} m;

static int make_up(void **state)
{
    static const char *const names[DTYPES] = { "fp32", "bf16", "fp16" };
    (void)state;
    memset(&m, 0, sizeof m);
    m.c = (amp_comparison){ .kind = AMP_COMPARED_DETECTOR, .dtype_count = DTYPES, .seed_count = SEEDS,
                            .dtypes = m.dtypes, .runs = m.runs, .batch = 8,
                            .classes = 10, .points_allowed = 1, .alpha = AMP_COMPARE_ALPHA };
    for (int d = 0; d < DTYPES; d++) {
        m.dtypes[d] = names[d];
        for (int s = 0; s < SEEDS; s++) {
            int i = d * SEEDS + s;
            m.runs[i] = (amp_run){ .dtype = names[d], .seed = (unsigned)s + 1, .state = AMP_RUN_DONE,
                                   .rows = m.rows[i], .count = STEPS, .score = { .5, .25 } };
            for (int k = 0; k < STEPS; k++)
                m.rows[i][k] = (amp_log_row){ .iteration = k + 1, .loss = 2, .avg_loss = 2.5f,
                                              .load_seconds = .25, .train_seconds = .25,
                                              .peak_memory_mb = 100 };
        }
    }
    return 0;
}

static int forget(void **state)
{
    (void)state;
    amp_lines_free(&m.c.advice);
    free(m.c.summaries);
    return 0;
}

#define COMPARISON_TEST(name) TEST_WITH(name, make_up, forget)

static void summarize(void) { amp_compare_statistics(&m.c); }

static void judge(const char *const *notes)
{
    summarize();
    amp_compare_verdict(&m.c, notes);
}

static void set_scores(int dtype, double a, double b, double c)
{
    const double scores[SEEDS] = { a, b, c };
    for (int s = 0; s < SEEDS; s++) amp_comparison_run(&m.c, dtype, s)->score[0] = scores[s];
}

static int says(const char *text)
{
    for (size_t i = 0; i < m.c.advice.count; i++) if (strstr(m.c.advice.line[i], text)) return 1;
    return 0;
}

/* What is judged of bf16 and fp16. */
static void assert_accuracies(amp_accuracy bf16, amp_accuracy fp16)
{
    assert_int_equal(m.c.summaries[1].both, bf16);
    assert_int_equal(m.c.summaries[2].both, fp16);
}

static void assert_speeds(amp_speed bf16, amp_speed fp16)
{
    assert_int_equal(m.c.summaries[1].speed, bf16);
    assert_int_equal(m.c.summaries[2].speed, fp16);
}

static void expect(const char *text)
{
    if (says(text)) return;
    for (size_t i = 0; i < m.c.advice.count; i++) print_message("%s\n", m.c.advice.line[i]);
    fail_msg("nothing says: %s", text);
}

static void near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-9 * (1 + fabs(b)))) fail_msg("%.17g, expected %.17g", a, b);
}

/* ---- a run ---- */

/* 60 steps: the first six are left out, and with them their times; skipped ones and the
 * highest memory are of all. */
COMPARISON_TEST(a_run_is_measured_without_its_first_tenth)
{
    amp_log_row *rows = m.rows[0];
    for (int k = 0; k < STEPS; k++) {
        rows[k].train_seconds = k < 6 ? 1000 : k < 33 ? 1 : 2; /* 27 of 1 s, 27 of 2 s */
        rows[k].load_seconds = 1;
        rows[k].peak_memory_mb = k == 0 ? 300 : 100 + k;
    }
    rows[0].found_inf = rows[1].found_inf = rows[7].found_inf = 1;
    summarize();
    near(m.runs[0].images_per_second, (8. / 2 + 8. / 3) / 2);
    assert_int_equal(m.runs[0].speed_steps, STEPS - STEPS / 10);
    near(m.runs[0].compute_images_per_second, (8. / 1 + 8. / 2) / 2);
    near(m.runs[0].peak_memory_mb, 300);
    assert_int_equal(m.runs[0].skipped, 3);
}

COMPARISON_TEST(a_run_of_few_steps_has_what_they_tell)
{
    m.runs[0].count = 1;
    summarize();
    near(m.runs[0].images_per_second, 16);
    m.runs[0].count = 0;
    summarize();
    assert_false(isfinite(m.runs[0].images_per_second));
    assert_false(isfinite(m.runs[0].peak_memory_mb));
}

/* A step of `seconds` each, from `begin` on, in turns with others: each step ends `apart` seconds after
 * the one before. */
static void set_times(int dtype, int seed, double begin, double seconds, double apart)
{
    for (int k = 0; k < STEPS; k++) {
        amp_log_row *row = &m.rows[dtype * SEEDS + seed][k];
        row->load_seconds = 0;
        row->train_seconds = seconds;
        row->time = begin + k * apart + seconds;
    }
}

/* bf16 is done halfway through fp32's training, which is twice as fast from there on; what fp16 did before
 * it failed counts for nobody. */
COMPARISON_TEST(speeds_are_of_the_time_in_which_all_trained)
{
    for (int s = 0; s < SEEDS; s++) {
        set_times(0, s, 1000 * s, 4, 6);
        set_times(1, s, 1000 * s + 4, 2, 3);
        for (int k = STEPS / 2 + 1; k < STEPS; k++) m.rows[s][k].train_seconds = 2;
        amp_comparison_run(&m.c, 2, s)->state = AMP_RUN_FAILED;
    }
    judge(NULL);
    near(m.runs[0].images_per_second, 2);
    near(m.runs[SEEDS].images_per_second, 4);
    /* fp32's 30th step ends at 6 * 29 + 4, bf16's last one at 183 */
    assert_int_equal(m.runs[0].speed_steps, STEPS / 2 - STEPS / 10);
    near(m.c.summaries[1].speedup.ratio, 2);
    near(m.c.together_seconds, 3 * (24 * 4 + 54 * 2));
    assert_false(m.c.apart || says("Speeds"));
}

/* bf16 was added when fp32 was done: all steps count, and a line says so. */
COMPARISON_TEST(trainings_that_never_ran_at_the_same_time_are_told)
{
    for (int s = 0; s < SEEDS; s++) {
        set_times(0, s, 0, 4, 4);
        set_times(1, s, 1000, 2, 2);
        set_times(2, s, 0, 4, 4);
    }
    judge(NULL);
    near(m.c.summaries[1].speedup.ratio, 2);
    assert_int_equal(m.runs[0].speed_steps, STEPS - STEPS / 10);
    expect("Speeds: not all dtypes of a seed trained at the same time");
}

/* ---- over the seeds ---- */

COMPARISON_TEST(summaries_are_paired_by_seed)
{
    set_scores(0, .50, .60, .70);
    set_scores(1, .51, .60, .73);
    const double seconds[] = { .2, .1, .4 }; /* against .5: ratios 2.5, 5, 1.25 */
    for (int s = 0; s < SEEDS; s++)
        for (int k = 0; k < STEPS; k++) {
            amp_log_row *row = &m.rows[SEEDS + s][k];
            row->load_seconds = row->train_seconds = seconds[s] / 2;
            row->peak_memory_mb = 50 + s;
            row->found_inf = k < s;
            row->avg_loss = (float)s;
        }
    summarize();
    const amp_dtype_summary *s = &m.c.summaries[1];
    near(s->score[0].mean, 1.84 / 3);
    near(s->score[0].spread, .22);
    assert_int_equal(s->score[0].count, 3);
    near(s->difference[0].mean, 4. / 3); /* 1, 0 and 3 points */
    near(s->difference[0].error,
         sqrt(((1 - 4. / 3) * (1 - 4. / 3) + 16. / 9 + (3 - 4. / 3) * (3 - 4. / 3)) / 2 / 3));
    near(s->difference[1].mean, 0);
    near(s->difference[1].error, 0);
    near(s->speedup.ratio, 2.5); /* the geometric mean of 2.5, 5 and 1.25 */
    near(s->speedup.least, 1.25);
    near(s->speedup.most, 5);
    near(s->compute_speedup.ratio, 2.5);
    near(s->memory_ratio.ratio, cbrt(.50 * .51 * .52));
    near(s->loss.mean, 1);
    near(s->skipped.mean, 1);
    near(m.c.summaries[0].speedup.ratio, 1);
    near(s->images_per_second.mean / m.c.summaries[0].images_per_second.mean, s->speedup.ratio);
}

COMPARISON_TEST(what_is_not_done_is_left_out)
{
    set_scores(0, .5, .6, .9);
    set_scores(1, .4, .6, .1);
    amp_comparison_run(&m.c, 1, 2)->state = AMP_RUN_FAILED;
    amp_comparison_run(&m.c, 0, 1)->state = AMP_RUN_TRAINING;
    summarize();
    const amp_dtype_summary *s = &m.c.summaries[1];
    assert_int_equal(s->failed, 1);
    assert_int_equal(s->score[0].count, 2);
    near(s->score[0].mean, .5);
    near(s->difference[0].mean, -10); /* the first seed alone is done in both */
    assert_false(isfinite(s->difference[0].error));
    assert_int_equal(m.c.summaries[0].score[0].count, 2);
    assert_int_equal(s->loss.count, 2);
    near(s->speedup.ratio, 1); /* speed is known before a training is over, but not of one that failed */
    assert_int_equal(s->images_per_second.count, 2);
}

COMPARISON_TEST(nothing_is_known_of_nothing)
{
    for (int i = 0; i < DTYPES * SEEDS; i++) {
        m.runs[i].state = AMP_RUN_WAITING;
        m.runs[i].count = 0;
    }
    judge(NULL);
    assert_int_equal(m.c.summaries[1].score[0].count, 0);
    assert_false(isfinite(m.c.summaries[1].speedup.ratio));
    assert_accuracies(AMP_ACCURACY_UNKNOWN, AMP_ACCURACY_UNKNOWN);
    assert_speeds(AMP_SPEED_UNKNOWN, AMP_SPEED_UNKNOWN);
    assert_false(says("bf16"));
}

/* ---- the verdict ---- */

/* Against printed tables of Student's t, to their three decimals. */
TEST(the_interval_is_students)
{
    static const struct { int count; double alpha, t; } cases[] = {
        { 2, .05, 12.706 }, { 3, .05, 4.303 }, { 4, .05, 3.182 }, { 5, .05, 2.776 }, { 10, .05, 2.262 },
            { 31, .05, 2.042 },
        { 121, .05, 1.980 }, { 3, .01, 9.925 }, { 6, .01, 4.032 }, { 7, .1, 1.943 }, { 25, .01, 2.797 } };
    assert_false(isfinite(amp_student(1, .05)));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_true(fabs(amp_student(cases[i].count, cases[i].alpha) - cases[i].t) < 6e-4);
    const double values[] = { 1, 2, 6 };
    amp_interval interval = amp_interval_of(values, 3, .05);
    near(interval.mean, 3);
    near(interval.error, sqrt(7. / 3));
    near((interval.most - interval.least) / 2, amp_student(3, .05) * sqrt(7. / 3));
    assert_false(isfinite(amp_interval_of(values, 1, .05).least)
                 || isfinite(amp_interval_of(values, 0, .05).mean));
}

static amp_accuracy judged(double least, double most)
{
    return amp_compare_judge(&(amp_interval){ 9, (least + most) / 2, 1, least, most }, 1);
}

TEST(a_loss_is_ruled_out_or_shown_or_nobody_can_tell)
{
    assert_int_equal(judged(-1, 3), AMP_ACCURACY_AS_GOOD);
    assert_int_equal(judged(2, 30), AMP_ACCURACY_AS_GOOD);
    assert_int_equal(judged(-1.001, 3), AMP_ACCURACY_UNDECIDED);
    assert_int_equal(judged(-6.84, 4.86), AMP_ACCURACY_UNDECIDED);
    assert_int_equal(judged(-3, -1), AMP_ACCURACY_UNDECIDED);
    assert_int_equal(judged(-3, -1.001), AMP_ACCURACY_WORSE);
    assert_int_equal(amp_compare_judge(&(amp_interval){ 0, NAN, NAN, NAN, NAN }, 1), AMP_ACCURACY_UNKNOWN);
    assert_int_equal(amp_compare_judge(&(amp_interval){ 1, 0, NAN, NAN, NAN }, 1), AMP_ACCURACY_UNDECIDED);
}

/* The second score: mAP@0.5:0.95, of which 2 points are lost in each seed, or some in one. */
COMPARISON_TEST(both_scores_count)
{
    for (int s = 0; s < SEEDS; s++) amp_comparison_run(&m.c, 1, s)->score[1] = .23;
    amp_comparison_run(&m.c, 2, 1)->score[1] = .20;
    judge(NULL);
    assert_accuracies(AMP_ACCURACY_WORSE, AMP_ACCURACY_UNDECIDED);
    assert_int_equal(m.c.summaries[2].accuracy[0], AMP_ACCURACY_AS_GOOD);
    assert_false(amp_compare_is_settled(&m.c));
}

COMPARISON_TEST(the_table_holds_the_numbers)
{
    char table[4096];
    FILE *stream = tmpfile();
    set_scores(0, .5, .6, .7);
    set_scores(1, .49, .61, .69);
    amp_comparison_run(&m.c, 2, 1)->state = AMP_RUN_FAILED;
    amp_comparison_run(&m.c, 2, 2)->state = AMP_RUN_FAILED;
    set_scores(2, .501, 0, 0);
    judge(NULL);
    amp_report_table(stream, &m.c);
    rewind(stream);
    table[fread(table, 1, sizeof table - 1, stream)] = 0;
    fclose(stream);
    const char *verdicts = strstr(table, "\nagainst");
    assert_non_null(verdicts);
    assert_string_equal(verdicts, "\n"
        "against fp32: 95 % intervals of the differences in points; images/s of the slowest and the fastest "
        "seed\n"
        "dtype  accuracy            mAP@0.5    mAP@0.5:0.95  speed               by seed\n"
        "bf16   cannot tell  -3.20 to +2.54  +0.00 to +0.00  cannot tell  1.00x to 1.00x\n"
        "fp16   cannot tell               \xe2\x80\x93               \xe2\x80\x93  cannot tell"
        "  1.00x to 1.00x\n"
        "bf16: about 23 more seeds are needed to judge its accuracy: give -seeds 26, or -until 1.\n"
        "bf16: judging its speed needs 2 seeds, but one was measured: give more -seeds.\n"
        "fp16: seed 2 failed: \n"
        "fp16: with one seed, an effect of precision cannot be told from chance: give -seeds 3 or more, or "
        "-until 1.\n"
        "fp16: judging its speed needs 2 seeds, but one was measured: give more -seeds.\n");
}

/* n seeds tell where (t + 0.8416) deviation / sqrt(n) reaches the border: t of 25 degrees of freedom is
 * 2.060, of 24 is 2.064. */
TEST(the_seeds_that_would_tell_are_estimated)
{
    double deviation = sqrt(26) * (2. / 3) / (2.0595 + .8416);
    amp_interval i = { 3, -1. / 3, .999 * deviation / sqrt(3), -3, 2 };
    assert_int_equal(amp_compare_more_seeds(&i, 1, .05), 23);
    i.error *= 1.01 / .999;
    assert_int_equal(amp_compare_more_seeds(&i, 1, .05), 24);
    i.mean = -1; /* at the border no number tells */
    assert_int_equal(amp_compare_more_seeds(&i, 1, .05), 0);
    i.mean = -5. / 3; /* as far on the other side */
    assert_int_equal(amp_compare_more_seeds(&i, 1, .05), 24);
    assert_int_equal(amp_compare_more_seeds(&(amp_interval){ 1, 0, NAN, NAN, NAN }, 1, .05), 0);
}

/* With -until the significance level is shared among the looks, and the points are the user's. */
COMPARISON_TEST(an_interval_of_a_look_is_wider)
{
    set_scores(0, .5, .6, .7);
    set_scores(1, .501, .598, .699);
    set_scores(2, .5, .6, .7);
    judge(NULL);
    assert_accuracies(AMP_ACCURACY_AS_GOOD, AMP_ACCURACY_AS_GOOD);
    assert_true(amp_compare_is_settled(&m.c));
    forget(NULL);
    m.c.summaries = NULL;
    m.c.alpha = AMP_COMPARE_ALPHA / 4;
    m.c.points_allowed = .5;
    judge(NULL);
    assert_int_equal(m.c.summaries[1].both, AMP_ACCURACY_UNDECIDED);
    assert_true(fabs(m.c.summaries[1].difference[0].least + .85) < .005);
    assert_true(fabs(m.c.summaries[1].difference[0].most - .71) < .005);
    assert_false(amp_compare_is_settled(&m.c));
}

COMPARISON_TEST(a_classifier_is_judged_by_top_1_and_top_5)
{
    m.c.kind = AMP_COMPARED_CLASSIFIER;
    m.c.points_allowed = AMP_CLASSIFIER_POINTS;
    set_scores(0, .5, .6, .7);
    set_scores(1, .493, .592, .693);
    judge(NULL);
    assert_accuracies(AMP_ACCURACY_WORSE, AMP_ACCURACY_UNDECIDED);
}

COMPARISON_TEST(one_seed_cannot_tell)
{
    m.c.seed_count = 1;
    for (int d = 0; d < DTYPES; d++) m.c.runs[d] = m.runs[d * SEEDS];
    judge(NULL);
    assert_accuracies(AMP_ACCURACY_UNDECIDED, AMP_ACCURACY_UNDECIDED);
    assert_speeds(AMP_SPEED_UNDECIDED, AMP_SPEED_UNDECIDED);
    expect("bf16: with one seed, an effect of precision cannot be told from chance: give -seeds 3 or more, "
           "or -until 1.");
    expect("bf16: judging its speed needs 2 seeds, but one was measured: give more -seeds.");
}

COMPARISON_TEST(what_has_learnt_nothing_is_not_judged)
{
    set_scores(0, .001, .002, .001);
    set_scores(1, .001, .001, .001);
    judge(NULL);
    assert_accuracies(AMP_ACCURACY_UNKNOWN, AMP_ACCURACY_AS_GOOD); /* one of the latter two has */
    expect("neither bf16 nor fp32 has learnt enough to be compared: train longer.");
}

static void set_seconds(int dtype, double load, double train)
{
    for (int s = 0; s < SEEDS; s++)
        for (int k = 0; k < STEPS; k++) {
            m.rows[dtype * SEEDS + s][k].load_seconds = load;
            m.rows[dtype * SEEDS + s][k].train_seconds = train;
        }
}

/* A dtype's seconds are those of a step: to load its images, and to train. Its first tenth is left out: of 11
 * steps ten count, of 60 steps of three seeds 162. */
static const struct {
    const char *what;
    double seconds[DTYPES][2];
    int dtype, seed, steps; /* a run that had only so many; 0: none */
    amp_speed bf16, fp16;
    const char *says, *says_not; /* or NULL */
} speeds[] = {
    { "twice as fast, and as fast", { { .1, .4 }, { .1, .2 }, { .1, .39 } }, 0, 0, 0,
      AMP_SPEED_FASTER, AMP_SPEED_NOT_WORTH_IT, "fp16: fp16 is only stored here.", "bf16" },
    { "as fast, and slower", { { .4, .1 }, { .4, .06 }, { .4, .5 } }, 0, 0, 0,
      AMP_SPEED_NOT_WORTH_IT, AMP_SPEED_SLOWER,
      "bf16: steps wait for images: try cache=disk, more cores or smaller photos.", NULL },
    { "nine steps of a seed of bf16's", { { .1, .4 }, { .1, .2 }, { .1, .5 } }, 1, 2, 10,
      AMP_SPEED_UNDECIDED, AMP_SPEED_SLOWER,
      "bf16: judging its speed needs 10 steps, but 9 were measured: give more -iters.", NULL },
    { "ten steps", { { .1, .4 }, { .1, .2 }, { .1, .5 } }, 1, 2, 11,
      AMP_SPEED_FASTER, AMP_SPEED_SLOWER, NULL, NULL },
    { "two steps of a seed of fp32's", { { .25, .25 }, { .25, .25 }, { .25, .25 } }, 0, 0, 2,
      AMP_SPEED_UNDECIDED, AMP_SPEED_UNDECIDED, "bf16: judging its speed needs 10 steps, but 2 were",
      "only stored here" },
    { "32.4 s of each", { { .1, .1 }, { .1, .1 }, { .1, .1 } }, 0, 0, 0,
      AMP_SPEED_NOT_WORTH_IT, AMP_SPEED_NOT_WORTH_IT, NULL, NULL },
    { "24.3 s of bf16's", { { .1, .1 }, { .1, .05 }, { .1, .1 } }, 0, 0, 0,
      AMP_SPEED_UNDECIDED, AMP_SPEED_NOT_WORTH_IT,
      "bf16: judging its speed needs 30 seconds, but 24 were measured: give more -iters or -seeds.",
      "bf16 is only stored here" },
};

COMPARISON_TEST(speed_is_judged_and_explained)
{
    static const char *const notes[DTYPES] = { NULL, "bf16 is only stored here", "fp16 is only stored here" };
    for (size_t i = 0; i < COUNT(speeds); i++) {
        print_message("%s\n", speeds[i].what);
        forget(NULL);
        make_up(NULL);
        for (int d = 0; d < DTYPES; d++) set_seconds(d, speeds[i].seconds[d][0], speeds[i].seconds[d][1]);
        if (speeds[i].steps)
            amp_comparison_run(&m.c, speeds[i].dtype, speeds[i].seed)->count = (size_t)speeds[i].steps;
        judge(notes);
        assert_speeds(speeds[i].bf16, speeds[i].fp16);
        if (speeds[i].says) expect(speeds[i].says);
        if (speeds[i].says_not) assert_false(says(speeds[i].says_not));
    }
}

/* Single seeds of 1.78, 1.44 and 0.89: their geometric mean, which is the quotient of the two rates, and
 * no word that a seed contradicts. */
COMPARISON_TEST(seeds_that_differ_do_not_tell_the_speed)
{
    static const double times[SEEDS] = { 1.78, 1.44, .89 };
    for (int s = 0; s < SEEDS; s++)
        for (int k = 0; k < STEPS; k++)
            m.rows[SEEDS + s][k].load_seconds = m.rows[SEEDS + s][k].train_seconds = .25 / times[s];
    judge(NULL);
    const amp_dtype_summary *bf16 = &m.c.summaries[1];
    near(bf16->speedup.ratio, cbrt(1.78 * 1.44 * .89));
    near(bf16->images_per_second.mean, 16 * cbrt(1.78 * 1.44 * .89));
    near(bf16->speedup.least, .89);
    near(bf16->speedup.most, 1.78);
    assert_speeds(AMP_SPEED_UNDECIDED, AMP_SPEED_NOT_WORTH_IT);
    expect("bf16: the seeds' speeds differ: use a quieter machine, or more -seeds.");
}

/* Seed 3 of fp16 failed: its speed is of two seeds, and so is that of all, so that quotients are of the
 * same. */
COMPARISON_TEST(speeds_are_of_the_seeds_that_all_have)
{
    for (int k = 0; k < STEPS; k++) m.rows[2][k].train_seconds = m.rows[SEEDS + 2][k].train_seconds = 100;
    amp_comparison_run(&m.c, 2, 2)->state = AMP_RUN_FAILED;
    summarize();
    for (int d = 0; d < DTYPES; d++) {
        near(m.c.summaries[d].images_per_second.mean, 16);
        near(m.c.summaries[d].speedup.ratio, 1);
        assert_int_equal(m.c.summaries[d].images_per_second.count, 2);
    }
}

COMPARISON_TEST(failures_and_an_interruption_are_told)
{
    m.c.interrupted = 1;
    amp_run *failed = amp_comparison_run(&m.c, 2, 1);
    failed->state = AMP_RUN_FAILED;
    snprintf(failed->failure, sizeof failed->failure, "gradients stay inf");
    judge(NULL);
    assert_int_equal(strncmp(m.c.advice.line[0], "Interrupted: 8 of 9 trainings are done", 38), 0);
    expect("fp16: seed 2 failed: gradients stay inf");
    assert_accuracies(AMP_ACCURACY_AS_GOOD, AMP_ACCURACY_AS_GOOD);
    assert_int_equal(m.c.summaries[2].difference[0].count, 2);
}

COMPARISON_TEST(one_dtype_has_no_rival)
{
    m.c.dtype_count = 1;
    judge(NULL);
    assert_int_equal(m.c.advice.count, 1);
    expect("No verdict: it needs two dtypes.");
}

int main(void) { return run_listed_tests("tests", NULL, NULL); }
