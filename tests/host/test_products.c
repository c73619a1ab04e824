/* The matrix products inside Darknet's recurrent layers: whose they are, in which dtype, and that the copies
 * of weights which the backend keeps for them are never those of other weights. */
#define _DEFAULT_SOURCE /* mkstemps */
#include "testing.h"

#include "child.h"
#include "engine_testing.h"
#include "host/fork_commands.h"

#define KEYS "momentum=0.9\ndecay=0.001\nmax_batches=100000\n"
#define SEQUENCE "[net]\nbatch=4\nsubdivisions=2\ninputs=34\ntime_steps=3\nlearning_rate=0.1\n" KEYS
#define IMAGES                                                                                             \
    "[net]\nbatch=4\nsubdivisions=2\nwidth=6\nheight=6\nchannels=4\ntime_steps=2\nlearning_rate=0.00001\n" \
    KEYS
#define SOFTMAX "[softmax]\n"

/* Factors have 32 terms and more, so that a weight is multiplied alike with a copy and without. */
static const struct { const char *name, *net, *layer, *rest; int forward; } recurrent[] = {
    { "rnn", SEQUENCE, "[rnn]\noutput=36\nactivation=tanh\n", SOFTMAX, 3 * 3 },
    { "gru", SEQUENCE, "[gru]\noutput=36\n", SOFTMAX, 3 * 6 },
    { "lstm", SEQUENCE, "[lstm]\nbatch_normalize=1\noutput=36\n", SOFTMAX, 3 * 8 },
    { "crnn", IMAGES, "[crnn]\nhidden_filters=33\noutput_filters=32\nactivation=leaky\n",
      "[cost]\ntype=sse\n", 2 * 2 * 3 /* image by image */ },
};
enum { RECURRENT = sizeof recurrent / sizeof *recurrent };

static const struct {
    const char *name; amp_dtype dtype;
} dtypes[] = { { "fp32", AMP_FP32 }, { "bf16", AMP_BF16 }, { "fp16", AMP_FP16 } };

static network *make(int which, const char *net_keys, const char *layer_keys, const char *dtype)
{
    char text[2048];
    snprintf(text, sizeof text, "%s%s%s%s%s", recurrent[which].net, net_keys, recurrent[which].layer,
             layer_keys, recurrent[which].rest);
    return parse(text, dtype);
}

/* ---- the backend's gemm, watched ---- */

enum { MOST_SEEN = 2000 };

static struct {
    amp_status (*gemm)(amp_backend *, const amp_gemm_desc *, amp_error *);
    amp_gemm_desc seen[MOST_SEEN];
    int count, fails;
} watched;

static amp_status watching(amp_backend *backend, const amp_gemm_desc *d, amp_error *error)
{
    if (watched.fails) return amp_fail(error, AMP_BACKEND_FAILED, "no more");
    if (watched.count < MOST_SEEN) watched.seen[watched.count++] = *d;
    return watched.gemm(backend, d, error);
}

static amp_status without_versions(amp_backend *backend, const amp_gemm_desc *d, amp_error *error)
{
    amp_gemm_desc plain = *d;
    plain.a.version = plain.b.version = 0;
    return watched.gemm(backend, &plain, error);
}

static void watch(network *net, amp_status (*how)(amp_backend *, const amp_gemm_desc *, amp_error *))
{
    amp_backend *b = net->amp->engine->backend;
    watched.gemm = b->gemm;
    watched.count = watched.fails = 0;
    b->gemm = how;
}

static void pass(network *net, unsigned seed)
{
    feed(net, seed);
    both_passes(net);
}

/* ---- whose products ---- */

TEST(products_run_in_the_dtype_of_their_layer)
{
    for (int which = 0; which < RECURRENT; which++)
        for (int t = 0; t < 3; t++)
            for (int pinned = 0; pinned < 2; pinned++) {
                network *net = make(which, "", pinned ? "amp=0\n" : "", dtypes[t].name);
                watch(net, watching);
                feed(net, 3);
                net->train = 1;
                forward_network(net);
                assert_int_equal(watched.count, recurrent[which].forward);
                backward_network(net);
                /* Gradients of all weights, and some deltas. */
                assert_true(watched.count > 2 * recurrent[which].forward);
                for (int i = 0; i < watched.count; i++)
                    assert_int_equal(watched.seen[i].dtype, pinned ? AMP_FP32 : dtypes[t].dtype);
                release(net);
            }
}

