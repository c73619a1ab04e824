/* Average precision of detections against ground truth, as in pycocotools or PASCAL VOC; AlexeyAB's option
 * -points says which. The code uses nothing from Darknet, so every case can be checked by hand.
 *
 * The detections of a class are sorted by descending score, then by image, then by position in the array. In
 * this order each may take one ground truth of its image. A detection that takes a truth is a true positive,
 * any other a false positive. Which truth it takes depends on -points:
 *
 * -points 101, COCO (pycocotools' evaluateImg): the truth with the highest IoU among those that reach the
 *   threshold and are not yet taken; of equal IoUs, the last. A difficult truth (pycocotools' `ignore`
 *   without iscrowd) is taken only if no other truth can be taken, and by at most one detection.
 * -points 0 and 11, PASCAL VOC (the development kit's VOCevaldet): the truth with the highest IoU; of equal
 *   IoUs, the first. If that truth is already taken, the detection is a false positive, whatever else it
 *   overlaps. All detections of a difficult object are ignored.
 *
 * A detection that takes a difficult object is neither a true nor a false positive; a difficult object that
 * is not found is no false negative. An IoU equal to the threshold reaches it. The number of detections is
 * not limited. By default pycocotools considers at most 100 per image and class; with a higher maxDets it
 * computes the same numbers as this code.
 *
 * AlexeyAB's `detector map` always uses VOC's matching, with three differences: an IoU must exceed the
 * threshold; a difficult object is considered only if no other object overlaps enough; and a class without
 * objects counts as AP 0. It also stretches images unless letter_box=1; this plugin fits them as its Darknet
 * does (amp_fork_detector_fit). */
#pragma once

#include <stddef.h>

/* Centre, width and height, in any unit that both arrays share. A box without area overlaps nothing. */
typedef struct amp_box { float x, y, w, h; } amp_box;

/* score must not be NaN. */
typedef struct amp_detected { int image, class_id; float score; amp_box box; } amp_detected;
/* difficult: 1 if a detector need not find the object. */
typedef struct amp_truth { int image, class_id; amp_box box; int difficult; } amp_truth;

/* How the area under the precision-recall curve is computed. The values are AlexeyAB's values of -points. */
typedef enum amp_ap_points {
    AMP_AP_AREA = 0,    /* the whole area under the envelope: VOC 2010 and later */
    AMP_AP_VOC2007 = 11, /* mean precision of the envelope at recall 0, .1, ..., 1 */
    AMP_AP_COCO = 101   /* mean precision of the envelope at recall 0, .01, ..., 1 */
} amp_ap_points;

enum { AMP_AP_THRESHOLDS = 10 }; /* IoU .5, .55, ..., .95 */

typedef struct amp_map_request {
    float confidence;       /* score above which detections count for precision, recall and F1 */
    amp_ap_points points;
    double iou;             /* the IoU threshold, above 0, for true positives and amp_map_score.map */
} amp_map_request;

typedef struct amp_class_score {
    int truths;                   /* objects that are not difficult; 0: the class is left out of all means */
    int detections;
    double ap[AMP_AP_THRESHOLDS]; /* average precision, 0..1; ap[0] is at IoU .5 */
    double ap_at_iou;             /* average precision at the request's IoU */
    int true_positives;           /* at the request's IoU, among the detections with a score above
                                     `confidence` */
    int false_positives;
    double iou_sum;               /* sum of the true positives' IoUs */
} amp_class_score;

typedef struct amp_map_score {
    int classes_counted;          /* classes with ground truth */
    /* means over the counted classes, 0 if no class is counted; map: at the request's IoU */
    double map, map50, map50_95;
    int true_positives, false_positives, false_negatives;
    double precision, recall, f1; /* over all classes; 0 where the ratio is 0/0 */
    double average_iou;           /* mean IoU of the true positives */
} amp_map_score;

/* Returns the intersection over union, 0..1; 0 if the union has no area. */
double amp_box_iou(amp_box a, amp_box b);

/* Returns the totals, and fills per_class[0..classes-1]. All class_ids must be in 0..classes-1. */
amp_map_score amp_average_precision(const amp_detected *detections, size_t detection_count,
                                    const amp_truth *truths, size_t truth_count, int classes,
                                    const amp_map_request *request, amp_class_score *per_class);
