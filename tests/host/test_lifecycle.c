/* A network's whole life, in every precision: train, resize, train, predict one image, train on, free.
 * What is looked for is a crash, a number that is not finite, and, in a build with sanitizers, an access
 * out of bounds or a leak. */
#define _DEFAULT_SOURCE /* mkstemps */
#include "testing.h"

#include "engine_testing.h"

/* With the usual scale fp16 skips the first steps, and by statistics that have not moved nothing finite is
 * predicted. */
static const char cfg[] =
    "[net]\nbatch=4\nsubdivisions=2\nwidth=64\nheight=64\nchannels=3\n"
    "learning_rate=0.001\nmomentum=0.9\nmax_batches=100\n"
    "[amp]\ninit_scale=256\n" CONV(8, "")
    "[maxpool]\nsize=2\nstride=2\n"
    "[convolutional]\nbatch_normalize=1\nfilters=16\nsize=3\nstride=2\npad=1\nactivation=leaky\n"
    "[convolutional]\nfilters=16\nsize=1\nstride=1\nactivation=linear\n"
    "[shortcut]\nfrom=-2\nactivation=leaky\n"
    "[convolutional]\nfilters=21\nsize=1\nstride=1\nactivation=linear\n"
    "[yolo]\nmask=3,4,5\nanchors=4,5, 8,8, 12,14, 14,12, 20,20, 28,30\nclasses=2\nnum=6\n"
    "[route]\nlayers=-3\n"
    "[upsample]\nstride=2\n"
    "[route]\nlayers=-1,1\n"
    "[convolutional]\nfilters=21\nsize=3\nstride=1\npad=1\nactivation=linear\n"
    "[yolo]\nmask=0,1,2\nanchors=4,5, 8,8, 12,14, 14,12, 20,20, 28,30\nclasses=2\nnum=6\n";

static void train(network *net, int steps)
{
    for (int step = 0; step < steps * net->subdivisions; step++) {
        for (int i = 0; i < net->inputs * net->batch; i++) net->input[i] = (float)(i % 97) / 97;
        memset(net->truth, 0, sizeof(float) * (size_t)net->truths * (size_t)net->batch);
        for (int b = 0; b < net->batch; b++) {
            float box[5] = { .5f, .4f, .3f, .2f, (float)(b % 2) };
            memcpy(net->truth + b * net->truths, box, sizeof box);
        }
        assert_true(isfinite(train_network_datum(net)));
    }
}

static void predict_one(network *net)
{
    int batch = net->batch;
    float *image = malloc(sizeof(float) * (size_t)net->inputs);
    assert_non_null(image);
    for (int i = 0; i < net->inputs; i++) image[i] = (float)(i % 89) / 89;
    set_batch_network(net, 1);
    float *output = network_predict(net, image);
    for (int i = 0; i < net->outputs; i++) assert_true(isfinite(output[i]));
    set_batch_network(net, batch);
    free(image);
}

static network *made(const char *dtype)
{
    network *net = parse(cfg, dtype);
    assert_int_equal(net->amp != NULL, strcmp(dtype, "off") != 0);
    return net;
}

static void live(const char *dtype)
{
    network *net = made(dtype);
    float before = net->layers[0].weights[0];
    train(net, 3);
    resize_network(net, 96, 96);
    train(net, 2);
    predict_one(net);
    train(net, 1);
    resize_network(net, 64, 64);
    train(net, 6);
    predict_one(net);
    assert_true(net->layers[0].weights[0] != before);

    release(net);
}

/* No layer of this network is Darknet's own: none has fp32 buffers while no pass has asked for them. */
static void assert_trimmed(const network *net)
{
    for (int i = 0; i < net->n; i++) {
        const layer *l = &net->layers[i];
        int buffers = (l->output != NULL) + (l->delta != NULL) + (l->x != NULL) + (l->x_norm != NULL) +
            (l->indexes != NULL);
        assert_int_equal(buffers, 0);
        assert_int_equal(l->workspace_size, 0);
    }
    assert_null(net->workspace);
}

/* Given back layer by layer: a network that fits only under AMP can be made, and resized. */
TEST(stock_buffers_are_gone_before_the_first_step)
{
    network *net = made("bf16");
    assert_trimmed(net);
    train(net, 1);
    resize_network(net, 96, 96);
    assert_trimmed(net);
    train(net, 1);
    release(net);
    net = made("off");
    assert_true(net->layers[0].output && net->layers[0].x && net->layers[1].indexes && net->workspace);
    release(net);
}

TEST(lives_without_amp) { live("off"); }
TEST(lives_in_fp32) { live("fp32"); }
TEST(lives_in_bf16) { live("bf16"); }
TEST(lives_in_fp16) { live("fp16"); }

int main(void)
{
    gpu_index = -1;
    return run_listed_tests("tests", NULL, NULL);
}
