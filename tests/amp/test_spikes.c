/* Spikes: which steps are spikes, by the rule alone; and what a network does with one. */
#define _DEFAULT_SOURCE /* mkstemps */
#include "testing.h"

#include "amp/spikes.h"
#include "engine_testing.h"

/* ---- the rule ---- */

/* The state after `steps` steps whose norms cycle through 1, 2 and 3, and whose losses are ten times that. */
static amp_spikes after(int steps, int drop)
{
    amp_spikes s = { .factor = 20, .drop = drop };
    for (int i = 0; i < steps; i++) amp_spikes_take(&s, 1 + i % 3, 10 * (1 + i % 3));
    return s;
}

TEST(a_spike_is_above_the_factor_times_the_median)
{
    amp_spikes s = after(99, 0);
    assert_false(amp_spikes_judge(&s, 40, 400).found);
    amp_spike spike = amp_spikes_judge(&s, 40.5, 400);
    assert_true(spike.found && !spike.by_loss && !spike.dropped && spike.value == 40.5 && spike.median == 2);
    spike = amp_spikes_judge(&s, 40, 401);
    assert_true(spike.found && spike.by_loss && spike.value == 401 && spike.median == 20);
    assert_false(amp_spikes_judge(&s, 41, 401).by_loss); /* the norm is judged first */
    s.factor = 0;
    assert_false(amp_spikes_judge(&s, 1e30, 1e30).found);
}

TEST(the_first_steps_are_only_collected)
{
    for (int steps = 0; steps < 2 * AMP_SPIKE_LEAST; steps++) {
        amp_spikes s = after(steps, 1);
        assert_int_equal(amp_spikes_judge(&s, 1e6, 1).found, steps >= AMP_SPIKE_LEAST);
        assert_int_equal(amp_spikes_norm_limit(&s, 1) != 0, steps >= AMP_SPIKE_LEAST);
        assert_int_equal(amp_spikes_norm_limit(&s, 1e6) < 0, steps >= AMP_SPIKE_LEAST);
    }
}

TEST(the_median_is_of_the_last_128)
{
    amp_spike_window w = { 0 };
    for (int i = 0; i < 1000; i++) {
        amp_spike_window_add(&w, i);
        if (i + 1 < AMP_SPIKE_LEAST) assert_true(amp_spike_window_median(&w) == 0);
        else if (i < AMP_SPIKE_WINDOW) assert_true(amp_spike_window_median(&w) == i / 2.);
        else assert_true(amp_spike_window_median(&w) == i - (AMP_SPIKE_WINDOW - 1) / 2.);
    }
}

/* The backend drops a step by the limit, and the line is printed by the judgement: they agree. */
TEST(the_limit_drops_what_is_judged_a_spike)
{
    amp_spikes dropping = after(200, 1), telling = after(200, 0);
    for (int k = 0; k < 200; k++) {
        double norm = k, loss = 3 * k, limit = amp_spikes_norm_limit(&dropping, loss);
        assert_int_equal(limit != 0 && norm > limit, amp_spikes_judge(&dropping, norm, loss).dropped);
        assert_true(amp_spikes_norm_limit(&telling, loss) == 0);
        assert_int_equal(amp_spikes_judge(&telling, norm, loss).found,
                         amp_spikes_judge(&dropping, norm, loss).found);
    }
}

TEST(numbers_that_are_no_size_make_no_spike)
{
    amp_spikes s = { .factor = 20, .drop = 1 };
    for (int i = 0; i < 50; i++) amp_spikes_take(&s, 0, -1); /* for losses that may be negative */
    assert_false(amp_spikes_judge(&s, 5, 5).found);
    assert_true(amp_spikes_norm_limit(&s, 5) == 0);
}

TEST(one_step_in_a_hundred_may_be_dropped_and_eight_in_any_case)
{
    amp_spikes s = after(100, 1);
    for (s.dropped = 0; s.dropped <= 8; s.dropped++) assert_false(amp_spikes_too_many(&s));
    assert_true(amp_spikes_too_many(&s));
    s.norms.seen = 890; /* 9 of 899 */
    assert_true(amp_spikes_too_many(&s));
    s.norms.seen = 891;
    assert_false(amp_spikes_too_many(&s));
}

