/* The limits of the loss scale: the cap, the floor, hysteresis, and scales that are stuck. */
#include "testing.h"

#include <float.h>

#include "scaler_testing.h"

/* -- The cap -- */

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

/* -- The floor -- */

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

/* -- Hysteresis -- */

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

/* -- Stuck -- */

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

int main(void) { return run_listed_tests("scaler limits", NULL, NULL); }
