/* The scaler in a training: the .cfg's settings reach it, and its decisions are carried out. */
#define _DEFAULT_SOURCE /* mkstemps */
#include "testing.h"

#include "engine_testing.h"

static const amp_scaler *scaler_of(network *net) { return amp_engine_scaler(net->amp->engine); }

/* One step with poison in its second subdivision. */
static void poisoned_step(network *net, unsigned seed, float poison)
{
    feed(net, seed);
    train_network_datum(net);
    feed(net, seed + 1);
    net->input[100] = poison;
    train_network_datum(net);
}

/* A poisoned step, which must change only the scaler. */
static void skips(network *net, unsigned seed, float poison)
{
    unsigned long skipped = scaler_of(net)->skipped;
    kept_state before = snapshot(net);
    poisoned_step(net, seed, poison);
    assert_true(is_as_before(net, before));
    assert_int_equal(scaler_of(net)->skipped, skipped + 1);
}

/* A step, which must change something. */
static void trains(network *net, unsigned seed)
{
    unsigned long skipped = scaler_of(net)->skipped;
    kept_state before = snapshot(net);
    train_step(net, seed);
    assert_false(is_as_before(net, before));
    assert_int_equal(scaler_of(net)->skipped, skipped);
}

TEST(every_key_of_the_cfg_reaches_the_scaler)
{
    network *net = parse_branched("init_scale=64\ngrowth_factor=1.5\nbackoff_factor=0.25\ngrowth_interval=7\n"
                                  "min_scale=2\nmax_scale=1024\nhysteresis=3\n", "", "fp16");
    const amp_scaler *scaler = scaler_of(net);
    assert_true(scaler->enabled && scaler->dynamic);
    assert_true(scaler->scale == 64 && scaler->growth_factor == 1.5 && scaler->backoff_factor == .25);
    assert_true(scaler->min_scale == 2 && scaler->max_scale == 1024);
    assert_int_equal(scaler->growth_interval, 7);
    assert_int_equal(scaler->hysteresis, 3);
    release(net);
    net = parse_branched("loss_scale=32\n", "", "bf16");
    assert_true(scaler_of(net)->enabled && !scaler_of(net)->dynamic && scaler_of(net)->scale == 32);
    release(net);
}

TEST(a_tolerated_inf_skips_its_step_and_keeps_the_scale)
{
    network *net = parse_branched("init_scale=64\nhysteresis=2\n", "", "fp16");
    trains(net, 1);
    skips(net, 77, INFINITY);
    assert_true(scaler_of(net)->scale == 64);
    trains(net, 5);
    skips(net, 79, NAN);
    assert_true(scaler_of(net)->scale == 64);
    skips(net, 81, -INFINITY);
    assert_true(scaler_of(net)->scale == 32);
    trains(net, 9);
    release(net);
}

TEST(growth_stops_at_max_scale)
{
    network *net = parse_branched("init_scale=64\ngrowth_interval=1\nmax_scale=150\n", "", "fp16");
    const float expected[] = { 128, 150, 150 };
    for (unsigned i = 0; i < 3; i++) {
        trains(net, 1 + 4 * i);
        assert_true(scaler_of(net)->scale == expected[i]);
    }
    release(net);
}

TEST(behaviour_08_static_scale_still_checks)
{
    for (int i = 0; i < 3; i++) {
        network *net = parse_branched("loss_scale=64\n", "", dtype_names[i]);
        trains(net, 1);
        skips(net, 77, NAN);
        skips(net, 79, INFINITY);
        assert_true(scaler_of(net)->scale == 64);
        trains(net, 5);
        release(net);
    }
}

int main(void) { return run_listed_tests("scaler in a training", NULL, NULL); }