TEST(a_resumed_rule_has_its_own_settings_and_the_saved_steps)
{
    amp_spikes saved = after(40, 1), s = { .factor = 3 };
    saved.dropped = 5;
    saved.loss = 7;
    amp_spikes_resume(&s, &saved);
    assert_true(s.factor == 3 && !s.drop && s.dropped == 5 && s.loss == 7 && s.norms.seen == 40);
    assert_true(amp_spikes_judge(&s, 7, 1).found);
    assert_null(amp_spikes_problem(&s));
}

/* ---- a network ---- */

enum { QUIET = 20 };

/* A network after some quiet steps. */
static network *trained(const char *keys)
{
    network *net = parse_branched(keys, "", NULL);
    for (unsigned i = 0; i < QUIET; i++) train_step(net, 10 * i);
    assert_int_equal(net->amp->steps, QUIET);
    assert_false(net->amp->step_spike.found);
    return net;
}

/* A step whose labels are a thousand times as large. */
static void far_step(network *net)
{
    for (int s = 0; s < net->subdivisions; s++) {
        feed(net, 7000u + (unsigned)s);
        for (int i = 0; i < net->truths * net->batch; i++) net->truth[i] *= 1000;
        train_network_datum(net);
    }
}

TEST(a_dropped_step_changes_nothing)
{
    static const char *const keys[] = { "amp=1\ndtype=bf16\nspike=skip\n",
                                        "amp=1\ndtype=fp16\ninit_scale=1\ngrowth_interval=2000\nspike=skip\n",
                                        "amp=1\ndtype=bf16\nspike=skip\nadam=1\n" };
    for (size_t k = 0; k < COUNT(keys); k++) {
        network *net = trained(keys[k]);
        kept_state before = snapshot(net);
        amp_scaler scaler = net->amp->engine->scaler;
        amp_spikes spikes = net->amp->engine->spikes;
        far_step(net);
        assert_true(is_as_before(net, before));
        assert_memory_equal(&scaler, &net->amp->engine->scaler, sizeof scaler);
        spikes.dropped++;
        assert_memory_equal(&spikes, &net->amp->engine->spikes, sizeof spikes);
        assert_true(net->amp->step_spike.dropped && net->amp->step_skipped && net->amp->skipped == 1);
        assert_true(net->amp->step_gradient_norm > 20 * net->amp->step_spike.median);
        train_step(net, 5); /* no gradient of the dropped step remains */
        assert_true(!net->amp->step_spike.found && net->amp->steps == QUIET + 1);
        release(net);
    }
}

TEST(a_told_step_is_taken)
{
    network *net = trained("amp=1\ndtype=bf16\n");
    kept_state before = snapshot(net);
    far_step(net);
    assert_false(is_as_before(net, before));
    assert_true(net->amp->step_spike.found && !net->amp->step_spike.dropped && !net->amp->step_skipped);
    assert_int_equal(net->amp->engine->spikes.norms.seen, QUIET + 1);
    release(net);
}

/* inf in a gradient is an overflow, not a spike, whatever the loss is. */
TEST(an_overflow_is_no_spike)
{
    network *net = trained("amp=1\ndtype=fp16\ninit_scale=1\nspike=skip\n");
    for (int s = 0; s < net->subdivisions; s++) {
        feed(net, 3);
        for (int i = 0; i < net->truths * net->batch; i++) net->truth[i] *= 1e5f;
        train_network_datum(net);
    }
    assert_true(net->amp->step_skipped && !net->amp->step_spike.found);
    assert_true(net->amp->engine->scaler.scale == .5f);
    assert_int_equal(net->amp->engine->spikes.dropped, 0);
    release(net);
}

int main(void) { return run_listed_tests("spikes", NULL, NULL); }
