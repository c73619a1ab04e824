/* `darknet amp bench`, without measuring: what it makes of a program's lines, and its verdicts
 * on made-up numbers. */
#include <math.h>
#include "testing.h"

#include "commands/bench/bench.h"

/* ---- spreads ---- */

TEST(a_spread_of_an_odd_number_has_its_middle_as_median)
{
    double values[] = { 5, 1, 4, 2, 3 };
    amp_bench_spread s = amp_bench_spread_of(values, 5);
    assert_true(s.least == 1 && s.lower == 2 && s.median == 3 && s.upper == 4 && s.most == 5 && s.count == 5);
}

TEST(a_spread_of_an_even_number_lies_between_two)
{
    double values[] = { 4, 1, 3, 2 };
    amp_bench_spread s = amp_bench_spread_of(values, 4);
    assert_true(s.median == 2.5 && s.lower == 1.75 && s.upper == 3.25);
}

TEST(a_spread_of_one_or_none)
{
    double value = 7;
    amp_bench_spread one = amp_bench_spread_of(&value, 1), none = amp_bench_spread_of(NULL, 0);
    assert_true(one.least == 7 && one.median == 7 && one.most == 7);
    assert_true(none.count == 0 && none.median == 0);
}

/* ---- verdicts ---- */

/* A network that gains: every test breaks one thing. */
typedef struct made_up { amp_bench_side fp32, half; int cores; } made_up;

#define STEP spread[AMP_BENCH_STEP].typical
#define UPDATE spread[AMP_BENCH_UPDATE].typical

static made_up gaining(void)
{
    return (made_up){
        .fp32 = { .dtype = "fp32", .STEP = 200, .steps = 9, .peak_memory_mb = 400, .training_mb = 440 },
        .half = { .dtype = "bf16", .support = AMP_SUPPORT_NATIVE, .STEP = 100, .UPDATE = 2, .steps = 9,
                  .over_fp32 = { 2, 2, 2, 9 }, .peak_memory_mb = 250, .training_mb = 330,
                  .call_us = 1000, .fp32_share = .01, .moving_share = .1, .misaligned_share = .1 } };
}

static amp_bench_verdict judge(const made_up *m)
{
    amp_bench_verdict v;
    amp_bench_judge(&m->fp32, &m->half, m->cores, &v);
    return v;
}

/* As many reasons, and this one among them, if one is given. */
static amp_bench_verdict judged(const made_up *m, int reasons, int reason)
{
    amp_bench_verdict v = judge(m);
    int count = 0;
    for (int i = 0; i < AMP_BENCH_REASONS; i++) count += v.reason[i];
    assert_int_equal(count, reasons);
    if (reasons) assert_int_equal(v.reason[reason], 1);
    return v;
}

TEST(twice_the_speed_is_worth_it)
{
    made_up e = gaining();
    amp_bench_verdict v = judged(&e, 0, 0);
    assert_int_equal(v.worth, AMP_BENCH_WORTH_IT);
    assert_true(v.speedup.ratio == 2 && v.memory_ratio == .625 && v.saves_memory);
    assert_true(!v.why[0] && !v.advice[0]);
}

TEST(a_training_that_would_wait_for_its_images_is_told_so)
{
    made_up e = gaining();
    e.half.loading = (amp_waits){ .steps = 7, .images = 320, .wait = .53, .compute = .25 };
    e.cores = 8;
    amp_bench_verdict v = judged(&e, 0, 0);
    assert_string_equal(v.advice, "the loaders (cores: 8) load 410.3 images/s and the step could use 1280: "
                        "try cache=disk, more cores or smaller photos.");
    e.half.loading.wait = .02;
    v = judged(&e, 0, 0);
    assert_false(v.advice[0]);
}

static amp_bench_worth worth_of(double least, double ratio, double most)
{
    made_up e = gaining();
    e.half.over_fp32 = (amp_bench_ratio){ ratio, least, most, 0 };
    return judge(&e).worth;
}

TEST(worth_it_begins_at_1_1)
{
    assert_int_equal(worth_of(1.1, 1.1, 1.1), AMP_BENCH_WORTH_IT);
    assert_int_equal(worth_of(1.1, 1.2, 1.3), AMP_BENCH_WORTH_IT);
    assert_int_equal(worth_of(1.0999, 1.0999, 1.0999), AMP_BENCH_NOT_WORTH_IT);
    assert_int_equal(worth_of(.9, 1, 1.0999), AMP_BENCH_NOT_WORTH_IT);
}

