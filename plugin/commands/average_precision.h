/* Average precision of detections against ground truth, as pycocotools, PASCAL VOC and AlexeyAB's users count it.
 *
 * Pure arithmetic over two arrays: nothing of Darknet's is needed here, so every case can be checked by hand.
 *
 * Matching (COCO, cocoeval.py evaluateImg): within one image and class, detections are taken by falling score; each
 * takes the ground truth of highest IoU that is still free and reaches the threshold, and is then a true positive; else it
 * is a false positive. So a second detection of one object is false. Equal scores are taken by image, then by
 * their order in the array. */
#ifndef AMP_COMMANDS_AVERAGE_PRECISION_H
#define AMP_COMMANDS_AVERAGE_PRECISION_H

#include "../tensor/status.h"

#include <stddef.h>

/* Centre, width and height, in any unit that both arrays share. A box without area overlaps nothing. */
typedef struct amp_box { float x, y, w, h; } amp_box;

typedef struct amp_detected { int image, class_id; float score; amp_box box; } amp_detected; /* score: not NaN */
typedef struct amp_truth { int image, class_id; amp_box box; int difficult; } amp_truth;

/* How the area under the precision-recall curve is taken; the numbers are those of AlexeyAB's -points. */
typedef enum amp_ap_points {
    AMP_AP_AREA = 0,    /* the whole area under the envelope: VOC 2010 and later */
    AMP_AP_VOC2007 = 11, /* mean of the envelope at recall 0, .1, ..., 1 */
    AMP_AP_COCO = 101   /* mean of the envelope at recall 0, .01, ..., 1 */
} amp_ap_points;

enum { AMP_AP_THRESHOLDS = 10 }; /* IoU .5, .55, ..., .95 */

typedef struct amp_class_score {
    int truths;                   /* ground truths of the class; 0: its ap is meaningless and left out of every mean */
    int detections;
    double ap[AMP_AP_THRESHOLDS]; /* 0..1; ap[0] is at IoU .5 */
    int true_positives;           /* at IoU .5, of the detections whose score is above `confidence` */
    int false_positives;
    double iou_sum;               /* of those true positives */
} amp_class_score;

typedef struct amp_map_score {
    int classes_counted;          /* classes with ground truth */
    double map50, map50_95;       /* means over them; 0 when there are none */
    int true_positives, false_positives, false_negatives;
    double precision, recall, f1; /* over all classes; 0 where the ratio is 0/0 */
    double average_iou;           /* of the true positives */
} amp_map_score;

/* 0..1; 0 where the union has no area. */
double amp_box_iou(amp_box a, amp_box b);

/* Fills per_class[0..classes-1] and *total. class_id of every entry must be in 0..classes-1.
 * Errors: AMP_NO_MEMORY, AMP_BAD_CONFIG (a class_id outside). */
amp_status amp_average_precision(const amp_detected *detections, size_t detection_count, const amp_truth *truths,
                                 size_t truth_count, int classes, amp_ap_points points, float confidence,
                                 amp_class_score *per_class, amp_map_score *total, amp_error *error);

#endif
