/* See gpu_parts.h. The parts of a forward are found without a change to Darknet: its layers call each other
 * through pointers, and AMP's backend is a table of functions, so that clocks can stand between. */
#define _DEFAULT_SOURCE
#include "gpu_parts.h"

#include <time.h>

double gpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

#ifndef GPU

void gpu_wait(void) {}
void gpu_memory_watch(void) {}
double gpu_memory_peak(void) { return -1; }
void gpu_parts_watch(struct network *net) { (void)net; }
void gpu_parts_begin(void) {}
gpu_parts gpu_parts_take(void) { return (gpu_parts){ 0 }; }

#else
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef AMP
#include "../plugin/host/darknet/room.h"
#endif
#include "fork.h"

static void check(cudaError_t status, const char *call)
{
    if (status == cudaSuccess) return;
    fprintf(stderr, "step: %s: %s\n", call, cudaGetErrorString(status));
    exit(1);
}

void gpu_wait(void)
{
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

/* ---- memory ---- */

static struct { pthread_t thread; volatile int stop; int device; size_t free_at_start, least_free; } memory;

static size_t free_bytes(void)
{
    size_t available, total;
    check(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
    return available;
}

static void look(void)
{
    size_t now = free_bytes();
    if (now < memory.least_free) memory.least_free = now;
}

static void *look_often(void *nothing)
{
    struct timespec pause = { 0, 3000000 };
    check(cudaSetDevice(memory.device), "cudaSetDevice");
    while (!memory.stop) {
        look();
        nanosleep(&pause, NULL);
    }
    return nothing;
}

void gpu_memory_watch(void)
{
    check(cudaGetDevice(&memory.device), "cudaGetDevice");
    check(cudaFree(NULL), "cudaFree"); /* makes the context, which is no part of a network */
    memory.free_at_start = memory.least_free = free_bytes();
    if (pthread_create(&memory.thread, NULL, look_often, NULL)) check(cudaErrorUnknown, "pthread_create");
}

double gpu_memory_peak(void)
{
    memory.stop = 1;
    pthread_join(memory.thread, NULL);
    look();
    return (double)(memory.free_at_start - memory.least_free) / 1048576;
}

/* ---- the parts of a forward ---- */

enum { TYPES = BLANK + 1 };
typedef void layer_forward(struct layer, fork_pass);

static struct {
    network *net;
    layer_forward *loss[TYPES], *first;
    double began;
    gpu_parts spent;
    int has_upload;
} parts;

static int is_loss(LAYER_TYPE type)
{
    return type == YOLO || type == REGION || type == DETECTION || type == ISEG || type == SOFTMAX
        || type == LOGXENT || type == COST;
}

static void timed_loss(struct layer l, fork_pass pass)
{
    gpu_wait();
    double began = gpu_now();
    parts.loss[l.type](l, pass);
    gpu_wait();
    parts.spent.loss += gpu_now() - began;
}

/* Darknet copies images and labels before its first layer. */
static void timed_first(struct layer l, fork_pass pass)
{
    gpu_wait();
    if (!parts.has_upload) parts.spent.input = gpu_now() - parts.began;
    parts.first(l, pass);
}

#ifdef AMP
/* The host room's copies of images and labels (a fork's pass.c): labels and the first images behind what is
 * queued, other images ahead of it, which is nothing here. */
typedef amp_status upload(amp_backend *, void *, const void *, size_t, amp_error *);
static upload *real_upload_later, *real_upload_ahead;

static amp_status timed(upload *real, amp_backend *b, void *to, const void *from, size_t bytes,
                        amp_error *error)
{
    gpu_wait();
    double began = gpu_now();
    amp_status status = real(b, to, from, bytes, error);
    gpu_wait();
    parts.spent.input += gpu_now() - began;
    return status;
}

static amp_status timed_later(amp_backend *b, void *to, const void *from, size_t bytes, amp_error *error)
{
    if (to != (const void *)fork_images(parts.net) && to != (const void *)fork_labels(parts.net))
        return real_upload_later(b, to, from, bytes, error);
    return timed(real_upload_later, b, to, from, bytes, error);
}

static amp_status timed_ahead(amp_backend *b, void *to, const void *from, size_t bytes, amp_error *error)
{
    return timed(real_upload_ahead, b, to, from, bytes, error);
}
#endif

void gpu_parts_watch(struct network *net)
{
    parts.net = net;
#ifdef AMP
    if (net->amp) {
        amp_backend *backend = net->amp->engine->backend;
        real_upload_later = backend->upload_later;
        real_upload_ahead = backend->upload_ahead;
        backend->upload_later = timed_later;
        backend->upload_ahead = timed_ahead;
        parts.has_upload = 1;
    }
#endif
    for (int i = 0; i < net->n; i++) {
        layer *l = &net->layers[i];
        if (is_loss(l->type)) {
            parts.loss[l->type] = l->forward_gpu; /* one function for all layers of a type */
            l->forward_gpu = timed_loss;
        } else if (i == 0) {
            parts.first = l->forward_gpu;
            l->forward_gpu = timed_first;
        }
    }
}

void gpu_parts_begin(void)
{
    gpu_wait();
    parts.spent = (gpu_parts){ 0 };
    parts.began = gpu_now();
}

gpu_parts gpu_parts_take(void)
{
    return parts.spent;
}
#endif
