/* Tests casts by the numbers (docs/behaviours.md): 1 + 2^-12 is neither a bf16 nor an fp16 number, so where
 * it arrives unchanged, fp32 was used; small integers are both, so where several consumers' deltas are
 * summed, the sum is exact. */
#define _GNU_SOURCE /* mkstemps */
#include "testing.h"

#include <unistd.h>

#include "engine_testing.h"
#include "requests.h"

#define SMALL_NET "[net]\nbatch=2\nwidth=4\nheight=4\nchannels=3\nlearning_rate=0.01\nmax_batches=100\n"
#define POINT(filters, more) \
    "[convolutional]\nfilters=" #filters "\nsize=1\nstride=1\nactivation=linear\n" more
static const char *const halves[] = { "bf16", "fp16" };
static const float between = 1 + 0x1p-12f;

/* ---- half copies are never stale ---- */

/* Asserts that a new network with net's weights, shape and batch gives exactly net's output. training: with
 * batch statistics, as in the next step's forward; else as in network_predict. */
static void assert_as_fresh(network *net, int training, const char *after)
{
    network *fresh = parse_branched("", "", "bf16");
    if (fresh->w != net->w || fresh->h != net->h) resize_network(fresh, net->w, net->h);
    set_batch_network(fresh, net->batch);
    copy_weights(net, fresh);
    fresh->amp->measures = 1; /* do not fold batch norm: net does not either, since it has trained */
    network *both[2] = { net, fresh };
    size_t count = (size_t)net->outputs * (size_t)net->batch;
    float *out[2];
    for (int k = 0; k < 2; k++) {
        feed(both[k], 99);
        both[k]->train = training;
        forward_network(both[k]);
        out[k] = malloc(count * sizeof *out[k]);
        memcpy(out[k], both[k]->output, count * sizeof *out[k]);
    }
    if (memcmp(out[0], out[1], count * sizeof *out[0]))
        fail_msg("stale half copies after %s (%s)", after, training ? "training" : "inference");
    free(out[0]);
    free(out[1]);
    release(fresh);
}

TEST(behaviour_29_half_copies_are_never_stale)
{
    network *net = parse_branched("", "", "bf16"), *other = parse_branched("", "", "bf16");
    char name[] = "/tmp/casting-XXXXXX";
    for (unsigned i = 0; i < 3; i++) train_step(other, 300 + i);

    train_step(net, 1);
    assert_as_fresh(net, 1, "an update");
    assert_as_fresh(net, 0, "an update");
    train_step(net, 2);
    assert_as_fresh(net, 0, "an update that followed inference");
    assert_as_fresh(net, 1, "inference");

    close(mkstemp(name));
    save_weights(other, name);
    /* The plan that runs before loading also runs after it. */
    for (int training = 0; training < 2; training++) {
        train_step(net, 3);
        assert_as_fresh(net, training, "an update");
        load_weights(net, name);
        assert_as_fresh(net, training, "load_weights");
    }
    unlink_pair(name);

    resize_network(net, 24, 20);
    assert_as_fresh(net, 0, "a resize");
    train_step(net, 4);
    resize_network(net, 16, 16); /* its plan was made before that update */
    assert_as_fresh(net, 0, "a resize back");
    assert_as_fresh(net, 1, "a resize back");

    set_batch_network(net, 1);
    assert_as_fresh(net, 0, "a smaller batch");
    set_batch_network(net, 2);
    train_step(net, 5);
    set_batch_network(net, 1);
    assert_as_fresh(net, 0, "an update at another batch");
    set_batch_network(net, 2);

    assert_as_fresh(net, 1, "the batch's return"); /* leaves the training plan active, as averaging does */
    amp_network_desc a = described(net), b = described(other);
    for (int i = 0; i < a.count; i++)
        for (int k = 0; k < a.layers[i].param_count; k++)
            for (size_t e = 0; e < a.layers[i].params[k].count; e++)
                a.layers[i].params[k].master[e] =
                    (a.layers[i].params[k].master[e] + b.layers[i].params[k].master[e]) / 2;
    amp_network_desc_free(&a);
    amp_network_desc_free(&b);
    darknet_amp_weights_changed(net); /* what sync_nets calls */
    assert_as_fresh(net, 1, "averaging");
    assert_as_fresh(net, 0, "averaging");
    release(net);
    release(other);
}

/* ---- memory ---- */

