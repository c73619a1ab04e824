/* average_precision.c against cases worked out by hand, where its rules are finest and for the numbers that
 * test_average_precision_golden.c, which compares with other programs, does not look at. */
#include "testing.h"

#include "commands/map/average_precision.h"

#include <math.h>

enum { MOST_CLASSES = 8 };

typedef struct outcome {
    amp_class_score per_class[MOST_CLASSES];
    amp_map_score total;
} outcome;

static outcome run(const amp_detected *detections, size_t detection_count, const amp_truth *truths,
                   size_t truth_count, int classes, amp_ap_points points, float confidence)
{
    outcome o;
    amp_map_request request = {confidence, points, .5};
    o.total = amp_average_precision(detections, detection_count, truths, truth_count, classes, &request,
                                    o.per_class);
    return o;
}

static void assert_near(double a, double b)
{
    if (!(fabs(a - b) < 1e-9)) fail_msg("%.12f is not %.12f", a, b);
}

/* A unit square in column `column`: squares of different columns never touch. */
static amp_box at(int column) { return (amp_box){2.f * (float)column, 0, 1, 1}; }

TEST(iou_of_boxes_is_shared_area_over_all_area)
{
    assert_near(amp_box_iou(at(0), at(0)), 1);
    assert_near(amp_box_iou(at(0), at(1)), 0);
    assert_near(amp_box_iou((amp_box){0, 0, 2, 1}, (amp_box){1, 0, 2, 1}), 1. / 3);
    assert_near(amp_box_iou((amp_box){0, 0, 1, 1}, (amp_box){1, 0, 1, 1}), 0); /* they share an edge */
    assert_near(amp_box_iou((amp_box){0, 0, 4, 4}, (amp_box){0, 0, 2, 2}), .25);
}

/* One box is .625 of the other, so that .5, .55 and .6 are reached. */
TEST(any_overlap_can_be_asked_for)
{
    const double asked[] = {.05, .5, .62, .63, .99};
    const amp_ap_points ways[] = {AMP_AP_AREA, AMP_AP_VOC2007, AMP_AP_COCO};
    const amp_detected detected = {0, 0, .9f, {0, 0, 8, 5}};
    const amp_truth truth = {0, 0, {0, 0, 8, 8}, 0};
    for (size_t i = 0; i < COUNT(ways) * COUNT(asked); i++) {
        outcome o;
        amp_map_request request = {.25f, ways[i / COUNT(asked)], asked[i % COUNT(asked)]};
        o.total = amp_average_precision(&detected, 1, &truth, 1, 1, &request, o.per_class);
        assert_near(o.total.map, request.iou < .625);
        assert_near(o.total.true_positives, request.iou < .625);
        assert_near(o.total.map50, 1);
        assert_near(o.total.map50_95, .3);
    }
}

/* Three objects; hit, miss, hit. Precision 1, 1/2, 2/3 at recall 1/3, 1/3, 2/3; the
 * envelope is 1, 2/3, 2/3. */
TEST(the_three_ways_to_take_the_area)
{
    const amp_detected detected[] = {{0, 0, .9f, at(0)}, {0, 0, .8f, at(7)}, {0, 0, .7f, at(1)}};
    const amp_truth truths[] = {{0, 0, at(0), 0}, {0, 0, at(1), 0}, {0, 0, at(2), 0}};
    outcome o = run(detected, 3, truths, 3, 1, AMP_AP_AREA, .25f);
    assert_near(o.per_class[0].ap[0], 5. / 9);
    o = run(detected, 3, truths, 3, 1, AMP_AP_VOC2007, .25f);
    assert_near(o.per_class[0].ap[0], (4 + 3 * 2. / 3) / 11); /* 0 .1 .2 .3 | .4 .5 .6 */
    o = run(detected, 3, truths, 3, 1, AMP_AP_COCO, .25f);
    assert_near(o.per_class[0].ap[0], (34 + 33 * 2. / 3) / 101); /* 0 .. .33 | .34 .. .66 */
    assert_near(o.total.precision, 2. / 3);
    assert_near(o.total.recall, 2. / 3);
    assert_near(o.total.f1, 2. / 3);
}

TEST(a_detection_takes_the_best_object_still_free)
{
    /* Both detections overlap both objects by more than half; the first takes its best, the
     * second what is left. */
    const amp_detected detected[] = {{0, 0, .9f, {0, 0, 10, 1}}, {0, 0, .8f, {.5f, 0, 10, 1}}};
    const amp_truth truths[] = {{0, 0, {2, 0, 10, 1}, 0}, {0, 0, {0, 0, 10, 1}, 0}};
    outcome o = run(detected, 2, truths, 2, 1, AMP_AP_COCO, .25f);
    assert_int_equal(o.total.true_positives, 2);
    assert_near(o.total.average_iou, (1 + 8.5 / 11.5) / 2);
}

TEST(of_two_equal_overlaps_the_later_object_is_taken)
{
    /* The first detection lies midway between both objects; the second can only have the right one. */
    const amp_detected detected[] = {{0, 0, .9f, {0, 0, 8, 1}}, {0, 0, .8f, {1, 0, 8, 1}}};
    const amp_truth left = {0, 0, {-2, 0, 8, 1}, 0}, right = {0, 0, {2, 0, 8, 1}, 0};
    const amp_truth right_last[] = {left, right}, left_last[] = {right, left};
    assert_int_equal(run(detected, 2, right_last, 2, 1, AMP_AP_COCO, .25f).total.true_positives, 1);
    assert_int_equal(run(detected, 2, left_last, 2, 1, AMP_AP_COCO, .25f).total.true_positives, 2);
}

