/* Types and calls that differ between forks: see ../darknet/own.h. */
#pragma once

#ifdef GPU
#include "dark_cuda.h" /* declares what is in darknet.h in other forks */
#endif

#include "../family/types.h"

/* AlexeyAB's functions take networks and layers by value, hank-ai's by reference. */
#define AMP_NET(net) (*(net))
#define AMP_RUN(function, l, state) (function)(l, state)

/* For a yolo layer with an IoU loss: whether Darknet also computes the reported cost from the IoU. */
#define AMP_OWN_COSTS_BY_IOU(l) ((l)->show_details)
/* Whether Darknet prints a line about a yolo layer in each pass. */
#define AMP_OWN_TELLS_OF_YOLO 1

#define AMP_OWN_MOST_CROP(net) ((net)->max_crop)

#define AMP_OWN_CLASSIFIERS SOFTMAX: case COST /* types of a last layer that `classifier train` accepts */

/* The layers inside [gru] (AMP_OWN_PART of own.h). */
#define AMP_OWN_GRU_PARTS \
    AMP_OWN_PART(input_z_layer), AMP_OWN_PART(input_r_layer), AMP_OWN_PART(input_h_layer), \
    AMP_OWN_PART(state_z_layer), AMP_OWN_PART(state_r_layer), AMP_OWN_PART(state_h_layer)
#define AMP_OWN_ACTIVATES_RELU6 0 /* 1: Darknet's CPU code knows relu6; 0: it outputs 0 */
