/* Activation checkpointing: whatever a training recomputes, every byte of its state equals that of a training
 * without recomputation, and its activations take less memory. */
#define _DEFAULT_SOURCE /* mkstemps */
#include "testing.h"

#include "engine_testing.h"
#include "layer_networks.h"
#include "poison_arena.h"

/* Dropout draws from rand(): equal batches get equal numbers. */
static double step(network *net, unsigned seed)
{
    double loss = 0;
    srand(seed);
    for (int s = 0; s < net->subdivisions; s++) {
        feed(net, seed + (unsigned)s);
        loss += (double)train_network_datum(net);
    }
    return loss;
}

static const amp_plan *plan_of(network *net) { return net->amp->engine->active; }

static void recompute(network *net, int segments, size_t budget)
{
    amp_recompute_settings settings = { .on = 1, .segments = segments, .budget = budget };
    net->amp->engine->settings.recompute = settings;
}

/* Three steps, the second of which is skipped. In some cases unused memory is filled with NaN. Returns how
 * many layers were repeated in a backward. */
static int compare(int which, const char *keys, const char *dtype, int segments)
{
    network *net = make(which, keys, dtype), *control = make(which, keys, dtype);
    poison_arena poison;
    int poisons = segments % 3 == 1;
    if (poisons) poison_begin(&poison, net->amp->engine);
    copy_weights(control, net);
    recompute(net, segments, 0);
    for (unsigned i = 1; i <= 3; i++) {
        double a, b;
        if (i == 2) {
            amp_anomaly bad = { .found = 1, .layer = 0, .pass = "forward", .tensor = "test" };
            amp_engine_reject_step(net->amp->engine, &bad);
            amp_engine_reject_step(control->amp->engine, &bad);
        }
        a = step(net, 10 * i);
        b = step(control, 10 * i);
        if (a != b)
            fail_msg("%s, %s, %d segments: loss %g, not %g", networks[which].name, dtype, segments, a, b);
        if (!are_alike(net, control))
            fail_msg("%s, %s, %d segments: other bytes", networks[which].name, dtype, segments);
    }
    int repeated = plan_of(net)->again_count;
    assert_true(!poisons || poison_end(&poison, net->amp->engine) > 0);
    assert_int_equal(plan_of(control)->again_count, 0);
    release(net);
    release(control);
    return repeated;
}

TEST(recomputed_trainings_end_in_the_same_bytes)
{
    for (int which = 0; which < NETWORKS; which++)
        for (int d = 0; d < 3; d++) {
            int most = 0;
            for (int segments = 0; segments <= 5; segments++) {
                int repeated = compare(which, segments % 2 ? "adam=1\n" : "", dtype_names[d], segments);
                if (repeated > most) most = repeated;
            }
            print_message("%s, %s: up to %d layers repeated\n", networks[which].name, dtype_names[d], most);
        }
}

/* Twelve convolutions, a shortcut after each two: deep enough for segments to pay off. The first of them are
 * frozen. */
static network *make_deep(const char *dtype, int frozen)
{
    char text[4096] = NET("");
    for (int i = 0; i < 6; i++) {
        strcat(text, CONV(16, "") CONV(16, "") "[shortcut]\nfrom=-2\nactivation=linear\n");
        if (i + 1 == frozen) strcat(text, "stopbackward=1\n");
    }
    strcat(text, TAIL);
    return parse(text, dtype);
}

static size_t arena_of(int segments, size_t budget, amp_recompute_cost *cost)
{
    network *net = make_deep("bf16", 0);
    if (segments >= 0) recompute(net, segments, budget);
    step(net, 1);
    size_t total = plan_of(net)->arena.total;
    *cost = amp_recompute_cost_of(plan_of(net));
    release(net);
    return total;
}

TEST(segments_take_less_memory_and_outputs_alone_cost_little)
{
    amp_recompute_cost none, cheap, cut;
    size_t whole = arena_of(-1, 0, &none), outputs = arena_of(1, 0, &cheap), segments = arena_of(4, 0, &cut);
    print_message("%zu bytes, %zu without outputs (%.3f of a forward again), %zu in 4 segments (%.3f)\n",
                  whole, outputs, cheap.again / cheap.forward, segments, cut.again / cut.forward);
    assert_true(none.again == 0 && cheap.again > 0 && cheap.again < .05 * cheap.forward);
    assert_true(cut.again > cheap.again && cut.again < cut.forward);
    assert_true(outputs < whole * 3 / 4 && segments < outputs);
}

TEST(frozen_layers_are_not_repeated)
{
    for (int segments = 1; segments <= 8; segments++) {
        network *net = make_deep("bf16", 1);
        recompute(net, segments, 0);
        step(net, 1);
        const amp_plan *plan = plan_of(net);
        assert_true(plan->again_count > 0);
        for (int k = 0; k < plan->again_count; k++)
            assert_true(plan->nodes[plan->again[k]].computes_backward);
        release(net);
    }
}

TEST(the_least_costly_choice_that_fits_is_taken)
{
    amp_recompute_cost none, cheap, cut, found;
    size_t whole = arena_of(-1, 0, &none), outputs = arena_of(1, 0, &cheap), segments = arena_of(4, 0, &cut);
    assert_int_equal(arena_of(0, whole, &found), whole);
    assert_true(found.again == 0);
    assert_int_equal(arena_of(0, outputs, &found), outputs);
    assert_true(found.again == cheap.again);
    assert_true(arena_of(0, segments, &found) <= segments);
    assert_true(found.again > cheap.again && found.again <= cut.again);
    assert_true(arena_of(0, 1, &found) <= segments); /* the choice with the least memory */
}

int main(void) { return run_listed_tests("tests", NULL, NULL); }