TEST(order_of_the_arrays_does_not_matter_otherwise)
{
    const amp_detected detected[] = {{2, 1, .2f, at(0)}, {0, 0, .9f, at(0)}, {1, 1, .6f, at(1)},
                                     {0, 0, .3f, at(5)}};
    const amp_truth truths[] = {{2, 1, at(0), 0}, {1, 1, at(1), 0}, {0, 0, at(0), 0}};
    outcome o = run(detected, COUNT(detected), truths, COUNT(truths), 2, AMP_AP_COCO, .25f);
    assert_near(o.total.map50, 1);
    assert_int_equal(o.per_class[0].false_positives, 1);
    assert_int_equal(o.per_class[1].true_positives, 1); /* the other one is below the confidence */
    assert_int_equal(o.per_class[0].detections, 2);
}

TEST(confidence_is_a_lower_bound_not_included)
{
    const amp_detected detected[] = {{0, 0, .25f, at(0)}, {0, 0, .5f, at(1)}};
    const amp_truth truths[] = {{0, 0, at(0), 0}, {0, 0, at(1), 0}};
    outcome o = run(detected, 2, truths, 2, 1, AMP_AP_COCO, .25f);
    assert_int_equal(o.total.true_positives, 1);
    assert_near(o.total.recall, .5);
    assert_near(o.total.map50, 1); /* which knows no confidence */
}

/* numpy's 35th recall point is .35000000000000003, which 7 of 20 do not reach: pycocotools counts 35 points,
 * and so does whoever compares with it. */
TEST(recall_points_round_as_numpy_does)
{
    amp_detected detected[7];
    amp_truth truths[20];
    for (int i = 0; i < 20; i++) truths[i] = (amp_truth){0, 0, at(i), 0};
    for (int i = 0; i < 7; i++) detected[i] = (amp_detected){0, 0, .9f, at(i)};
    outcome o = run(detected, 7, truths, 20, 1, AMP_AP_COCO, .25f);
    assert_near(o.total.map50, 35. / 101);
}

/* Recall 3/10 is point .3, though 3 * .1 is a little more in binary: the definition is exact. */
TEST(recall_points_of_voc_are_exact)
{
    amp_detected detected[3];
    amp_truth truths[10];
    for (int i = 0; i < 10; i++) truths[i] = (amp_truth){0, 0, at(i), 0};
    for (int i = 0; i < 3; i++) detected[i] = (amp_detected){0, 0, .9f, at(i)};
    outcome o = run(detected, 3, truths, 10, 1, AMP_AP_VOC2007, .25f);
    assert_near(o.total.map50, 4. / 11);
}

/* Both detections overlap the right object most, and the left one enough. COCO gives the second
 * detection the left one. */
TEST(voc_looks_at_the_best_object_alone)
{
    const amp_detected detected[] = {{0, 0, .9f, {2, 0, 10, 1}}, {0, 0, .8f, {1.5f, 0, 10, 1}}};
    const amp_truth truths[] = {{0, 0, {0, 0, 10, 1}, 0}, {0, 0, {2, 0, 10, 1}, 0}};
    assert_int_equal(run(detected, 2, truths, 2, 1, AMP_AP_COCO, .25f).total.true_positives, 2);
    outcome o = run(detected, 2, truths, 2, 1, AMP_AP_AREA, .25f);
    assert_int_equal(o.total.true_positives, 1);
    assert_int_equal(o.total.false_positives, 1);
    assert_near(o.total.map50, .5);
}

TEST(of_two_equal_overlaps_voc_takes_the_earlier_object)
{
    const amp_detected detected[] = {{0, 0, .9f, {0, 0, 8, 1}}, {0, 0, .8f, {1, 0, 8, 1}}};
    const amp_truth left = {0, 0, {-2, 0, 8, 1}, 0}, right = {0, 0, {2, 0, 8, 1}, 0};
    const amp_truth right_last[] = {left, right}, left_last[] = {right, left};
    assert_int_equal(run(detected, 2, right_last, 2, 1, AMP_AP_AREA, .25f).total.true_positives, 2);
    assert_int_equal(run(detected, 2, left_last, 2, 1, AMP_AP_AREA, .25f).total.true_positives, 1);
}

TEST(a_difficult_object_counts_neither_way)
{
    const amp_detected seen[] = {{0, 0, .9f, at(1)}, {0, 0, .8f, at(0)}};
    const amp_truth truths[] = {{0, 0, at(0), 0}, {0, 0, at(1), 1}};
    const amp_ap_points ways[] = {AMP_AP_AREA, AMP_AP_VOC2007, AMP_AP_COCO};
    for (size_t i = 0; i < COUNT(ways); i++)
        for (size_t first = 0; first < 2; first++) { /* seen or not */
            outcome o = run(seen + first, 2 - first, truths, 2, 1, ways[i], .25f);
            assert_near(o.total.map50, 1);
            assert_int_equal(o.per_class[0].truths, 1);
            assert_int_equal(o.total.true_positives, 1);
            assert_int_equal(o.total.false_positives, 0);
            assert_int_equal(o.total.false_negatives, 0);
            assert_near(o.total.average_iou, 1);
        }
}

/* There is no limit of 100 detections of an image, as pycocotools has by default. */
TEST(the_hundred_and_first_detection_counts)
{
    amp_detected detected[101];
    const amp_truth truths[] = {{0, 0, at(0), 0}};
    for (int i = 0; i < 101; i++)
        detected[i] = (amp_detected){0, 0, .9f - (float)i / 200, at(i < 100 ? 7 : 0)};
    outcome o = run(detected, 101, truths, 1, 1, AMP_AP_COCO, .25f);
    assert_near(o.total.map50, 1. / 101);
}

int main(void) { return run_listed_tests("tests", NULL, NULL); }
