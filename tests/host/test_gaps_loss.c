/*
 * The losses on the CPU: does the delta that forward leaves, once backward carried it down, equal minus the
 * gradient of the loss (half of it, where stock prints a square and returns its difference)? region prints
 * the norm of its delta instead of a loss; its loss is spelt out here: squares, logistic and softmax cross
 * entropies, towards the targets that the delta itself names. (yolo is AMP's own, and of detection
 * stock's functions run as they are: test_parity.)
 */
#include "gradient_check.h"

#include "cost_layer.h"
#include "iseg_layer.h"
#include "logistic_layer.h"
#include "region_layer.h"
#include "softmax_layer.h"

enum { BATCH = 2 };

static double printed_cost(struct subject *s)
{
    run_forward(s);
    double sum = 0; /* l.cost[0] is the same sum in float */
    const float *loss = s->l.loss ? s->l.loss : s->l.output;
    for (int i = 0; i < s->outputs; i++) sum += loss[i];
    assert_float_equal(s->l.cost[0], sum, 1e-4*(1 + fabs(sum)));
    return sum;
}

static void carry_down(struct subject *s)
{
    run_forward(s);
    amp_gap_backward(s->l, s->net);
}

static void assert_backward_adds(struct subject *s)
{
    float *once = zeros(s->inputs);
    memcpy(once, s->net.delta, s->inputs*sizeof(float));
    carry_down(s);
    for (int i = 0; i < s->inputs; i++) once[i] *= 2;
    assert_close("net.delta after a second backward", s->net.delta, once, s->inputs, 1e-5);
    free(once);
}

/* ---- softmax, logistic --------------------------------------------------------------------------------- */

static struct subject softmax_subject(int inputs, int groups)
{
    layer l = make_softmax_layer(BATCH, inputs, groups);
    l.temperature = 1;
    l.c = inputs;
    l.w = l.h = 1;
    struct subject s = subject_of(l, BATCH);
    s.net.truth = zeros(s.inputs);
    return s;
}

TEST(spatial_softmax_is_over_channels_at_each_pixel)
{
    const int c = 3, pixels = 4;
    struct subject s = softmax_subject(c*pixels, 1);
    s.l.spatial = 1;
    s.l.c = c;
    s.l.w = s.l.h = 2;
    for (int b = 0; b < BATCH; b++)
        for (int i = 0; i < pixels; i++) s.net.truth[(b*c + (b + i) % c)*pixels + i] = 1;
    carry_down(&s);
    for (int b = 0; b < BATCH; b++){
        for (int i = 0; i < pixels; i++){
            const float *x = s.l.output + b*c*pixels + i;
            assert_float_equal(x[0] + x[pixels] + x[2*pixels], 1, 1e-6);
        }
    }
    assert_input_gradient(&s, printed_cost, 1);
    release(&s);
}

/* Two roots; the first has three children. */
static int groups_of[2] = {2, 3}, offsets_of[2] = {0, 2}, parents_of[5] = {-1, -1, 0, 0, 0};
static int group_of_class[5] = {0, 0, 1, 1, 1};
static tree small_tree = {.n = 5, .parent = parents_of, .group = group_of_class, .groups = 2,
    .group_size = groups_of, .group_offset = offsets_of};

TEST(softmax_tree_skips_secret_truths)
{
    struct subject s = softmax_subject(5, 1);
    s.l.softmax_tree = &small_tree;
    s.net.truth[0] = s.net.truth[3] = 1;
    s.net.truth[5 + 1] = 1;
    for (int i = 2; i < 5; i++) s.net.truth[5 + i] = SECRET_NUM; /* the second image has no second level */
    carry_down(&s);
    for (int i = 2; i < 5; i++) assert_true(s.net.delta[5 + i] == 0);
    assert_input_gradient(&s, printed_cost, 1);
    release(&s);
}

static struct subject logistic_subject(void)
{
    struct subject s = subject_of(make_logistic_layer(BATCH, 4), BATCH);
    s.net.truth = zeros(s.inputs);
    for (int i = 0; i < s.inputs; i += 3) s.net.truth[i] = 1;
    return s;
}

