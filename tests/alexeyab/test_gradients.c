/* AlexeyAB's Darknet under AMP, and hank-ai's: is what a network learns minus the slope of its loss? Each
 * network ends with softmax, whose loss is exact; it trains in fp32 at a learning rate of 0 and a momentum of
 * 1, so that after a step Darknet's weight_updates hold the sum of the images' gradients, and no weight has
 * moved.
 *
 * Networks are written a section a line, as tests/cfg has them. */
#include <malloc.h>
#include <math.h>

#include "finite_differences.h"
#include "testing.h"
#include "test_folder.h"

#include "darknet.h"
#include "network.h"
#include "parser.h"

enum { BATCH = 3, SIDE = 6, CLASSES = 3 };

/* Layers that hank-ai's Darknet has no more, and what stands there instead. */
#ifdef DARKNET_AMP_HANK_AI
#define ALEXEYABS(layers, instead) instead
#else
#define ALEXEYABS(layers, instead) layers
#endif

static const char beginning[] = "[net] batch=3 subdivisions=1 width=6 height=6 channels=3 learning_rate=0 "
                                "momentum=1 decay=0 max_batches=1 [amp] dtype=fp32 ",
                  in_time[] = "[net] batch=1 time_steps=3 width=6 height=6 channels=3 learning_rate=0 "
                              "momentum=1 decay=0 max_batches=1 [amp] dtype=fp32 ",
                  ending[] = " [convolutional] filters=3 size=1 activation=linear [avgpool] [softmax]";

typedef struct subject {
    network net;
    float x[BATCH * SIDE * SIDE * 3], truth[BATCH * CLASSES];
} subject;

static network network_of(const char *format, ...)
{
    char text[2000];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    for (char *c = text; *c; c++)
        if (*c == ' ') *c = '\n';
    put_anew("net.cfg", text);
    return parse_network_cfg("net.cfg");
}

static int weights_in(const layer *l)
{
    if (l->type == CONNECTED) return l->inputs * l->outputs; /* whose nweights is 0 */
    return l->type == LOCAL ? l->size * l->size * l->c * l->n * l->out_w * l->out_h : l->nweights;
}

/* The layers that hold what a layer learns: three of a crnn, else itself. */
enum { MOST_PARTS = 3 };
static int parts_of(layer *l, layer *parts[MOST_PARTS])
{
    layer *const inner[MOST_PARTS] = { l->input_layer, l->self_layer, l->output_layer };
    parts[0] = l;
    if (l->type == CRNN) memcpy(parts, inner, sizeof inner);
    return l->type == CRNN ? MOST_PARTS : 1;
}

static void draw_weights(layer *l)
{
    layer *parts[MOST_PARTS];
    for (int p = parts_of(l, parts) - 1; p >= 0; p--)
        for (int k = 0; parts[p]->weights && k < weights_in(parts[p]); k++)
            parts[p]->weights[k] = l->type == SHORTCUT ? uniform(.5f, 1.5f) : uniform(-.6f, .6f);
}

static subject subject_of(const char *net, const char *layers)
{
    subject s = { .net = network_of("%s%s%s", net, layers, ending) };
    srand(7);
    for (size_t i = 0; i < COUNT(s.x); i++) s.x[i] = uniform(-1, 1);
    for (int i = 0; i < BATCH * CLASSES; i++) s.truth[i] = i % CLASSES == i / CLASSES;
    for (int i = 0; i < s.net.n; i++) draw_weights(&s.net.layers[i]);
    return s;
}

/* The sum over the images, of a step that leaves no trace but in weight_updates. */
static double sum_of_losses(subject *s)
{
    const layer *last = &s->net.layers[s->net.n - 1];
    double loss = 0;
    train_network_datum(s->net, s->x, s->truth);
    ++*s->net.cur_iteration;
    update_network(s->net);
    for (int i = 0; i < BATCH * CLASSES; i++) loss += last->loss[i];
    return loss;
}

/* Of the differences. Over time steps the loss bends more than in the other networks. */
static float h = 1.f / 32;

enum { MOST_ARRAYS = 3 * MOST_PARTS };
typedef struct array { const char *name; float *values, *updates, *first; int count; } array;