static size_t resident(void)
{
    unsigned long size = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu %lu", &size, &pages), 2);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void predict_at(network *net, int w, int batch)
{
    set_batch_network(net, 2); /* a resize makes room for the images of this batch */
    if (net->w != w) resize_network(net, w, w);
    set_batch_network(net, batch);
    feed(net, 5);
    amp_host_predict(net, net->input);
}

/* Counts requested bytes exactly; and the process's pages, in which oneDNN's requests show: the smallest
 * layer's output, leaked 200 times, is 13 MB. (A sanitizer keeps freed memory.) */
TEST(behaviour_30_memory_does_not_grow_over_repeated_inference)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    const size_t more = SIZE_MAX / 2;
#else
    const size_t more = 6 << 20;
#endif
    for (int k = 0; k < 2; k++) {
        requests_begin();
        network *net = parse_branched("", "", halves[k]);
        resize_network(net, 64, 64);
        for (int i = 0; i < 2; i++) predict_at(net, 64, 2);
        size_t pages = resident(), taken = requests_alive;
        for (int i = 0; i < 200; i++) predict_at(net, 64, 2);
        assert_int_equal(requests_alive, taken);
        assert_true(resident() < pages + more);

        /* other shapes in between, as in training with random=1 and validation: each allocates only once */
        for (int i = 0; i < 70; i++) {
            if (i == 20) pages = resident(); /* malloc needs some rounds until its blocks settle */
            if (i == 2) taken = requests_alive;
            predict_at(net, 48, 1);
            predict_at(net, 64, 2);
        }
        assert_int_equal(requests_alive, taken);
        assert_true(resident() < pages + more);
        release(net);
        requests_end();
    }
}

/* ---- autocast ---- */

static void set_identity(network *net, int i)
{
    layer l = net->layers[i];
    for (int o = 0; o < l.n; o++)
        for (int c = 0; c < l.c; c++) l.weights[o * l.c + c] = (float)(o == c);
    memset(l.biases, 0, (size_t)l.n * sizeof *l.biases);
    darknet_amp_weights_changed(net);
}

/* Asserts the value of every pixel in channel i / 16 of the output, for an image with a single value. */
static void assert_gives(network *net, float image, const float *expected, const char *what)
{
    for (int i = 0; i < net->inputs * net->batch; i++) net->input[i] = image;
    const float *out = network_predict(net, net->input);
    for (int i = 0; i < net->outputs; i++)
        if (out[i] != expected[i / 16])
            fail_msg("%s: output %d is %.9g, not %.9g", what, i, (double)out[i], (double)expected[i / 16]);
}

static network *identities(const char *text, const char *dtype)
{
    network *net = parse(text, dtype);
    for (int i = 0; i < net->n; i++) if (net->layers[i].type == CONVOLUTIONAL) set_identity(net, i);
    return net;
}

/* One input in fp32, the other rounded to a half: neither is rounded again, whichever comes first. */
TEST(behaviour_31_mixed_dtype_route_and_shortcut_promote)
{
    static const struct { const char *text; float expected[6]; amp_form form; } table[] = {
        { SMALL_NET POINT(3, "amp=0\n") POINT(3, "") "[route]\nlayers=-1,0\n",
          { 1, 1, 1, between, between, between }, AMP_FORM_WIDE },
        { SMALL_NET POINT(3, "amp=0\n") POINT(3, "") "[route]\nlayers=0,-1\n",
          { between, between, between, 1, 1, 1 }, AMP_FORM_WIDE },
        { SMALL_NET POINT(3, "amp=0\n") POINT(3, "") "[shortcut]\nfrom=0\nactivation=linear\n",
          { 1 + between, 1 + between, 1 + between }, AMP_FORM_WIDE },
        { SMALL_NET POINT(3, "") POINT(3, "amp=0\n")
          "[route]\nlayers=-2\n[shortcut]\nfrom=-2\nactivation=linear\n", { 2, 2, 2 }, AMP_FORM_WIDE },
        /* nothing to promote */
        { SMALL_NET POINT(3, "") POINT(3, "") "[route]\nlayers=-1,0\n", { 1, 1, 1, 1, 1, 1 }, AMP_FORM_HALF },
        { SMALL_NET POINT(3, "") POINT(3, "") "[shortcut]\nfrom=0\nactivation=linear\n", { 2, 2, 2 },
          AMP_FORM_HALF },
    };
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
            network *net = identities(table[i].text, halves[k]);
            assert_gives(net, between, table[i].expected, table[i].text);
            assert_int_equal(form_of(net, net->n - 1), table[i].form);
            release(net);
        }
}

/* Values, weights and deltas, through layers of both kinds: those that choose a form, and those that follow
 * their input. */
TEST(behaviour_32_pinned_layers_run_fp32)
{
#define CHAIN(pin) \
    SMALL_NET POINT(3, pin) "[maxpool]\nsize=2\nstride=1\n" POINT(3, pin) "[activation]\nactivation=leaky\n"
    static const char pinned[] = CHAIN("amp=0\n"), loose[] = CHAIN("");
    static const char learning[] = SMALL_NET POINT(3, "amp=0\n") POINT(3, "amp=0\n") "[cost]\ntype=sse\n";
    const float exact[3] = { between, between, between }, rounded[3] = { 1, 1, 1 },
        large[3] = { 100001, 100001, 100001 };
    for (int k = 0; k < 2; k++) {
        network *net = identities(pinned, halves[k]);
        assert_gives(net, between, exact, "pinned: value");
        assert_gives(net, 100001, large, "pinned: beyond fp16's range");
        for (int c = 0; c < 3; c++) net->layers[0].weights[4 * c] = between;
        darknet_amp_weights_changed(net);
        assert_gives(net, 1, exact, "pinned: weight");
        release(net);
        net = identities(loose, halves[k]);
        assert_gives(net, between, rounded, "not pinned: value");
        release(net);

        net = identities(learning, halves[k]);
        float delta[2 * 48] = { 0 };
        for (int i = 0; i < 2 * 48; i++) {
            net->input[i] = 1;
            net->truth[i] = 1 + between;
        }
        net->delta = delta;
        both_passes(net);
        /* Truth - output, through all layers. */
        for (int i = 0; i < 2 * 48; i++) assert_true(delta[i] == between);
        release(net);
    }
}

