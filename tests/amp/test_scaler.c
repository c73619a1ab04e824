/* The behaviours of torch.amp.GradScaler, with the scaler alone. test_scaler_traces.c shows that its scales
 * are torch's. */
#include "testing.h"

#include <math.h>

#include "scaler_testing.h"

/* -- Behaviours -- */

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

/* -- Disabled, static -- */

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

/* The rules of amp_scaler_problem; test_scaler_state tests its other cases. */
TEST(init_refuses_what_cannot_train)
{
    const amp_scaler good = amp_scaler_defaults();
    amp_scaler bad[8];
    for (size_t i = 0; i < COUNT(bad); i++) bad[i] = good;
    bad[0].scale = NAN;
    bad[1].scale = 0x1p127f, bad[1].max_scale = INFINITY, bad[1].min_scale = 0x1p-149; /* its inverse is
                                                                                          inf */
    bad[2].dynamic = 0, bad[2].scale = 1e-39f; /* its inverse is inf */
    bad[3].growth_factor = INFINITY;
    bad[4].backoff_factor = 0;
    bad[5].min_scale = 65537;
    bad[6].max_scale = 65535;
    bad[7].hysteresis = AMP_SCALER_STUCK_LIMIT + 1; /* it would never back off */
    for (size_t i = 0; i < COUNT(bad); i++) {
        amp_scaler scaler = { .scale = 42 };
        amp_error error = { 0 };
        if (amp_scaler_init(&scaler, &bad[i], &error) != AMP_BAD_CONFIG) fail_msg("case %zu was taken", i);
        assert_true(*error.message);
        assert_int_equal(amp_scaler_init(&scaler, &bad[i], NULL), AMP_BAD_CONFIG);
        same_float(scaler.scale, 42);
    }
}

int main(void) { return run_listed_tests("scaler", NULL, NULL); }
