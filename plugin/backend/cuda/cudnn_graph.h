/* Convolutions through cuDNN's graph API, 8.9 and later. Only cudnn_graph.c includes cuDNN's headers.
 *
 * Layouts: activations NHWC, filters and their gradients KRSC (k, size_h, size_w, c/groups); any count of
 * channels, which cuDNN pads in its workspace where a kernel needs it. Arithmetic in fp32 on Tensor Cores.
 * All memory is the device's, 16-byte aligned, and the caller's.
 *
 * An amp_cudnn has one cuDNN handle on one stream and is used, with its plans, by one thread at a time. */
#pragma once

#include "conv_plan.h"

typedef struct amp_cudnn amp_cudnn;

/* The least cap; all convolutions of tests/golden/conv_shapes.txt run on Tensor Cores with it at batch 64. */
enum { AMP_CUDNN_WORKSPACE_CAP = 512 << 20 };

/* The cap on a device with that many bytes of memory. cuDNN pads the channels of a detector's first layers in
 * its workspace, for all images: a larger device takes more of them. */
static inline size_t amp_cudnn_workspace_cap(size_t memory)
{
    return memory / 64 > AMP_CUDNN_WORKSPACE_CAP ? memory / 64 : AMP_CUDNN_WORKSPACE_CAP;
}

typedef struct amp_cudnn_settings {
    /* Sets *memory to at least `bytes` of device memory, for the launch that follows; a kernel still queued
     * on the stream may be using the memory of the last call. After a failure the plan's next candidate is
     * tried. */
    amp_status (*reserve)(void *owner, size_t bytes, void **memory, amp_error *error);
    void *owner;
} amp_cudnn_settings;

/* On the current CUDA device and this cudaStream_t, which outlives it. */
amp_status amp_cudnn_create(void *stream, const amp_cudnn_settings *settings, amp_cudnn **out,
                            amp_error *error);

/* Without a device: plans can be made, for the device that `properties` describes (the JSON text of cuDNN's
 * device properties, read only here), but not run. A plan compiled at run time, which cannot be loaded
 * without a device, counts as made. AMP_UNSUPPORTED before cuDNN 9.8. */
amp_status amp_cudnn_create_without_device(const char *properties, amp_cudnn **out, amp_error *error);
/* After its plans. The stream must be idle. */
void amp_cudnn_destroy(amp_cudnn *library);

/* The library's version, e.g. "cuDNN 9.19.0". */
void amp_cudnn_describe(char *text, size_t size);

/* What conv_plan.c chooses with; self is an amp_cudnn. */
extern const amp_conv_library amp_cudnn_library;

/* s, where the filter gradient of this problem is written multiplied by 2^-s: in fp16; else 0. */
int amp_cudnn_downscale(const amp_conv_problem *problem);

/* The buffers of a run and cuDNN's descriptor of them, for the next run with the same. Zeros at first. */
typedef struct amp_cudnn_pack { void *descriptor, *x, *w, *y, *workspace; } amp_cudnn_pack;
void amp_cudnn_pack_free(amp_cudnn_pack *);

/* x or dx, w or dw, y or dy, by the pass. pack: reused and updated by the run; NULL: none. */
typedef struct amp_conv_buffers { void *x, *w, *y; amp_cudnn_pack *pack; } amp_conv_buffers;

/* Queues the plan's current candidate on the stream. */
amp_status amp_cudnn_launch(amp_cudnn *library, const amp_conv_plan *plan, const amp_conv_buffers *buffers,
                            amp_error *error);
