/* Average precision of detections against ground truth, as pycocotools, PASCAL VOC and AlexeyAB's users count
 * it. The code is arithmetic on two arrays and needs nothing of Darknet's, so every case can be checked by
 * hand.
 *
 * Matching. The detections of a class are sorted by descending score, equal scores by image and then by their
 * order in the array. In this order each one is matched with the ground truths of its image. A detection that
 * takes a truth is a true positive, any other a false positive, so a second detection of one object is false.
 * Which truth a detection takes depends on -points:
 *
 * -points 101, COCO (pycocotools' evaluateImg): of the truths that are still free and reach the threshold,
 *   the one with the highest IoU, the last of equal ones. A difficult truth (pycocotools' `ignore` without
 *   iscrowd) is taken only if there is no other, and by at most one detection.
 * -points 0 and 11, PASCAL VOC (the development kit's VOCevaldet): the truth with the highest IoU, the first
 *   of equal ones. If it is taken already, the detection is false, whatever else it overlaps. All detections
 *   of a difficult object are ignored.
 *
 * A detection that takes a difficult object is neither true nor false, and a difficult object need not be
 * found. An IoU equal to the threshold reaches it. The number of detections of an image is not limited.
 * pycocotools by default considers only 100 of an image and class, and so ignores boxes that Darknet would
 * draw; with a higher maxDets its numbers are the same as those computed here.
 *
 * AlexeyAB's `detector map` matches as VOC does, for all values of -points. It differs from this code in four
 * ways: a threshold must be exceeded; a difficult object is considered only if no other overlaps enough; a
 * class without objects counts as AP 0; and images are stretched unless letter_box=1. */
#pragma once

#include <stddef.h>

/* Centre, width and height, in any unit that both arrays share. A box without area overlaps nothing. */
typedef struct amp_box { float x, y, w, h; } amp_box;

/* score must not be NaN. */
typedef struct amp_detected { int image, class_id; float score; amp_box box; } amp_detected;
/* difficult: an object that need not be found. */
typedef struct amp_truth { int image, class_id; amp_box box; int difficult; } amp_truth;

/* How the area under the precision-recall curve is computed; the numbers are those of AlexeyAB's -points. */
typedef enum amp_ap_points {
    AMP_AP_AREA = 0,    /* the whole area under the envelope: VOC 2010 and later */
    AMP_AP_VOC2007 = 11, /* mean of the envelope at recall 0, .1, ..., 1 */
    AMP_AP_COCO = 101   /* mean of the envelope at recall 0, .01, ..., 1 */
} amp_ap_points;

enum { AMP_AP_THRESHOLDS = 10 }; /* IoU .5, .55, ..., .95 */

typedef struct amp_map_request {
    float confidence;       /* detections above it count for precision, recall and F1 */
    amp_ap_points points;
    double iou;             /* above 0. The least IoU of a true positive; used for `map` too */
} amp_map_request;

typedef struct amp_class_score {
    int truths;                   /* without difficult ones; 0: the class' ap is in no mean */
    int detections;
    double ap[AMP_AP_THRESHOLDS]; /* 0..1; ap[0] is at IoU .5 */
    double ap_at_iou;             /* at the request's IoU */
    int true_positives;           /* at that IoU, of the detections whose score is above `confidence` */
    int false_positives;
    double iou_sum;               /* the sum of those true positives' IoUs */
} amp_class_score;

typedef struct amp_map_score {
    int classes_counted;          /* classes with ground truth */
    /* means over these classes; 0 if there are none. map: at the request's IoU */
    double map, map50, map50_95;
    int true_positives, false_positives, false_negatives;
    double precision, recall, f1; /* over all classes; 0 where the ratio is 0/0 */
    double average_iou;           /* of the true positives */
} amp_map_score;

/* Returns the intersection over union, 0..1; 0 if the union has no area. */
double amp_box_iou(amp_box a, amp_box b);

/* Fills per_class[0..classes-1]. class_id of every entry is in 0..classes-1. */
amp_map_score amp_average_precision(const amp_detected *detections, size_t detection_count,
                                    const amp_truth *truths, size_t truth_count, int classes,
                                    const amp_map_request *request, amp_class_score *per_class);
