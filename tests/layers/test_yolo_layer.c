/* The yolo layer under AMP: the training is stock's, line for line; and no unused array of its size is kept
 * or written. */
#define _DEFAULT_SOURCE /* mkstemps */
#include "testing.h"

#include <sys/types.h>

#include "engine_testing.h"
#include "listening.h"

/* Stock's backward of a 1×1 convolution overwrites what other layers have added to its input's delta. */
#define PLAIN(filters) "[convolutional]\nfilters=" #filters "\nsize=3\nstride=1\npad=1\nactivation=linear\n"
#define YOLO_KEYS "anchors=3,4, 8,7, 14,10\nclasses=3\nnum=3\nignore_thresh=.4\n"
#define HEADS NET("%s") CONV(8, "") "[maxpool]\nsize=2\nstride=2\n" CONV(8, "") PLAIN(16)   \
    "[yolo]\nmask=1,2\n" YOLO_KEYS "%s"                                                     \
    "[route]\nlayers=-3\n[upsample]\nstride=2\n[route]\nlayers=-1,0\n" CONV(6, "") PLAIN(8) \
    "[yolo]\nmask=0\n" YOLO_KEYS "%s"
enum { FIRST = 4, LAST = 10 };

static network *heads(const char *net_keys, const char *yolo_keys, const char *dtype)
{
    char text[4096];
    snprintf(text, sizeof text, HEADS, net_keys, yolo_keys, yolo_keys);
    return parse(text, dtype);
}

static void feed_boxes(network *net, unsigned seed)
{
    feed(net, seed);
    for (int b = 0; b < net->batch; b++) {
        float *truth = net->truth + (size_t)b * (size_t)net->truths;
        memset(truth + 15, 0, ((size_t)net->truths - 15) * sizeof *truth);
        for (int k = 0; k < 3; k++) truth[5 * k + 4] = (float)((b + k) % 3);
    }
}

static void train(network *net, unsigned seed)
{
    for (int s = 0; s < net->subdivisions; s++) {
        feed_boxes(net, seed + (unsigned)s);
        train_network_datum(net);
    }
}

/* What the step prints to stdout; the caller's. */
static char *printed_by(network *net, unsigned seed)
{
    heard h = listen_to(1);
    train(net, seed);
    return end_listening(h);
}

/* Asserts the same letters, and numbers that are close: %f has six digits. */
static void assert_same_lines(const char *ours, const char *stock)
{
    const char *a = ours, *b = stock;
    while (*a && *b) {
        char *a_end, *b_end;
        double x = strtod(a, &a_end), y = strtod(b, &b_end);
        int numbers = a_end > a && b_end > b;
        if (numbers ? !(fabs(x - y) < 2e-5 || (isnan(x) && isnan(y))) : *a != *b) break;
        a = numbers ? a_end : a + 1;
        b = numbers ? b_end : b + 1;
    }
    if (*a || *b) fail_msg("AMP prints\n%swhere Darknet prints\n%s", ours, stock);
}

/* ---- as stock ---- */

static void yolo_trains_and_prints_as_stock(const char *keys, const char *yolo_keys)
{
    network *stock = heads("", yolo_keys, "off"), *ours = heads(keys, yolo_keys, "fp32");
    copy_weights(stock, ours);
    for (unsigned i = 0; i < 4; i++) {
        char *theirs = printed_by(stock, 10 * i), *mine = printed_by(ours, 10 * i);
        assert_same_lines(mine, theirs);
        free(theirs), free(mine);
        for (int k = FIRST; k <= LAST; k += LAST - FIRST)
            assert_true(fabsf(*ours->layers[k].cost - *stock->layers[k].cost) <=
                        1e-4f * *stock->layers[k].cost);
        assert_true(fabsf(*ours->cost - *stock->cost) <= 1e-4f * *stock->cost);
    }
    assert_int_equal(ours->amp->steps, 4);
    assert_masters_near(ours, stock, 1e-4);
    release(stock);
    release(ours);
}

TEST(yolo_agrees_with_stock)
{
    yolo_trains_and_prints_as_stock("", "");
    yolo_trains_and_prints_as_stock("amp=1\nloss_scale=64\n", "");
    yolo_trains_and_prints_as_stock("amp=1\nloss_scale=64\n", "truth_thresh=.5\n");
}

/* Six numbers of a head without labels are printed as "-nan", as in Darknet. */
TEST(yolo_without_labels_prints_as_stock)
{
    network *nets[2] = { heads("", "", "off"), heads("", "", "fp32") };
    char *text[2];
    copy_weights(nets[0], nets[1]);
    for (int k = 0; k < 2; k++) {
        nets[k]->layers[FIRST].max_boxes = nets[k]->layers[LAST].max_boxes = 0;
        text[k] = printed_by(nets[k], 3);
    }
    assert_non_null(strstr(text[1], "Region 4 Avg IOU: -nan, Class: -nan, Obj: -nan, No Obj: 0."));
    assert_non_null(strstr(text[1], ", .5R: -nan, .75R: -nan,  count: 0\nRegion 10 Avg"));
    assert_same_lines(text[1], text[0]);
    for (int k = 0; k < 2; k++) free(text[k]), release(nets[k]);
}

