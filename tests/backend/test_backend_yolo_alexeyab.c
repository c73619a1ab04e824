/* Yolo's loss of a backend with the rules of AlexeyAB's fork: against those rules in double
 * (yolo_reference.h), and against the fork's own layer, if its tree is available (tests/alexeyab/yolo.sh
 * builds ALEXEYAB_YOLO from it). */
#include "yolo_reference.h"

#include <dlfcn.h>
#include <float.h>
#include <unistd.h>

#include "alexeyab/yolo.h"
#include "backend/yolo_rules.h"

enum { CLASSES = 4, SIZE = 5 + CLASSES, BOXES = 3, NUMBERS = 6, W = 4, H = 3, IMAGES = 2,
       ALL = IMAGES * H * W * BOXES * SIZE, ROUNDS = 3 /* in each comparison with the fork */ };

/* ---- keys ---- */

typedef struct keys {
    const char *name;
    amp_yolo_kind loss, thresh_kind;
    float iou_thresh, max_delta, scale_x_y, label_smooth_eps, iou, obj, cls, delta; /* the four normalizers */
    float ignore_thresh, truth_thresh;
    int new_coords, before_logistic, objectness_smooth, focal_loss, table;
} keys;

#define MSE AMP_YOLO_MSE
#define IOU AMP_YOLO_IOU
#define GIOU AMP_YOLO_GIOU
#define DIOU AMP_YOLO_DIOU
#define CIOU AMP_YOLO_CIOU

/* loss, thresh_kind, iou_thresh, max_delta, scale_x_y, eps, four normalizers, ignore and truth_thresh,
 * new_coords, before_logistic, objectness_smooth, focal_loss, table */
static const keys all_keys[] = {
    { "yolov3", MSE, IOU, 1, FLT_MAX, 1, 0, .75f, 1, 1, 1, .5f, 1, 0, 0, 0, 0, 0 },
    { "iou", IOU, IOU, 1, FLT_MAX, 1, 0, .75f, 1, 1, 1, .5f, 1, 0, 0, 0, 0, 0 },
    { "giou", GIOU, IOU, 1, FLT_MAX, 1, 0, .75f, 1, 1, 1, .5f, 1, 0, 0, 0, 0, 0 },
    { "diou", DIOU, IOU, 1, FLT_MAX, 1, 0, .75f, 1, 1, 1, .5f, 1, 0, 0, 0, 0, 0 },
    { "ciou", CIOU, IOU, 1, FLT_MAX, 1, 0, .75f, 1, 1, 1, .5f, 1, 0, 0, 0, 0, 0 },
    { "yolov4", CIOU, IOU, .213f, 5, 1.2f, 0, .07f, 1, 1, 1, .3f, 1, 0, 0, 0, 0, 0 },
    { "yolov4-csp", CIOU, IOU, .2f, 2, 2, 0, .05f, .4f, .5f, 1, .2f, 1, 1, 1, 1, 0, 0 },
    { "yolov4-csp's head in fp32", CIOU, IOU, .2f, 2, 2, 0, .05f, .4f, .5f, 1, .2f, 1, 1, 0, 1, 0, 0 },
    { "new_coords, mse", MSE, IOU, 1, FLT_MAX, 1, 0, .75f, 1, 1, 1, .3f, 1, 1, 1, 0, 0, 0 },
    { "new_coords, giou", GIOU, IOU, .3f, 1, 1.05f, 0, .5f, 1, 1, .5f, .2f, 1, 1, 1, 0, 0, 1 },
    { "giou twice", GIOU, GIOU, -.3f, FLT_MAX, 1.05f, 0, .5f, 1.4f, 1, 1, .2f, 1, 0, 0, 0, 0, 0 },
    { "diou twice", DIOU, DIOU, .25f, 3, 1, 0, .5f, 1, 1, 1, .1f, 1, 0, 0, 1, 0, 0 },
    { "ciou twice", CIOU, CIOU, .1f, .1f, 1, 0, .5f, 1, 1, .25f, .2f, 1, 0, 0, 0, 0, 1 },
    { "label smoothing", MSE, IOU, 1, FLT_MAX, 1, .1f, .75f, 1, 1, 1, .3f, 1, 0, 0, 0, 0, 0 },
    { "smoothing, classes", CIOU, IOU, .4f, 4, 1, .2f, .75f, 2, .5f, 1, .3f, 1, 0, 0, 0, 0, 1 },
    { "focal loss", MSE, IOU, 1, FLT_MAX, 1, 0, .75f, 1, 1, 1, .3f, 1, 0, 0, 0, 1, 0 },
    { "focal loss, all else", GIOU, IOU, .3f, 2, 1.1f, .1f, .75f, .5f, 2, 1, .2f, 1, 0, 0, 1, 1, 1 },
    { "truth_thresh", MSE, IOU, .3f, FLT_MAX, 1, 0, .75f, 1, 1, 1, .1f, .15f, 0, 0, 0, 0, 1 },
    { "truth_thresh, smooth", DIOU, IOU, 1, 2, 1, .1f, .75f, 1, .5f, 1, .3f, .12f, 1, 1, 1, 0, 1 },
};