/* What a layer without others inside it learns. Batch norm on the CPU takes its variance over n - 1, so that
 * what it passes on is near the gradient and no more: below it there is nothing to look at. */
static int arrays_of_part(const layer *l, array found[3])
{
    int flat = l->type == LOCAL || l->type == CONNECTED;
    int n = 0, channels = flat ? l->outputs : l->type == BATCHNORM ? l->c : l->n;
    const array all[] = { { "weights", l->weights, l->weight_updates, NULL, weights_in(l) },
                          { "biases", l->biases, l->bias_updates, NULL, channels },
                          { "scales", l->scales, l->scale_updates, NULL, channels } };
    for (int k = l->type == CONVOLUTIONAL && l->batch_normalize; k < 3; k++)
        if (all[k].updates) found[n++] = all[k];
    return n;
}

static int arrays_of(layer *l, array found[MOST_ARRAYS])
{
    layer *parts[MOST_PARTS];
    int n = 0, count = parts_of(l, parts);
    for (int p = 0; p < count; p++) n += arrays_of_part(parts[p], found + n);
    return n;
}

/* Of the largest slope. What comes back through Darknet's batch norm is half a percent off at 36 numbers a
 * channel: its formulas take the variance over N-1 and N, and two epsilons. */
static double bound = 1e-3;

/* `updates` hold minus the gradient, and go on adding up: `first` are the first step's. */
static void check_array(subject *s, int index, const array *a)
{
    double largest = 0, slopes[a->count];
    for (int k = 0; k < a->count; k++) {
        slopes[k] = slope_at(s, sum_of_losses, &a->values[k], h);
        if (fabs(slopes[k]) > largest) largest = fabs(slopes[k]);
    }
    if (!(largest > 1e-3)) fail_msg("layer %d, %s: no gradient to look at", index, a->name);
    for (int k = 0; k < a->count; k++)
        if (!(fabs(a->first[k] + slopes[k]) < bound * largest))
            fail_msg("layer %d, %s[%d]: minus the gradient is %g, by differences %g", index, a->name, k,
                     a->first[k], -slopes[k]);
}

static void check_network_of(const char *net, const char *layers)
{
    subject s = subject_of(net, layers);
    array arrays[s.net.n][MOST_ARRAYS];
    int counts[s.net.n];
    sum_of_losses(&s);
    for (int i = 0; i < s.net.n; i++) {
        counts[i] = arrays_of(&s.net.layers[i], arrays[i]);
        for (int k = 0; k < counts[i]; k++) {
            array *a = &arrays[i][k];
            a->first = malloc((size_t)a->count * sizeof *a->first);
            assert_non_null(a->first);
            memcpy(a->first, a->updates, (size_t)a->count * sizeof *a->first);
        }
    }
    for (int i = 0; i < s.net.n; i++)
        for (int k = 0; k < counts[i]; k++) {
            check_array(&s, i, &arrays[i][k]);
            free(arrays[i][k].first);
        }
    free_network(s.net);
}

static void check_network(const char *layers) { check_network_of(beginning, layers); }

#define CONV(more) "[convolutional] size=3 pad=1 " more " "
#define THREE CONV("filters=4 activation=tanh") CONV("filters=4 activation=logistic") \
    CONV("filters=4 activation=tanh")

TEST(shortcuts)
{
    check_network(THREE "[shortcut] from=-2 activation=linear");
    check_network(THREE "[shortcut] from=-2,-3 activation=swish");
    check_network(CONV("filters=6 activation=tanh") CONV("filters=2 activation=tanh")
                  CONV("filters=4 activation=tanh") "[shortcut] from=-2,-3 activation=mish");
}

TEST(shortcuts_with_weights)
{
    check_network(THREE "[shortcut] from=-2,-3 weights_type=per_feature weights_normalization=relu "
                        "activation=tanh");
    check_network(THREE "[shortcut] from=-3 weights_type=per_channel weights_normalization=relu "
                        "activation=mish");
    check_network(THREE "[shortcut] from=-2,-3 weights_type=per_channel weights_normalization=softmax "
                        "activation=linear");
    check_network(CONV("filters=6 activation=tanh") CONV("filters=2 activation=tanh")
                  CONV("filters=4 activation=tanh")
                  "[shortcut] from=-2,-3 weights_type=per_feature weights_normalization=softmax "
                  "activation=swish");
}

