/* Measuring between two steps of a training leaves no trace: the training goes on to the same weights, bit
 * for bit, and what is measured is what these weights give. */
#include "testing.h"

#include "commands/map/map_measure.h"
#include "host/network/state.h"

#include <sys/stat.h>
#include <unistd.h>

#include "network.h"
#include "parser.h"
#include "test_folder.h"

static const char cfg[] =
    "[net]\nbatch=4\nsubdivisions=2\nwidth=32\nheight=32\nchannels=3\nlearning_rate=0.0001\nmomentum=0.9\n"
    "max_batches=100\n[amp]\ninit_scale=64\n" /* fp16 skips nothing */
    "[convolutional]\nbatch_normalize=1\nfilters=8\nsize=3\nstride=1\npad=1\nactivation=leaky\n"
    "[maxpool]\nsize=2\nstride=2\n"
    "[convolutional]\nbatch_normalize=1\nfilters=8\nsize=3\nstride=1\npad=1\nactivation=leaky\n"
    "[dropout]\nprobability=.2\n"
    "[shortcut]\nfrom=-3\nactivation=leaky\n"
    "[convolutional]\nfilters=14\nsize=1\nstride=1\nactivation=linear\n"
    "[yolo]\nmask=0,1\nanchors=8,8, 16,16\nclasses=2\nnum=2\n"
    "[route]\nlayers=-3\n"
    "[upsample]\nstride=2\n"
    "[convolutional]\nfilters=14\nsize=1\nstride=1\nactivation=linear\n"
    "[yolo]\nmask=0,1\nanchors=8,8, 16,16\nclasses=2\nnum=2\n";

enum { IMAGES = 3, SIDE = 40 };

/* In an empty folder: images/N.ppm with labels. */
static int set_up(void **state)
{
    char name[64], label[] = "0 .5 .5 .5 .5\n1 .25 .25 .25 .25\n", list[256] = "";
    unsigned char picture[13 + 3 * SIDE * SIDE] = "P6\n40 40\n255\n";
    if (enter_folder(state) || mkdir("images", 0700) || mkdir("labels", 0700)) return -1;
    for (int n = 0; n < IMAGES; n++) {
        for (size_t i = 13; i < sizeof picture; i++)
            picture[i] = (unsigned char)((i * (size_t)(n + 3)) % 251);
        snprintf(name, sizeof name, "images/%d.jpg", n); /* whatever it is, Darknet looks inside */
        put_bytes(name, picture, sizeof picture);
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s\n", name);
        snprintf(name, sizeof name, "labels/%d.txt", n);
        put_file(name, label);
    }
    put_file("valid.txt", list);
    put_file("my.data", "valid = valid.txt\n");
    put_file("my.cfg", cfg);
    return 0;
}

static network *made(const char *dtype)
{
    char *argv[] = {"darknet", "-amp", (char *)dtype, NULL};
    darknet_amp_start(3, argv);
    srand(1);
    network *net = parse_network_cfg("my.cfg");
    assert_int_equal(net->amp != NULL, strcmp(dtype, "off") != 0);
    /* Darknet's start at 0, which fp16 divides by and overflows. */
    for (int i = 0; i < net->n; i++)
        for (int k = 0; net->layers[i].batch_normalize && k < net->layers[i].n; k++)
            net->layers[i].rolling_variance[k] = 1;
    if (net->amp) darknet_amp_weights_changed(net);
    return net;
}

static void unmake(network *net)
{
    void *left[] = {net->workspace, net->seen, net->t, net->cost};
    free_network(net);
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) free(left[i]);
}

static void train(network *net, int steps)
{
    for (int n = 0; n < steps * net->subdivisions; n++) {
        int number = (int)*net->seen + 3; /* of the batch: a training in two parts sees the same ones */
        for (int i = 0; i < net->inputs * net->batch; i++) net->input[i] = (float)((i * number) % 97) / 97;
        memset(net->truth, 0, sizeof(float) * (size_t)net->truths * (size_t)net->batch);
        for (int b = 0; b < net->batch; b++) {
            float box[5] = {.5f, .4f, .3f, .2f, (float)(b % 2)};
            memcpy(net->truth + b * net->truths, box, sizeof box);
        }
        train_network_datum(net);
    }
}

static amp_map_score measured(network *net, size_t *detections)
{
    amp_error error = {0};
    amp_detection_data data;
    amp_map_result result;
    amp_map_request request = amp_map_usual_request();
    if (amp_detection_data_read("my.data", &data, &error) != AMP_OK ||
        amp_map_measure(net, &data, &request, &result, &error) != AMP_OK) fail_msg("%s", error.message);
    assert_int_equal(result.evaluated.images, IMAGES);
    assert_int_equal(result.objects, 2 * IMAGES);
    amp_map_score score = result.total;
    *detections = result.detections;
    amp_map_result_free(&result);
    amp_detection_data_free(&data);
    return score;
}

static void assert_same_weights(const network *a, const network *b)
{
    for (int i = 0; i < a->n; i++) {
        const layer *l = &a->layers[i], *m = &b->layers[i];
        if (l->type != CONVOLUTIONAL) continue;
        assert_memory_equal(l->weights, m->weights, (size_t)l->nweights * sizeof(float));
        assert_memory_equal(l->biases, m->biases, (size_t)l->n * sizeof(float));
        if (!l->batch_normalize) continue;
        assert_memory_equal(l->scales, m->scales, (size_t)l->n * sizeof(float));
        assert_memory_equal(l->rolling_mean, m->rolling_mean, (size_t)l->n * sizeof(float));
        assert_memory_equal(l->rolling_variance, m->rolling_variance, (size_t)l->n * sizeof(float));
    }
}

static void leaves_no_trace(const char *dtype)
{
    size_t found = 0, found_again = 0;
    network *alone = made(dtype);
    train(alone, 6);
    network *watched = made(dtype);
    measured(watched, &found);
    train(watched, 3);
    measured(watched, &found);
    train(watched, 3);
    amp_map_score last = measured(watched, &found);
    assert_int_equal(watched->batch, 2);
    assert_int_equal(*watched->seen, *alone->seen);
    assert_same_weights(alone, watched);

    save_weights(alone, "now.weights");
    unmake(alone);
    network *loaded = made(dtype);
    load_weights(loaded, "now.weights");
    amp_map_score again = measured(loaded, &found_again);
    assert_true(found > 0);
    assert_int_equal(found, found_again);
    assert_true(last.map50 == again.map50 && last.map50_95 == again.map50_95
                && last.average_iou == again.average_iou);
    assert_int_equal(last.true_positives + last.false_positives,
                     again.true_positives + again.false_positives);
    unmake(loaded);
    unmake(watched);
}

TEST(leaves_no_trace_in_stock) { leaves_no_trace("off"); }
TEST(leaves_no_trace_in_fp32) { leaves_no_trace("fp32"); }
TEST(leaves_no_trace_in_bf16) { leaves_no_trace("bf16"); }
TEST(leaves_no_trace_in_fp16) { leaves_no_trace("fp16"); }

int main(void)
{
    gpu_index = -1;
    return run_listed_tests("tests", set_up, leave_folder);
}
