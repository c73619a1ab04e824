/* Whether a training waits for its images, and how many threads load them: functions of the steps' times. */
#include <math.h>
#include "testing.h"

#include "host/data/loader_memory.h"
#include "host/training/waits.h"

/* `steps` steps of 64 images; returns how often a verdict was made. */
static int add(amp_waits *w, int steps, double wait, double compute)
{
    int verdicts = 0;
    for (int i = 0; i < steps; i++) verdicts += amp_waits_add(w, 64, wait, compute);
    return verdicts;
}

TEST(slow_loading_is_found_with_both_rates)
{
    amp_waits w = { 0 };
    char text[AMP_WAITS_TEXT];
    assert_int_equal(add(&w, AMP_WAITS_LEFT_OUT, 100, 900), 0); /* planning, a cold disk */
    assert_int_equal(add(&w, AMP_WAITS_COUNTED - 1, .11, .05), 0);
    assert_int_equal(add(&w, 1, .11, .05), 1);
    assert_true(amp_waits_is_slow(&w));
    assert_true(fabs(amp_waits_share(&w) - .6875) < 1e-12);
    assert_string_equal(amp_waits_text(&w, 8, text),
                        "the loaders (cores: 8) load 400 images/s and the step could use 1280");
    assert_string_equal(amp_waits_text(&w, 1, text),
                        "the loaders (cores: 1) load 400 images/s and the step could use 1280");
    assert_string_equal(amp_waits_text(&w, 0, text),
                        "the loaders load 400 images/s and the step could use 1280");
    assert_int_equal(add(&w, 100, .11, .05), 0); /* it is said once */
}

TEST(loading_that_keeps_up_is_not_slow)
{
    static const double waits[] = { 0, .005 };
    for (int i = 0; i < 2; i++) {
        amp_waits w = { 0 };
        assert_int_equal(add(&w, AMP_WAITS_LEFT_OUT + AMP_WAITS_COUNTED, waits[i], .05), 1);
        assert_false(amp_waits_is_slow(&w));
    }
    amp_waits w = { 0 };
    add(&w, AMP_WAITS_LEFT_OUT + AMP_WAITS_COUNTED, .006, .05);
    assert_true(amp_waits_is_slow(&w));
}

TEST(without_a_time_nothing_is_slow)
{
    amp_waits w = { 0 };
    assert_int_equal(add(&w, AMP_WAITS_LEFT_OUT + AMP_WAITS_COUNTED, 0, 0), 1);
    assert_false(amp_waits_is_slow(&w));
    assert_true(isnan(amp_waits_step_rate(&w)) && isnan(amp_waits_load_rate(&w)));
}

/* Steps of a second, whose images take `load` seconds of one thread. */
static int settled(int threads, int most, double load)
{
    for (int i = 0; i < 50; i++) {
        double took = load / threads;
        threads = amp_loaders_needed(threads, most, took > 1 ? took - 1 : 0, took > 1 ? took : 1, took);
    }
    return threads;
}

TEST(as_many_threads_load_as_keep_the_step_fed)
{
    static const struct { double load; int threads; } of[] = {
        { .01, 1 }, { .6, 1 }, { .9, 2 }, { 1.3, 2 }, { 2, 3 }, { 5, 8 }, { 30, 32 }, { 100, 32 } };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        assert_int_equal(settled(32, 32, of[i].load), of[i].threads);
        int grown = settled(1, 32, of[i].load); /* it stops as soon as no step waits */
        assert_true(grown >= of[i].load || grown == 32);
    }
    assert_int_equal(amp_loaders_needed(1, 2, 0, 0, 0), 1); /* a clock that stands still */
}

int main(void) { return run_listed_tests("tests", NULL, NULL); }