TEST(convolutions_that_share_weights)
{
    check_network(CONV("filters=4 activation=tanh") CONV("filters=4 activation=tanh")
                  CONV("filters=4 activation=swish share_index=-1") CONV("filters=2 activation=tanh")
                  "[route] layers=-1,-2,-1 [route] layers=-1 groups=2 "
                  CONV("filters=4 activation=linear dilation=2 share_index=1"));
}

TEST(scales_and_biases_of_batch_norm)
{
    check_network(ALEXEYABS("[batchnorm] ", "") CONV("filters=4 activation=tanh"));
    check_network(CONV("filters=4 activation=mish batch_normalize=1") CONV("filters=4 activation=tanh"));
}

/* Three time steps of one image each; hank-ai's own code moves the pointers of the layers inside. */
TEST(crnn)
{
    h = 1.f / 64;
    check_network_of(in_time, CONV("filters=4 activation=tanh")
                     "[crnn] size=3 pad=1 output=4 hidden=3 activation=tanh "
                     CONV("filters=4 activation=logistic"));
    check_network_of(in_time, "[crnn] size=3 pad=1 output=4 hidden=3 shortcut=1 activation=tanh "
                     CONV("filters=4 activation=tanh"));
    bound = 1e-2;
    check_network_of(in_time, "[crnn] size=3 pad=1 batch_normalize=1 output=4 hidden=3 activation=tanh "
                     CONV("filters=4 activation=tanh"));
    bound = 1e-3;
    h = 1.f / 32;
}

TEST(what_only_this_fork_has)
{
    check_network(CONV("filters=4 activation=mish stride_x=2 stride_y=1")
                  "[route] layers=-1 groups=2 group_id=1 "
                  CONV("filters=4 groups=2 activation=tanh") ALEXEYABS("[empty]", ""));
    check_network(CONV("filters=4 activation=swish") "[avgpool] [convolutional] filters=4 size=1 "
                  "activation=logistic [scale_channels] from=-3 activation=linear "
                  CONV("filters=4 activation=tanh") "[sam] from=-2 activation=linear");
    check_network(CONV("filters=4 activation=tanh") "[local_avgpool] size=2 stride=2 "
                  CONV("filters=4 activation=tanh") "[upsample] stride=2 scale=.5 "
                  CONV("filters=4 activation=tanh") "[reorg3d] stride=2 "
                  CONV("filters=2 activation=tanh")
                  ALEXEYABS("[local] filters=3 size=2 activation=tanh",
                            "[connected] output=12 activation=tanh"));
}

/* Its own key, which it reads on a GPU, where AMP is off. */
TEST(loss_scale_is_left_to_darknet_where_amp_is_off)
{
    static const char *const keys[] = { "", "[amp] dtype=fp32 " };
    for (int under_amp = 0; under_amp < 2; under_amp++) {
        network net = network_of("[net] batch=3 width=6 height=6 channels=3 max_batches=1 loss_scale=128 "
                                 "%s[convolutional] filters=3%s", keys[under_amp], ending);
        assert_int_equal(net.amp != NULL, under_amp);
        assert_true(net.loss_scale == (under_amp ? 1 : 128));
        free_network(net);
    }
}

/* ---- Gaussian_yolo: Darknet's own layer, which says of each of a box's four numbers how sure it is ---- */

enum { BOXES = 2, EACH = 4 * 2 + 1 + CLASSES, OUT = BOXES * EACH,
       PLACES = SIDE * SIDE, LABELS = 3 };

/* x, y, w, h, class. The first two lie in one cell, and the third is like no anchor of the mask. */
static void label_of(int image, int k, float label[5])
{
    const float all[LABELS][5] = { { .4f, .6f, .3f + .1f * (float)image, .5f, (float)(image % CLASSES) },
                                   { .43f, .57f, .35f, .3f, (float)((image + 1) % CLASSES) },
                                   { .9f, .2f, .9f, .95f, 2 } };
    memcpy(label, all[k], sizeof all[k]);
}