TEST(logistic_and_softmax_with_groups_have_the_gradient)
{
    struct subject subjects[2] = {logistic_subject(), softmax_subject(6, 2)};
    for (int group = 0; group < 2*BATCH; group++) subjects[1].net.truth[3*group + group % 3] = 1;
    for (int i = 0; i < 2; i++){
        struct subject *s = &subjects[i];
        carry_down(s);
        assert_input_gradient(s, printed_cost, 1);
        assert_backward_adds(s);
        release(s);
    }
}

TEST(logistic_loss_stays_finite_when_the_output_saturates)
{
    struct subject s = logistic_subject();
    for (int i = 0; i < s.inputs; i++) s.net.input[i] = (i & 1) ? 200 : -200;
    run_forward(&s);
    assert_true(s.l.cost[0] > 0 && s.l.cost[0] < 1000);
    release(&s);
}

/* ---- cost ---------------------------------------------------------------------------------------------- */

static struct subject cost(COST_TYPE type)
{
    struct subject s = subject_of(make_cost_layer(BATCH, 6, type, .5), BATCH);
    s.l.noobject_scale = 1;
    s.net.truth = zeros(s.inputs);
    randomise(s.net.input, s.inputs, -2, 2);
    randomise(s.net.truth, s.inputs, -2, 2);
    for (int i = 0; i < s.inputs; i++){ /* away from the kinks at |truth - input| = 0 and 1 */
        double diff = fabs(s.net.truth[i] - s.net.input[i]);
        if (diff < .1 || fabs(diff - 1) < .1) s.net.input[i] += .25;
    }
    return s;
}

/* Of squares half, times the layer's scale of one half; smooth is looked at on both sides of its knee. */
TEST(costs_have_their_gradient)
{
    static const struct { COST_TYPE type; double factor; } costs[] = { { SSE, .5*.5 }, { SMOOTH, .5*.5 },
        { L1, .5 }, { WGAN, .5 } };
    for (size_t k = 0; k < COUNT(costs); k++){
        struct subject s = cost(costs[k].type);
        if (costs[k].type == WGAN) for (int i = 0; i < s.inputs; i++) s.net.truth[i] = i & 1;
        if (costs[k].type == SMOOTH){
            s.net.input[0] = s.net.truth[0] + 1.5f;
            s.net.input[1] = s.net.truth[1] - 1.5f;
        }
        carry_down(&s);
        if (costs[k].type == SMOOTH) assert_true(s.l.delta[0] == -1 && s.l.delta[1] == 1);
        assert_input_gradient(&s, printed_cost, costs[k].factor);
        assert_backward_adds(&s);
        release(&s);
    }
}

TEST(cost_seg_scales_where_the_truth_is_zero)
{
    struct subject s = cost(SEG);
    s.l.noobject_scale = .125;
    for (int i = 0; i < s.inputs; i += 2) s.net.truth[i] = 0;
    carry_down(&s);
    assert_float_equal(s.l.delta[0], .125*(0 - s.net.input[0]), 1e-6);
    assert_float_equal(s.l.delta[1], s.net.truth[1] - s.net.input[1], 1e-6);
    assert_input_gradient(&s, printed_cost, .5*.5);
    release(&s);
}

TEST(cost_masked_skips_secret_truths_and_leaves_its_input_alone)
{
    struct subject s = cost(MASKED);
    for (int i = 0; i < s.inputs; i += 2) s.net.truth[i] = SECRET_NUM;
    float before = s.net.input[0];
    carry_down(&s);
    assert_true(s.net.input[0] == before);
    assert_true(s.net.delta[0] == 0 && s.net.delta[1] != 0);
    assert_input_gradient(&s, printed_cost, .5*.5);
    release(&s);
}

TEST(cost_thresh_drops_small_deltas)
{
    struct subject s = cost(SSE);
    s.l.thresh = .5f*s.l.inputs;
    s.net.input[0] = s.net.truth[0] + .4f;
    s.net.input[1] = s.net.truth[1] - .6f;
    run_forward(&s);
    assert_true(s.l.delta[0] == 0);
    assert_float_equal(s.l.delta[1], .6, 1e-6);
    release(&s);
}