TEST(nobody_can_tell_where_the_bounds_hold_the_border)
{
    assert_int_equal(worth_of(1.0999, 1.3, 1.5), AMP_BENCH_CANNOT_TELL);
    assert_int_equal(worth_of(.9, 1, 1.1), AMP_BENCH_CANNOT_TELL);
    made_up e = gaining();
    e.half.over_fp32 = (amp_bench_ratio){ 1.12, 1.086, 1.149, 0 };
    amp_bench_verdict v = judged(&e, 0, 0);
    assert_string_equal(v.advice, "the bounds of the speed-up contain 1.1x: use a quieter machine, or more "
                        "-iters.");
}

/* 0.03 ms in turns of a tenth of a second: it is the turns that are measured, whatever the ratio and its
 * bounds. */
TEST(steps_too_short_to_measure_tell_nothing)
{
    static const amp_bench_ratio ratios[] = { { 1.13, .19, 3.89, 0 }, { 3, 2.9, 3.1, 80 },
                                              { 1, .99, 1.01, 80 } };
    for (size_t i = 0; i < sizeof ratios / sizeof *ratios; i++) {
        made_up e = gaining();
        e.half.STEP = .03;
        e.fp32.STEP = .034;
        e.half.over_fp32 = ratios[i];
        amp_bench_verdict v = judge(&e);
        assert_int_equal(v.worth, AMP_BENCH_CANNOT_TELL);
        assert_string_equal(v.advice, "steps of 0.03 ms are too short to be compared: give a larger -batch.");
    }
    made_up e = gaining();
    e.half.STEP = .5;
    e.half.UPDATE = .01;
    e.fp32.STEP = 1;
    assert_int_equal(judged(&e, 0, 0).worth, AMP_BENCH_WORTH_IT);
}

TEST(each_reason_is_named_when_it_holds)
{
    made_up none = gaining();
    none.half.over_fp32 = (amp_bench_ratio){ 1, 1, 1, 9 };
    assert_string_equal(judged(&none, 0, 0).why, "no single cause");

    made_up e = none;
    e.half.support = AMP_SUPPORT_STORAGE;
    strcpy(e.half.note, "bf16 saves memory but no time here");
    assert_string_equal(judged(&e, 1, AMP_BENCH_NO_NATIVE_HALF).advice,
                        "bf16 saves memory but no time here.");
    e.half.note[0] = 0;
    assert_string_equal(judged(&e, 1, AMP_BENCH_NO_NATIVE_HALF).why, "no native half");

    static const struct { int reason; size_t number; double holds, holds_not; const char *why; } cases[] = {
#define NUMBER(name) offsetof(made_up, name)
        { AMP_BENCH_FIXED_COSTS, NUMBER(half.call_us), 49.9, 50, "fixed costs 49.9 us" },
        { AMP_BENCH_UPDATE_COSTS, NUMBER(half.UPDATE), 50, 49, "update 50 %" },
        { AMP_BENCH_FP32_LAYERS, NUMBER(half.fp32_share), .5, .49, "fp32 layers 50 %" },
        { AMP_BENCH_MEMORY_BOUND, NUMBER(half.moving_share), .5, .49, "memory-bound 50 %" },
        { AMP_BENCH_MISALIGNED, NUMBER(half.misaligned_share), .5, .49, "misaligned 50 %" } };
    for (size_t i = 0; i < COUNT(cases); i++) {
        e = none;
        memcpy((char *)&e + cases[i].number, &cases[i].holds, sizeof cases[i].holds);
        assert_string_equal(judged(&e, 1, cases[i].reason).why, cases[i].why);
        memcpy((char *)&e + cases[i].number, &cases[i].holds_not, sizeof cases[i].holds_not);
        judged(&e, 0, 0);
    }
}

TEST(all_reasons_fit)
{
    made_up e = { .fp32 = { .dtype = "fp32", .STEP = 1e-3, .peak_memory_mb = 1e6, .training_mb = 1e6 },
                  .half = { .dtype = "fp16", .STEP = 2e-3, .UPDATE = 2e-3, .peak_memory_mb = 1e6,
                            .training_mb = 1e6, .over_fp32 = { .5, .4, 123456, 0 },
                            .call_us = 1, .fp32_share = 1, .moving_share = 1, .misaligned_share = 1 } };
    memset(e.half.note, 'n', sizeof e.half.note - 1);
    amp_bench_verdict v = judged(&e, AMP_BENCH_REASONS, AMP_BENCH_MISALIGNED);
    assert_string_equal(v.why, "no native half, fixed costs 1.0 us, update 100 %, fp32 layers 100 %, "
                        "memory-bound 100 %, misaligned 100 %");
    assert_true(strlen(v.advice) + 1 < sizeof v.advice && !v.saves_memory);
}