/* ---- deltas of a layer with several consumers ---- */

enum { SIDE = 16, IN = 3, MID = 4, BATCH = 2 };

/* Layer 0 is read by Darknet's own fp32 layer (a normalization with alpha 0, which does nothing), by an fp32
 * shortcut, by an fp32 route that reads it twice, and by a route in half. All of it is linear, and the
 * numbers are integers small enough to be exact in bf16. */
static const char shared[] = "[net]\nbatch=2\nwidth=4\nheight=4\nchannels=3\nlearning_rate=0.01\n"
    "max_batches=100\nloss_scale=1\namp=1\n"
    POINT(4, "") "[normalization]\nalpha=0\nkappa=1\nsize=3\n[shortcut]\nfrom=0\nactivation=linear\n"
    "[route]\nlayers=0,2,0\n[route]\nlayers=0\n" POINT(4, "") "[route]\nlayers=3,5\n[cost]\ntype=sse\n";

static void fill_small(float *array, int count, int range, unsigned *seed)
{
    for (int i = 0; i < count; i++) {
        *seed = *seed * 1664525u + 1013904223u;
        array[i] = (float)((int)((*seed >> 20) % (2u * (unsigned)range + 1)) - range);
    }
}

/* In double: the delta that reaches the image at pixel p. image and truth are of one image. The cost's delta
 * is truth - output. */
static void delta_of_pixel(const network *net, const float *image, const float *truth, int p, double out[IN])
{
    const float *first = net->layers[0].weights, *last = net->layers[5].weights;
    double x[MID] = { 0 }, d[MID] = { 0 };
    for (int o = 0; o < MID; o++)
        for (int c = 0; c < IN; c++) x[o] += (double)first[o * IN + c] * image[c * SIDE + p];
    for (int o = 0; o < MID; o++) {
        double own = truth[o * SIDE + p] - x[o], again = truth[(2 * MID + o) * SIDE + p] - x[o];
        double sum = truth[(MID + o) * SIDE + p] - 2 * x[o], through = truth[(3 * MID + o) * SIDE + p];
        for (int c = 0; c < MID; c++) through -= (double)last[o * MID + c] * x[c];
        d[o] += own + again + 2 * sum;
        for (int c = 0; c < MID; c++) d[c] += last[o * MID + c] * through;
    }
    for (int c = 0; c < IN; c++) {
        out[c] = 0;
        for (int o = 0; o < MID; o++) out[c] += (double)first[o * IN + c] * d[o];
        assert_true(fabs(out[c]) <= 256); /* exact in bf16, otherwise this test asks too much */
    }
    for (int o = 0; o < MID; o++) assert_true(fabs(d[o]) <= 256);
}

TEST(behaviour_33_deltas_of_several_consumers_add_up)
{
    for (int k = 0; k < 3; k++) {
        network *net = parse(shared, dtype_names[k]);
        float delta[BATCH * IN * SIDE] = { 0 };
        unsigned seed = 4;
        fill_small(net->layers[0].weights, MID * IN, 1, &seed);
        fill_small(net->layers[5].weights, MID * MID, 1, &seed);
        fill_small(net->input, BATCH * IN * SIDE, 1, &seed);
        fill_small(net->truth, BATCH * 4 * MID * SIDE, 3, &seed);
        darknet_amp_weights_changed(net);
        net->delta = delta;
        both_passes(net);
        assert_int_equal(form_of(net, 0), k ? AMP_FORM_HALF : AMP_FORM_WIDE);
        assert_int_equal(form_of(net, 1), AMP_FORM_PLAIN);
        for (int i = 0; i < BATCH * SIDE; i++) {
            int b = i / SIDE, p = i % SIDE;
            double expected[IN];
            delta_of_pixel(net, net->input + b * IN * SIDE, net->truth + b * 4 * MID * SIDE, p, expected);
            for (int c = 0; c < IN; c++) {
                double got = delta[(b * IN + c) * SIDE + p];
                if (got != expected[c])
                    fail_msg("%s: image %d, channel %d, pixel %d: %g, not %g", dtype_names[k], b, c, p, got,
                             expected[c]);
            }
        }
        release(net);
    }
}

int main(void) { return run_listed_tests("tests", NULL, NULL); }
