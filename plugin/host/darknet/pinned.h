/* The network's input: its images in page-locked memory, and on the GPU.
 *
 * Darknet callocs net->input, and a GPU reads such memory several times slower than what is page-locked,
 * with the host at work or waiting. So it is locked where it lies: at the first training forward, because
 * only trainings are fed through it, and until Darknet frees it. A machine that refuses is no error;
 * one line is printed. Nothing without a GPU.
 *
 * What is locked can be copied while the GPU still computes the pass before. So the images of trainings take
 * turns between Darknet's net->input_gpu and a second block, which is had from the second pass on, when all
 * else has its memory: where there is none left, net->input_gpu takes them all, as it does the images of
 * predictions in their order. */
#pragma once

#include "darknet.h"

/* What Darknet has allocated as net->input: a command may put memory of its own there for a while, which
 * is never locked. */
typedef struct amp_host_pinned {
    float *input; /* NULL: not known, or to be freed */
    size_t bytes;
    int tried, locked;
    float *second;      /* on the GPU, or NULL; */
    int second_tried, in_second; /* whether the images of the current pass lie there */
} amp_host_pinned;

/* net->input was just allocated: after parsing and after a resize. */
void amp_host_pin_note(amp_host_pinned *, const network *net);
/* Before a forward: locks it if this one trains, and reads what was noted. */
void amp_host_pin(amp_host_pinned *, const network *net);
/* Before that: whether the backend's upload_ahead may copy this pass's images, to `second` if in_second
 * says so then. */
int amp_host_image_ahead(amp_host_pinned *, const network *net);
/* The same where the images lie in page-locked memory that a fork has itself; bytes: of the largest pass. */
int amp_host_image_turns(amp_host_pinned *, size_t bytes);
/* Before it is freed. No copy may be under way; none is between two hooks, as amp_engine_forward ends with
 * uploads_done. */
void amp_host_unpin(amp_host_pinned *);