TEST(products_of_other_layers_are_their_own)
{
    static const char cfg[] = "[net]\nbatch=2\nsubdivisions=1\nwidth=8\nheight=8\nchannels=3\n"
        KEYS CONV(4, "") CONV(4, "xnor=1\n")
        "[deconvolutional]\nfilters=3\nsize=2\nstride=2\nactivation=leaky\n[local]\nfilters=2\nsize=3\n"
        "stride=2\npad=0\nactivation=leaky\n[connected]\noutput=5\nactivation=linear\n" SOFTMAX;
    network *net = parse(cfg, "bf16");
    watch(net, watching);
    pass(net, 3);
    assert_int_equal(watched.count, 0);
    release(net);
}

/* Another network's, in the same thread, while none of AMP's layers runs. */
TEST(products_without_amp_are_darknets)
{
    network *net = make(1, "", "", "bf16"), *stock = make(1, "", "", "off");
    watch(net, watching);
    pass(net, 3);
    int count = watched.count;
    assert_true(count > 0);
    feed(stock, 3);
    forward_network(stock);
    assert_int_equal(watched.count, count);
    release(net);
    release(stock);
}

static void one_pass(void *net) { pass(net, 3); }

TEST(a_product_that_fails_ends_the_program_with_a_line)
{
    char text[512];
    network *net = make(0, "", "", "bf16");
    watch(net, watching);
    watched.fails = 1;
    assert_int_equal(in_child(one_pass, net, text, sizeof text), 1);
    assert_string_equal(text, "layer 0 [rnn]: no more\n");
    release(net);
}

/* ---- versions ---- */

static int is_master(const amp_network_desc *d, const float *data)
{
    for (int k = 0; k < d->layers[0].param_count; k++) if (d->layers[0].params[k].master == data) return 1;
    return 0;
}

/* The one version that all factors which are masters have had; others have none. */
static unsigned long version_seen(network *net)
{
    unsigned long version = 0;
    amp_network_desc d = described(net);
    for (int i = 0; i < watched.count; i++) {
        const amp_factor *both[] = { &watched.seen[i].a, &watched.seen[i].b };
        for (int k = 0; k < 2; k++) {
            assert_int_equal(both[k]->version != 0, is_master(&d, both[k]->data));
            if (!both[k]->version) continue;
            if (!version) version = both[k]->version;
            assert_true(both[k]->version == version);
        }
    }
    assert_true(version);
    amp_network_desc_free(&d);
    watched.count = 0;
    return version;
}

TEST(behaviour_28_weights_have_one_version_in_all_subdivisions_and_time_steps)
{
    for (int which = 0; which < RECURRENT; which++) {
        network *net = make(which, "", "", "bf16");
        watch(net, watching);
        pass(net, 3);
        pass(net, 4);
        version_seen(net);
        release(net);
    }
}

TEST(behaviour_29_a_version_ends_with_an_update_and_with_new_weights)
{
    for (int which = 0; which < RECURRENT; which++) {
        network *net = make(which, "", "", "bf16");
        watch(net, watching);
        pass(net, 3);
        unsigned long first = version_seen(net);
        update_network(net);
        pass(net, 4);
        unsigned long updated = version_seen(net);
        assert_true(updated != first);
        darknet_amp_weights_changed(net);
        pass(net, 5);
        unsigned long loaded = version_seen(net);
        assert_true(loaded != updated && loaded != first);
        release(net);
    }
}

/* A training whose copies are kept, beside one that rounds its weights for each product: updates, a step that
 * is skipped, a prediction, weights from elsewhere, and a plan that is made anew. */
