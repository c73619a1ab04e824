/* Where a network's arrays lie: in the program's memory or, where Darknet was built with GPU=1 and runs it
 * on one, in that GPU's memory. device.c and pinned.c here, and pass.c and gaps_gpu.c of a fork, are the
 * only files that know CUDA; everywhere else an array is one that the backend computes with, wherever it
 * lies. */
#pragma once

#include "darknet.h"

#include "../../backend/backend.h"
#include "../fork.h"

/* Of two expressions that which holds on this side. Where Darknet is built without GPU=1 the second is not
 * even compiled, since its fields and functions may not be there. */
#ifdef GPU
#define ON_SIDE(on_gpu, on_cpu, there) ((on_gpu) ? (there) : (on_cpu))
#else
#define ON_SIDE(on_gpu, on_cpu, there) ((void)(on_gpu), (on_cpu))
#endif

/* A layer's trainable arrays, and what its forward moves. Of the gradients it is Darknet's pointers that
 * are pointed at: the engine puts others in their place. state: what a recurrent layer carries from batch
 * to batch; NULL for none. */
typedef struct amp_host_arrays {
    float *weights, *biases, *scales, *rolling_mean, *rolling_variance, *state[2];
    float **weight_updates, **bias_updates, **scale_updates;
} amp_host_arrays;

/* Whether net runs on a GPU. Always 0 in a build without GPU=1. */
int amp_host_on_gpu(const network *net);

/* Wait until net's GPU has done all it was asked for: before looking at a clock. Nothing without a GPU. */
void amp_host_wait(const network *net);

amp_host_arrays amp_host_arrays_of(layer *l, int on_gpu);
float **amp_host_output_of(layer *l, int on_gpu);
float **amp_host_delta_of(layer *l, int on_gpu);

/* Darknet's own buffers. allocate_array: `count` zeros, or NULL where there is no memory. free_array: *buffer
 * may be NULL, and is NULL afterwards. */
float *amp_host_allocate_array(size_t count, int on_gpu);
void amp_host_free_array(float **buffer, int on_gpu);
/* Frees what only Darknet's own forward, backward and update of this layer use, in RAM or on the GPU.
 * moments: Adam's. */
void amp_host_free_internals(layer *l, int on_gpu);
void amp_host_free_moments(layer *l, int on_gpu);
/* Frees net->workspace, which may be NULL. */
void amp_host_free_workspace(network *net);
