/* average_precision.c against cases worked out by hand, and against pycocotools' own answers (golden/map_coco.txt). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "commands/average_precision.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { MOST_CLASSES = 8 };

typedef struct outcome {
    amp_class_score per_class[MOST_CLASSES];
    amp_map_score total;
} outcome;

static outcome run(const amp_detected *detections, size_t detection_count, const amp_truth *truths, size_t truth_count,
                   int classes, amp_ap_points points, float confidence)
{
    outcome o;
    amp_error error;
    assert_int_equal(amp_average_precision(detections, detection_count, truths, truth_count, classes, points,
                                           confidence, o.per_class, &o.total, &error), AMP_OK);
    return o;
}

static void assert_near(double a, double b)
{
    if (!(fabs(a - b) < 1e-9)) fail_msg("%.12f is not %.12f", a, b);
}

/* A unit square in column `column`: squares of different columns never touch. */
static amp_box at(int column) { return (amp_box){2.f * (float)column, 0, 1, 1}; }

static void iou_of_boxes_is_shared_area_over_all_area(void **state)
{
    (void)state;
    assert_near(amp_box_iou(at(0), at(0)), 1);
    assert_near(amp_box_iou(at(0), at(1)), 0);
    assert_near(amp_box_iou((amp_box){0, 0, 2, 1}, (amp_box){1, 0, 2, 1}), 1. / 3);
    assert_near(amp_box_iou((amp_box){0, 0, 1, 1}, (amp_box){1, 0, 1, 1}), 0); /* they share an edge */
    assert_near(amp_box_iou((amp_box){0, 0, 4, 4}, (amp_box){0, 0, 2, 2}), .25);
}

static void boxes_without_area_overlap_nothing(void **state)
{
    (void)state;
    const amp_box nothing = {1, 1, 0, 0}, line = {1, 1, 2, 0}, inverted = {1, 1, -1, -1};
    assert_near(amp_box_iou(nothing, nothing), 0);
    assert_near(amp_box_iou(line, (amp_box){1, 1, 2, 2}), 0);
    assert_near(amp_box_iou(inverted, inverted), 0);
    const amp_detected detected[] = {{0, 0, .9f, nothing}};
    const amp_truth truths[] = {{0, 0, nothing, 0}};
    outcome o = run(detected, 1, truths, 1, 1, AMP_AP_COCO, .25f);
    assert_near(o.total.map50, 0);
    assert_int_equal(o.total.false_positives, 1);
    assert_int_equal(o.total.false_negatives, 1);
}

static void a_perfect_detector_scores_one(void **state)
{
    (void)state;
    const amp_detected detected[] = {{0, 0, .9f, at(0)}, {0, 1, .6f, at(1)}, {1, 0, .3f, at(0)}};
    const amp_truth truths[] = {{0, 0, at(0), 0}, {0, 1, at(1), 0}, {1, 0, at(0), 0}};
    const amp_ap_points ways[] = {AMP_AP_AREA, AMP_AP_VOC2007, AMP_AP_COCO};
    for (size_t i = 0; i < COUNT(ways); ++i) {
        outcome o = run(detected, COUNT(detected), truths, COUNT(truths), 2, ways[i], .25f);
        assert_near(o.total.map50, 1);
        assert_near(o.total.map50_95, 1);
        assert_near(o.total.precision, 1);
        assert_near(o.total.recall, 1);
        assert_near(o.total.f1, 1);
        assert_near(o.total.average_iou, 1);
    }
}

static void a_silent_detector_scores_zero(void **state)
{
    (void)state;
    const amp_truth truths[] = {{0, 0, at(0), 0}, {3, 0, at(0), 0}};
    outcome o = run(NULL, 0, truths, COUNT(truths), 1, AMP_AP_COCO, .25f);
    assert_near(o.total.map50, 0);
    assert_near(o.total.precision, 0);
    assert_near(o.total.f1, 0);
    assert_int_equal(o.total.false_negatives, 2);
}

static void nothing_to_find_counts_no_class(void **state)
{
    (void)state;
    const amp_detected detected[] = {{0, 0, .9f, at(0)}};
    outcome o = run(detected, 1, NULL, 0, 1, AMP_AP_COCO, .25f);
    assert_int_equal(o.total.classes_counted, 0);
    assert_near(o.total.map50, 0);
    assert_near(o.total.recall, 0);
    assert_int_equal(o.total.false_positives, 1);
}

