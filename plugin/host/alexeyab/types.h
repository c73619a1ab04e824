/* Types and calls that differ between forks. */
#pragma once

#ifdef GPU
#include "dark_cuda.h" /* what other forks' darknet.h declares */
#endif

#include "../family/types.h"

/* The softmax that number i of a tree belongs to: the index of its first number, and how many it covers. */
#define AMP_OWN_TREE_GROUP(t, i, first, count) \
    (*(first) = (t)->group_offset[(t)->group[i]], *(count) = (t)->group_size[(t)->group[i]])

#define AMP_OWN_LAYER layer /* a layer, as an argument of its functions */
#define AMP_OWN_LAYER_AT(l) (&(l))
#define AMP_OWN_KEEPS_A_NORMAL 1 /* rand_normal draws two numbers and keeps one for its next call */
#define AMP_OWN_LOAD_RESIZES 0 /* load_image, if it resizes, uses resize_image */

/* Darknet's functions take networks and layers by value here, and by reference in hank-ai's. */
#define AMP_NET(net) (*(net))
#define AMP_RUN(function, l, state) (function)(l, state)

/* Whether a yolo layer's cost is computed from IoU losses if these train it. */
#define AMP_OWN_COSTS_BY_IOU(l) ((l)->show_details)
/* Whether Darknet prints a line about a yolo layer in each pass. */
#define AMP_OWN_TELLS_OF_YOLO 1

#define AMP_OWN_EDGE(edge) (edge) /* of a label's box, as in read_boxes */
/* Boxes narrower or lower than this share of the image are ignored; pixels: the network's width or height. */
#define AMP_OWN_LEAST_BOX(pixels) (1.f / (float)(pixels))
#define AMP_OWN_MOST_CROP(net) ((net)->max_crop)
#define AMP_OWN_RANDOM(net) ((net)->random) /* the key of [net], which classifier train reads */
#define AMP_OWN_GPU gpu_index /* the number of the GPU to use; negative: none */

#define AMP_OWN_CLASSIFIERS SOFTMAX: case COST /* types of a last layer that `classifier train` accepts */

/* The layers inside [gru] (AMP_OWN_PART of own.h). */
#define AMP_OWN_GRU_PARTS \
    AMP_OWN_PART(input_z_layer), AMP_OWN_PART(input_r_layer), AMP_OWN_PART(input_h_layer), \
    AMP_OWN_PART(state_z_layer), AMP_OWN_PART(state_r_layer), AMP_OWN_PART(state_h_layer)
#define AMP_OWN_ACTIVATES_RELU6 0 /* whether its CPU code knows relu6; else it outputs 0 */