TEST(memory_is_judged_apart_from_time)
{
    made_up e = gaining();
    e.half.over_fp32 = (amp_bench_ratio){ 1, 1, 1, 9 };
    amp_bench_verdict v = judged(&e, 0, 0);
    assert_true(v.worth == AMP_BENCH_NOT_WORTH_IT && v.saves_memory);
    e.half.peak_memory_mb = 380; /* 0.95 */
    assert_true(judged(&e, 0, 0).saves_memory);
    e.half.peak_memory_mb = 381;
    assert_false(judged(&e, 0, 0).saves_memory);
    e.fp32.peak_memory_mb = 16; /* half, and yet nothing */
    e.half.peak_memory_mb = 8.1;
    assert_false(judged(&e, 0, 0).saves_memory);
    e.half.peak_memory_mb = 8;
    assert_true(judged(&e, 0, 0).saves_memory);
}

/* ---- lines ---- */

static amp_bench b; /* of each test anew: fp32 and bf16 */
static amp_error error;

static int begin(void **state)
{
    (void)state;
    b = (amp_bench){ .cfg = "x.cfg", .subdivisions = 4, .count = 2,
                     .sides = { { .dtype = "fp32", .support = AMP_SUPPORT_NATIVE },
                                { .dtype = "bf16", .support = AMP_SUPPORT_NATIVE } } };
    return 0;
}

static int end(void **state)
{
    (void)state;
    amp_bench_free(&b);
    return 0;
}

#define BENCH_TEST(name) TEST_WITH(name, begin, end)

