/* Declares hank-ai's Darknet, which is C++, for C11. This file replaces AlexeyAB's darknet.h. structs.awk
 * copies the structs from hank-ai's headers, and layout.cpp checks them. Functions are called through
 * shims.cpp, by their names in AlexeyAB's C. */
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef GPU
#include <cuda_runtime.h>
#endif
#ifdef CUDNN
#include <cudnn.h> /* layers contain cuDNN's descriptors */
#endif

#include "hooks.hpp"

typedef struct tree tree;
struct network_state;
/* Layer types and loading types that hank-ai's Darknet lacks, but that tables for all forks name. */
#define AMP_OTHER_LAYERS \
    LOCAL = 32, GRU, ACTIVE, BATCHNORM, CROP, NORMALIZATION, DETECTION, DECONVOLUTIONAL, ISEG, REORG_OLD, \
    CONV_LSTM, HISTORY, IMPLICIT, LOGXENT, L2NORM,
#define AMP_OTHER_DATA CLASSIFICATION_DATA = 32, TAG_DATA, REGRESSION_DATA
#include "structs.h"

#define SHIM(result, name, parameters, expression) result name parameters __asm__("amp_shim_" #name);
#include "shims.h"
pthread_t load_data(load_args args) __asm__("amp_shim_load_data");

/* Functions with C linkage, which need no shim. */
void free_image(image im);
detection *get_network_boxes(void *net, int w, int h, float thresh, float hier, int *map, int relative,
                             int *num, int letter);
void do_nms_sort(detection *dets, int total, int classes, float thresh);
void diounms_sort(detection *dets, int total, int classes, float thresh, NMS_KIND kind, float beta);
void free_detections(detection *dets, int n);
#ifdef GPU
void cuda_set_device(int number);
#endif
