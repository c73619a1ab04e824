/* Measures a detector on a .data file's `valid` images: for `detector map`, `amp valid` and -map during
 * training. Images are processed as in `detector test`: they are letter-boxed, boxes with a score above .005
 * are kept, and non-maximum suppression is done at .45. average_precision.c evaluates the detections. */
#pragma once

#include "average_precision.h"
#include "evaluation.h"

typedef struct amp_detection_data {
    amp_lines images;    /* paths, as the `valid` list gives them */
    amp_lines names;     /* of the classes in order; empty if the .data file has no `names` */
    /* AlexeyAB's `difficult`: for each image, the path whose labels are the difficult objects */
    amp_lines difficult;
} amp_detection_data;

/* Reads the .data file, its lists and its `names`. AMP_BAD_CONFIG: a file missing, no image listed, or a
 * `difficult` list of another length. The caller frees *data with amp_detection_data_free, also after an
 * error. */
amp_status amp_detection_data_read(const char *data_file, amp_detection_data *data, amp_error *);
void amp_detection_data_free(amp_detection_data *data);

/* The defaults: -thresh .25 -points 101, at IoU .5. */
amp_map_request amp_map_usual_request(void);

typedef struct amp_map_result {
    amp_map_request request;
    amp_map_score total;
    amp_class_score *per_class;
    int classes;
    size_t objects, difficult, detections;
    size_t too_thin;         /* labels that are left out, as in training */
    amp_evaluated evaluated; /* the labels of an image that was left out are not counted */
} amp_map_result;

/* Measures a detector's mAP. May be called between two steps of a training: the network's size, weights and
 * counters are the same afterwards. The caller frees *result with amp_map_result_free, also after an error.
 * AMP_BAD_CONFIG: bad labels, no object at all, or no image that can be read. AMP_DIVERGED: an output is inf
 * or NaN, as can happen during the first tens of steps in fp16, while rolling variances are near 0. */
amp_status amp_map_measure(struct network *, const amp_detection_data *, const amp_map_request *,
                           amp_map_result *, amp_error *);
void amp_map_result_free(amp_map_result *);

/* Prints the result on stdout in the words of AlexeyAB's `detector map`. names may be shorter than the list
 * of classes. */
void amp_map_print(const amp_map_result *, const amp_lines *names);
/* Prints only the line with precision, recall and F1. */
void amp_map_print_precision(const amp_map_result *);
