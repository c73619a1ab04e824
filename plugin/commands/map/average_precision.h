/* Average precision of detections against ground truth, as pycocotools, PASCAL VOC and AlexeyAB's users count
 * it.
 *
 * Pure arithmetic over two arrays: nothing of Darknet's is needed here, so every case can be checked by hand.
 *
 * Matching. Within one image and class, detections are taken by falling score; equal scores by image, then by
 * their order in the array. A detection that takes a ground truth is a true positive, else a false one, so a
 * second detection of one object is false. Which truth a detection takes depends on the points:
 *
 * -points 101, COCO (pycocotools' evaluateImg): the one of highest IoU that is still free and reaches the
 *   threshold; of equal ones the later. A difficult one (pycocotools' `ignore` without iscrowd) is taken only
 *   for want of another, and by one detection.
 * -points 0 and 11, PASCAL VOC (the development kit's VOCevaldet): the one of highest IoU, of equal ones the
 *   first; if that is taken already the detection is false, whatever else it overlaps. All detections of a
 *   difficult object are left out.
 *
 * A detection that takes a difficult object counts neither way, and such an object need not be found. A
 * threshold is reached at equality. There is no limit to the detections of an image: pycocotools' usual one,
 * 100 of an image and class, hides what a detector that is used with Darknet would draw; with maxDets raised,
 * it gives the same numbers.
 *
 * AlexeyAB's `detector map` matches as VOC does, whatever its -points. It differs from this in that a
 * threshold must be exceeded, in that a difficult object is looked at only if no other is overlapped enough,
 * in counting a class without objects as AP 0, and in feeding images stretched unless letter_box=1. */
#pragma once

#include <stddef.h>

/* Centre, width and height, in any unit that both arrays share. A box without area overlaps nothing. */
typedef struct amp_box { float x, y, w, h; } amp_box;

/* score: not NaN */
typedef struct amp_detected { int image, class_id; float score; amp_box box; } amp_detected;
/* difficult: an object that need not be found. */
typedef struct amp_truth { int image, class_id; amp_box box; int difficult; } amp_truth;

/* How the area under the precision-recall curve is taken; the numbers are those of AlexeyAB's -points. */
typedef enum amp_ap_points {
    AMP_AP_AREA = 0,    /* the whole area under the envelope: VOC 2010 and later */
    AMP_AP_VOC2007 = 11, /* mean of the envelope at recall 0, .1, ..., 1 */
    AMP_AP_COCO = 101   /* mean of the envelope at recall 0, .01, ..., 1 */
} amp_ap_points;

enum { AMP_AP_THRESHOLDS = 10 }; /* IoU .5, .55, ..., .95 */

typedef struct amp_map_request {
    float confidence;       /* of a detection that counts for precision, recall and F1 */
    amp_ap_points points;
    double iou;             /* above 0: the least overlap of a true positive, also for `map` */
} amp_map_request;

typedef struct amp_class_score {
    int truths;                   /* of the class, without difficult ones; 0: its ap counts in no mean */
    int detections;
    double ap[AMP_AP_THRESHOLDS]; /* 0..1; ap[0] is at IoU .5 */
    double ap_at_iou;             /* at the request's IoU */
    int true_positives;           /* at that IoU, of the detections whose score is above `confidence` */
    int false_positives;
    double iou_sum;               /* of those true positives */
} amp_class_score;

typedef struct amp_map_score {
    int classes_counted;          /* classes with ground truth */
    double map, map50, map50_95;  /* means over them, map at the request's IoU; 0 when there are none */
    int true_positives, false_positives, false_negatives;
    double precision, recall, f1; /* over all classes; 0 where the ratio is 0/0 */
    double average_iou;           /* of the true positives */
} amp_map_score;

/* 0..1; 0 where the union has no area. */
double amp_box_iou(amp_box a, amp_box b);

/* Fills per_class[0..classes-1]. class_id of every entry is in 0..classes-1. */
amp_map_score amp_average_precision(const amp_detected *detections, size_t detection_count,
                                    const amp_truth *truths, size_t truth_count, int classes,
                                    const amp_map_request *request, amp_class_score *per_class);
