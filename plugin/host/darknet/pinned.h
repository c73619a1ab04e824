/* Page-locks the network's input images, and double-buffers them on a GPU.
 *
 * Darknet allocates net->input with calloc. A GPU copies from this memory several times slower than from
 * page-locked memory, and the CPU has to work or wait meanwhile. So AMP page-locks net->input in place, from
 * the first training forward until Darknet frees it. If the system refuses, one line is printed, and training
 * continues.
 *
 * A copy from page-locked memory can run during the previous pass. So the images of a training alternate
 * between Darknet's net->input_gpu and a second block, which is allocated in the second pass, when everything
 * else has its memory. If there is no memory for the second block, all images are copied to net->input_gpu
 * after the previous pass, as images of predictions always are. */
#pragma once

#include "darknet.h"

/* The memory that Darknet has allocated as net->input. A command may temporarily point net->input to its own
 * memory; AMP never locks that memory. */
typedef struct amp_host_pinned {
    float *input; /* NULL: unknown, or about to be freed */
    size_t bytes;
    int tried, locked; /* tried: 1 if AMP has tried to lock `input` */
    float *second;    /* the second block on the GPU, or NULL */
    int second_tried, /* 1: AMP has tried to allocate it */
        in_second;    /* 1: it contains the images of the current pass */
} amp_host_pinned;

/* Call it right after Darknet has allocated net->input: after parsing and after a resize. */
void amp_host_pin_note(amp_host_pinned *, const network *net);
/* Call it before a forward. Page-locks the recorded memory if a training's forward reads it. */
void amp_host_pin(amp_host_pinned *, const network *net);
/* Returns whether the backend's upload_ahead may copy this pass's images; in_second then says to which block.
 * Call it before amp_host_pin. */
int amp_host_image_ahead(amp_host_pinned *, const network *net);
/* Like amp_host_image_ahead, for a fork's own page-locked memory. bytes: those of the largest pass. */
int amp_host_image_turns(amp_host_pinned *, size_t bytes);
/* Call it before net->input is freed, while no copy is running. Between two hooks no copy runs, because
 * amp_engine_forward ends with uploads_done. */
void amp_host_unpin(amp_host_pinned *);