/* Behind a 1 x 1 convolution of the image, one step of which it has trained. truth: the caller's. */
static network gaussian_network(float x[BATCH * PLACES * 3], float **truth)
{
    network net = network_of("%s[convolutional] filters=%d size=1 activation=linear [Gaussian_yolo] "
                             "mask=0,1 anchors=2,2,3,4,6,6 num=3 classes=%d max=4 ignore_thresh=1 "
                             "truth_thresh=1 scale_x_y=1.1 iou_normalizer=.5 uc_normalizer=.8 "
                             "iou_thresh=.3", beginning, OUT, CLASSES);
    const layer *last = &net.layers[1];
    srand(7);
    for (int i = 0; i < BATCH * PLACES * 3; i++) x[i] = uniform(-1, 1);
    for (int i = 0; i < OUT * 3; i++) net.layers[0].weights[i] = uniform(-.6f, .6f);
    *truth = calloc((size_t)(BATCH * last->truths), sizeof **truth);
    for (int b = 0; b < BATCH; b++)
        for (int k = 0; k < LABELS; k++) label_of(b, k, *truth + b * last->truths + k * last->truth_size);
    float loss = train_network_datum(net, x, *truth);
    assert_true(isfinite(loss) && loss > 0);
    return net;
}

/* What it gives to its input is what reaches the weights before it, whose gradient is a plain sum. */
TEST(what_gaussian_yolo_gives_reaches_the_weights)
{
    float x[BATCH * PLACES * 3], *truth;
    network net = gaussian_network(x, &truth);
    layer conv = net.layers[0], *last = &net.layers[1];
    ++*net.cur_iteration;
    update_network(net);
    double most = 0;
    for (int f = 0; f < OUT; f++) {
        for (int c = 0; c <= 3; c++) { /* 3: the bias */
            double sum = 0, size = 1e-6;
            for (int b = 0; b < BATCH; b++)
                for (int i = 0; i < PLACES; i++) {
                    double d = last->delta[(b * OUT + f) * PLACES + i];
                    double term = c < 3 ? d * x[(b * 3 + c) * PLACES + i] : d;
                    sum += term;
                    size += fabs(term);
                }
            double learnt = c < 3 ? conv.weight_updates[f * 3 + c] : conv.bias_updates[f];
            assert_true(isfinite(sum) && fabs(learnt - sum) <= 1e-5 * size);
            most = fmax(most, fabs(sum));
        }
    }
    assert_true(most > .1);
    free(truth);
    free_network(net);
}

/* ---- averaged weights ---- */

enum { AVERAGED_FROM = 1002, APPLIED_AT = 1004 }; /* of 2004 steps: half, and 1000 before the end */

static void one_step(subject *s)
{
    float *images[BATCH], *truths[BATCH];
    for (int b = 0; b < BATCH; b++) {
        images[b] = s->x + b * SIDE * SIDE * 3;
        truths[b] = s->truth + b * CLASSES;
    }
    data d = { .X = { .rows = BATCH, .cols = SIDE * SIDE * 3, .vals = images },
               .y = { .rows = BATCH, .cols = CLASSES, .vals = truths } };
    train_network(s->net, d);
}

/* A frozen layer below one that learns. */
static subject averaging_subject(void)
{
    subject s = subject_of(beginning,
                           CONV("filters=4 activation=tanh batch_normalize=1 stopbackward=1")
                           CONV("filters=4 activation=mish batch_normalize=1"));
    s.net.learning_rate = .05f;
    s.net.momentum = .9f;
    s.net.max_batches = 2004;
    s.net.ema_alpha = .5f;
    return s;
}

/* What a layer of it has, and what that was when it was kept. */
typedef struct averages { float values[2][3][4 * 4 * 9]; } averages;
static averages averages_of(const subject *s)
{
    averages a = { 0 };
    for (int i = 0; i < 2; i++) {
        const layer *l = &s->net.layers[i];
        memcpy(a.values[i][0], l->weights_ema, (size_t)l->nweights * sizeof(float));
        memcpy(a.values[i][1], l->biases_ema, (size_t)l->n * sizeof(float));
        memcpy(a.values[i][2], l->scales_ema, (size_t)l->n * sizeof(float));
    }
    return a;
}

