/* Where a network's arrays lie: in the program's memory or, where Darknet was built with GPU=1 and runs it on one, in that GPU's
 * memory. device.c, pinned.c and gaps_gpu.c are the only files of this room that know CUDA; everywhere else an array
 * is one that the backend computes with, wherever it lies. */
#ifndef AMP_HOST_DEVICE_H
#define AMP_HOST_DEVICE_H

#include "darknet.h"

#include "../../backend/backend.h"
#include "../fork.h"

/* A layer's trainable arrays, and what its forward moves. Of the gradients it is Darknet's pointers that are pointed at: the
 * engine puts others in their place. state: what a recurrent layer carries from batch to batch; NULL for none. */
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
/* The network's labels, where the backend can read them; NULL: it has none. */
const float *amp_host_truth(const network *net);

/* net->input and net->truth, which are the program's, to the GPU, as upload_later does; a layer's output of `count` floats from
 * there to l->output. Nothing where there is no GPU. */
amp_status amp_host_push_input(const network *net, amp_backend *, amp_error *);
amp_status amp_host_pull_output(const network *net, int layer, size_t count, amp_backend *, amp_error *);

/* Darknet's own buffers. take: `count` zeros, or NULL where there is no memory. give_back: NULL is allowed; *buffer is NULL then. */
float *amp_host_take(size_t count, int on_gpu);
void amp_host_give_back(float **buffer, int on_gpu);
/* What only Darknet's own forward, backward and update of this layer use, on either side. moments: Adam's. */
void amp_host_give_back_internals(layer *l, int on_gpu);
void amp_host_give_back_moments(layer *l, int on_gpu);
/* What Darknet made net->workspace of; NULL is allowed. */
void amp_host_give_back_workspace(network *net);

/* Darknet's own layers, wherever they run. prepare: once, 0 where memory ran out. workspace: bytes that forward and backward
 * want as net.workspace. view: net is what layer `index` is to see: its input and the delta that its backward adds to, which
 * may be NULL. */
int amp_host_layer_prepare(layer *l, int on_gpu);
size_t amp_host_layer_workspace(const layer *l, int on_gpu);
/* Whether its matrix products can be the backend's (products.h). */
int amp_host_lends_products(const layer *l, int on_gpu);
void amp_host_layer_view(network *net, int index, float *input, float *input_delta);
void amp_host_layer_forward(layer l, network net);
void amp_host_layer_backward(layer l, network net);

#endif
