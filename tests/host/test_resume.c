/* A network that was saved, made anew and loaded goes on as if nothing had been: for whoever calls Darknet's
 * functions, without the loops of detector and classifier (those are e2e/resume.sh's). */
#define _DEFAULT_SOURCE /* mkstemps, mkdtemp */
#include "testing.h"

#include "resume_testing.h"

#define FLAT_TAIL "[connected]\noutput=4\nactivation=linear\n[cost]\ntype=sse\n"

/* Eight steps, a stop after the fifth; how many had been skipped by then. Darknet keeps every second normal
 * number for the next network: weights here are even in number. */
static unsigned long goes_on(const char *text, const char *dtype)
{
    network *whole = parse(text, dtype), *first = parse(text, dtype);
    for (int i = 0; i < 8; i++) STEP(whole, i);
    for (int i = 0; i < 5; i++) STEP(first, i);
    save_weights(first, "a.weights");
    unsigned long skipped = first->amp->skipped;
    release(first);
    network *second = parse(text, dtype);
    load_weights(second, "a.weights");
    for (int i = 5; i < 8; i++) STEP(second, i);
    assert_same_state(whole, second);
    release(whole);
    release(second);
    return skipped;
}

static unsigned long goes_on_branched(const char *net_keys, const char *dtype)
{
    char text[4096];
    snprintf(text, sizeof text, branched, net_keys, "");
    return goes_on(text, dtype);
}

TEST_WITH(behaviour_25_sgd_goes_on, enter_folder, leave_folder)
{
    goes_on_branched("", "fp32");
    goes_on_branched("", "bf16");
}

TEST_WITH(behaviour_25_adam_goes_on, enter_folder, leave_folder)
{
    goes_on_branched("adam=1\n", "fp32");
    goes_on_branched("adam=1\n", "bf16");
    goes_on_branched("adam=1\nadamw=1\n", "bf16");
}

/* Overflows before and after the stop, and growth_interval half done at it. */
TEST_WITH(behaviour_25_the_scaler_goes_on, enter_folder, leave_folder)
{
    assert_in_range(goes_on_branched("amp=1\ndtype=fp16\ninit_scale=3000\ngrowth_interval=2\n"
                                     "growth_factor=8\n", NULL), 1, 4);
}

/* What a .weights file does not hold: the biases of a batchnorm layer, states, and all of a
 * layer with dontsave=1. */
TEST_WITH(behaviour_25_what_the_file_leaves_out_goes_on, enter_folder, leave_folder)
{
    goes_on(NET("") "[convolutional]\nfilters=4\nsize=3\nstride=2\npad=1\nactivation=leaky\n[batchnorm]\n"
            "[connected]\noutput=6\nbatch_normalize=1\nactivation=leaky\n" FLAT_TAIL, "fp32");
    goes_on(NET("") CONV(4, "dontsave=1\ndontload=1\n") TAIL, "bf16");
    goes_on(NET("") CONV(4, "") "[maxpool]\nsize=2\nstride=2\nnumload=1\n" /* read by convolutions alone */
            "[connected]\noutput=6\nactivation=leaky\nnumload=1\n" FLAT_TAIL, "fp32");
    goes_on(NET("") "[connected]\noutput=8\nactivation=leaky\n[gru]\noutput=6\n[lstm]\noutput=6\n"
            "[rnn]\noutput=6\nactivation=leaky\n" FLAT_TAIL, "fp32");
    goes_on(NET("") "[deconvolutional]\nfilters=4\nsize=2\nstride=2\nactivation=leaky\n"
            "[local]\nfilters=3\nsize=3\nstride=2\npad=1\nactivation=leaky\n"
            "[crnn]\noutput_filters=4\nhidden_filters=4\nactivation=leaky\n" TAIL, "fp32");
}

/* Each filter has the weights of its own group's channels. */
TEST_WITH(a_flipped_layer_with_groups_reads_its_matrix_transposed, enter_folder, leave_folder)
{
    network *straight = parse(NET("") CONV(4, "") CONV(6, "groups=2\n") TAIL, "fp32");
    network *flipped = parse(NET("") CONV(4, "") CONV(6, "groups=2\nflipped=1\n") TAIL, "fp32");
    save_weights(straight, "a.weights");
    load_weights(flipped, "a.weights");
    const layer *a = &straight->layers[1], *b = &flipped->layers[1];
    int rows = a->nweights / a->n;
    for (int x = 0; x < rows; x++)
        for (int y = 0; y < a->n; y++)
            assert_float_equal(b->weights[y*rows + x], a->weights[x*a->n + y], 0);
    release(straight);
    release(flipped);
}

static void train_half(network *net, unsigned seed, float first_number)
{
    feed(net, seed);
    net->input[0] = first_number;
    train_network_datum(net);
}

/* Saved in the middle of a batch: its gradients go on too, and the rolling statistics that a skipped step
 * goes back to. */
