/* Types that forks have under other names. */
#pragma once

#ifdef GPU
#include "dark_cuda.h" /* what other forks' darknet.h declares */
#endif

#include "../family/gaps.h"

/* what a layer's function is given: its input and delta, and a copy of the network */
typedef network_state amp_pass;
#define AMP_OWN_LAYER layer /* and itself */
#define AMP_OWN_LAYER_AT(l) (&(l))
#define AMP_OWN_KEEPS_A_NORMAL 1 /* rand_normal draws two numbers and keeps one for its next call */

/* Its functions take networks and layers by value, hank-ai's by reference. */
#define AMP_NET(net) (*(net))
#define AMP_RUN(function, l, state) (function)(l, state)

/* Whether a yolo layer's cost is that of IoU losses where these teach it. */
#define AMP_OWN_COSTS_BY_IOU(l) ((l)->show_details)

#define AMP_OWN_EDGE(edge) (edge) /* of a label's box, as read_boxes has it */
#define AMP_OWN_RANDOM(net) ((net)->random) /* the key of [net], which classifier train obeys */
#define AMP_OWN_GPU gpu_index /* the number of the GPU to use; negative: none */
#define AMP_OWN_ON_GPU(array) (*(array)) /* net->input_gpu, net->truth_gpu */

/* Types of a last layer that `detector train` and `classifier train` take. */
#define AMP_OWN_DETECTORS YOLO: case GAUSSIAN_YOLO: case REGION
#define AMP_OWN_CLASSIFIERS SOFTMAX: case COST

#define AMP_OWN_PLACES_PLANES 0 /* load_data_detection asks darknet_amp_next_plane */
#define AMP_OWN_SAVES_BATCHNORM_BIASES 1 /* of a batchnorm layer of its own, in a .weights file */

/* The layers inside [gru] and [lstm], with their places in a .weights file (AMP_OWN_PART of own.h). */
#define AMP_OWN_GRU_PARTS \
    AMP_OWN_PART(input_z_layer, 0), AMP_OWN_PART(input_r_layer, 1), AMP_OWN_PART(input_h_layer, 2), \
    AMP_OWN_PART(state_z_layer, 3), AMP_OWN_PART(state_r_layer, 4), AMP_OWN_PART(state_h_layer, 5)
#define AMP_OWN_LSTM_PARTS \
    AMP_OWN_PART(wf, 0), AMP_OWN_PART(wi, 1), AMP_OWN_PART(wg, 2), AMP_OWN_PART(wo, 3), \
    AMP_OWN_PART(uf, 4), AMP_OWN_PART(ui, 5), AMP_OWN_PART(ug, 6), AMP_OWN_PART(uo, 7)

/* ../family/own.c: what both commands have their loaders do. */
void amp_own_common_args(const network *net, load_args *args);
