/* Going on with something else than was saved: other weights, another batch or optimizer, a damaged
 * file, a copy or a link. */
#define _DEFAULT_SOURCE /* mkstemps, mkdtemp */
#include "testing.h"


#include "resume_testing.h"
#include "child.h"

/* Nothing of what it learned before is left, where the file has no sidecar. */
TEST_WITH(loading_other_weights_starts_anew, enter_folder, leave_folder)
{
    for (int adam = 0; adam < 2; adam++) {
        const char *keys = adam ? "adam=1\namp=1\ndtype=fp16\ninit_scale=8\ngrowth_interval=2\n" : "",
            *dtype = adam ? NULL : "bf16";
        network *net = parse_branched(keys, "", dtype), *first = parse_branched(keys, "", dtype);
        save_weights(net, "a.weights");
        for (int i = 0; i < 3; i++) STEP(net, i);
        feed(net, 7);
        train_network_datum(net); /* half a batch */
        load_weights(net, "a.weights");
        load_weights(first, "a.weights");
        STEP(net, 9);
        STEP(first, 9);
        assert_int_equal(*net->t, 1);
        assert_same_state(first, net);
        release(first);
        release(net);
    }
}

/* A copy written between load and training is not what training begins from. */
TEST_WITH(a_save_before_training_loses_nothing, enter_folder, leave_folder)
{
    network *whole, *second;
    stopped_after_three_of_four(&whole, &second);
    save_weights(second, "copy.weights");
    assert_string_equal(second->amp->resume->last_file, "a.weights");
    STEP(second, 3);
    assert_same_state(whole, second);
    release(whole);
    release(second);
}

/* Every array times factor: moments as they should be for another batch. */
static void assert_times(const float *a, const float *b, size_t count, float factor)
{
    int moved = 0;
    for (size_t k = 0; k < count; k++) {
        if (a[k] * factor != b[k]) fail_msg("%g times %g is not %g", a[k], factor, b[k]);
        moved |= a[k] != 0;
    }
    assert_true(moved || !count);
}

/* Momentum is a sum over the batch: over a quarter of the images it would throw the
 * weights four times as far. */
TEST_WITH(another_batch_scales_the_moments, enter_folder, leave_folder)
{
    for (int adam = 0; adam < 2; adam++) {
        network *first = parse_branched(adam ? "adam=1\n" : "", "", "fp32");
        char text[4096];
        snprintf(text, sizeof text, branched, adam ? "adam=1\n" : "", "");
        strstr(text, "batch=4")[6] = adam ? '8' : '1';
        strstr(text, "subdivisions=2")[13] = '1';
        network *second = parse(text, "fp32");
        float factor = adam ? 2 : 0.25f;
        for (int i = 0; i < 3; i++) STEP(first, i);
        save_weights(first, "a.weights");
        load_weights(second, "a.weights");
        darknet_amp_resume(&second, 1);
        amp_parameters x = first->amp->engine->parameters,
            y = second->amp->engine->parameters;
        for (int i = 0; i < x.param_count; i++) {
            const amp_param *p = &x.params[i], *q = &y.params[i];
            if (!adam) assert_times(p->momentum, q->momentum, p->count, factor);
            else assert_times(p->m, q->m, p->count, factor);
            if (adam) assert_times(p->v, q->v, p->count, factor * factor);
        }
        assert_int_equal(*second->t, 3);
        release(first);
        release(second);
    }
}

/* t counts the updates of moments that are 0 now: with thousands, Adam would take them for
 * settled, and overshoot. */
TEST_WITH(another_optimizer_counts_from_its_first_step, enter_folder, leave_folder)
{
    /* Any but 0 is Adam. */
    network *first = parse_branched("", "", "fp32"), *second = parse_branched("adam=2\n", "", "fp32");
    for (int i = 0; i < 3; i++) STEP(first, i);
    save_weights(first, "a.weights");
    load_weights(second, "a.weights");
    STEP(second, 3);
    assert_int_equal(*second->t, 1);
    save_weights(second, "b.weights");
    network *third = parse_branched("adam=1\n", "", "fp32");
    load_weights(third, "b.weights");
    STEP(third, 4);
    assert_int_equal(*third->t, 2);
    release(first);
    release(second);
    release(third);
}

/* The child: this program with "train" and the file's path as arguments. */
static int train(const char *path)
{
    network *net = parse_branched("", "", "fp32");
    load_weights(net, (char *)path);
    STEP(net, 1);
    return 0;
}

/* What a training that begins from this file says on stderr, and its status. */
static int training_from(const char *file, char *said, size_t size)
{
    const char *const arguments[] = { "test_resume_changed", "train", file, NULL };
    return this_program_again(arguments, said, size);
}

/* The first convolution's biases, scales, means and variances, 8 each, and weights follow a
 * header of 20 bytes. */
TEST_WITH(weights_that_are_no_numbers_are_refused, enter_folder, leave_folder)
{
    static const struct { long at; const char *name; } places[] = { { 0, "biases" }, { 8, "scales" },
        { 23, "rolling statistics" }, { 31, "rolling statistics" }, { 32 + 7, "weights" } };
    char said[1 << 14];
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        network *net = parse_branched("", "", "fp32");
        save_weights(net, "a.weights");
        release(net);
        if (i == 0) assert_int_equal(training_from("a.weights", said, sizeof said), 0);
        FILE *file = fopen("a.weights", "r+b");
        float bad = i % 2 ? INFINITY : NAN;
        assert_int_equal(fseek(file, 20 + 4 * places[i].at, SEEK_SET), 0);
        assert_int_equal(fwrite(&bad, sizeof bad, 1, file), 1);
        fclose(file);
        assert_int_equal(training_from("a.weights", said, sizeof said), 1);
        char expected[100];
        snprintf(expected, sizeof expected, "a.weights: %s of layer 0 are inf, NaN", places[i].name);
        if (!strstr(said, expected) || !strstr(said, "use another .weights file"))
            fail_msg("\"%s\" not in: %s", expected, said);
    }
}

/* The sidecar of a link lies where its file does. */
TEST_WITH(a_copy_over_a_link_leaves_no_sidecar, enter_folder, leave_folder)
{
    network *net = parse_branched("", "", "bf16");
    STEP(net, 0);
    save_weights(net, "real.weights");
    assert_true(exists("real.weights.amp"));
    assert_int_equal(symlink("real.weights", "link.weights"), 0);
    save_weights_upto(net, "link.weights", 1);
    assert_false(exists("real.weights.amp"));
    release(net);
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "train")) return train(argv[2]);
    return run_resume_tests();
}
