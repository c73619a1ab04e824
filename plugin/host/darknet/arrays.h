/* Finds a layer's arrays in CPU memory (on_gpu = 0) or, for a network that runs on a GPU, in that GPU's
 * memory. */
#pragma once

#include "darknet.h"

/* A layer's trainable arrays, its rolling statistics and its state. weight_updates, bias_updates and
 * scale_updates are the addresses of Darknet's gradient pointers: the engine redirects these pointers to its
 * own arrays. state: what a recurrent layer carries from batch to batch; NULL: no state. */
typedef struct amp_host_arrays {
    float *weights, *biases, *scales, *rolling_mean, *rolling_variance, *state[2];
    float **weight_updates, **bias_updates, **scale_updates;
} amp_host_arrays;

amp_host_arrays amp_host_arrays_of(layer *l, int on_gpu);
float **amp_host_output_of(layer *l, int on_gpu);
float **amp_host_delta_of(layer *l, int on_gpu);
