/* AlexeyAB's own yolo layer as a function: tests/alexeyab/yolo.c, compiled with that fork's source into a
 * library (tests/alexeyab/yolo.sh), which test_backend_yolo_alexeyab.c loads. */
#ifndef ALEXEYAB_YOLO_H
#define ALEXEYAB_YOLO_H

#include "backend/backend.h"

/* What one forward found. The means and losses are those of its printed line. */
typedef struct alexeyab_found {
    double cost, mean_iou, count, class_loss, iou_loss, total_loss;
} alexeyab_found;

/* x, output and delta lie as that fork's layers do: batch × boxes × (5 + classes) × h × w. With new_coords x
 * has gone through the logistic. class_table is read as it stands. */
typedef alexeyab_found alexeyab_yolo_function(const amp_yolo_desc *, int batch, int h, int w, const float *x,
                                              const float *labels, float *output, float *delta);
alexeyab_yolo_function alexeyab_yolo;

#endif