/* Maps two classes to one; in the machine's memory. */
static amp_yolo_class_rule *class_table(void)
{
    static const amp_yolo_class_rule rules[CLASSES] = { { 2, 3 }, { 1, 1 }, { 2, 3 }, { 0, 1.5f } };
    return memcpy(memory(sizeof rules), rules, sizeof rules);
}

static amp_yolo_desc desc_of(const keys *k)
{
    amp_yolo_desc d = { .classes = CLASSES,
                        .n = BOXES,
                        .total = 4,
                        .mask = { 0, 1, k->focal_loss ? 1 : 3 },
                        .net_w = NET_W,
                        .net_h = NET_H,
                        .ignore_thresh = k->ignore_thresh,
                        .truth_thresh = k->truth_thresh,
                        .truths = MOST_LABELS * NUMBERS + 3,
                        .label_size = NUMBERS,
                        .max_boxes = MOST_LABELS,
                        .rules = AMP_YOLO_ALEXEYAB,
                        .loss = k->loss,
                        .thresh_kind = k->thresh_kind,
                        .iou_thresh = k->iou_thresh,
                        .max_delta = k->max_delta,
                        .scale_x_y = k->scale_x_y,
                        .label_smooth_eps = k->label_smooth_eps,
                        .iou_normalizer = k->iou,
                        .obj_normalizer = k->obj,
                        .cls_normalizer = k->table ? k->cls : 1,
                        .delta_normalizer = k->delta,
                        .new_coords = k->new_coords,
                        .before_logistic = k->before_logistic,
                        .objectness_smooth = k->objectness_smooth,
                        .focal_loss = k->focal_loss,
                        .class_table = k->table ? class_table() : NULL };
    memcpy(d.anchors, anchors, sizeof anchors);
    return d;
}

/* ---- labels ---- */

typedef struct labels_case {
    const char *name;
    int labels; /* per image */
    label_change *change;
    int beyond; /* the fork's own layer would write outside its arrays */
    int saturated; /* some squashed numbers are 0 and 1 */
} labels_case;

static void one_cell(float *label, int w, int h, int i)
{
    (void)w, (void)h;
    label[0] = .3f + .003f * (float)(i % 5);
    label[1] = .4f;
}

static void at_the_border(float *label, int w, int h, int i)
{
    (void)w, (void)h;
    static const float at[] = { 1e-6f, .999999f, -.1f, 1e-20f };
    if (i % 3) label[0] = at[i % 4];
    if (i % 3 != 1) label[1] = at[i / 2 % 4];
}

static void of_no_size(float *label, int w, int h, int i)
{
    (void)w, (void)h;
    if (i % 3 != 1) label[2] = 0;
    if (i % 3 != 0) label[3] = 0;
}

static void as_large_as_the_image(float *label, int w, int h, int i)
{
    (void)w, (void)h;
    label[2] = .9f + .01f * (float)i;
    label[3] = 1 - .02f * (float)i;
}

static const labels_case all_labels[] = {
    { "anywhere", 6, NULL, 0, 0 },
    { "none", 0, NULL, 0, 0 },
    { "several of one box", 5, one_place, 0, 0 },
    { "several of one box and one class", 4, one_place_one_class, 0, 0 },
    { "several in one cell", 8, one_cell, 0, 0 },
    { "several of one box, that is sure", 6, one_place, 0, 1 },
    { "anywhere, of boxes that are sure", 9, NULL, 0, 1 },
    { "classes that the layer lacks", 12, of_no_class, 0, 0 },
    { "an end before their room's", 9, ends_in_the_middle, 0, 0 },
    { "at the border", 8, at_the_border, 0, 0 },
    { "outside", 10, outside, 1, 0 },
    { "without a size", 6, of_no_size, 0, 0 },
    { "as large as the image", 3, as_large_as_the_image, 0, 0 },
};

