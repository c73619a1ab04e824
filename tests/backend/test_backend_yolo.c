/* Yolo's loss of a backend, against Darknet's forward_yolo_layer in double (yolo_reference.h). */
#include "yolo_reference.h"

enum { LABEL = 5 };

typedef struct yolo_case {
    const char *name;
    int n, h, w, classes, boxes, total, mask[3], labels; /* labels: per image */
    float ignore_thresh, truth_thresh;
    label_change *change; /* or NULL */
} yolo_case;

static void of_another_head(float *label, int w, int h, int i)
{
    (void)w, (void)h, (void)i;
    label[2] = 150.f / NET_W;
    label[3] = 110.f / NET_H;
}

/* Of 4 classes. */
static void each_box_twice(float *label, int w, int h, int i)
{
    (void)w, (void)h;
    if (i % 2 == 0) return;
    memcpy(label, label - LABEL, 4 * sizeof *label);
    label[4] = (float)(((int)label[4 - LABEL] + 1) % 4);
}

static const yolo_case cases[] = {
    { "a head of yolov3-tiny", 2, 5, 7, 80, 3, 4, { 0, 1, 2 }, 6, .5f, 1, NULL },
    { "one class", 3, 4, 3, 1, 3, 4, { 3, 1, 0 }, 4, .4f, 1, NULL },
    { "one box of one cell", 1, 1, 1, 3, 1, 4, { 2 }, 3, .5f, 1, NULL },
    { "more than one block", 1, 13, 13, 3, 2, 4, { 1, 3 }, 9, .3f, 1, NULL },
    { "no labels", 2, 3, 5, 3, 2, 2, { 0, 1 }, 0, .5f, 1, NULL },
    { "as many labels as there may be", 2, 6, 5, 3, 3, 4, { 0, 1, 3 }, MOST_LABELS, .5f, 1, NULL },
    { "several labels of one box", 2, 3, 3, 4, 2, 4, { 0, 1 }, 7, .7f, 1, one_place },
    { "several labels of one box and one class", 1, 3, 3, 3, 2, 4, { 1, 2 }, 5, .7f, 1, one_place_one_class },
    { "labels of another head", 2, 4, 5, 3, 2, 4, { 0, 1 }, 8, .2f, 1, of_another_head },
    { "labels end before their room does", 2, 4, 5, 3, 3, 4, { 0, 1, 2 }, 40, .3f, 1, ends_in_the_middle },
    { "labels outside of the image", 1, 4, 5, 3, 3, 4, { 0, 1, 2 }, 10, .5f, 1, outside },
    { "classes that the layer lacks", 1, 3, 4, 3, 2, 4, { 0, 1 }, 6, .5f, 1, of_no_class },
    { "boxes that overlap learn too", 2, 5, 6, 3, 3, 4, { 0, 1, 2 }, 8, .1f, .25f, NULL },
    { "boxes that overlap, and are a label's own", 2, 3, 3, 5, 3, 4, { 0, 1, 2 }, 40, .1f, .15f, one_place },
    { "of equal boxes the first is learnt", 1, 5, 6, 4, 3, 4, { 0, 1, 2 }, 8, .1f, .2f, each_box_twice },
    { "truth_thresh below ignore_thresh", 1, 4, 4, 3, 3, 4, { 1, 2, 3 }, 12, .9f, .2f, NULL },
};

static amp_yolo_desc desc_of(const yolo_case *c)
{
    amp_yolo_desc d = { AMP_YOLO_AS_PJREDDIE, .classes = c->classes, .n = c->boxes, .total = c->total,
        .net_w = NET_W, .net_h = NET_H, .ignore_thresh = c->ignore_thresh, .truth_thresh = c->truth_thresh,
        .truths = MOST_LABELS * LABEL + 3, .max_boxes = MOST_LABELS };
    memcpy(d.mask, c->mask, sizeof c->mask);
    memcpy(d.anchors, anchors, sizeof anchors);
    /* The reference has the rules of both Darknets: pjreddie's has none of these. */
    const float none[] = { d.iou_normalizer, d.obj_normalizer, d.delta_normalizer, d.cls_normalizer,
                           d.scale_x_y, d.iou_thresh };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) assert_true(none[i] == 1);
    return d;
}

