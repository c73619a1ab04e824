/* Finds a network's arrays in CPU memory or, if Darknet was built with GPU=1 and runs the network on a GPU,
 * in that GPU's memory. CUDA is called mainly in device.c and pinned.c of this folder, and in pass.c and
 * gaps_gpu.c of a fork. The other files access arrays through the backend, wherever the arrays are. */
#pragma once

#include "darknet.h"

#include "../../backend/backend.h"
#include "../fork.h"

/* Evaluates `there` if on_gpu is set, else on_cpu. Without GPU=1, `there` is not even compiled, because the
 * fields and functions in it may not exist. */
#ifdef GPU
#define ON_SIDE(on_gpu, on_cpu, there) ((on_gpu) ? (there) : (on_cpu))
#else
#define ON_SIDE(on_gpu, on_cpu, there) ((void)(on_gpu), (on_cpu))
#endif

/* A layer's trainable arrays, its rolling statistics and its state. The *_updates are the addresses of
 * Darknet's gradient pointers, because the engine points these to its own arrays. state: what a recurrent
 * layer carries from batch to batch; NULL: no state. */
typedef struct amp_host_arrays {
    float *weights, *biases, *scales, *rolling_mean, *rolling_variance, *state[2];
    float **weight_updates, **bias_updates, **scale_updates;
} amp_host_arrays;

/* Whether net runs on a GPU. Always 0 in a build without GPU=1. */
int amp_host_on_gpu(const network *net);

/* Waits until net's GPU has finished all queued work; call it before reading a clock. Without a GPU it does
 * nothing. */
void amp_host_wait(const network *net);

amp_host_arrays amp_host_arrays_of(layer *l, int on_gpu);
float **amp_host_output_of(layer *l, int on_gpu);
float **amp_host_delta_of(layer *l, int on_gpu);

/* Darknet's own buffers. allocate_array: returns `count` zeros, or NULL if there is no memory. free_array:
 * *buffer may be NULL, and is NULL afterwards. */
float *amp_host_allocate_array(size_t count, int on_gpu);
void amp_host_free_array(float **buffer, int on_gpu);
/* free_internals: frees the buffers, on the CPU and on the GPU, that only Darknet's own forward and backward
 * of this layer use. free_moments: frees Adam's moments. */
void amp_host_free_internals(layer *l, int on_gpu);
void amp_host_free_moments(layer *l, int on_gpu);