TEST(cost_smooth_labels_leave_the_truth_alone)
{
    struct subject s = cost(SSE);
    s.l.smooth = .25;
    float label = s.net.truth[0];
    run_forward(&s);
    assert_true(s.net.truth[0] == label);
    assert_float_equal(s.l.delta[0], .75*label + .25/6 - s.net.input[0], 1e-6);
    release(&s);
}

/* ---- region -------------------------------------------------------------------------------------------- */

enum term { NOTHING, SQUARE, LOGISTIC_CROSS_ENTROPY, SOFTMAX_CROSS_ENTROPY };

/* For each output: which loss, towards which target, how much. Set by name_targets from the
 * delta at the start. */
static enum term terms[512];
static double targets[512], weights[512];

static double spelt_out(struct subject *s)
{
    run_forward(s);
    double loss = 0;
    for (int i = 0; i < s->outputs; i++){
        double p = s->l.output[i], t = targets[i];
        if (terms[i] == SQUARE) loss += weights[i]*(t - p)*(t - p)/2;
        if (terms[i] == LOGISTIC_CROSS_ENTROPY) loss -= weights[i]*(t*log(p) + (1 - t)*log(1 - p));
        if (terms[i] == SOFTMAX_CROSS_ENTROPY) loss -= weights[i]*t*log(p);
    }
    return loss;
}

/* delta = weight * (target - output) in all three losses. Which weight is no matter: only the
 * sum in a softmax is. */
static void name_targets(struct subject *s, const enum term *of_entry, int entries, int spatial,
                         double class_weight)
{
    assert_true(s->outputs <= 512);
    run_forward(s);
    for (int i = 0; i < s->outputs; i++){
        terms[i] = s->l.delta[i] == 0 ? NOTHING : of_entry[i/spatial % entries];
        weights[i] = terms[i] == SOFTMAX_CROSS_ENTROPY ? class_weight : 1;
        targets[i] = s->l.output[i] + s->l.delta[i]/weights[i];
    }
}

/* Two objects in the first image, one in the second: x, y, w, h, [mask,] class. */
static void draw_boxes(struct subject *s, int truths, int coords, int classes)
{
    s->net.truth = zeros((size_t)BATCH*truths);
    for (int object = 0; object < 3; object++){
        float *box = s->net.truth + (object == 2)*truths + (object == 1)*(coords + 1);
        box[0] = .3f + .2f*object;
        box[1] = .7f - .25f*object;
        box[2] = .4f;
        box[3] = .3f;
        for (int i = 4; i < coords; i++) box[i] = .2f*(i - 3);
        box[coords] = (object + 1) % classes;
    }
}

enum { SIDE = 2, ANCHORS = 2, CLASSES = 3 };

static struct subject region(int coords, int classes)
{
    layer l = make_region_layer(BATCH, SIDE, SIDE, ANCHORS, classes, coords);
    l.softmax = 1;
    l.bias_match = 1;
    l.thresh = .6;
    l.coord_scale = 1;
    l.object_scale = 5;
    l.noobject_scale = .5;
    l.class_scale = 2;
    l.mask_scale = 1;
    for (int i = 0; i < 2*ANCHORS; i++) l.biases[i] = .5f + .4f*i;
    struct subject s = subject_of(l, BATCH);
    s.seen = 100000; /* past the first images, which teach the anchors */
    draw_boxes(&s, l.truths, coords, classes);
    return s;
}

static void assert_region_gradient(struct subject *s)
{
    const layer *l = &s->l;
    const int entries = l->coords + 1 + l->classes;
    enum term of_entry[16];
    for (int i = 0; i < entries; i++) of_entry[i] = i <= l->coords ? SQUARE : SOFTMAX_CROSS_ENTROPY;
    if (!l->softmax && !l->softmax_tree){
        for (int i = l->coords + 1; i < entries; i++) of_entry[i] = LOGISTIC_CROSS_ENTROPY;
    }
    name_targets(s, of_entry, entries, SIDE*SIDE, l->class_scale);
    carry_down(s);
    float size = 0;
    for (int i = 0; i < s->inputs; i++) size += fabsf(s->net.delta[i]);
    assert_true(size > 1);
    assert_input_gradient(s, spelt_out, 1);
    assert_backward_adds(s);
}