static drawn draw(const yolo_case *c, amp_dtype dtype)
{
    drawn w = { .d = desc_of(c), .labels = memory((size_t)c->n * (MOST_LABELS * LABEL + 3) * sizeof(float)) };
    w.x = poisoned(dtype, c->n, c->h, c->w, c->boxes * (5 + c->classes));
    for (uint32_t seed = 1; seed < 100; seed++) {
        fill(&w.x, 7 * seed, -2, 1.5f);
        draw_labels(w.labels, &w.x, &w.d, c->labels, c->change, seed);
        w.r = reference_of(&w.x, w.labels, &w.d);
        if (w.r.clear > 1e-5) return w;
        forget(&w.r);
    }
    fail_msg("%s: rounding decides", c->name);
    return w;
}

/* ------------------------------------------------------------------------------------------------ tests */

TEST(yolo_loss_is_darknets)
{
    NEEDS(yolo_loss);
    for (size_t k = 0; k < COUNT(cases); k++)
        for (size_t t = 0; t < 3; t++)
            for (int accumulate = 0; accumulate < 2; accumulate++) {
                drawn w = draw(&cases[k], all_dtypes[t]);
                assert_loss(&w, k % 2 ? 128 : 1, accumulate, cases[k].name);
                discard(&w);
            }
}

/* Each image's part is what the image would cost alone. */
TEST(the_cost_is_told_by_image)
{
    NEEDS(yolo_loss);
    amp_yolo_result *result = memory(sizeof *result);
    double *costs = memory(8 * sizeof *costs);
    for (size_t k = 0; k < COUNT(cases); k++) {
        drawn w = draw(&cases[k], AMP_FP32);
        size_t floats = amp_shape_count(w.x.shape) / (size_t)w.x.shape.n;
        double sum = 0;
        ASSERT_OK(CALL(yolo_loss, &w.x, w.labels, &w.d, 4, NULL, 0, result, costs, e));
        assert_near(result->cost, w.r.sums.cost, "cost");
        for (int i = 0; i < w.x.shape.n; i++) {
            double alone = 0;
            for (size_t j = 0; j < floats; j++) alone += pow(w.r.delta[(size_t)i * floats + j], 2);
            assert_near(costs[i], alone, "an image's cost");
            sum += costs[i];
        }
        assert_near(sum, result->cost, "the images' costs");
        discard(&w);
    }
    release(costs);
    release(result);
}

/* For a second label, stock leaves a box's other classes unchanged if the delta of class 0 is not 0. If it is
 * 0 (the first label was of class 0, and the network is sure of it) the second label overwrites them all. */
TEST(a_second_label_overwrites_classes_where_the_first_delta_is_zero)
{
    NEEDS(yolo_loss);
    const yolo_case c = { "two labels", 1, 2, 2, 3, 1, 4, { 1 }, 2, .9f, 1, one_place };
    static const float sure[] = { 100, -200, 0 };
    for (size_t s = 0; s < 3; s++)
        for (int first = 0; first < 3; first++) {
            drawn w = draw(&c, AMP_FP32);
            w.labels[4] = (float)first;
            w.labels[LABEL + 4] = (float)((first + 1) % 3);
            set_element(&w.x, 5, sure[s]);
            forget(&w.r);
            w.r = reference_of(&w.x, w.labels, &w.d);
            assert_loss(&w, 1, 0, c.name);
            discard(&w);
        }
}

TEST(a_number_that_is_not_finite_makes_the_cost_nan)
{
    NEEDS(yolo_loss);
    for (size_t t = 0; t < 3; t++) {
        drawn w = draw(&cases[3], all_dtypes[t]);
        for (size_t i = 0; i < 24; i++)
            assert_nan_makes_nan(&w, i < 16 ? i : w.r.count - 24 + i, cases[3].name);
        discard(&w);
    }
}

