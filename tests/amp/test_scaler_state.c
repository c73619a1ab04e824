/* GradScaler's state: predicting the end of a training, and states from files. Most tests check properties,
 * over random settings and random runs of found_inf. */
#include "testing.h"

#include "random_numbers.h"
#include "scaler_testing.h"

/* All kinds of settings, with floors and caps close enough to be reached, and backoffs that fp32 rounds
 * away. */
static amp_scaler random_scaler(void)
{
    static const double growths[] = { 1.0000001, 1.5, 2, 16, 1e30 },
        backoffs[] = { .01, .5, .7, .999, 1 - 0x1p-40 };
    amp_scaler params = amp_scaler_defaults();
    params.enabled = below(8) != 0;
    params.dynamic = below(4) != 0;
    params.scale = 1 + below(1000) / 7.0;
    params.min_scale = params.scale / (1 << below(12));
    params.max_scale = params.scale * (1 << below(12));
    params.growth_factor = growths[below(COUNT(growths))];
    params.backoff_factor = backoffs[below(COUNT(backoffs))];
    params.growth_interval = 1 + below(9);
    params.hysteresis = below(2) ? 1 : 1 + below(AMP_SCALER_STUCK_LIMIT);
    return made(params);
}

enum { RUNS = 3000, STEPS = 300 };

/* Long and short runs of infs: one run in four overflows nearly always. */
static int random_found_inf(int run)
{
    return run % 4 == 0 ? below(200) != 0 : below(3) == 0;
}

TEST(every_state_that_training_reaches_is_sound_and_would_diverge_foretells_update)
{
    random_state = 1;
    long ends = 0, others = 0;
    for (int run = 0; run < RUNS; run++) {
        amp_scaler scaler = random_scaler();
        for (int step = 0; step < STEPS; step++) {
            const char *problem = amp_scaler_problem(&scaler);
            amp_scaler before = scaler, tried = scaler;
            if (problem) fail_msg("run %d step %d: %s", run, step, problem);
            int foretold = amp_scaler_would_diverge(&scaler);
            assert_memory_equal(&scaler, &before, sizeof scaler);
            assert_int_equal(foretold, amp_scaler_update(&tried, 1) == AMP_DIVERGED);
            ends += foretold;
            others += !foretold;
            amp_scaler_update(&scaler, random_found_inf(run));
        }
    }
    assert_true(ends > 1000 && others > 1000);
}

/* -- States from files -- */

TEST(states_that_no_training_reaches_are_named)
{
    amp_scaler good = made(amp_scaler_defaults()), constant = fixed(8),
               off = made((amp_scaler){ .enabled = 0 });
    const struct {
        const amp_scaler *base; size_t offset, size; amp_scaler with; const char *word;
    } cases[] = {
#define CASE(base, field, value, word) \
    { &base, offsetof(amp_scaler, field), sizeof base.field, { .field = value }, word }
        CASE(good, enabled, 2, "enabled"),
        CASE(good, dynamic, -1, "dynamic"),
        CASE(good, scale, NAN, "positive"),
        CASE(good, scale, INFINITY, "positive"),
        CASE(good, scale, -1, "positive"),
        CASE(good, scale, 0, "positive"),
        CASE(good, scale, 0x1p-15f, "below min_scale"),
        CASE(good, scale, 0x1p127f, "above max_scale"),
        CASE(constant, scale, NAN, "positive"),
        CASE(off, scale, 2, "disabled"),
        CASE(good, growth_factor, 1, "growth_factor"),
        CASE(good, growth_factor, NAN, "growth_factor"),
        CASE(good, backoff_factor, 1, "backoff_factor"),
        CASE(good, backoff_factor, NAN, "backoff_factor"),
        CASE(good, min_scale, NAN, "min_scale"),
        CASE(good, min_scale, -1, "min_scale"),
        CASE(good, max_scale, NAN, "max_scale"),
        CASE(good, max_scale, 1, "above max_scale"),
        CASE(good, growth_interval, 0, "growth_interval"),
        CASE(good, growth_tracker, 2000, "growth tracker"),
        CASE(good, growth_tracker, -1, "growth tracker"),
        CASE(constant, growth_tracker, 1, "growth tracker"),
        CASE(good, hysteresis, 0, "hysteresis"),
        CASE(good, hysteresis, AMP_SCALER_STUCK_LIMIT + 1, "hysteresis"),
        CASE(good, hysteresis_tracker, 2, "hysteresis tracker"),
        CASE(good, hysteresis_tracker, -1, "hysteresis tracker"),
        CASE(good, stuck, -1, "in a row"),
        CASE(constant, stuck, AMP_SCALER_STUCK_LIMIT + 1, "in a row"),
        CASE(good, skipped, 1, "skipped"),
#undef CASE
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        amp_scaler scaler = *cases[i].base;
        assert_null(amp_scaler_problem(&scaler));
        memcpy((char *)&scaler + cases[i].offset, (const char *)&cases[i].with + cases[i].offset,
               cases[i].size);
        const char *problem = amp_scaler_problem(&scaler);
        if (!problem || !strstr(problem, cases[i].word))
            fail_msg("case %zu: %s instead of something of %s", i, problem ? problem : "sound",
                     cases[i].word);
    }
}