/* Makes every fifth number large; sizes only with new_coords. */
static void saturate(const amp_yolo_desc *d, const amp_tensor *x)
{
    for (size_t e = 0; e < ALL; e += 5)
        if (d->new_coords || (e % SIZE != 2 && e % SIZE != 3)) set_element(x, e, e % 2 ? 120 : -120);
}

/* ---- comparing ---- */

static drawn draw(const keys *k, const labels_case *c, int round, amp_dtype dtype)
{
    uint32_t first = 1000 * (uint32_t)(round + 10 * (c - all_labels) + 200 * (k - all_keys));
    drawn w = { .d = desc_of(k), .x = poisoned(dtype, IMAGES, H, W, BOXES * SIZE) };
    w.labels = memory(IMAGES * (size_t)w.d.truths * sizeof(float));
    for (uint32_t seed = first; seed < first + 1000; seed++) {
        int squashed = k->new_coords && !k->before_logistic;
        fill(&w.x, 7 * seed, squashed ? .05f : -2, squashed ? .95f : 1.5f);
        for (size_t e = 0; e < ALL; e++) /* every second box is not sure of any class */
            if (e % SIZE >= 5 && e / SIZE % 2)
                set_element(&w.x, e, (float)element(&w.x, e) * (squashed ? .2f : .5f) - (squashed ? 0 : 2));
        if (c->saturated && !squashed) saturate(&w.d, &w.x);
        draw_labels(w.labels, &w.x, &w.d, c->labels, c->change, seed);
        w.r = reference_of(&w.x, w.labels, &w.d);
        if (w.r.clear > 1e-5) return w;
        forget(&w.r);
    }
    fail_msg("%s, labels %s: rounding decides", k->name, c->name);
    return w;
}

/* ---- tests ---- */

TEST(yolo_loss_is_alexeyabs)
{
    NEEDS(yolo_loss);
    for (size_t k = 0; k < COUNT(all_keys); k++)
        for (size_t c = 0; c < COUNT(all_labels); c++) {
            drawn w = draw(&all_keys[k], &all_labels[c], 0, all_dtypes[(k + c) % 3]);
            char name[128];
            snprintf(name, sizeof name, "%s, labels %s", all_keys[k].name, all_labels[c].name);
            assert_loss(&w, k % 2 ? 16 : 1, (k + c) / 3 % 2, name);
            discard(&w);
        }
}

/* CUDA's 32 lanes share a box's classes. Here only class 36 can make a box sure. */
TEST(every_class_can_make_a_box_sure)
{
    enum { MANY = 40, SURE = 36 };
    NEEDS(yolo_loss);
    drawn w = { .d = desc_of(&all_keys[1]) };
    w.d.classes = MANY;
    w.d.ignore_thresh = .05f;
    w.x = poisoned(AMP_FP32, IMAGES, H, W, BOXES * (5 + MANY));
    w.labels = memory(IMAGES * (size_t)w.d.truths * sizeof(float));
    for (uint32_t seed = 0; seed < 1000 && !(w.r.clear > 1e-5); seed++) {
        if (seed) forget(&w.r);
        fill(&w.x, 7 * seed, -1, 1);
        for (size_t box = 0; box < IMAGES * H * W * BOXES; box++)
            for (size_t c = 0; c < MANY; c++)
                set_element(&w.x, box * (5 + MANY) + 5 + c, c == SURE && box % 2 ? 2 : -6);
        draw_labels(w.labels, &w.x, &w.d, 6, NULL, seed);
        w.r = reference_of(&w.x, w.labels, &w.d);
    }
    assert_true(w.r.clear > 1e-5);
    assert_loss(&w, 1, 0, "40 classes");
    discard(&w);
}

TEST(likeness_is_that_of_doubles)
{
    uint32_t random = 5;
    for (int i = 0; i < 400; i++) {
        float l[5], a[5];
        draw_label(l, W, H, CLASSES, &random);
        draw_label(a, W, H, CLASSES, &random);
        if (i % 2) a[0] = l[0] + .1f * l[2], a[1] = l[1] - .2f * l[3];
        if (i % 5 == 0) l[2 + i % 2] = 0;
        if (i % 7 == 0) a[2 + i % 2] = 0;
        for (int kind = AMP_YOLO_IOU; kind <= AMP_YOLO_CIOU; kind++)
            assert_near(
                (double)amp_yolo_likeness((amp_yolo_kind)kind, amp_yolo_label_box(a), amp_yolo_label_box(l)),
                likeness((amp_yolo_kind)kind, box_of(a), box_of(l)), "likeness");
    }
    for (int kind = AMP_YOLO_IOU; kind <= AMP_YOLO_CIOU; kind++) {
        amp_yolo_box empty = { .3f, .2f, 0, 0 };
        assert_true(amp_yolo_likeness((amp_yolo_kind)kind, empty, empty) == 0);
    }
}

