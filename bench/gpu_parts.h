/* What step.c asks of a GPU: the end of what was queued, the memory in use, and which part of a forward is
 * the copy of the images and labels to the device and which is the loss. In a build without GPU=1 there is
 * nothing to wait for. */
#ifndef BENCH_GPU_PARTS_H
#define BENCH_GPU_PARTS_H

struct network;

typedef struct gpu_parts {
    double input, loss; /* milliseconds, from a quiet device to a quiet device */
} gpu_parts;

/* Wait until the device has done all that was queued. */
void gpu_wait(void);

/* From now on a thread looks, every few milliseconds, how much of the device's memory is taken that was not
 * at this call. Call before the network is loaded. */
void gpu_memory_watch(void);

/* Ends that thread. The most it saw, in MB; what other programs took meanwhile is in it. -1 without a GPU. */
double gpu_memory_peak(void);

/* From now on the parts of net's forwards are timed, which makes them slower. */
void gpu_parts_watch(struct network *net);

/* Before each forward; the parts of the last one. */
void gpu_parts_begin(void);
gpu_parts gpu_parts_take(void);

/* A clock, in milliseconds. */
double gpu_now(void);

#endif
