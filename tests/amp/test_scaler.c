/* The behaviours of torch.amp.GradScaler, with the scaler alone: how the scale grows and falls, its limits,
 * and states from files. test_scaler_traces.c shows that its scales are torch's; a scale in a training is
 * test_behaviours.c's. */
#include "testing.h"

#include <float.h>
#include <math.h>

#include "amp/scaler.h"
#include "random_numbers.h"
#include "tensor/half.h"

static amp_scaler made(amp_scaler params)
{
    amp_scaler scaler;
    amp_error error = { 0 };
    if (amp_scaler_init(&scaler, &params, &error) != AMP_OK) fail_msg("init: %s", error.message);
    return scaler;
}

/* Without our cap, as in torch. */
static amp_scaler dynamic(double scale, int interval, double growth, double backoff)
{
    amp_scaler params = amp_scaler_defaults();
    params.max_scale = INFINITY;
    params.scale = scale;
    params.growth_interval = interval;
    params.growth_factor = growth;
    params.backoff_factor = backoff;
    return made(params);
}

static amp_scaler fixed(double scale)
{
    return made((amp_scaler){ .enabled = 1, .dynamic = 0, .scale = scale });
}

static void update(amp_scaler *scaler, int found_inf)
{
    assert_int_equal(amp_scaler_update(scaler, found_inf), AMP_OK);
}

static void same_float(float got, double expected)
{
    if (amp_float_bits(got) != amp_float_bits((float)expected))
        fail_msg("%.9g instead of %.9g", got, expected);
}

TEST(behaviour_01_scale_grows_after_exactly_the_interval_of_clean_updates)
{
    amp_scaler scaler = made(amp_scaler_defaults());
    for (int i = 1; i < 2000; i++) {
        update(&scaler, 0);
        same_float(scaler.scale, 65536);
        assert_int_equal(scaler.growth_tracker, i);
    }
    update(&scaler, 0);
    same_float(scaler.scale, 131072);
    assert_int_equal(scaler.growth_tracker, 0);
}

TEST(behaviour_06_disabled_is_the_identity)
{
    amp_scaler scaler = made((amp_scaler){ .enabled = 0, .dynamic = 1, .scale = -7, .growth_interval = -1 });
    amp_scaler before = scaler;
    same_float(scaler.scale, 1);
    same_float(amp_scaler_inverse(&scaler), 1);
    for (int i = 0; i < 2 * AMP_SCALER_STUCK_LIMIT; i++) update(&scaler, i % 3 != 0);
    assert_memory_equal(&scaler, &before, sizeof scaler);
    assert_int_equal(amp_scaler_would_diverge(&scaler), 0);
    assert_null(amp_scaler_problem(&scaler));

    amp_scaler other = before, enabled = fixed(8), enabled_before = enabled;
    amp_scaler_resume(&scaler, &enabled);
    amp_scaler_resume(&enabled, &other);
    assert_memory_equal(&scaler, &before, sizeof scaler);
    assert_memory_equal(&other, &before, sizeof other);
    assert_memory_equal(&enabled, &enabled_before, sizeof enabled);
}

TEST(behaviour_08_static_scale_counts_skipped_steps_but_never_moves)
{
    amp_scaler scaler = fixed(128);
    for (int i = 0; i < 5000; i++) {
        update(&scaler, i % 50 != 0); /* at most 49 consecutive infs */
        same_float(scaler.scale, 128);
    }
    assert_int_equal(scaler.steps, 5000);
    assert_int_equal(scaler.skipped, 4900);
    same_float(amp_scaler_inverse(&scaler), 1.0 / 128);
}

TEST(a_sum_of_flags_is_found_inf)
{
    amp_scaler scaler = dynamic(8, 2000, 2, .5);
    update(&scaler, 2);
    same_float(scaler.scale, 4);
    assert_int_equal(scaler.skipped, 1);
}

TEST(inverse_is_divided_in_double_and_rounded_once)
{
    const double scales[] = { 65536, 3, 0.1, 8e37, 0x1p-14, 49 }; /* none has a subnormal inverse */
    for (size_t i = 0; i < COUNT(scales); i++) {
        amp_scaler scaler = fixed(scales[i]);
        same_float(amp_scaler_inverse(&scaler), 1.0 / (double)(float)scales[i]);
    }
}