/* Its area is NaN, and its IoU 0, as in the fork. */
TEST(a_box_of_no_width_and_endless_height_makes_no_cost_nan)
{
    NEEDS(yolo_loss);
    drawn w = draw(&all_keys[1], &(labels_case){ "one each", 1, one_place, 0, 0 }, 0, AMP_FP32);
    amp_tensor dx = like(&w.x);
    amp_yolo_result *result = memory(sizeof *result);
    for (size_t e = 0; e < SIZE * BOXES; e += SIZE) {
        set_element(&w.x, e + 2, -120);
        set_element(&w.x, e + 3, 90);
    }
    ASSERT_OK(CALL(yolo_loss, &w.x, w.labels, &w.d, 1, &dx, 0, result, NULL, e));
    assert_true(result->labels == IMAGES);
    if (!isfinite(result->cost) || !isfinite(result->iou))
        fail_msg("cost %g, IoU %g (%s)", result->cost, result->iou, variant);
    for (size_t e = 0; e < SIZE * BOXES; e++) assert_true(isfinite(element(&dx, e)));
    discard(&w);
    release(dx.data), release(result);
}

/* NULL: there is no library. */
static alexeyab_yolo_function *own_layer(void)
{
    const char *file = getenv("ALEXEYAB_YOLO");
    alexeyab_yolo_function *function = NULL;
    if (!file || access(file, F_OK)) return NULL;
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL),
         *symbol = library ? dlsym(library, "alexeyab_yolo") : NULL;
    if (!symbol) fail_msg("%s", dlerror());
    memcpy(&function, &symbol, sizeof function);
    return function;
}

/* The index of element e of x in the fork's layers. */
static size_t planar(size_t e)
{
    size_t entry = e % SIZE, box_number = e / SIZE, k = box_number % BOXES, cell = box_number / BOXES,
           place = cell % (H * W);
    return ((cell / (H * W) * BOXES + k) * SIZE + entry) * (H * W) + place;
}

/* The layer's cost: by the likeness unless the loss is mse; with show_details=0 it is sums->cost. */
static double cost_of(const amp_yolo_desc *d, const amp_yolo_result *sums)
{
    double like = d->loss == AMP_YOLO_GIOU ? sums->giou : sums->iou,
        mean = sums->labels > 0 ? sums->labels : 1;
    if (d->loss == AMP_YOLO_MSE) return sums->cost;
    return (double)d->iou_normalizer * (sums->labels - like) / mean
        + (double)d->obj_normalizer * (sums->cost - sums->box_cost);
}

/* Compares output, delta, cost and the printed line's numbers for the same input. */
static void assert_as_the_fork(alexeyab_yolo_function *own, const drawn *w, const char *name)
{
    static float x[ALL], output[ALL], delta[ALL];
    amp_tensor dx = like(&w->x), y = like(&w->x);
    amp_yolo_result *result = memory(sizeof *result);
    y.layout = AMP_NCHW;
    for (size_t e = 0; e < ALL; e++) {
        float v = (float)element(&w->x, e);
        x[planar(e)] = w->d.before_logistic ? 1 / (1 + expf(-v)) : v;
        set_element(&y, planar(e), v);
    }
    alexeyab_found found = own(&w->d, IMAGES, H, W, x, w->labels, output, delta);
    ASSERT_OK(CALL(yolo_activate, &y, &w->d, e));
    ASSERT_OK(CALL(yolo_loss, &w->x, w->labels, &w->d, 1, &dx, 0, result, NULL, e));
    for (size_t q = 0; q < ALL; q += SIZE) {
        double most = 0;
        for (size_t e = q; e < q + 4; e++)
            if (isfinite(delta[planar(e)])) most = fmax(most, fabs((double)delta[planar(e)]));
        for (size_t e = q; e < q + SIZE; e++) {
            double want = (double)delta[planar(e)] * w->r.slope[e], got = element(&dx, e),
                   size = fabs(want) + (e < q + 4 ? most : 0);
            if (got != want && !(fabs(got - want) <= 1e-5 * (1 + size)))
                fail_msg("%s: delta[%zu] is %.9g, the fork's %.9g (%s)", name, e, got, want, variant);
            assert_near(element(&y, planar(e)), (double)output[planar(e)], "output");
        }
    }
    assert_cost(cost_of(&w->d, result), found.cost, "cost");
    double mean = result->labels > 0 ? result->labels : 1,
           others = (double)w->d.obj_normalizer * (result->cost - result->box_cost);
    if (mean != found.count) fail_msg("%s: %g own boxes, the fork has %g", name, result->labels, found.count);
    assert_near(result->iou / mean, found.mean_iou, "the printed IoU");
    if (isfinite(result->cost)) assert_cost(others / IMAGES, found.class_loss, "the printed class_loss");
    assert_cost(result->cost / IMAGES, found.total_loss, "the printed total_loss");
    release(dx.data), release(y.data), release(result);
}

