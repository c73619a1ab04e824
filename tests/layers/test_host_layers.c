/* What the host room does around Darknet's own fp32 layers and its parser: buffers that stock forgets, the
 * workspace, dropout, AMP's keys in a .cfg, and what cannot run and is rejected. */
#define _DEFAULT_SOURCE /* mkstemps */
#include "testing.h"

#include <unistd.h>

#include "engine_testing.h"
#include "child.h"
#include "listening.h"

/* ---- errors that end the process: each in its own, since OpenMP's threads do not survive a fork ---- */

static int cut_network(void)
{
    network *net = parse_branched("", "", "bf16");
    net->n = 3;
    feed(net, 1);
    network_predict(net, net->input);
    return 0;
}

static const char with_own_layer[] = "[net]\nbatch=2\nwidth=8\nheight=8\nchannels=3\n"
    "[convolutional]\nbinary=1\nfilters=2\nsize=3\nstride=1\npad=1\nactivation=leaky\n[cost]\n";

static int grow_batch(void)
{
    network *net = parse(with_own_layer, "bf16");
    float *images = calloc((size_t)net->inputs * 4, sizeof *images);
    set_batch_network(net, 2);
    network_predict(net, images);
    fprintf(stderr, "as parsed: fine\n");
    set_batch_network(net, 4);
    network_predict(net, images);
    return 0;
}

/* Stock asserts in its first forward pass. */
static int join_unfit(void)
{
    parse("[net]\nbatch=2\nwidth=12\nheight=8\nchannels=3\n[maxpool]\nsize=2\nstride=2\npadding=0\n"
          "[maxpool]\nsize=2\nstride=3\npadding=1\n[shortcut]\nfrom=0\nactivation=linear\n[cost]\n", "fp32");
    return 0;
}

/* What this program does with the name as its argument, and the end of what it says. */
static const struct { const char *name; int (*run)(void); const char *message; } refusals[] = {
    { "cut", cut_network, "amp: this command cuts the network to 3 of its 7 layers; run it with -amp off" },
    { "grow", grow_batch, "as parsed: fine\nlayer 0: the batch grew from 2 to 4" },
    { "unfit", join_unfit, "from = 0: layer 0 outputs 6x4, but the layer before this one outputs 2x2; "
                           "these sizes cannot be added" },
};

TEST(what_cannot_run_ends_the_program_with_a_line)
{
    char said[16384];
    for (size_t i = 0; i < COUNT(refusals); i++) {
        const char *const arguments[] = { "test_host_layers", refusals[i].name, NULL };
        int status = this_program_again(arguments, said, sizeof said);
        if (status != 1 || !strstr(said, refusals[i].message))
            fail_msg("%s: status %d, no \"%s\" in: %s", refusals[i].name, status, refusals[i].message, said);
    }
}

/* ---- buffers ---- */

TEST(the_workspace_grows_with_a_resize)
{
    static const char text[] = NET("") CONV(4, "") CONV(6, "binary=1\n") TAIL;
    network *stock = parse(text, "off"), *ours = parse(text, "fp32");
    copy_weights(stock, ours);
    for (int side = 16; side <= 64; side *= 2) {
        resize_network(stock, side, side);
        resize_network(ours, side, side);
        assert_true(predicted_distance(ours, stock, 3) < 1e-4);
        assert_true(ours->amp->memory->workspace_bytes >= ours->layers[1].workspace_size);
        assert_non_null(ours->amp->memory->workspace);
    }
    release(stock);
    release(ours);
}

/* Stock's dropout does nothing and draws nothing at inference; the next training drops the same elements. */
TEST(dropout_rests_at_inference_between_trainings)
{
    static const char text[] = NET("") CONV(6, "") "[dropout]\nprobability=.5\n" CONV(4, "")
        "[dropout]\nprobability=.3\n" TAIL;
    network *stock = parse(text, "off"), *ours = parse(text, "fp32"), *both[2] = { stock, ours };
    copy_weights(stock, ours);
    assert_true(predicted_distance(ours, stock, 2) < 1e-4);
    for (unsigned i = 0; i < 4; i++) {
        int next[2];
        for (int k = 0; k < 2; k++) {
            srand(20 + i);
            train_step(both[k], 10 * i);
            feed(both[k], 5);
            network_predict(both[k], both[k]->input);
            next[k] = rand();
        }
        assert_int_equal(next[0], next[1]);
        assert_true(predicted_distance(ours, stock, 6) < 1e-4);
    }
    assert_masters_near(ours, stock, 1e-4);
    release(stock);
    release(ours);
}

/* ---- which layers are native ---- */

