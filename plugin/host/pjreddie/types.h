/* Types and calls that differ between forks: see ../darknet/own.h. */
#pragma once

#include "gaps.h"

typedef network amp_pass; /* the network, as a layer's function sees it */
#define AMP_NET(net) ((network *)(net)) /* a network, as an argument of Darknet's functions */

/* The smallest width (height) of a box as a fraction of the image's; smaller boxes are ignored. pixels: the
 * network's width (height). */
#define AMP_OWN_LEAST_BOX(pixels) .001f
#define AMP_OWN_ON_GPU(array) (array) /* net->input_gpu, net->truth_gpu */
#define AMP_OWN_IMAGE_DELTA(net) ON_SIDE(amp_host_on_gpu(net), (net)->delta, (net)->delta_gpu)

#define AMP_OWN_SPATIAL_SOFTMAX(l) ((l)->spatial && !(l)->softmax_tree) /* 1: over a pixel's channels */

/* Types of a last layer that `detector train` and `classifier train` accept. */
#define AMP_OWN_DETECTORS YOLO: case REGION
#define AMP_OWN_JOINERS SHORTCUT /* types with several inputs and an activation */
#define AMP_OWN_CLASSIFIERS SOFTMAX: case COST: case LOGXENT

#define AMP_OWN_SAVES_BATCHNORM_BIASES 0 /* 1: a .weights file has the biases of a [batchnorm] layer */

/* The layers inside [gru] (AMP_OWN_PART of own.h). */
#define AMP_OWN_GRU_PARTS \
    AMP_OWN_PART(ur), AMP_OWN_PART(uz), AMP_OWN_PART(uh), AMP_OWN_PART(wr), \
    AMP_OWN_PART(wz), AMP_OWN_PART(wh)
