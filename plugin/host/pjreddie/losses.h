/* Between Darknet and the losses that AMP computes itself (yolo): labels in, cost and the printed line out. */
#ifndef AMP_HOST_LOSSES_H
#define AMP_HOST_LOSSES_H

#include "darknet.h"

#include "../../backend/backend.h"

/* The labels that layer `index` learns from, where the backend can read them: those of the network or, where an earlier layer
 * has truth=1, that layer's output. NULL: there are none. */
const float *amp_host_labels(network *net, int index);

/* A yolo layer's cost into *l->cost, and its line to stdout as forward_yolo_layer prints it. */
void amp_host_print_yolo_stats(const layer *l, int index, const amp_yolo_result *);

#endif