/* What is refused is the same as in a state from a file (below), and what only a first scale can have. */
TEST(init_refuses_what_cannot_train)
{
    amp_scaler bad[3] = { amp_scaler_defaults(), amp_scaler_defaults(), amp_scaler_defaults() };
    bad[0].scale = 0x1p127f, bad[0].max_scale = INFINITY, bad[0].min_scale = 0x1p-149;
    bad[1].dynamic = 0, bad[1].scale = 1e-39f; /* neither has an inverse in fp32 */
    bad[2].min_scale = 65537;
    for (size_t i = 0; i < COUNT(bad); i++) {
        amp_scaler scaler = { .scale = 42 };
        amp_error error = { 0 };
        if (amp_scaler_init(&scaler, &bad[i], &error) != AMP_BAD_CONFIG) fail_msg("case %zu was taken", i);
        assert_true(*error.message);
        assert_int_equal(amp_scaler_init(&scaler, &bad[i], NULL), AMP_BAD_CONFIG);
        same_float(scaler.scale, 42);
    }
}

/* ---- limits ---- */

TEST(behaviour_04_scale_never_grows_to_inf)
{
    const double growth[] = { 2, 16, 1e30, DBL_MAX };
    for (size_t i = 0; i < COUNT(growth); i++) {
        amp_scaler params = amp_scaler_defaults();
        params.scale = params.growth_interval = 1;
        params.growth_factor = growth[i];
        amp_scaler capped = made(params), torchs = dynamic(1, 1, growth[i], .5);
        for (int step = 0; step < 300; step++) {
            update(&capped, 0);
            update(&torchs, 0);
            assert_true(amp_is_finite(capped.scale) && amp_is_finite(torchs.scale));
            assert_int_equal(capped.growth_tracker, 0);
            assert_int_equal(torchs.growth_tracker, 0);
            assert_true(amp_scaler_inverse(&capped) > 0);
        }
        same_float(capped.scale, 0x1p126);
        if (growth[i] == 2) same_float(torchs.scale, 0x1p127);
        if (growth[i] == DBL_MAX) same_float(torchs.scale, 1);
    }
}

TEST(growth_is_clamped_to_max_scale)
{
    amp_scaler params = amp_scaler_defaults();
    params.scale = 3;
    params.growth_interval = 2;
    params.max_scale = 20;
    amp_scaler scaler = made(params);
    const float expected[] = { 3, 6, 6, 12, 12, 20, 20, 20, 20, 20 };
    for (size_t i = 0; i < COUNT(expected); i++) {
        update(&scaler, 0);
        same_float(scaler.scale, expected[i]);
        assert_int_equal(scaler.growth_tracker, (i + 1) % 2);
    }
    update(&scaler, 1);
    same_float(scaler.scale, 10);
    params.scale = params.max_scale = 0.7; /* (float)0.7 < 0.7 */
    scaler = made(params);
    for (int i = 0; i < 4; i++) update(&scaler, 0);
    same_float(scaler.scale, 0.7);
}

TEST(behaviour_05_scale_stops_at_its_floor_and_stays_there)
{
    amp_scaler scaler = made(amp_scaler_defaults()); /* 2^16 to 2^-14: thirty backoffs */
    update(&scaler, 0);
    for (int i = 0; i < 30; i++) update(&scaler, 1);
    same_float(scaler.scale, 0x1p-14);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(amp_scaler_update(&scaler, 1), AMP_DIVERGED);
        same_float(scaler.scale, 0x1p-14);
        assert_int_equal(scaler.growth_tracker, 0);
        assert_int_equal(scaler.skipped, 31 + i);
    }
    assert_true(amp_is_finite(amp_scaler_inverse(&scaler)));
    update(&scaler, 0); /* it still trains at the floor */
    assert_int_equal(scaler.growth_tracker, 1);
}

TEST(floor_may_equal_the_first_scale_though_fp32_rounds_both_down)
{
    amp_scaler params = amp_scaler_defaults();
    params.scale = params.min_scale = 0.7; /* (float)0.7 < 0.7 */
    params.growth_interval = 1;
    amp_scaler scaler = made(params);
    update(&scaler, 0);
    update(&scaler, 1);
    same_float(scaler.scale, 0.7);
    assert_int_equal(amp_scaler_update(&scaler, 1), AMP_DIVERGED);
}

static amp_scaler tolerant(int hysteresis, double scale, double min_scale)
{
    amp_scaler params = amp_scaler_defaults();
    params.hysteresis = hysteresis;
    params.scale = scale;
    params.min_scale = min_scale;
    params.growth_interval = 2;
    return made(params);
}

/* Compares with Apex's update_scale_hysteresis, whose tracker has no lower bound, over random runs of
 * overflows. */