/* Stock adds this layer's delta to those from its readers. */
TEST(a_yolo_that_other_layers_read_trains_as_stock)
{
    static const char text[] = NET("amp=1\nloss_scale=16\n") CONV(8, "") PLAIN(16) "[yolo]\nmask=1,2\n"
        YOLO_KEYS CONV(4, "")
        "[route]\nlayers=-1,-2\n" PLAIN(8) "[yolo]\nmask=0\n" YOLO_KEYS
        "[route]\nlayers=1\n[yolo]\nmask=0,1\n" YOLO_KEYS;
    network *stock = parse(text, "off"), *ours = parse(text, "fp32");
    copy_weights(stock, ours);
    for (unsigned i = 0; i < 3; i++) {
        train(stock, 10 * i);
        train(ours, 10 * i);
    }
    assert_int_equal(ours->amp->steps, 3);
    assert_masters_near(ours, stock, 1e-4);
    release(stock);
    release(ours);
}

TEST(yolo_with_a_map_of_classes_is_darknets_own)
{
    char name[] = "/tmp/map-XXXXXX", keys[64];
    int file = mkstemp(name);
    assert_true(file >= 0 && write(file, "2\n0\n1\n", 6) == 6 && close(file) == 0);
    snprintf(keys, sizeof keys, "map=%s\n", name);
    network *ours = heads("", keys, "bf16");
    yolo_trains_and_prints_as_stock("", keys);
    train(ours, 1);
    assert_int_equal(form_of(ours, FIRST), AMP_FORM_PLAIN);
    unlink(name);
    release(ours);
}

/* ---- memory ---- */

static void assert_no_buffers(const network *net)
{
    for (int i = 0; i < net->n; i++)
        if (net->layers[i].output || net->layers[i].delta) fail_msg("layer %d keeps fp32 buffers", i);
}

static double output_distance(const layer *a, const layer *b)
{
    return relative_distance(a->output, b->output, (size_t)(b->outputs * b->batch));
}

/* Boxes are read from all heads after inference. */
TEST(yolo_keeps_no_buffers_in_training)
{
    network *stock = heads("", "", "off"), *ours = heads("", "", "fp32");
    copy_weights(stock, ours);
    for (unsigned i = 0; i < 2; i++) {
        train(ours, 10 * i);
        train(stock, 10 * i);
        assert_no_buffers(ours);
        assert_null(ours->output);
        assert_true(predicted_distance(ours, stock, 7) < 1e-4);
        assert_true(output_distance(&ours->layers[FIRST], &stock->layers[FIRST]) < 1e-4);
        assert_true(output_distance(&ours->layers[LAST], &stock->layers[LAST]) < 1e-4);
        assert_null(ours->layers[FIRST - 1].output);
    }
    release(stock);
    release(ours);
}

TEST(a_head_reads_and_learns_in_the_form_of_its_input)
{
    network *half = heads("", "", "bf16"), *pinned = heads("", "amp=0\n", "bf16");
    train(half, 1);
    train(pinned, 1);
    assert_int_equal(form_of(half, FIRST), AMP_FORM_HALF);
    assert_int_equal(form_of(pinned, FIRST), AMP_FORM_WIDE);
    assert_int_equal(made_delta(half, LAST).dtype, AMP_BF16);
    release(half);
    release(pinned);
}

/* One step with this bias for number `entry` of every box of the first head. */
static void train_with_bias(network *net, unsigned seed, int entry, float bias)
{
    float *biases = net->layers[FIRST - 1].biases, was[16];
    memcpy(was, biases, sizeof was);
    for (int box = 0; box < 2; box++) biases[8 * box + entry] = bias;
    train(net, seed);
    memcpy(biases, was, sizeof was);
    assert_true(isnan(*net->layers[FIRST].cost));
}

/* The gradients decide, as in GradScaler. The delta of a width beyond fp16 is inf: the step is skipped. That
 * of an objectness beyond fp16, whose logistic is 1, is at most 1: the step is taken. */
TEST(yolos_that_overflow_skip_the_step_if_their_gradients_do)
{
    network *net = heads("amp=1\nloss_scale=64\n", "", "fp16");
    train(net, 1);
    kept_state before = snapshot(net);
    train_with_bias(net, 2, 2, 1e6f);
    assert_int_equal(net->amp->skipped, 1);
    assert_true(is_as_before(net, before));
    before = snapshot(net);
    train_with_bias(net, 2, 4, 1e6f);
    assert_int_equal(net->amp->skipped, 1);
    assert_false(is_as_before(net, before));
    train(net, 3);
    assert_int_equal(net->amp->skipped, 1);
    assert_true(isfinite(*net->layers[FIRST].cost) && isfinite(*net->layers[LAST].cost));
    release(net);
}

int main(void) { return run_listed_tests("tests", NULL, NULL); }