TEST(kept_copies_are_those_of_the_weights)
{
    for (int which = 0; which < RECURRENT; which++)
        for (int t = 1; t < 3; t++) {
            network *kept = make(which, "", "", dtypes[t].name), *fresh = make(which, "", "", dtypes[t].name),
                *both[] = { kept, fresh };
            copy_weights(kept, fresh);
            watch(fresh, without_versions);
            for (unsigned i = 0; i < 6; i++) {
                for (int k = 0; k < 2; k++) {
                    train_step(both[k], 10 * i + 1);
                    if (i == 1) {
                        for (int s = 0; s < 2; s++) {
                            feed(both[k], 5);
                            both[k]->input[0] = INFINITY;
                            train_network_datum(both[k]);
                        }
                        assert_true(both[k]->amp->skipped > 0);
                    }
                    /* rolling variances near 0 make Darknet's tanh NaN here, which network_predict refuses */
                    if (i == 2) amp_fork_predict(both[k]);
                    if (i == 3) {
                        amp_network_desc d = described(both[k]);
                        for (size_t e = 0; e < d.layers[0].params[0].count; e++)
                            d.layers[0].params[0].master[e] *= -.5f;
                        amp_network_desc_free(&d);
                        darknet_amp_weights_changed(both[k]);
                    }
                    if (i == 4) darknet_amp_made(both[k], NULL);
                }
                if (!are_alike(kept, fresh))
                    fail_msg("%s, %s: another state after step %u", recurrent[which].name, dtypes[t].name, i);
            }
            release(kept);
            release(fresh);
        }
}

/* ---- overflow ---- */

/* Deltas of 2^24 are numbers in fp32, where the layer keeps them, and none in fp16, in
 * which it multiplies. */
TEST(a_delta_that_overflows_in_a_product_skips_the_step_and_leaves_no_trace)
{
    for (int which = 0; which < RECURRENT; which++)
        for (int t = 0; t < 3; t++) {
            network *net = make(which, "init_scale=16777216\nloss_scale=dynamic\n", "", dtypes[t].name);
            int steps = 0;
            kept_state before = snapshot(net);
            for (train_step(net, 7); net->amp->step_skipped && steps < 40; train_step(net, 7), steps++) {
                assert_true(is_as_before(net, before));
                before = snapshot(net);
            }
            assert_false(net->amp->step_skipped || is_as_before(net, before));
            if (dtypes[t].dtype == AMP_FP16)
                assert_true(steps > 3 && net->amp->engine->scaler.scale < 0x1p22f);
            else assert_int_equal(steps, 0);
            release(net);
        }
}

/* ---- predictions of other batches than the .cfg's ---- */

/* The activation is the backend's own, whose output is resized to the images that are predicted. Batch norm
 * that has not learnt makes NaN in Darknet's tanh. */
static network *make_batch(int which, int batch, int time_steps, const char *dtype)
{
    char text[1024];
    snprintf(text, sizeof text, "[net]\nbatch=%d\nsubdivisions=1\ntime_steps=%d\n%s" KEYS
             "[activation]\nactivation=linear\n%s%s", batch, time_steps,
             strstr(recurrent[which].net, "inputs") ? "inputs=34\n" : "width=6\nheight=6\nchannels=4\n",
             strcmp(recurrent[which].name, "lstm") ? recurrent[which].layer : "[lstm]\noutput=36\n",
             recurrent[which].rest);
    return parse(text, dtype);
}

static void assert_same_outputs(network *a, network *b, unsigned seed)
{
    feed(a, seed);
    feed(b, seed);
    const float *x = network_predict(a, a->input), *y = network_predict(b, b->input);
    assert_memory_equal(x, y, (size_t)a->batch * (size_t)a->outputs * sizeof *x);
}

/* As the commands do: set_batch_network leaves the layers inside a recurrent one alone. The second image
 * shows what state the first has left. */
TEST(images_are_predicted_one_by_one_as_by_a_network_of_batch_1)
{
    static const int made[][2] = { { 1, 1 }, { 4, 1 }, { 64, 1 }, { 2, 3 } }; /* batch, time_steps */
    for (int which = 0; which < RECURRENT; which++)
        for (size_t m = 0; m < COUNT(made); m++)
            for (int t = 0; t < 3; t++) {
                int batch = made[m][0], steps = made[m][1];
                network *net = make_batch(which, batch, steps, dtypes[t].name);
                network *of_one = make_batch(which, 1, 1, dtypes[t].name);
                network *as_made = make_batch(which, batch, steps, dtypes[t].name);
                copy_weights(of_one, net);
                copy_weights(of_one, as_made);
                set_batch_network(net, 1);
                set_batch_network(net, batch * steps);
                assert_same_outputs(as_made, net, 9);
                release(net);
                net = make_batch(which, batch, steps, dtypes[t].name);
                copy_weights(of_one, net);
                set_batch_network(net, 1);
                for (unsigned image = 3; image < 6; image++) assert_same_outputs(of_one, net, image);
                release(net);
                release(of_one);
                release(as_made);
            }
}

