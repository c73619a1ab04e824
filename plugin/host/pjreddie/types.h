/* Types and calls that differ between forks. */
#pragma once

#include "gaps.h"

typedef network amp_pass; /* argument of a layer's functions: the network, as that layer sees it */
#define AMP_NET(net) ((network *)(net)) /* a network, as an argument of Darknet's functions */
#define AMP_OWN_LAYER layer /* a layer, as an argument of its functions */
#define AMP_OWN_LAYER_AT(l) (&(l))
#define AMP_OWN_KEEPS_A_NORMAL 1 /* rand_normal draws two numbers and keeps one for its next call */
#define AMP_OWN_LOAD_RESIZES 0 /* load_image, if it resizes, uses resize_image */

#define AMP_OWN_EDGE(edge) (edge) /* of a label's box, as in read_boxes */
/* Boxes narrower or lower than this share of the image are ignored; pixels: the network's width or height. */
#define AMP_OWN_LEAST_BOX(pixels) .001f
#define AMP_OWN_RANDOM(net) ((net)->random) /* the key of [net], which classifier train reads */
#define AMP_OWN_GPU gpu_index /* the number of the GPU to use; negative: none */
#define AMP_OWN_ON_GPU(array) (array) /* net->input_gpu, net->truth_gpu */

#define AMP_OWN_SPATIAL_SOFTMAX(l) ((l)->spatial && !(l)->softmax_tree) /* over channels at each pixel */
/* The softmax that number i of a tree belongs to: the index of its first number, and how many it covers. */
#define AMP_OWN_TREE_GROUP(t, i, first, count) \
    (*(first) = (t)->group_offset[(t)->group[i]], *(count) = (t)->group_size[(t)->group[i]])

/* Types of a last layer that `detector train` and `classifier train` accept. */
#define AMP_OWN_DETECTORS YOLO: case REGION
#define AMP_OWN_JOINERS SHORTCUT /* types with far inputs and an activation */
#define AMP_OWN_CLASSIFIERS SOFTMAX: case COST: case LOGXENT

#define AMP_OWN_SAVES_BATCHNORM_BIASES 0 /* whether a .weights file has the biases of a [batchnorm] layer */

/* The layers inside [gru] and [lstm] (AMP_OWN_PART of own.h). */
#define AMP_OWN_GRU_PARTS \
    AMP_OWN_PART(ur), AMP_OWN_PART(uz), AMP_OWN_PART(uh), AMP_OWN_PART(wr), \
    AMP_OWN_PART(wz), AMP_OWN_PART(wh)
#define AMP_OWN_LSTM_PARTS \
    AMP_OWN_PART(wf), AMP_OWN_PART(wi), AMP_OWN_PART(wg), AMP_OWN_PART(wo), \
    AMP_OWN_PART(uf), AMP_OWN_PART(ui), AMP_OWN_PART(ug), AMP_OWN_PART(uo)
