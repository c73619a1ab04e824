/* What alexeyab/types.h and hank_ai/types.h have in common. */
#pragma once

#include "gaps.h"

typedef network_state amp_pass; /* argument of a layer's functions: input, delta and network */

#define AMP_OWN_ON_GPU(array) (*(array)) /* net->input_gpu, net->truth_gpu */
#define AMP_OWN_IMAGE_DELTA(net) ((net)->delta)

#define AMP_OWN_SPATIAL_SOFTMAX(l) ((void)(l), 0) /* Darknet's CPU code ignores spatial= */

/* Types of a last layer that `detector train` accepts. */
#define AMP_OWN_DETECTORS YOLO: case GAUSSIAN_YOLO: case REGION
/* Types with several inputs and an activation. */
#define AMP_OWN_JOINERS SHORTCUT: case SCALE_CHANNELS: case SAM

#define AMP_OWN_SAVES_BATCHNORM_BIASES 1 /* 1: a .weights file has the biases of a [batchnorm] layer */

/* The smallest width (height) of a box as a fraction of the image's; smaller boxes are ignored. pixels: the
 * network's width (height). */
#define AMP_OWN_LEAST_BOX(pixels) (1.f / (float)(pixels))

/* Rows of amp_fork_options: the options that both forks know. */
#define AMP_OWN_FAMILY_OPTIONS \
    { "-i", 1, 1, 1 }, { "-cuda_debug_sync", 0, 1, 1 }, { "-gpus", 1, 1, 1 }, { "-clear", 0, 1, 1 }, \
    { "-c", 1, 1, 1 }, { "-dont_show", 0, 1, 1 }, { "-benchmark", 0, 1, 1 }, \
    { "-benchmark_layers", 0, 1, 1 }, { "-show_imgs", 0, 1, 1 }, { "-chart", 1, 1, 1 }, \
    { "-show", 0, 1, 0 }, { "-letter_box", 0, 1, 0 }, { "-map", 0, 1, 0 }, { "-ext_output", 0, 1, 0 }, \
    { "-save_labels", 0, 1, 0 }, { "-points", 1, 1, 0 }, { "-avgframes", 1, 1, 0 }, \
    { "-http_post_host", 1, 1, 0 }, { "-time_limit_sec", 1, 1, 0 }, { "-out_filename", 1, 1, 0 }, \
    { "-out", 1, 1, 0 }, { "-prefix", 1, 1, 0 }, { "-thresh", 1, 1, 0 }, { "-iou_thresh", 1, 1, 0 }, \
    { "-hier", 1, 1, 0 }, { "-s", 1, 1, 0 }, { "-num_of_clusters", 1, 1, 0 }, { "-width", 1, 1, 0 }, \
    { "-height", 1, 1, 0 }

/* own.c: sets the loader arguments that all commands of both forks set. */
void amp_own_common_args(const network *net, load_args *args);