static void predict_five(void *net)
{
    set_batch_network(net, 5);
    network_predict(net, ((network *)net)->input);
}

TEST(more_sequences_than_there_is_room_for_end_the_program_with_a_line)
{
    char text[512];
    network *net = make_batch(0, 2, 3, "fp32");
    assert_int_equal(in_child(predict_five, net, text, sizeof text), 1);
    assert_string_equal(text, "layer 1 [rnn] was made for 2 sequences of 3 time steps, but got 5 images; "
                              "set batch=5 and time_steps=1 in the .cfg\n");
    release(net);
}

/* ---- training ---- */

enum { SYMBOLS = 8, STREAMS = 16, TIMES = 8, ROUNDS = 160, LAST = 20 };

/* Each symbol follows from the two before it: one of the two must be remembered. */
static void feed_sequences(network *net, unsigned seed)
{
    memset(net->input, 0, sizeof(float) * (size_t)net->inputs * (size_t)net->batch);
    memset(net->truth, 0, sizeof(float) * (size_t)net->truths * (size_t)net->batch);
    for (int b = 0; b < STREAMS; b++) {
        seed = seed * 1664525u + 1013904223u;
        int older = (int)(seed >> 13) % SYMBOLS, newer = (int)(seed >> 21) % SYMBOLS;
        for (int t = 0; t < TIMES; t++) {
            int next = (2 * older + newer + 1) % SYMBOLS;
            net->input[(t * STREAMS + b) * SYMBOLS + newer] = 1;
            net->truth[(t * STREAMS + b) * SYMBOLS + next] = 1;
            older = newer;
            newer = next;
        }
    }
}

/* Losses of a training; the mean of the last. */
static double train(network *net, network *from, double losses[ROUNDS])
{
    double sum = 0;
    copy_weights(from, net);
    for (int i = 0; i < ROUNDS; i++) {
        feed_sequences(net, (unsigned)i);
        losses[i] = (double)train_network_datum(net);
        if (i >= ROUNDS - LAST) sum += losses[i];
    }
    release(net);
    return sum / LAST;
}

static network *make_learner(const char *layer, const char *dtype)
{
    char text[1024];
    snprintf(text, sizeof text, "[net]\nbatch=%d\nsubdivisions=1\ninputs=%d\ntime_steps=%d\n"
             "learning_rate=.2\nmomentum=.9\ndecay=0\nmax_batches=100000\ninit_scale=256\n[%s[connected]\n"
             "output=%d\nactivation=linear\n[softmax]\n", STREAMS, SYMBOLS, TIMES, layer, SYMBOLS);
    return parse(text, dtype);
}

/* The way is a smooth one, so that rounding moves it by little: 0.1 % was measured at most. */
TEST(a_recurrent_network_learns_in_half_as_in_fp32)
{
    static const char *const layers[] = { "rnn]\noutput=48\nactivation=tanh\n", "gru]\noutput=48\n",
                                          "lstm]\noutput=48\n" };
    static double fp32[ROUNDS], half[ROUNDS];
    for (size_t l = 0; l < sizeof layers / sizeof *layers; l++) {
        network *start = make_learner(layers[l], "off");
        double reference = train(make_learner(layers[l], "fp32"), start, fp32);
        assert_true(reference < .3 * fp32[0]);
        for (int t = 1; t < 3; t++) {
            double apart = 0, size = 0, last = train(make_learner(layers[l], dtypes[t].name), start, half);
            for (int i = 0; i < ROUNDS; i++) {
                apart += fabs(half[i] - fp32[i]);
                size += fp32[i];
            }
            print_message("%.*s %s: loss %.3f to %.3f, in fp32 to %.3f; %.2f %% apart on the way\n",
                          (int)strcspn(layers[l], "]"), layers[l], dtypes[t].name, half[0], last, reference,
                          100 * apart / size);
            assert_true(apart < .02 * size);
            assert_true(fabs(last - reference) < .05 * reference);
        }
        release(start);
    }
}

int main(void) { return run_listed_tests("tests", NULL, NULL); }