/* Options that a kind does not support are never ignored: Darknet's own code runs the layer. */
TEST(a_layer_with_an_unknown_option_is_darknets_own)
{
#define CONVOLUTION .type = CONVOLUTIONAL, .batch_normalize = 1, .n = 8, .size = 3, .stride = 1, .pad = 1, \
    .groups = 2, .learning_rate_scale = 1, .clip = 1, .truth = 1, .dontload = 1, .smooth = .1f
#define POOL .type = MAXPOOL, .stride = 2, .learning_rate_scale = 1
#define DETECTOR .type = YOLO, .classes = 2, .n = 3, .max_boxes = 90, .jitter = .3f, .ignore_thresh = .7f
    static layer sub;
    static int map;
    static const char no_activation[] = "an activation that AMP does not know";
    const struct { const amp_layer_ops *kind; const char *why; layer l; } table[] = {
        { &amp_convolutional_ops, NULL, { CONVOLUTION, .activation = LEAKY } },
        { &amp_maxpool_ops, NULL, { POOL, .size = 2 } },
        { &amp_yolo_ops, NULL, { DETECTOR, .total = 6 } },
        { AMP_LAYER_HOST, "dot is set", { CONVOLUTION, .activation = LEAKY, .dot = .5f } },
        { AMP_LAYER_HOST, "xnor is set", { CONVOLUTION, .activation = LEAKY, .xnor = 1 } },
        /* like a fork's antialiasing */
        { AMP_LAYER_HOST, "input_layer is set", { CONVOLUTION, .activation = LEAKY, .input_layer = &sub } },
        { AMP_LAYER_HOST, no_activation, { CONVOLUTION, .activation = SELU + 1 } },
        { AMP_LAYER_HOST, no_activation, { CONVOLUTION, .activation = (ACTIVATION)-1 } },
        { AMP_LAYER_HOST, "activation is set", { POOL, .size = 2, .activation = RELU } },
        { AMP_LAYER_HOST, "batch_normalize is set", { POOL, .size = 2, .batch_normalize = 1 } },
        { AMP_LAYER_HOST, "window above 15", { POOL, .size = 16 } },
        { AMP_LAYER_HOST, "map is set", { DETECTOR, .total = 6, .map = &map } },
        { AMP_LAYER_HOST, "onlyforward is set", { DETECTOR, .total = 6, .onlyforward = 1 } },
        { AMP_LAYER_HOST, "more than 32 anchors", { DETECTOR, .total = 33 } },
        { AMP_LAYER_HOST, "downsamples (stride < 0)", { .type = UPSAMPLE, .stride = 2, .reverse = 1 } },
        { AMP_LAYER_HOST, "Darknet's own fp32 code", { .type = BLANK + 1 } },
        { AMP_LAYER_HOST, "Darknet's own fp32 code", { .type = (LAYER_TYPE)-1 } } };
    for (size_t i = 0; i < COUNT(table); i++) {
        const layer *l = &table[i].l;
        if (amp_host_kind_of(l) != table[i].kind) fail_msg("row %zu: another kind", i);
        assert_int_equal(amp_host_is_native(l), !table[i].why);
        if (table[i].why) assert_string_equal(amp_host_why_own(l), table[i].why);
    }
    assert_string_equal(amp_host_type_name(BLANK + 1), "layer");
}

/* ---- .cfg ---- */

/* Darknet warns about keys that nothing has read; AMP's are removed before. A key that nothing reads is still
 * reported. */
TEST(amps_keys_are_not_called_unused)
{
    static const char text[] = NET("amp=1\ndtype=fp16\nloss_scale=dynamic\ninit_scale=512\n")
        CONV(4, "amp=0\nnonsense=3\n") TAIL
        "[amp]\namp=1\ndtype=bf16\ngrowth_interval=7\nclip_norm=3\n";
    heard h = listen_to(2);
    network *net = parse(text, NULL);
    char *said = end_listening(h);
    const char *unused = strstr(said, "Unused field");
    assert_non_null(unused);
    assert_int_equal(strncmp(unused, "Unused field: 'nonsense = 3'", 28), 0);
    if (strstr(unused + 1, "Unused field")) fail_msg("a key of AMP's is called unused: %s", said);
    assert_int_equal(net->n, 3); /* [amp] is not a layer */
    assert_non_null(net->amp);
    free(said);
    release(net);
}

int main(int argc, char **argv)
{
    for (size_t i = 0; i < COUNT(refusals); i++)
        if (argc > 1 && !strcmp(argv[1], refusals[i].name)) return refusals[i].run();
    return run_listed_tests("tests", NULL, NULL);
}
