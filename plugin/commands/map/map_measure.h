/* Measures a detector on a .data file's `valid` images: for `detector map`, `amp valid` and -map during training.
 *
 * An image goes through the network as `detector test` sends it: letter-boxed, boxes above .005, non-maximum suppression at .45.
 * What comes out is counted by average_precision.c; the labels are read by detection_data.c. */
#ifndef AMP_COMMANDS_MAP_MAP_MEASURE_H
#define AMP_COMMANDS_MAP_MAP_MEASURE_H

#include "average_precision.h"
#include "detection_data.h"
#include "image_loader.h"

typedef struct amp_map_request {
    float confidence;      /* of a detection that counts for precision, recall and F1 */
    amp_ap_points points;
    int quiet;             /* no progress line on a terminal */
    amp_measure_stop stop; /* NULL: never */
} amp_map_request;

/* What is usual: -thresh .25 -points 101. */
amp_map_request amp_map_usual_request(void);
/* -points as AlexeyAB's: "0", "11" or "101". */
amp_ap_points amp_map_points(const char *text);

/* The rows that `detector map` and `amp valid` have in common in their amp_argument tables (arguments.h). */
#define AMP_MAP_ARGUMENTS(data, cfg, weights, points, confidence) \
    { .name = "DATA", .text = (data), .about = "the .data file that names the images (`valid`)" }, \
    { .name = "CFG", .text = (cfg), .about = "the network's .cfg" }, \
    { .name = "WEIGHTS", .text = (weights), .about = "what was trained" }, \
    { .name = "-points", .text = (points), .choices = "0|11|101", \
      .about = "average precision as COCO has it (101, usual), as VOC 2007 (11), or the whole area (0)" }, \
    { .name = "-thresh", .real = (confidence), .least = 0, .most = 1, \
      .about = "the confidence from which a box counts in precision, recall and F1 (.25)" }

typedef struct amp_map_result {
    amp_map_request request;
    amp_map_score total;
    amp_class_score *per_class;
    int classes;
    size_t images;         /* measured on */
    amp_lines unreadable;  /* images that were left out, labels and all: path and reason */
    size_t objects, difficult, detections;
    size_t too_thin;       /* labels left out because training leaves them out */
    double seconds;
} amp_map_result;

/* Between two steps of a training too: the network's batch is 1 meanwhile, its size, weights and counters stay as they are.
 * An image that cannot be read is named on stderr and left out. On failure too, *result is fit for amp_map_result_free.
 * AMP_BAD_CONFIG: not a detector, bad labels, no object at all, no image that can be read. AMP_DIVERGED: its output is not
 * finite; so it can be in the first tens of a training's steps in fp16, while rolling variances are near 0. */
amp_status amp_map_measure(struct network *, const amp_detection_data *, const amp_map_request *,
                           amp_map_result *, amp_error *);
void amp_map_result_free(amp_map_result *);

/* In the words of AlexeyAB's `detector map`, on stdout. names: may be shorter than the classes. */
void amp_map_print(const amp_map_result *, const amp_lines *names);

#endif