TEST(region_has_the_gradient_with_softmax_and_without)
{
    for (int softmax = 0; softmax < 2; softmax++){
        struct subject s = region(4, CLASSES);
        s.l.softmax = softmax;
        if (!softmax) s.l.class_scale = 1;
        assert_region_gradient(&s);
        release(&s);
    }
}

TEST(region_squashes_its_mask)
{
    struct subject s = region(6, CLASSES);
    s.l.mask_scale = 2;
    assert_region_gradient(&s);
    const int mask = 4*SIDE*SIDE;
    assert_float_equal(s.l.output[mask], 1/(1 + exp(-s.net.input[mask])), 1e-6);
    release(&s);
}

TEST(region_tree_is_a_softmax_per_pixel_and_group)
{
    struct subject s = region(4, 5);
    s.l.softmax_tree = &small_tree;
    assert_region_gradient(&s);
    for (int anchor = 0; anchor < BATCH*ANCHORS; anchor++){
        for (int i = 0; i < SIDE*SIDE; i++){
            const float *p = s.l.output + (anchor*10 + 5)*SIDE*SIDE + i;
            const int next = SIDE*SIDE;
            assert_float_equal(p[0] + p[next], 1, 1e-6);
            assert_float_equal(p[2*next] + p[3*next] + p[4*next], 1, 1e-6);
        }
    }
    assert_int_equal(small_tree.groups, 2);
    release(&s);
}

/* Stock's GPU form: with a background class, objectness is one of the softmax's classes
 * and has no logistic. */
TEST(region_with_background_leaves_objectness_to_the_softmax)
{
    struct subject s = region(4, CLASSES);
    s.l.background = 1;
    run_forward(&s);
    float delta[512];
    memcpy(delta, s.l.delta, s.outputs*sizeof(float));
    amp_gap_backward(s.l, s.net);
    for (int i = 0; i < s.outputs; i++){
        int entry = i/(SIDE*SIDE) % (5 + CLASSES);
        float p = s.l.output[i];
        assert_float_equal(s.net.delta[i], entry < 2 ? delta[i]*p*(1 - p) : delta[i], 1e-6);
    }
    release(&s);
}

/* ---- iseg ---------------------------------------------------------------------------------------------- */

enum { IDS = 2 };

TEST(iseg_adds_its_delta)
{
    const int pixels = SIDE*SIDE;
    layer l = make_iseg_layer(BATCH, SIDE, SIDE, CLASSES, IDS);
    struct subject s = subject_of(l, BATCH);
    s.net.truth = zeros((size_t)BATCH*l.truths);
    for (int b = 0; b < BATCH; b++){
        float *truth = s.net.truth + b*l.truths;
        truth[0] = 1;
        truth[1 + b] = truth[2 + b] = 1;
        truth[pixels + 1] = -1;
    }
    carry_down(&s);
    assert_close("net.delta", s.net.delta, s.l.delta, s.inputs, 0);
    /* Classes: minus the gradient of logistic cross entropy. */
    for (int i = 0; i < CLASSES*pixels; i++){
        float t = i == pixels || i == pixels + 1;
        assert_float_equal(s.net.delta[i], t - 1/(1 + exp(-s.net.input[i])), 1e-6);
    }
    release(&s);
}

TEST(iseg_runs_without_truth)
{
    struct subject s = subject_of(make_iseg_layer(BATCH, SIDE, SIDE, CLASSES, IDS), BATCH);
    s.net.train = 0;
    run_forward(&s);
    assert_float_equal(s.l.output[0], 1/(1 + exp(-s.net.input[0])), 1e-6);
    const int embedding = CLASSES*SIDE*SIDE;
    assert_true(s.l.output[embedding] == s.net.input[embedding]);
    release(&s);
}

int main(void)
{
    srand(2);
    return run_listed_tests("tests", NULL, NULL);
}
