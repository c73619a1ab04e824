/* Measures a detector on a .data file's `valid` images, for `detector map`, `amp valid` and -map. Images are
 * processed as in `detector test` (amp_fork_detector_fit), boxes with a score above .005 are kept, and
 * non-maximum suppression uses an IoU of .45. */
#pragma once

#include "average_precision.h"
#include "evaluation.h"

typedef struct amp_detection_data {
    amp_lines images;    /* paths from the list `valid` */
    amp_lines names;     /* class names, in order; empty if the .data file has no `names` */
    /* AlexeyAB's list `difficult`: a path for each image; that path's label file has the image's difficult
     * objects */
    amp_lines difficult;
} amp_detection_data;

/* Reads the .data file, its lists and its `names`. AMP_BAD_CONFIG: a file is missing, no image is listed, or
 * `difficult` and `valid` differ in length. The caller frees *data, also after an error. */
amp_status amp_detection_data_read(const char *data_file, amp_detection_data *data, amp_error *);
void amp_detection_data_free(amp_detection_data *data);

/* The default: -thresh .25 -points 101, at IoU .5. */
amp_map_request amp_map_usual_request(void);

typedef struct amp_map_result {
    amp_map_request request;
    amp_map_score total;
    amp_class_score *per_class;
    int classes;
    size_t objects, difficult, detections;
    size_t too_thin;         /* number of labels left out because they are too thin, as in training */
    amp_evaluated evaluated; /* images that cannot be read are left out, together with their labels */
} amp_map_result;

/* Measures a detector's mAP. The network's size, weights and counters stay the same, so that a training can
 * go on. The caller frees *result, also after an error. AMP_BAD_CONFIG: labels are wrong, there is no object,
 * or no image can be read. AMP_DIVERGED: an output is inf or NaN, as may happen in fp16 during the first tens
 * of steps, while rolling variances are near 0. */
amp_status amp_map_measure(struct network *, const amp_detection_data *, const amp_map_request *,
                           amp_map_result *, amp_error *);
void amp_map_result_free(amp_map_result *);

/* Prints the result on stdout, in the wording of AlexeyAB's `detector map`. names may lack some classes. */
void amp_map_print(const amp_map_result *, const amp_lines *names);
/* Prints only the line with precision, recall and F1. */
void amp_map_print_precision(const amp_map_result *);
