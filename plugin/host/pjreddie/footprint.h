/* What a network takes of memory and of arithmetic: stock's buffers as its make_*_layer functions take them, AMP's as a plan
 * lays them out. Nothing runs, and nothing is taken for it. */
#ifndef AMP_HOST_FOOTPRINT_H
#define AMP_HOST_FOOTPRINT_H

#include "pjreddie.h"

/* The plan of a training step at net's shape, built if there is none yet: net's engine's, until it adds another. */
amp_status amp_host_training_plan(network *net, const amp_plan **out, amp_error *);

/* Bytes that a training pass of `batch` images takes besides weights and what has their size. */
typedef struct amp_host_footprint {
    size_t arena;   /* planned: activations and deltas, sharing memory where their lives allow */
    size_t buffers; /* Darknet's fp32 buffers that stay: those of its own layers, and what these read and write */
    size_t input;   /* images and labels */
} amp_host_footprint;

/* As an engine in dtype would plan it. batch counts what one forward takes: with time_steps, images times those. */
amp_status amp_host_footprint_of(network *net, int batch, amp_dtype dtype, amp_host_footprint *out, amp_error *);
size_t amp_host_footprint_sum(const amp_host_footprint *);

/* What a training's loading of images holds in RAM for batches of so many: the batch that trains, and the
 * next. 0 on a GPU, whose memory is another. */
size_t amp_host_loaded_bytes(const network *net, int images);

/* Of those buffers, what layer i's are under this plan. */
size_t amp_host_buffer_bytes(const network *net, int i, int batch, const amp_plan *plan);
/* Stock's buffers of a layer that grow with the batch: outputs, deltas, and what its backward reads again. */
size_t amp_host_stock_bytes(const layer *l, int batch, int on_gpu);
/* What stock's layers share, at most: im2col's matrix. Under AMP only its own layers ask for it. */
size_t amp_host_stock_workspace(const network *net);
size_t amp_host_own_workspace(const network *net);
/* Floating-point operations of the layer's matrix products in one forward: a multiplication and an addition are two. */
double amp_host_operations(const layer *l, int batch);
/* How large a batch may be before Darknet's own numbers of elements, which are ints, overflow. */
int amp_host_largest_batch(const network *net);

#endif