/* Gives every third box a side that is 0 in fp32, or so short that both ends are the same float. */
static void shrink(const amp_tensor *x)
{
    for (size_t q = 0; q < ALL; q += 3 * SIZE) set_element(x, q + 2 + q % 2, q % 4 < 2 ? -40 : -120);
}

TEST(yolo_loss_is_that_of_the_forks_own_layer)
{
    NEEDS(yolo_loss);
    NEEDS(yolo_activate);
    alexeyab_yolo_function *own = own_layer();
    if (!own) {
        print_message("not compared: no library in ALEXEYAB_YOLO (tests/alexeyab/yolo.sh makes it)\n");
        skip();
    }
    for (size_t i = 0; i < ROUNDS * COUNT(all_keys) * COUNT(all_labels); i++) {
        const keys *k = &all_keys[i / ROUNDS % COUNT(all_keys)];
        const labels_case *c = &all_labels[i / ROUNDS / COUNT(all_keys)];
        char name[128];
        if (c->beyond) continue;
        drawn w = draw(k, c, (int)(i % ROUNDS), AMP_FP32);
        snprintf(name, sizeof name, "%s, labels %s", k->name, c->name);
        if (i % ROUNDS == 0 && !k->new_coords) shrink(&w.x);
        assert_as_the_fork(own, &w, name);
        discard(&w);
    }
}

/* Intermediate numbers overflow: the fork then gives the box no delta, and the step must not be skipped. */
TEST(a_box_beyond_floats_has_no_delta_of_its_own)
{
    NEEDS(yolo_loss);
    amp_yolo_result *result = memory(sizeof *result);
    for (size_t k = 1; k < 5; k++) {
        drawn w = draw(&all_keys[k], &all_labels[2], 0, AMP_FP32);
        amp_tensor dx = like(&w.x);
        for (size_t q = 0; q < ALL; q += SIZE) set_element(&w.x, q + 2, 200);
        ASSERT_OK(CALL(yolo_loss, &w.x, w.labels, &w.d, 1, &dx, 0, result, NULL, e));
        for (size_t e = 0; e < ALL; e++) {
            if (!isfinite(element(&dx, e)))
                fail_msg("%s: delta[%zu] is %g (%s)", all_keys[k].name, e, element(&dx, e), variant);
            if (e % SIZE == 2) assert_true(element(&dx, e) == 0);
        }
        assert_true(isfinite(result->cost) && result->labels > 0);
        discard(&w);
        release(dx.data);
    }
    release(result);
}

/* Where the fork replaces inf or NaN by 0. */
TEST(a_number_that_is_not_finite_makes_the_cost_nan)
{
    NEEDS(yolo_loss);
    for (size_t k = 0; k < COUNT(all_keys); k += 3) {
        drawn w = draw(&all_keys[k], &all_labels[2], 0, AMP_FP32);
        for (size_t e = k % 2; e < SIZE * BOXES; e += 2) assert_nan_makes_nan(&w, e, all_keys[k].name);
        discard(&w);
    }
}

TEST(results_do_not_depend_on_the_processors)
{
    NEEDS(yolo_loss);
    for (size_t k = 5; k < 7; k++) {
        drawn w = draw(&all_keys[k], &all_labels[4], 0, AMP_BF16);
        assert_same_by_any_processors(&w);
        discard(&w);
    }
}

int main(void) { return for_each_variant(run_listed); }
