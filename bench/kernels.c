/* How long the CPU backend's own kernels take on yolov3-tiny's shapes (416×416, batch 4), against
 * the bytes they must move: batch norm + leaky and max pooling, forward and backward, and the update
 * of its 8.9 M parameters.
 *
 *   cd build/cpu/CMakeFiles/amp_room_backend_cpu.dir/plugin/backend/cpu
 *   gcc -std=gnu11 -O3 -fopenmp SOURCE/bench/kernels.c rows*.o plan.c.o batchnorm.c.o pool.c.o update.c.o \
 *       -lm -o kernels
 *   OMP_NUM_THREADS=1 ./kernels [repetitions]        AMP_CPU_ISA=avx2 caps the instruction set
 *
 * Times are medians in milliseconds. GB/s counts each stream once per pass: batch norm forward
 * reads x twice and writes y; backward reads x, y and dy twice and writes dx; pooling reads and
 * writes x, y and the choices. */
#include "../plugin/backend/cpu/kernels.h"
#include "../plugin/backend/cpu/rows.h"
#include "../plugin/tensor/half.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MAX_REPETITIONS = 101 };

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *times, int count)
{
    qsort(times, (size_t)count, sizeof *times, ascending);
    return times[count / 2];
}

static void *need(void *memory)
{
    if (memory) return memory;
    fputs("bench_kernels: out of memory\n", stderr);
    exit(1);
}

static void expect(amp_status status, const amp_error *error)
{
    if (status == AMP_OK) return;
    fprintf(stderr, "bench_kernels: %s\n", error->message);
    exit(1);
}

static amp_tensor tensor(amp_dtype dtype, int n, int h, int w, int c)
{
    amp_tensor t = { NULL, dtype, AMP_NHWC, { n, c, h, w } };
    t.data = need(aligned_alloc(64, (amp_tensor_bytes(&t) + 63) / 64 * 64));
    uint32_t state = 12345;
    for (size_t i = 0; i < amp_shape_count(t.shape); i++) {
        state = state * 1664525u + 1013904223u;
        float value = (float)(state >> 8) * 0x1p-23f - 1;
        if (dtype == AMP_FP32) ((float *)t.data)[i] = value;
        else ((amp_half_bits *)t.data)[i] = dtype == AMP_FP16 ? amp_float_to_fp16(value)
            : amp_float_to_bf16(value);
    }
    return t;
}

static float *array(size_t count, float value)
{
    float *a = need(malloc(count * sizeof *a));
    for (size_t i = 0; i < count; i++) a[i] = value;
    return a;
}

/* One layer of the trunk: batch norm over size²·c and, with stride > 0, the pool behind it. Adds
 * its times to total. */
static void layer(amp_dtype dtype, int size, int c, int stride, int repetitions, double total[4])
{
    double times[4][MAX_REPETITIONS], ms[4] = { 0 };
    int pooled = stride == 2 ? size / 2 : size;
    amp_tensor x = tensor(dtype, 4, size, size, c), y = tensor(dtype, 4, size, size, c);
    amp_tensor dy = tensor(dtype, 4, size, size, c), dx = tensor(dtype, 4, size, size, c);
    amp_tensor p = tensor(dtype, 4, pooled, pooled, c);
    uint8_t *choice = need(malloc(amp_shape_count(p.shape)));
    float *params[8];
    for (int i = 0; i < 8; i++) params[i] = array((size_t)c, i & 1 ? .5f : 1);
    const amp_batchnorm norm = { { 1, 0, 1e-6f, 1e-5f, 0, .01f }, AMP_LEAKY, params[0], params[1], params[2],
        params[3], params[4], params[5], params[6], params[7], NULL, NULL };
    amp_error error;
    for (int r = 0; r < repetitions; r++) {
        double t0 = now_ms();
        expect(amp_cpu_batchnorm_forward_train(NULL, &x, &y, &norm, &error), &error);
        double t1 = now_ms();
        if (stride) expect(amp_cpu_maxpool_forward(NULL, &y, &p, choice, 2, stride, 1, &error), &error);
        double t2 = now_ms();
        if (stride) expect(amp_cpu_maxpool_backward(NULL, &p, choice, &dy, 2, stride, 1, 0, &error), &error);
        double t3 = now_ms();
        expect(amp_cpu_batchnorm_backward(NULL, &x, &y, &dy, &dx, &norm, &error), &error);
        double t4 = now_ms();
        times[0][r] = t1 - t0; times[1][r] = t4 - t3; times[2][r] = t2 - t1; times[3][r] = t3 - t2;
    }
    double gb = (double)amp_tensor_bytes(&x) * 1e-6;
    double pool_gb = stride ? gb + (double)amp_tensor_bytes(&p) * 1e-6 + (double)amp_shape_count(p.shape)
        * 1e-6 : 0;
    double moved[4] = { 3 * gb, 7 * gb, pool_gb, pool_gb };
    printf("  %4d @ %3d²", c, size);
    for (int k = 0; k < 4; k++) {
        ms[k] = median(times[k], repetitions);
        total[k] += ms[k];
        printf("  %7.3f ms %6.1f GB/s", ms[k], moved[k] / ms[k]);
    }
    putchar('\n');
    for (int i = 0; i < 8; i++) free(params[i]);
    free(choice);
    free(x.data); free(y.data); free(dy.data); free(dx.data); free(p.data);
}