/* A line of a side's program, which is right. */
static __attribute__((format(printf, 2, 3))) void say(int side, const char *format, ...)
{
    char line[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (amp_bench_read_line(&b, &b.sides[side], line, &error) != AMP_OK) fail_msg("%s", error.message);
}

static void summarize(void)
{
    if (amp_bench_summarize(&b, &error) != AMP_OK) fail_msg("%s", error.message);
}

BENCH_TEST(a_step_is_as_many_passes_as_the_cfg_has_and_an_update)
{
    for (int i = 0; i < 2; i++) {
        say(i, "shape 32 16 3 8 0");
        say(i, "skipped 12.5");
        say(i, "warm 11.5");
    }
    say(0, "step 10 20 8");
    say(0, "step 12 22 6");
    say(0, "step 11 21 7");
    say(1, "step 5 10 4");
    say(1, "memory 12.25 1.5");
    summarize();
    const amp_bench_side *fp32 = amp_bench_side_of(&b, "fp32"), *bf16 = amp_bench_side_of(&b, "bf16");
    assert_true(fp32->spread[AMP_BENCH_STEP].median == 4 * (11 + 21) + 7
                && bf16->spread[AMP_BENCH_STEP].median == 64);
    assert_true(fp32->spread[AMP_BENCH_UPDATE].least == 6 && fp32->spread[AMP_BENCH_UPDATE].most == 8);
    assert_true(fabs(bf16->images_per_second - 1000 * 8 * 4 / 64.) < 1e-9);
    assert_true(fabs(bf16->over_fp32.ratio - 135 / 64.) < 1e-12 && bf16->over_stock.ratio == 0
                && fp32->over_fp32.ratio == 1);
    assert_true(bf16->training_mb == 12.25 + 4 * 1.5);
    assert_true(bf16->peak_memory_mb == 12.25 && bf16->skipped == 1 && bf16->first_loss == 12.5f);
    assert_int_equal(b.verdict_count, 1);
    assert_string_equal(b.verdicts[0].dtype, "bf16");
    assert_null(amp_bench_side_of(&b, "stock"));
}

/* In one round nobody knows how busy the machine was for whom. */
BENCH_TEST(one_round_is_compared_by_its_steps)
{
    b.subdivisions = 1;
    for (int i = 0; i < 5; i++) say(0, "step %d 0 0", 100 + i);
    for (int i = 0; i < 5; i++) say(1, "step %d 0 0", i ? 50 : 80);
    for (int i = 0; i < 2; i++) say(i, "shape 1 1 1 1 0");
    summarize();
    amp_bench_ratio r = b.verdicts[0].speedup;
    assert_int_equal(r.rounds, 0);
    assert_true(fabs(r.ratio - 2.04) < 1e-12 && fabs(r.least - 100. / 80) < 1e-12);
    assert_true(fabs(r.most - 104. / 50) < 1e-12);
}

/* Two rounds that differ: Student's interval of two goes from nothing to thousands, which tells nothing. */
BENCH_TEST(rounds_that_differ_have_no_bounds)
{
    b.subdivisions = 1;
    for (int i = 0; i < 6; i++) {
        say(0, "step %d 0 0", i < 3 ? 100 : 300);
        say(1, "step %d 0 0", i < 3 ? 100 : 80);
        if (i == 2) say(0, "pass");
    }
    for (int i = 0; i < 2; i++) say(i, "shape 1 1 1 1 0");
    summarize();
    const amp_bench_verdict *v = &b.verdicts[0];
    assert_true(isnan(v->speedup.least) && isnan(v->speedup.most));
    assert_int_equal(v->worth, AMP_BENCH_CANNOT_TELL);
    assert_string_equal(v->advice, "the steps differ too much: use a quieter machine, or more -iters.");
    assert_false(v->why[0]);
    FILE *file = tmpfile();
    char text[16384];
    amp_bench_print(&b, 1, file);
    amp_bench_write_json(&b, 1, file);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    assert_null(strstr(text, "nan"));
    assert_non_null(strstr(text, "\"speedup_least\": null"));
}

/* Nine rounds. The first sides' steps are four times as many in the slow ones, so that the medians of all
 * steps are 400 and 100: within a round bf16 is twice as fast, and four times in the last. A tenth, in
 * which bf16 alone works, does not count. */
BENCH_TEST(a_ratio_is_the_quotient_of_its_row)
{
    b.subdivisions = 1;
    for (int round = 0; round < 10; round++) {
        int slow = round % 2 ? 2 : 1;
        double half = round == 9 ? 1 : round == 8 ? 50 : 100. * slow;
        for (int i = 0; i < (slow > 1 ? 8 : 2) && round < 9; i++) say(0, "step %d 0 0", 200 * slow);
        if (round == 9) say(0, "pass");
        for (int i = 0; i < (slow > 1 ? 2 : 8); i++) say(1, "step %g 0 0", half);
    }
    for (int i = 0; i < 2; i++) say(i, "shape 1 1 1 6 0");
    summarize();
    const amp_bench_side *fp32 = &b.sides[0], *bf16 = &b.sides[1];
    /* one of nine lies log(2) above the others */
    const double ratio = 2 * pow(2, 1 / 9.), error_of_log = log(2) / 9;
    assert_true(fabs(bf16->over_fp32.ratio - ratio) < 1e-12 && bf16->over_fp32.rounds == 9);
    assert_true(fabs(bf16->images_per_second / fp32->images_per_second - ratio) < 1e-12);
    assert_true(fabs(fp32->spread[AMP_BENCH_STEP].typical / bf16->spread[AMP_BENCH_STEP].typical - ratio) <
                1e-12);
    assert_true(fabs(fp32->images_per_second - 6e3 / fp32->spread[AMP_BENCH_STEP].typical) < 1e-9);
    /* four slow rounds of nine */
    assert_true(fabs(fp32->spread[AMP_BENCH_STEP].typical - 200 * pow(2, 4 / 9.)) < 1e-9);
    /* Student's t with 8 degrees of freedom */
    assert_true(fabs(log(bf16->over_fp32.most / ratio) - 2.306 * error_of_log) < 1e-4);
    assert_true(fabs(log(ratio / bf16->over_fp32.least) - 2.306 * error_of_log) < 1e-4);
    assert_true(fp32->over_fp32.ratio == 1 && fp32->over_fp32.least == 1 && fp32->over_fp32.most == 1);
}

/* The clocks ran while the machine was four times as slow: a pass of 400 ms, where the steps' passes took
 * 100. */
BENCH_TEST(the_layers_and_the_update_make_the_step)
{
    char *text;
    size_t size;
    for (int i = 0; i < 10; i++) say(i % 2, i % 2 ? "step 20 30 10" : "step 40 60 20");
    for (int i = 0; i < 12; i++)
        for (int side = 0; side < 2; side++)
            say(side, "layer %d convolutional 0 0 10 %d 0 0", i, i ? 20 : 60);
    summarize();
    const amp_bench_side *fp32 = &b.sides[0];
    assert_true(fabs(fp32->spread[AMP_BENCH_STEP].typical - 420) < 1e-9
                && fabs(fp32->spread[AMP_BENCH_UPDATE].typical - 20) < 1e-9);
    double pass_ms = fp32->spread[AMP_BENCH_FORWARD].typical + fp32->spread[AMP_BENCH_BACKWARD].typical;
    assert_true(fabs(4 * pass_ms + 20 - 420) < 1e-9);
    /* 4 passes of 100 ms, of clocks that said 400 */
    assert_true(fabs(amp_bench_layers_ms(fp32) - 400) < 1e-9);
    assert_true(fabs(amp_bench_layer_ms(&fp32->layers[0]) - 70) < 1e-9);
    FILE *stream = open_memstream(&text, &size);
    amp_bench_print(&b, 1, stream);
    fclose(stream);
    /* 70 + 9 * 30 of the ten that are shown, 2 * 30 of the others */
    assert_non_null(strstr(text, "\n    0 convolutional            70 (16.7 %)           35 (16.7 %) \n"));
    assert_non_null(strstr(text, "\n      other layers             60 (14.3 %)           30 (14.3 %) \n"));
    assert_non_null(strstr(text, "\n      update                    20 (4.8 %)            10 (4.8 %) \n"));
    assert_non_null(strstr(text, "\n      step                   420 (100.0 %)         210 (100.0 %) \n"));
    free(text);
}

BENCH_TEST(a_step_or_two_do_not_tell)
{
    made_up e = gaining();
    e.half.steps = 4;
    assert_string_equal(judged(&e, 0, 0).advice, "too few steps were measured (4): give -iters 5 or more.");
    b.subdivisions = 1;
    say(0, "step 50 50 1");
    for (int i = 0; i < 9; i++) say(1, "step 20 20 1");
    summarize();
    assert_int_equal(b.verdicts[0].worth, AMP_BENCH_CANNOT_TELL);
    assert_string_equal(b.verdicts[0].advice, "too few steps were measured (1): give -iters 5 or more.");
}

/* 2 operations to the byte wait for memory, 64 do not. */
BENCH_TEST(shares_are_of_the_layers_time_in_the_half_dtype)
{
    b.subdivisions = 1;
    for (int i = 0; i < 10; i++) say(i % 2, "step 50 50 1");
    say(1, "layer 0 convolutional 1 1 20 30 640 10");
    say(1, "layer 1 maxpool 1 0 5 5 20 10");
    say(1, "layer 2 yolo 0 0 20 20 20 10");
    summarize();
    assert_int_equal(b.verdicts[0].worth, AMP_BENCH_NOT_WORTH_IT);
    assert_true(b.verdicts[0].reason[AMP_BENCH_MISALIGNED]); /* 50 of 100 */
    assert_false(b.verdicts[0].reason[AMP_BENCH_FP32_LAYERS] || b.verdicts[0].reason[AMP_BENCH_MEMORY_BOUND]);
    assert_false(b.verdicts[0].reason[AMP_BENCH_FIXED_COSTS]
                 || b.verdicts[0].reason[AMP_BENCH_NO_NATIVE_HALF]);
}

BENCH_TEST(the_most_expensive_layers_are_those_of_any_side)
{
    for (int i = 0; i < 2; i++) say(i, "step 1 1 1");
    for (int i = 0; i < 13; i++) {
        /* 12 is the most expensive, 0 to 2 are not shown. */
        say(0, "layer %d convolutional 0 0 %d 1 0 0", i, i);
        say(1, "layer %d convolutional 1 0 %d 1 0 0", i, i ? i : 99); /* here 0 is */
    }
    summarize();
    assert_int_equal(b.top_count, 11);
    for (int k = 0; k < 10; k++) assert_int_equal(b.top[k], 12 - k);
    assert_int_equal(b.top[10], 0);
}

BENCH_TEST(a_line_that_is_none_is_refused)
{
    static const char *const lines[] = { "done 7", "", "step", "step 1 2", "step a b c",
                                         "layer 3 convolutional 0 0 1 1 0 0", "layer 0", "nonsense 1",
                                         "shape 1 2 3 4", "memory", "warm",
                                         "averyveryverylongword 1" };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        error = (amp_error){ 0 };
        assert_int_equal(amp_bench_read_line(&b, &b.sides[0], lines[i], &error), AMP_IO_FAILED);
        assert_non_null(strstr(error.message, "fp32"));
    }
    assert_int_equal(b.sides[0].steps, 0);
}

BENCH_TEST(a_side_without_a_step_is_an_error)
{
    say(0, "step 1 1 1");
    assert_int_equal(amp_bench_summarize(&b, &error), AMP_IO_FAILED);
    assert_string_equal(error.message, "bf16: no step was measured");
    b.sides[1].left_out = 1;
    summarize();
    assert_int_equal(b.verdict_count, 0);
}

int main(void) { return run_listed_tests("tests", NULL, NULL); }