/* Three objects; hit, miss, hit. Precision 1, 1/2, 2/3 at recall 1/3, 1/3, 2/3; the envelope is 1, 2/3, 2/3. */
static void the_three_ways_to_take_the_area(void **state)
{
    (void)state;
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

static void a_late_rise_of_precision_lifts_what_comes_before(void **state)
{
    (void)state;
    const amp_detected detected[] = {{0, 0, .9f, at(7)}, {0, 0, .8f, at(0)}, {0, 0, .7f, at(1)}, {0, 0, .6f, at(2)}};
    const amp_truth truths[] = {{0, 0, at(0), 0}, {0, 0, at(1), 0}, {0, 0, at(2), 0}};
    outcome o = run(detected, 4, truths, 3, 1, AMP_AP_COCO, .25f); /* 0, 1/2, 2/3, 3/4 */
    assert_near(o.per_class[0].ap[0], .75);
}

static void a_second_detection_of_one_object_is_false(void **state)
{
    (void)state;
    const amp_detected detected[] = {{0, 0, .9f, at(0)}, {0, 0, .8f, at(0)}, {0, 0, .7f, at(1)}};
    const amp_truth truths[] = {{0, 0, at(0), 0}, {0, 0, at(1), 0}};
    outcome o = run(detected, 3, truths, 2, 1, AMP_AP_AREA, .25f);
    assert_int_equal(o.total.true_positives, 2);
    assert_int_equal(o.total.false_positives, 1);
    assert_near(o.per_class[0].ap[0], (1 + 2. / 3) / 2);
}

static void a_detection_takes_the_best_object_still_free(void **state)
{
    (void)state;
    /* Both detections overlap both objects by more than half; the first takes its best, the second what is left. */
    const amp_detected detected[] = {{0, 0, .9f, {0, 0, 10, 1}}, {0, 0, .8f, {.5f, 0, 10, 1}}};
    const amp_truth truths[] = {{0, 0, {2, 0, 10, 1}, 0}, {0, 0, {0, 0, 10, 1}, 0}};
    outcome o = run(detected, 2, truths, 2, 1, AMP_AP_COCO, .25f);
    assert_int_equal(o.total.true_positives, 2);
    assert_near(o.total.average_iou, (1 + 8.5 / 11.5) / 2);
}

static void of_two_equal_overlaps_the_later_object_is_taken(void **state)
{
    (void)state;
    /* The first detection lies midway between both objects; the second can only have the right one. */
    const amp_detected detected[] = {{0, 0, .9f, {0, 0, 8, 1}}, {0, 0, .8f, {1, 0, 8, 1}}};
    const amp_truth left = {0, 0, {-2, 0, 8, 1}, 0}, right = {0, 0, {2, 0, 8, 1}, 0};
    const amp_truth right_last[] = {left, right}, left_last[] = {right, left};
    assert_int_equal(run(detected, 2, right_last, 2, 1, AMP_AP_COCO, .25f).total.true_positives, 1);
    assert_int_equal(run(detected, 2, left_last, 2, 1, AMP_AP_COCO, .25f).total.true_positives, 2);
}

static void equal_scores_keep_their_order(void **state)
{
    (void)state;
    const amp_truth truths[] = {{0, 0, at(0), 0}};
    const amp_detected hit_first[] = {{0, 0, .5f, at(0)}, {0, 0, .5f, at(7)}};
    const amp_detected miss_first[] = {{0, 0, .5f, at(7)}, {0, 0, .5f, at(0)}};
    assert_near(run(hit_first, 2, truths, 1, 1, AMP_AP_COCO, .25f).total.map50, 1);
    assert_near(run(miss_first, 2, truths, 1, 1, AMP_AP_COCO, .25f).total.map50, .5);
    const amp_detected image_first[] = {{1, 0, .5f, at(7)}, {0, 0, .5f, at(0)}}; /* the lower image goes first */
    assert_near(run(image_first, 2, truths, 1, 1, AMP_AP_COCO, .25f).total.map50, 1);
}

static void order_of_the_arrays_does_not_matter_otherwise(void **state)
{
    (void)state;
    const amp_detected detected[] = {{2, 1, .2f, at(0)}, {0, 0, .9f, at(0)}, {1, 1, .6f, at(1)}, {0, 0, .3f, at(5)}};
    const amp_truth truths[] = {{2, 1, at(0), 0}, {1, 1, at(1), 0}, {0, 0, at(0), 0}};
    outcome o = run(detected, COUNT(detected), truths, COUNT(truths), 2, AMP_AP_COCO, .25f);
    assert_near(o.total.map50, 1);
    assert_int_equal(o.per_class[0].false_positives, 1);
    assert_int_equal(o.per_class[1].true_positives, 1); /* the other one is below the confidence */
    assert_int_equal(o.per_class[0].detections, 2);
}

static void other_images_and_classes_do_not_match(void **state)
{
    (void)state;
    const amp_detected detected[] = {{1, 0, .9f, at(0)}, {0, 1, .9f, at(0)}};
    const amp_truth truths[] = {{0, 0, at(0), 0}, {1, 1, at(0), 0}};
    outcome o = run(detected, 2, truths, 2, 2, AMP_AP_COCO, .25f);
    assert_near(o.total.map50, 0);
    assert_int_equal(o.total.false_positives, 2);
}

static void a_class_without_objects_stays_out_of_the_mean(void **state)
{
    (void)state;
    const amp_detected detected[] = {{0, 0, .9f, at(0)}, {0, 1, .9f, at(3)}};
    const amp_truth truths[] = {{0, 0, at(0), 0}, {0, 2, at(5), 0}};
    outcome o = run(detected, 2, truths, 2, 3, AMP_AP_COCO, .25f);
    assert_int_equal(o.total.classes_counted, 2);
    assert_near(o.total.map50, .5);
    assert_int_equal(o.per_class[1].truths, 0);
    assert_int_equal(o.total.false_positives, 1); /* yet what was seen there was not */
}

static void an_overlap_of_three_quarters_counts_up_to_that_threshold(void **state)
{
    (void)state;
    const amp_detected detected[] = {{0, 0, .9f, {1.5f, 0, 3, 1}}};
    const amp_truth truths[] = {{0, 0, {2, 0, 4, 1}, 0}};
    outcome o = run(detected, 1, truths, 1, 1, AMP_AP_COCO, .25f);
    for (int t = 0; t < AMP_AP_THRESHOLDS; ++t) assert_near(o.per_class[0].ap[t], t <= 5);
    assert_near(o.total.map50_95, .6);
}

static void confidence_is_a_lower_bound_not_included(void **state)
{
    (void)state;
    const amp_detected detected[] = {{0, 0, .25f, at(0)}, {0, 0, .5f, at(1)}};
    const amp_truth truths[] = {{0, 0, at(0), 0}, {0, 0, at(1), 0}};
    outcome o = run(detected, 2, truths, 2, 1, AMP_AP_COCO, .25f);
    assert_int_equal(o.total.true_positives, 1);
    assert_near(o.total.recall, .5);
    assert_near(o.total.map50, 1); /* which knows no confidence */
}

/* numpy's 35th recall point is .35000000000000003, which 7 of 20 do not reach: pycocotools counts 35 points, and so
 * does whoever compares with it. */
static void recall_points_round_as_numpy_does(void **state)
{
    (void)state;
    amp_detected detected[7];
    amp_truth truths[20];
    for (int i = 0; i < 20; ++i) truths[i] = (amp_truth){0, 0, at(i), 0};
    for (int i = 0; i < 7; ++i) detected[i] = (amp_detected){0, 0, .9f, at(i)};
    outcome o = run(detected, 7, truths, 20, 1, AMP_AP_COCO, .25f);
    assert_near(o.total.map50, 35. / 101);
}

static void a_class_outside_is_refused(void **state)
{
    (void)state;
    amp_class_score per_class[1];
    amp_map_score total;
    amp_error error;
    const amp_detected detected[] = {{0, 1, .9f, {0, 0, 1, 1}}};
    const amp_truth truths[] = {{0, -1, {0, 0, 1, 1}, 0}};
    assert_int_equal(amp_average_precision(detected, 1, NULL, 0, 1, AMP_AP_COCO, .25f, per_class, &total, &error),
                     AMP_BAD_CONFIG);
    assert_non_null(strstr(error.message, "class 1 is outside 0..0"));
    assert_int_equal(amp_average_precision(NULL, 0, truths, 1, 1, AMP_AP_COCO, .25f, per_class, &total, &error),
                     AMP_BAD_CONFIG);
}

static amp_box sixteenths(const int v[4])
{
    return (amp_box){(float)v[0] / 16, (float)v[1] / 16, (float)v[2] / 16, (float)v[3] / 16};
}

/* Reads one case of golden/map_coco.txt, whose form oracles/map_oracle.py describes, and compares. */
static void replay_case(FILE *golden, int truth_count, int detection_count, int classes)
{
    amp_truth truths[64];
    amp_detected detected[64];
    int v[4], score;
    assert_true(truth_count <= 64 && detection_count <= 64 && classes <= MOST_CLASSES);
    for (int i = 0; i < truth_count; ++i) {
        assert_int_equal(fscanf(golden, " t %d %d %d %d %d %d", &truths[i].image, &truths[i].class_id, v, v + 1, v + 2,
                                v + 3), 6);
        truths[i].box = sixteenths(v);
    }
    for (int i = 0; i < detection_count; ++i) {
        assert_int_equal(fscanf(golden, " d %d %d %d %d %d %d %d", &detected[i].image, &detected[i].class_id, &score, v,
                                v + 1, v + 2, v + 3), 7);
        detected[i].score = (float)score / 1000;
        detected[i].box = sixteenths(v);
    }
    outcome o = run(detected, (size_t)detection_count, truths, (size_t)truth_count, classes, AMP_AP_COCO, .25f);
    for (int c = 0; c < classes; ++c) {
        int class_id;
        assert_int_equal(fscanf(golden, " ap %d", &class_id), 1);
        for (int t = 0; t < AMP_AP_THRESHOLDS; ++t) {
            double expected;
            assert_int_equal(fscanf(golden, "%lf", &expected), 1);
            if (expected < 0) assert_int_equal(o.per_class[class_id].truths, 0);
            else if (fabs(o.per_class[class_id].ap[t] - expected) > 1e-6)
                fail_msg("class %d, threshold %d: %.6f, and pycocotools has %.6f", class_id, t,
                         o.per_class[class_id].ap[t], expected);
        }
    }
}

static void random_cases_score_as_in_pycocotools(void **state)
{
    (void)state;
    char path[4096], line[256];
    const char *slash = strrchr(__FILE__, '/');
    snprintf(path, sizeof path, "%.*sgolden/map_coco.txt", slash ? (int)(slash - __FILE__ + 1) : 0, __FILE__);
    FILE *golden = fopen(path, "r");
    if (!golden) fail_msg("cannot read %s", path);
    int cases = 0, truth_count, detection_count, classes;
    while (fgets(line, sizeof line, golden))
        if (sscanf(line, "case %d %d %d", &truth_count, &detection_count, &classes) == 3) {
            replay_case(golden, truth_count, detection_count, classes);
            ++cases;
        }
    fclose(golden);
    assert_true(cases >= 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(iou_of_boxes_is_shared_area_over_all_area),
        cmocka_unit_test(boxes_without_area_overlap_nothing),
        cmocka_unit_test(a_perfect_detector_scores_one),
        cmocka_unit_test(a_silent_detector_scores_zero),
        cmocka_unit_test(nothing_to_find_counts_no_class),
        cmocka_unit_test(the_three_ways_to_take_the_area),
        cmocka_unit_test(a_late_rise_of_precision_lifts_what_comes_before),
        cmocka_unit_test(a_second_detection_of_one_object_is_false),
        cmocka_unit_test(a_detection_takes_the_best_object_still_free),
        cmocka_unit_test(of_two_equal_overlaps_the_later_object_is_taken),
        cmocka_unit_test(equal_scores_keep_their_order),
        cmocka_unit_test(order_of_the_arrays_does_not_matter_otherwise),
        cmocka_unit_test(other_images_and_classes_do_not_match),
        cmocka_unit_test(a_class_without_objects_stays_out_of_the_mean),
        cmocka_unit_test(an_overlap_of_three_quarters_counts_up_to_that_threshold),
        cmocka_unit_test(confidence_is_a_lower_bound_not_included),
        cmocka_unit_test(recall_points_round_as_numpy_does),
        cmocka_unit_test(a_class_outside_is_refused),
        cmocka_unit_test(random_cases_score_as_in_pycocotools),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
