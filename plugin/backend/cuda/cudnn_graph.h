/* Convolutions through the graph API of cuDNN 8.9 and later. Only cudnn_graph.c includes cuDNN's headers.
 *
 * Layouts: activations are NHWC, filters and their gradients KRSC (k, size_h, size_w, c/groups). Any number
 * of channels is allowed: if a kernel needs padded channels, cuDNN pads them in its workspace. Sums are in
 * fp32, also on Tensor Cores. All memory is device memory, 16-byte aligned, and owned by the caller.
 *
 * An amp_cudnn has one cuDNN handle on one stream. One thread at a time may use it and its plans. */
#pragma once

#include "conv_plan.h"

typedef struct amp_cudnn amp_cudnn;

/* The minimum of amp_cudnn_workspace_cap, in bytes. With this cap, all convolutions of
 * tests/golden/conv_shapes.txt run on Tensor Cores at batch 64. */
enum { AMP_CUDNN_WORKSPACE_CAP = 512 << 20 };

/* An engine's maximum workspace, in bytes, on a device with `memory` bytes. Larger devices train with larger
 * batches, and a detector's first layers need workspace for the whole batch with padded channels. */
static inline size_t amp_cudnn_workspace_cap(size_t memory)
{
    return memory / 64 > AMP_CUDNN_WORKSPACE_CAP ? memory / 64 : AMP_CUDNN_WORKSPACE_CAP;
}

typedef struct amp_cudnn_settings {
    /* Sets *memory to cuDNN's workspace for the next launch: at least `bytes` of device memory. Queued
     * kernels may still be using the memory that the previous call returned. */
    amp_status (*reserve)(void *owner, size_t bytes, void **memory, amp_error *error);
    void *owner;
} amp_cudnn_settings;

/* Opens cuDNN on the current CUDA device and on `stream`, a cudaStream_t that must outlive *out. */
amp_status amp_cudnn_create(void *stream, const amp_cudnn_settings *settings, amp_cudnn **out,
                            amp_error *error);

/* The library's plans must have been destroyed before, and the stream must be idle. */
void amp_cudnn_destroy(amp_cudnn *library);

/* Writes the library's version, e.g. "cuDNN 9.19.0". */
void amp_cudnn_describe(char *text, size_t size);

/* cuDNN as a library for conv_plan.h. The argument `self` of its functions is an amp_cudnn. */
extern const amp_conv_library amp_cudnn_library;

/* Returns s: cuDNN writes 2^-s times the result of this problem. s is 0 unless the problem is a filter
 * gradient in fp16, which could overflow without this scaling. */
int amp_cudnn_downscale(const amp_conv_problem *problem);

/* The buffers of the most recent run, and cuDNN's descriptor of them, which is reused as long as the buffers
 * are the same. All members are 0 at first. */
typedef struct amp_cudnn_pack { void *descriptor, *x, *w, *y, *workspace; } amp_cudnn_pack;
void amp_cudnn_pack_free(amp_cudnn_pack *);

/* A run's x or dx, w or dw, y or dy, depending on the pass. pack: reused by the runs; may be NULL. */
typedef struct amp_conv_buffers { void *x, *w, *y; amp_cudnn_pack *pack; } amp_conv_buffers;

/* Queues the plan's current candidate on the stream. */
amp_status amp_cudnn_launch(amp_cudnn *library, const amp_conv_plan *plan, const amp_conv_buffers *buffers,
                            amp_error *error);