/* A reader of sidecars may pass on any bytes. A state that is accepted must train on like any other. */
TEST(any_bytes_are_refused_or_train_on)
{
    random_state = 4;
    long sound = 0, refused = 0;
    for (int run = 0; run < 200000; run++) {
        amp_scaler scaler = random_scaler();
        unsigned char bytes[sizeof scaler];
        memcpy(bytes, &scaler, sizeof bytes);
        for (int i = below(4); i >= 0; i--)
            bytes[below(sizeof bytes)] ^= (unsigned char)(1 << below(8));
        memcpy(&scaler, bytes, sizeof bytes);
        if (amp_scaler_problem(&scaler)) {
            refused++;
            continue;
        }
        sound++;
        for (int step = 0; step < 20; step++) {
            amp_scaler_update(&scaler, random_found_inf(run));
            assert_true(amp_is_finite(scaler.scale) && scaler.scale > 0
                        && amp_is_finite(amp_scaler_inverse(&scaler)));
        }
    }
    assert_true(sound > 1000 && refused > 1000);
}

/* -- Continuing with other settings -- */

TEST(behaviour_07_resume_with_the_same_settings_is_the_saved_state)
{
    random_state = 5;
    for (int run = 0; run < RUNS; run++) {
        amp_scaler fresh = random_scaler(), saved = fresh;
        for (int step = below(STEPS); step > 0; step--)
            amp_scaler_update(&saved, random_found_inf(run));
        amp_scaler_resume(&fresh, &saved);
        assert_memory_equal(&fresh, &saved, sizeof saved);
    }
}

TEST(resume_with_other_settings_is_sound_and_keeps_them)
{
    random_state = 6;
    for (int run = 0; run < RUNS; run++) {
        amp_scaler fresh = random_scaler(), saved = random_scaler(), resumed = fresh;
        for (int step = below(STEPS); step > 0; step--)
            amp_scaler_update(&saved, random_found_inf(run));
        amp_scaler_resume(&resumed, &saved);
        const char *problem = amp_scaler_problem(&resumed);
        if (problem) fail_msg("run %d: %s", run, problem);
        if (fresh.enabled) {
            assert_int_equal(resumed.steps, saved.steps);
            assert_int_equal(resumed.skipped, saved.skipped);
        }
        resumed.scale = fresh.scale;
        resumed.growth_tracker = fresh.growth_tracker;
        resumed.hysteresis_tracker = fresh.hysteresis_tracker;
        resumed.stuck = fresh.stuck;
        resumed.steps = fresh.steps;
        resumed.skipped = fresh.skipped;
        assert_memory_equal(&resumed, &fresh, sizeof fresh);
    }
}

TEST(resume_carries_what_the_new_settings_have_room_for)
{
    amp_scaler params = amp_scaler_defaults();
    params.hysteresis = 3;
    amp_scaler saved = made(params);
    for (int i = 0; i < 1500; i++) amp_scaler_update(&saved, 0);
    saved.scale = 1024;

    params.growth_interval = 100;
    amp_scaler shorter = made(params);
    amp_scaler_resume(&shorter, &saved);
    assert_int_equal(shorter.growth_tracker, 99);
    amp_scaler_update(&shorter, 0);
    assert_true(shorter.scale == 2048);

    amp_scaler_update(&saved, 1);
    assert_int_equal(saved.hysteresis_tracker, 2);
    params.hysteresis = 5;
    params.min_scale = 4096;
    amp_scaler longer = made(params);
    amp_scaler_resume(&longer, &saved);
    assert_int_equal(longer.hysteresis_tracker, 4); /* one was tolerated */
    assert_true(longer.scale == 4096);

    params.min_scale = 1;
    params.scale = params.max_scale = 512;
    params.hysteresis = 1;
    amp_scaler lower = made(params);
    amp_scaler_resume(&lower, &saved);
    assert_int_equal(lower.hysteresis_tracker, 0);
    assert_true(lower.scale == 512);

    amp_scaler constant = fixed(8);
    amp_scaler_resume(&constant, &saved);
    assert_true(constant.scale == 8 && constant.steps == 1501 && constant.skipped == 1);
    amp_scaler_resume(&saved, &constant); /* a static scale is not state */
    assert_true(saved.scale == 1024 && saved.hysteresis_tracker == 2);
}

int main(void) { return run_listed_tests("scaler state", NULL, NULL); }