TEST(a_scaled_delta_beyond_the_dtype_becomes_inf)
{
    NEEDS(yolo_loss);
    drawn w = draw(&cases[0], AMP_FP16);
    amp_tensor dx = like(&w.x);
    amp_yolo_result *result = memory(sizeof *result);
    ASSERT_OK(CALL(yolo_loss, &w.x, w.labels, &w.d, 0x1p20f, &dx, 0, result, NULL, e));
    assert_delta(&w.r, &dx, NULL, 0x1p20f, "beyond fp16");
    assert_true(isinf(element(&dx, 4)));
    assert_result(result, &w.r); /* the delta without the scale */
    discard(&w);
    release(dx.data), release(result);
}

TEST(without_labels_or_dx_the_rest_is_computed)
{
    NEEDS(yolo_loss);
    drawn w = draw(&cases[0], AMP_BF16);
    reference none = reference_of(&w.x, NULL, &w.d);
    amp_tensor dx = like(&w.x);
    amp_yolo_result *result = memory(sizeof *result);
    ASSERT_OK(CALL(yolo_loss, &w.x, NULL, &w.d, 1, &dx, 0, result, NULL, e));
    assert_delta(&none, &dx, NULL, 1, "without labels");
    assert_result(result, &none);
    ASSERT_OK(CALL(yolo_loss, &w.x, w.labels, &w.d, 1, NULL, 0, result, NULL, e));
    assert_result(result, &w.r);
    forget(&none);
    discard(&w);
    release(dx.data), release(result);
}

TEST(results_do_not_depend_on_the_processors)
{
    NEEDS(yolo_loss);
    drawn w = draw(&cases[3], AMP_FP16);
    assert_same_by_any_processors(&w);
    discard(&w);
}

TEST(yolo_activate_squashes_all_but_sizes)
{
    NEEDS(yolo_activate);
    static const int sizes[][4] = { { 1, 1, 1, 6 }, { 2, 5, 7, 3 * 85 }, { 1, 17, 19, 2 * 8 } };
    for (size_t k = 0; k < 3; k++) {
        const int *z = sizes[k], size = k == 0 ? 6 : k == 1 ? 85 : 8;
        amp_tensor y = filled(AMP_FP32, z[0], z[1], z[2], z[3], 5, -9, 9), x = copy_of(&y);
        size_t pixels = (size_t)z[1] * (size_t)z[2];
        y.layout = AMP_NCHW;
        set_element(&y, 0, NAN), set_element(&x, 0, NAN);
        amp_yolo_desc d = { AMP_YOLO_AS_PJREDDIE, .classes = size - 5, .n = z[3] / size };
        ASSERT_OK(CALL(yolo_activate, &y, &d, e));
        for (size_t e = 0; e < amp_shape_count(y.shape); e++) {
            int entry = (int)(e / pixels % (size_t)size), kept = entry == 2 || entry == 3;
            double v = element(&x, e), want = kept ? v : 1 / (1 + exp(-v));
            assert_rounded(AMP_FP32, element(&y, e), want, kept ? 0 : 0x1p-22 * want, "y", e);
        }
        release(x.data), release(y.data);
    }
}

TEST(yolo_refuses_what_does_not_belong_together)
{
    NEEDS(yolo_loss);
    drawn w = draw(&cases[1], AMP_FP32);
    amp_yolo_result *result = memory(sizeof *result);
    amp_yolo_desc d = w.d;
    amp_tensor half = poisoned(AMP_FP16, w.x.shape.n, w.x.shape.h, w.x.shape.w, w.x.shape.c);
    ASSERT_REFUSED(CALL(yolo_loss, &w.x, w.labels, &d, 1, &half, 0, result, NULL, e));
    discard(&w);
    release(half.data), release(result);
}

int main(void) { return for_each_variant(run_listed); }
