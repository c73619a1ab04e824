/* Types and calls that differ between forks: see ../darknet/own.h and ../alexeyab/types.h. */
#pragma once

#include "../family/types.h"

#define AMP_OWN_TREE_GROUP amp_tree_group

#define AMP_OWN_LAYER layer *
#define AMP_OWN_LAYER_AT(l) (l)
#define AMP_OWN_KEEPS_A_NORMAL 0 /* weights are not drawn by rand_normal */

/* Where C++ takes a reference, C passes a pointer. */
#define AMP_NET(net) (net)
#define AMP_RUN(function, l, state) (function)(&(l), state)

/* The cost of a yolo layer with an IoU loss is always computed from the IoU. */
#define AMP_OWN_COSTS_BY_IOU(l) 1
#define AMP_OWN_TELLS_OF_YOLO amp_is_verbose() /* -verbose, -show_details */

/* Edges of a label's box are clamped to the image. The box's center is not changed. */
#define AMP_OWN_EDGE(edge) ((edge) < 0 ? 0 : (edge) > 1 ? 1 : (edge))
#define AMP_OWN_MOST_CROP(net) 0 /* there is no `classifier train` */
#define AMP_OWN_RANDOM(net) 0
#define AMP_OWN_GPU (*amp_gpu_index())
#define AMP_OWN_LOAD_RESIZES 1 /* load_image resizes with OpenCV, for `detector map` */
#define AMP_OWN_GRU_PARTS { { NULL }, NULL } /* there is no [gru] */
#define AMP_OWN_ACTIVATES_RELU6 1 /* 1: Darknet's CPU code knows relu6; 0: it outputs 0 */