TEST(hysteresis_is_that_of_apex)
{
    unsigned seed = 1;
    for (int run = 0; run < 2000; run++) {
        int hysteresis = 1 + run % 7, tracker = hysteresis, growth_tracker = 0;
        double scale = 0x1p40;
        amp_scaler scaler = tolerant(hysteresis, scale, 0x1p-100);
        for (int step = 0; step < 100; step++) {
            seed = seed * 1664525u + 1013904223u;
            int found_inf = (seed >> 16) % (run % 2 ? 2 : 5) == 0;
            if (found_inf && --tracker > 0) growth_tracker = 0;
            else if (found_inf) scale *= .5, growth_tracker = 0;
            else if (tracker = hysteresis, ++growth_tracker == 2) scale *= 2, growth_tracker = 0;
            update(&scaler, found_inf);
            if (scaler.scale != scale || scaler.growth_tracker != growth_tracker
                || scaler.hysteresis_tracker != (tracker > 0 ? tracker : 0))
                fail_msg("hysteresis %d, run %d, step %d: %g instead of %g", hysteresis, run, step,
                         scaler.scale, scale);
        }
    }
}

TEST(hysteresis_tolerates_at_the_floor_too_but_not_for_ever)
{
    amp_scaler scaler = tolerant(3, 4, 4);
    update(&scaler, 1);
    update(&scaler, 1);
    for (int i = 0; i < 3; i++) assert_int_equal(amp_scaler_update(&scaler, 1), AMP_DIVERGED);
    same_float(scaler.scale, 4);
    update(&scaler, 0);
    update(&scaler, 1);
    same_float(scaler.scale, 4);
}

TEST(tolerated_infs_are_not_stuck_and_end_all_the_same)
{
    amp_scaler scaler = tolerant(AMP_SCALER_STUCK_LIMIT, 64, 1);
    for (int i = 1; i < AMP_SCALER_STUCK_LIMIT; i++) update(&scaler, 1);
    same_float(scaler.scale, 64);
    for (int i = 0; i < 6; i++) update(&scaler, 1);
    same_float(scaler.scale, 1);
    assert_int_equal(amp_scaler_update(&scaler, 1), AMP_DIVERGED);

    amp_scaler params = amp_scaler_defaults();
    params.hysteresis = 7;
    params.backoff_factor = 1 - 0x1p-40; /* fp32 rounds this backoff away */
    scaler = made(params);
    for (int i = 0; i < 6 + AMP_SCALER_STUCK_LIMIT - 1; i++) update(&scaler, 1);
    assert_int_equal(amp_scaler_update(&scaler, 1), AMP_DIVERGED);
}

TEST(static_scale_that_overflows_for_ever_ends_training)
{
    amp_scaler scaler = fixed(128);
    for (int i = 1; i < AMP_SCALER_STUCK_LIMIT; i++) update(&scaler, 1);
    update(&scaler, 0); /* one clean step restarts the count */
    for (int i = 1; i < AMP_SCALER_STUCK_LIMIT; i++) update(&scaler, 1);
    assert_int_equal(amp_scaler_update(&scaler, 1), AMP_DIVERGED);
    assert_int_equal(amp_scaler_update(&scaler, 1), AMP_DIVERGED);
    same_float(scaler.scale, 128);
}

TEST(a_moving_dynamic_scale_is_not_stuck_however_long_it_backs_off)
{
    amp_scaler scaler = dynamic(65536, 2000, 2, .99);
    for (int i = 0; i < 3 * AMP_SCALER_STUCK_LIMIT; i++) update(&scaler, 1);
    assert_true(scaler.scale < 65536 * .06);
}

/* ---- states from files, over random settings and random runs of found_inf ---- */

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
        CASE(good, growth_factor, INFINITY, "growth_factor"),
        CASE(good, backoff_factor, 1, "backoff_factor"),
        CASE(good, backoff_factor, 0, "backoff_factor"),
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

/* What else is carried into other settings is in test_sidecar.c. */
TEST(a_tolerated_inf_is_carried_into_another_hysteresis)
{
    amp_scaler saved = tolerant(3, 1024, 1), longer = tolerant(5, 1024, 1), shorter = tolerant(1, 1024, 1);
    amp_scaler_update(&saved, 1);
    assert_int_equal(saved.hysteresis_tracker, 2);
    amp_scaler_resume(&longer, &saved);
    amp_scaler_resume(&shorter, &saved);
    assert_int_equal(longer.hysteresis_tracker, 4);
    assert_int_equal(shorter.hysteresis_tracker, 0);
}

int main(void) { return run_listed_tests("scaler", NULL, NULL); }