static void check_applied(const subject *s, const averages *expected)
{
    averages now = averages_of(s);
    assert_memory_equal(&now, expected, sizeof now);
    for (int i = 0; i < 2; i++)
        assert_memory_equal(s->net.layers[i].weights, expected->values[i][0],
                            (size_t)s->net.layers[i].nweights * sizeof(float));
}

/* ema_alpha: from half of the steps on, and 1000 before the end the averages become the weights. */
TEST(averages_move_once_a_step_and_go_on_where_they_were_saved)
{
    subject s = averaging_subject();
    *s.net.cur_iteration = AVERAGED_FROM - 2;
    *s.net.seen = (AVERAGED_FROM - 2) * BATCH;
    one_step(&s);
    averages none = averages_of(&s), zeros = { 0 };
    assert_memory_equal(&none, &zeros, sizeof none);
    one_step(&s);
    averages first = averages_of(&s);
    one_step(&s);
    averages second = averages_of(&s);
    assert_int_equal(*s.net.cur_iteration, APPLIED_AT - 1);
    const layer *learns = &s.net.layers[1];
    for (int k = 0; k < learns->nweights; k++) {
        double expected = .5 * first.values[1][0][k] + .5 * learns->weights[k];
        assert_true(fabs(second.values[1][0][k] - expected) < 1e-6);
    }
    assert_memory_not_equal(first.values[1][0], second.values[1][0], sizeof first.values[1][0]);

    float pixel = s.x[0]; /* a step that is skipped */
    s.x[0] = INFINITY;
    one_step(&s);
    s.x[0] = pixel;
    averages skipped = averages_of(&s);
    assert_int_equal(*s.net.cur_iteration, APPLIED_AT - 1);
    assert_memory_equal(&skipped, &second, sizeof second);

    save_weights(s.net, "net.weights");
    one_step(&s);
    check_applied(&s, &second);
    subject later = averaging_subject();
    load_weights(&later.net, "net.weights");
    one_step(&later);
    assert_int_equal(*later.net.cur_iteration, APPLIED_AT);
    check_applied(&later, &second);
    free_network(s.net);
    free_network(later.net);
}

#ifndef DARKNET_AMP_HANK_AI /* whose program the tests do not link, and so cannot wrap its functions */
/* ---- the workspace that Darknet's own layers share ---- */

/* cuDNN's algorithms, which are chosen anew for another batch, want another workspace. There is no cuDNN
 * here: a convolution of Darknet's own wants this much, once it is asked after its making. */
enum { ANOTHER_WORKSPACE = 1 << 24 };
static size_t workspace_seen;

size_t __wrap_get_convolutional_workspace_size(layer l);
size_t __wrap_get_convolutional_workspace_size(layer l)
{
    (void)l;
    return ANOTHER_WORKSPACE;
}

static void look_at_workspace(layer l, network_state state)
{
    workspace_seen = malloc_usable_size(state.workspace);
    assert_true(l.workspace_size == ANOTHER_WORKSPACE);
    memset(l.output, 0, (size_t)l.outputs * (size_t)l.batch * sizeof *l.output);
}

TEST(a_new_batch_measures_the_workspace_anew)
{
    subject s = subject_of(beginning, "[convolutional] filters=4 binary=1 activation=tanh ");
    layer *own = &s.net.layers[0], *ours = &s.net.layers[1];
    train_network_datum(s.net, s.x, s.truth);
    assert_true(own->workspace_size > 0 && own->workspace_size < ANOTHER_WORKSPACE);
    own->forward = look_at_workspace;
    set_batch_network(&s.net, BATCH); /* the plan in use stays, too */
    train_network_datum(s.net, s.x, s.truth);
    assert_true(workspace_seen >= ANOTHER_WORKSPACE);
    assert_true(ours->workspace_size == 0 && !s.net.workspace);
    free_network(s.net);
}
#endif

int main(void) { return run_listed_tests("gradients", enter_folder, leave_folder); }
