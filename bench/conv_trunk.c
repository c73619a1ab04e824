/* Where the time of a convolutional trunk goes: yolov3-tiny's convolutions, layer by layer, in each dtype.
 *
 *   conv_trunk [batch [runs [size]]]        default 4 5 416; OMP_NUM_THREADS=1 for figures of one core
 *
 * Prints in ms: create, once; medians of load (fp32 masters → the library's copies), fwd, bwd_x, bwd_w
 * (with the sum into fp32 dw). The first layer has no bwd_x, as in training. Without batch norm,
 * activations and pooling. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../plugin/backend/backend.h"

/* -DCONV_TRUNK_CLOCK=CLOCK_PROCESS_CPUTIME_ID: for one thread on a machine that others use, too */
#ifndef CONV_TRUNK_CLOCK
#define CONV_TRUNK_CLOCK CLOCK_MONOTONIC
#endif

enum { OPS = 4, MAX_RUNS = 101 };

typedef struct layer { int c, k, size, shrink; } layer; /* input is the network's size / shrink */

static const layer trunk[] = {
    { 3, 16, 3, 1 }, { 16, 32, 3, 2 }, { 32, 64, 3, 4 }, { 64, 128, 3, 8 }, { 128, 256, 3, 16 },
    { 256, 512, 3, 32 },
    { 512, 1024, 3, 32 }, { 1024, 256, 1, 32 }, { 256, 512, 3, 32 }, { 512, 255, 1, 32 }, { 256, 128, 1, 32 },
    { 384, 256, 3, 16 }, { 256, 255, 1, 16 },
};

static void need(amp_status status, const amp_error *error)
{
    if (status == AMP_OK) return;
    fprintf(stderr, "conv_trunk: %s\n", error->message);
    exit(1);
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CONV_TRUNK_CLOCK, &t);
    return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A tensor of small random numbers. */
static void *tensor(amp_backend *backend, amp_dtype dtype, size_t count)
{
    amp_error error;
    void *plain, *cast;
    need(backend->allocate(backend, count * sizeof(float), &plain, &error), &error);
    for (size_t i = 0; i < count; i++) ((float *)plain)[i] = (float)rand() / (float)RAND_MAX - 0.5f;
    if (dtype == AMP_FP32) return plain;
    need(backend->allocate(backend, count * 2, &cast, &error), &error);
    amp_shape shape = { 1, 1, 1, (int)count };
    amp_tensor from = { plain, AMP_FP32, AMP_NHWC, shape }, to = { cast, dtype, AMP_NHWC, shape };
    need(backend->cast(backend, &from, &to, 0, &error), &error);
    backend->release(backend, plain);
    return cast;
}

/* Medians of one layer into ms[OPS]; returns what creating it took. */
static double measure(amp_backend *backend, const layer *l, amp_dtype dtype, int batch, int runs, int size,
                      double *ms)
{
    amp_error error;
    amp_conv *conv;
    int first = l->shrink == 1, side = size / l->shrink;
    amp_conv_desc desc = { { batch, l->c, side, side }, l->k, l->size, l->size, 1, l->size / 2, 1, dtype, 1,
                           !first };
    size_t x_count = amp_shape_count(desc.x), y_count = amp_shape_count(amp_conv_output(&desc));
    size_t w_count = (size_t)l->k * l->c * l->size * l->size;
    void *x = tensor(backend, dtype, x_count), *dx = tensor(backend, dtype, x_count);
    void *y = tensor(backend, dtype, y_count), *dy = tensor(backend, dtype, y_count);
    float *w = tensor(backend, AMP_FP32, w_count), *dw = tensor(backend, AMP_FP32, w_count);
    double times[OPS][MAX_RUNS];
    int failed;
    double create = now_ms();
    need(backend->conv_create(backend, &desc, &conv, &error), &error);
    create = now_ms() - create;
    for (int run = -1; run < runs; run++) { /* the first, which touches all memory, does not count */
        int slot = run < 0 ? 0 : run;
        double t0 = now_ms();
        need(backend->conv_load_weights(backend, &(amp_conv_weights){ conv, w }, 1, &failed, &error), &error);
        double t1 = now_ms();
        need(backend->conv_forward(backend, conv, x, NULL, y, &error), &error);
        double t2 = now_ms();
        if (!first) need(backend->conv_backward_data(backend, conv, dy, dx, 0, &error), &error);
        double t3 = now_ms();
        need(backend->conv_backward_weights(backend, conv, x, dy, dw, &error), &error);
        double t4 = now_ms();
        times[0][slot] = t1 - t0, times[1][slot] = t2 - t1, times[2][slot] = t3 - t2,
            times[3][slot] = t4 - t3;
    }
    for (int op = 0; op < OPS; op++) {
        qsort(times[op], runs, sizeof(double), by_value);
        ms[op] = times[op][runs / 2];
    }
    backend->conv_destroy(backend, conv);
    void *all[] = { x, dx, y, dy, w, dw };
    for (int i = 0; i < 6; i++) backend->release(backend, all[i]);
    return create;
}

int main(int argc, char **argv)
{
    static const amp_dtype dtypes[] = { AMP_FP32, AMP_BF16, AMP_FP16 };
    int batch = argc > 1 ? atoi(argv[1]) : 4, runs = argc > 2 ? atoi(argv[2]) : 5,
        size = argc > 3 ? atoi(argv[3]) : 416;
    if (batch < 1 || runs < 1 || runs > MAX_RUNS || size < 32) {
        fprintf(stderr, "usage: conv_trunk [batch [runs (1-%d) [size (32 or more)]]]\n", MAX_RUNS);
        return 1;
    }
    amp_error error;
    amp_backend *backend = amp_cpu_backend_create(&error);
    if (!backend) need(error.status, &error);
    printf("%s; yolov3-tiny's convolutions, batch %d, %dx%d, median of %d runs, ms\n", backend->description,
           batch, size, size, runs);
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        double sum[OPS] = { 0 }, created = 0;
        printf("%-24s %8s %8s %8s %8s %8s\n", amp_dtype_name(dtypes[d]), "create", "load", "fwd", "bwd_x",
               "bwd_w");
        for (size_t i = 0; i < sizeof trunk / sizeof *trunk; i++) {
            double ms[OPS];
            double create = measure(backend, &trunk[i], dtypes[d], batch, runs, size, ms);
            printf("  %4d -> %4d %dx%d /%-6d %8.2f %8.2f %8.2f %8.2f %8.2f\n", trunk[i].c, trunk[i].k,
                   trunk[i].size, trunk[i].size, trunk[i].shrink, create, ms[0], ms[1], ms[2], ms[3]);
            created += create;
            for (int op = 0; op < OPS; op++) sum[op] += ms[op];
        }
        printf("  %-22s %8.2f %8.2f %8.2f %8.2f %8.2f   fwd + bwd %.1f\n", "sum", created, sum[0], sum[1],
               sum[2], sum[3], sum[1] + sum[2] + sum[3]);
    }
    backend->destroy(backend);
    return 0;
}