static void trunk(amp_dtype dtype, int repetitions)
{
    static const struct { int size, c, stride; } layers[] = {
        { 416, 16, 2 }, { 208, 32, 2 }, { 104, 64, 2 }, { 52, 128, 2 }, { 26, 256, 2 }, { 13, 512, 1 },
        { 13, 1024, 0 } };
    double total[4] = { 0 };
    printf("%s       batch norm forward       backward             max pool forward     backward\n",
           amp_dtype_name(dtype));
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        layer(dtype, layers[i].size, layers[i].c, layers[i].stride, repetitions, total);
    printf("  all: %.2f + %.2f + %.2f + %.2f = %.2f ms\n\n", total[0], total[1], total[2], total[3],
        total[0] + total[1] + total[2] + total[3]);
}

static void update(int repetitions)
{
    enum { LAYERS = 9 };
    static const size_t counts[LAYERS] = { 432, 4608, 18432, 73728, 294912, 1179648, 4718592, 1305600,
                                           1265536 };
    double times[3][MAX_REPETITIONS];
    amp_param params[LAYERS];
    size_t all = 0;
    for (int i = 0; i < LAYERS; i++) {
        params[i] = (amp_param){ .master = array(counts[i], .1f), .grad = array(counts[i], .2f),
            .momentum = array(counts[i], 0), .m = array(counts[i], 0), .v = array(counts[i], 0),
            .count = counts[i], .decay = .0005f, .rate_scale = 1, .layer = i, .name = "weights" };
        all += counts[i];
    }
    amp_step_end end = { .params = params, .param_count = LAYERS };
    amp_step_outcome outcome;
    end.update = (amp_update_args){ .learning_rate = 1e-6f, .momentum = .9f, .batch = 64,
        .inverse_scale = 1, .t = 1, .beta1 = .9f, .beta2 = .999f, .eps = 1e-8f };
    amp_error error;
    for (int r = 0; r < repetitions; r++) {
        int found;
        double squares, t0 = now_ms();
        expect(amp_cpu_check_gradients(NULL, params, LAYERS, 1, &found, &squares, &error), &error);
        double t1 = now_ms();
        end.update.adam = 0;
        expect(amp_cpu_finish_step(NULL, &end, &outcome, &error), &error);
        double t2 = now_ms();
        end.update.adam = 1;
        expect(amp_cpu_finish_step(NULL, &end, &outcome, &error), &error);
        times[0][r] = t1 - t0; times[1][r] = t2 - t1; times[2][r] = now_ms() - t2;
    }
    static const char *names[3] = { "check_gradients", "a step, SGD", "a step, Adam" };
    static const double streams[3] = { 1, 7, 9 };
    for (int k = 0; k < 3; k++) {
        double ms = median(times[k], repetitions);
        printf("%-16s %.2f M parameters  %7.3f ms %6.1f GB/s\n", names[k], (double)all * 1e-6, ms,
            streams[k] * 4e-6 * (double)all / ms);
    }
    for (int i = 0; i < LAYERS; i++) {
        free(params[i].master); free(params[i].grad); free(params[i].momentum); free(params[i].m);
        free(params[i].v);
    }
}

int main(int argc, char **argv)
{
    int repetitions = argc > 1 ? atoi(argv[1]) : 9;
    if (repetitions < 1 || repetitions > MAX_REPETITIONS) {
        fprintf(stderr, "bench_kernels: repetitions must be 1 to %d\n", MAX_REPETITIONS);
        return 1;
    }
    printf("instruction set: %s\n\n", amp_cpu_rows_best()->name);
    trunk(AMP_BF16, repetitions);
    trunk(AMP_FP16, repetitions);
    trunk(AMP_FP32, repetitions);
    update(repetitions);
    return 0;
}
