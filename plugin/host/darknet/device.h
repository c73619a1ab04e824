/* The CPU or the GPU (in builds with GPU=1) that a network runs on, and its memory. CUDA is called mainly in
 * device.c and pinned.c of this folder, and in pass.c and gaps_gpu.c of a fork; other files use the
 * backend. */
#pragma once

#include "darknet.h"

#include "../../backend/backend.h"
#include "../fork.h"

/* Evaluates `there` if on_gpu is set, else on_cpu. Without GPU=1, `there` is not compiled: its fields and
 * functions may not exist. */
#ifdef GPU
#define ON_SIDE(on_gpu, on_cpu, there) ((on_gpu) ? (there) : (on_cpu))
#else
#define ON_SIDE(on_gpu, on_cpu, there) ((void)(on_gpu), (on_cpu))
#endif

/* Always 0 in a build without GPU=1. */
int amp_host_on_gpu(const network *net);

/* Waits until net's GPU, if any, has finished all queued work; call it before reading a clock. */
void amp_host_wait(const network *net);

/* Darknet's own buffers. allocate_array: returns `count` zeros, or NULL if there is no memory. free_array:
 * *buffer may be NULL, and is NULL afterwards. */
float *amp_host_allocate_array(size_t count, int on_gpu);
void amp_host_free_array(float **buffer, int on_gpu);