TEST_WITH(behaviour_25_half_a_batch_goes_on, enter_folder, leave_folder)
{
    for (int adam = 0; adam < 2; adam++)
        for (int skipped = 0; skipped < 2; skipped++) {
            const char *keys = adam ? "adam=1\n" : "";
            float last = skipped ? INFINITY : .5f;
            network *whole = parse_branched(keys, "", "bf16"), *first = parse_branched(keys, "", "bf16");
            for (int i = 0; i < 3; i++) { STEP(whole, i); STEP(first, i); }
            train_half(first, 77, .5f);
            save_weights(first, "half.weights");
            release(first);
            network *second = parse_branched(keys, "", "bf16");
            load_weights(second, "half.weights");
            train_half(second, 78, last);
            train_half(whole, 77, .5f);
            train_half(whole, 78, last);
            assert_same_state(whole, second);
            assert_int_equal(whole->amp->skipped, skipped);
            STEP(whole, 5);
            STEP(second, 5);
            assert_same_state(whole, second);
            release(whole);
            release(second);
        }
}

/* A prediction between load and training reads no sidecar and takes nothing from it. */
TEST_WITH(behaviour_25_a_prediction_comes_first, enter_folder, leave_folder)
{
    network *whole, *second;
    stopped_after_three_of_four(&whole, &second);
    feed(second, 9);
    float *image = calloc((size_t)second->inputs * second->batch, sizeof *image);
    network_predict(second, image);
    free(image);
    assert_int_equal(second->amp->steps, 0);
    STEP(second, 3);
    assert_same_state(whole, second);
    release(whole);
    release(second);
}

/* A network that has trained already goes back to a checkpoint. */
TEST_WITH(loading_again_goes_back, enter_folder, leave_folder)
{
    network *net = parse_branched("", "", "bf16"), *straight = parse_branched("", "", "bf16");
    for (int i = 0; i < 3; i++) STEP(net, i);
    save_weights(net, "a.weights");
    for (int i = 7; i < 9; i++) STEP(net, i);
    load_weights(net, "a.weights");
    STEP(net, 3);
    for (int i = 0; i < 4; i++) STEP(straight, i);
    assert_same_state(straight, net);
    release(net);
    release(straight);
}

TEST_WITH(a_partial_load_starts_anew, enter_folder, leave_folder)
{
    network *first = parse_branched("", "", "bf16");
    for (int i = 0; i < 3; i++) STEP(first, i);
    save_weights(first, "a.weights");
    network *second = parse_branched("", "", "bf16");
    load_weights_upto(second, "a.weights", 0, 1);
    STEP(second, 3);
    assert_int_equal(second->amp->steps, 1);
    assert_null(second->amp->resume->last_file);
    /* a partial save: no sidecar, and none left that was another file's */
    save_weights_upto(first, "a.weights", 1);
    assert_true(exists("a.weights"));
    assert_false(exists("a.weights.amp"));
    release(first);
    release(second);
}

/* Commands that load and save but never train have no momentum to tell of: their copies have no sidecar. */
TEST_WITH(the_last_checkpoint_of_a_training_is_known, enter_folder, leave_folder)
{
    network *net = parse_branched("", "", "bf16");
    assert_null(net->amp->resume->last_file);
    save_weights(net, "copy.weights");
    assert_true(exists("copy.weights") && !exists("copy.weights.amp"));
    STEP(net, 0);
    save_weights(net, "a.weights");
    assert_string_equal(net->amp->resume->last_file, "a.weights");
    save_weights(net, "b.weights");
    assert_string_equal(net->amp->resume->last_file, "b.weights");
    save_weights(net, "no/folder/c.weights");
    assert_string_equal(net->amp->resume->last_file, "b.weights");
    load_weights(net, "a.weights");
    assert_string_equal(net->amp->resume->last_file, "a.weights");
    release(net);
}

/* What detector and classifier show: an average that a skipped batch made NaN goes on
 * from its last number. */
TEST_WITH(the_shown_loss_survives_a_skipped_batch, enter_folder, leave_folder)
{
    network *net = parse_branched("", "", "bf16");
    float average = -1;
    int count = 3;
    darknet_amp_resume(&net, 1);
    assert_true(darknet_amp_next_step(&net, 1, &average, &count, NULL, 0, NULL, NULL));
    STEP(net, 0);
    assert_true(average == -1);
    average = 2.5f;
    STEP(net, 1);
    average = NAN;
    STEP(net, 2);
    assert_true(average == 2.5f);
    average = INFINITY;
    assert_true(amp_resume_run_state(net->amp, net).average_loss == 2.5f);
    assert_int_equal(amp_resume_run_state(net->amp, net).loop_count, 3);
    darknet_amp_loop_ended(&net);
    STEP(net, 3);
    assert_true(isinf(average));
    assert_int_equal(amp_resume_run_state(net->amp, net).looped, 0);
    release(net);
}

/* Darknet's loop asks for a save by the batch number, which a skipped step leaves where it was. */
TEST_WITH(no_second_save_after_a_skipped_step, enter_folder, leave_folder)
{
    network *net = parse_branched("amp=1\ndtype=fp16\ninit_scale=1e30\n", "", NULL);
    float average = -1;
    int count = 0;
    darknet_amp_resume(&net, 1);
    assert_true(darknet_amp_next_step(&net, 1, &average, &count, NULL, 0, NULL, NULL));
    STEP(net, 0);
    assert_int_equal(net->amp->skipped, 1);
    save_weights(net, "a.weights");
    assert_false(exists("a.weights"));
    net->max_batches = 1;
    *net->seen = 8;
    save_weights(net, "last.weights"); /* the end of training is saved whatever its last step was */
    assert_true(exists("last.weights.amp"));
    darknet_amp_loop_ended(&net);
    release(net);
}

int main(void) { return run_resume_tests(); }
