/* The end of a step: is every gradient finite, and the update of every parameter, each in one launch over all parameters.
 *
 * A table on the device lists the parameters, and cuts them into chunks, one for each block: pointers never cross as
 * arguments of a kernel. It is made anew only when the list of parameters differs from the one it was made of.
 *
 * Products and sums are rounded one by one, as stock's separate calls do, so that weights come out as on the CPU. A
 * gradient's square is exact in double; sums go by position within a chunk, then by chunk: the same on every device. */
#include "kernels.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "device.cuh"

enum { UPDATE_THREADS = 256 };
static const size_t CHUNK = 8192; /* elements for a block */

/* The numbers of an amp_param that kernels need. */
typedef struct entry {
    float *master, *grad, *momentum, *m, *v;
    float decay, rate_scale, clip;
    int wide; /* all arrays can be moved 16 bytes at a time */
} entry;

typedef struct chunk {
    size_t first;
    int entry, count;
} chunk;

/* What check_gradients finds in a chunk, and in all. */
typedef struct finding {
    double sum_squares;
    int found_inf;
} finding;

struct amp_cuda_table {
    amp_param *params; /* the list that the rest was made of */
    int count;         /* -1: of none */
    unsigned chunks;
    void *memory;      /* on the device, with room for more: */
    size_t room;
    entry *entries;
    chunk *cuts;
    finding *of_chunks, *of_all;
    finding *seen;     /* pinned: the host's copy of *of_all */
};

/* ------------------------------------------------------------------------------------------------ kernels */

/* Four numbers, 0 beyond the n that are there. */
static __device__ __forceinline__ void read4(float (&v)[4], const float *p, int n, int wide)
{
    if (wide && n == 4) amp_get(v, p, 4);
    else
        #pragma unroll
        for (int i = 0; i < 4; ++i) v[i] = i < n ? p[i] : 0;
}

static __device__ __forceinline__ void write4(float *p, const float (&v)[4], int n, int wide)
{
    if (wide && n == 4) amp_put(p, v, 4);
    else
        #pragma unroll
        for (int i = 0; i < 4; ++i)
            if (i < n) p[i] = v[i];
}

/* The sum over the block's threads, and whether any of them found something; for thread 0. */
static __device__ __forceinline__ finding fold(double sum, int found)
{
    __shared__ double sums[UPDATE_THREADS];
    __shared__ int founds[UPDATE_THREADS];
    int t = (int)threadIdx.x;
    sums[t] = sum;
    founds[t] = found;
    for (int half = UPDATE_THREADS / 2; half; half /= 2) {
        __syncthreads();
        if (t < half) {
            sums[t] += sums[t + half];
            founds[t] |= founds[t + half];
        }
    }
    finding f = { sums[t], founds[t] };
    return f;
}

/* Finite or not is read off the exponent bits, not asked of the arithmetic. */
__global__ void __launch_bounds__(UPDATE_THREADS) check_chunks(const entry *__restrict__ entries,
    const chunk *__restrict__ chunks, finding *findings)
{
    const chunk c = chunks[blockIdx.x];
    const float *grad = entries[c.entry].grad + c.first;
    int wide = entries[c.entry].wide;
    double sums[4] = {};
    unsigned largest = 0;
    #pragma unroll 4
    for (int i = 4 * (int)threadIdx.x; i < c.count; i += 4 * UPDATE_THREADS) {
        float g[4];
        read4(g, grad + i, c.count - i < 4 ? c.count - i : 4, wide);
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
            unsigned magnitude = __float_as_uint(g[k]) & 0x7fffffffu;
            sums[k] += (double)g[k] * (double)g[k];
            largest = magnitude > largest ? magnitude : largest;
        }
    }
    finding f = fold((sums[0] + sums[1]) + (sums[2] + sums[3]), largest >= 0x7f800000u);
    if (threadIdx.x == 0) findings[blockIdx.x] = f;
}

__global__ void __launch_bounds__(UPDATE_THREADS) add_findings(const finding *__restrict__ findings, unsigned count,
    finding *out)
{
    double sum = 0;
    int found = 0;
    for (unsigned i = threadIdx.x; i < count; i += UPDATE_THREADS) {
        sum += findings[i].sum_squares;
        found |= findings[i].found_inf;
    }
    finding f = fold(sum, found);
    if (threadIdx.x == 0) *out = f;
}

/* The numbers of one step: amp_update_args, ready to use. */
typedef struct step {
    float unscale, unscale_rest; /* gradients are multiplied by one, then by the other */
    float learning_rate, batch, momentum;
    float beta1, beta2, correction1, correction2, eps;
} step;

static __device__ __forceinline__ float unscaled(float g, const step &s)
{
    return __fmul_rn(__fmul_rn(g, s.unscale), s.unscale_rest);
}

/* Darknet's constrain. */
static __device__ __forceinline__ float clipped(float w, float clip)
{
    return clip == 0 ? w : fminf(clip, fmaxf(-clip, w));
}

/* axpy decay, axpy rate, scale by momentum. */
static __device__ __forceinline__ void sgd(float &w, float g, float &momentum, const step &s, float rate, float decay,
    float clip)
{
    float update = __fadd_rn(momentum, unscaled(g, s));
    update = __fadd_rn(update, __fmul_rn(-decay, w));
    w = clipped(__fadd_rn(w, __fmul_rn(rate, update)), clip);
    momentum = __fmul_rn(update, s.momentum);
}

/* adam_update_gpu */
static __device__ __forceinline__ void adam(float &w, float g, float &m, float &v, const step &s, float rate, float decay,
    float clip)
{
    float d = __fadd_rn(unscaled(g, s), __fmul_rn(-decay, w));
    m = __fadd_rn(__fmul_rn(s.beta1, m), __fmul_rn(1 - s.beta1, d));
    v = __fadd_rn(__fmul_rn(s.beta2, v), __fmul_rn(1 - s.beta2, __fmul_rn(d, d)));
    float unbiased = __fdiv_rn(m, s.correction1);
    float spread = __fadd_rn(__fsqrt_rn(__fdiv_rn(v, s.correction2)), s.eps);
    w = clipped(__fadd_rn(w, __fdiv_rn(__fmul_rn(rate, unbiased), spread)), clip);
}

/* Under Adam, Darknet does not divide the rate by the batch. */
template <int ADAM> __global__ void __launch_bounds__(UPDATE_THREADS) update_chunks(const entry *__restrict__ entries,
    const chunk *__restrict__ chunks, step s, const int *skip)
{
    const chunk c = chunks[blockIdx.x];
    const entry e = entries[c.entry];
    const int skipped = skip && *skip;
    const float zero[4] = {}, decay = __fmul_rn(e.decay, s.batch);
    float rate = __fmul_rn(s.learning_rate, e.rate_scale);
    if (!ADAM) rate = __fdiv_rn(rate, s.batch);
    float *first = (ADAM ? e.m : e.momentum) + c.first, *second = ADAM ? e.v + c.first : NULL;
    float *master = e.master + c.first, *grad = e.grad + c.first;
    #pragma unroll 2
    for (int i = 4 * (int)threadIdx.x; i < c.count; i += 4 * UPDATE_THREADS) {
        int n = c.count - i < 4 ? c.count - i : 4;
        if (!skipped) {
            float w[4], g[4], a[4], b[4];
            read4(w, master + i, n, e.wide);
            read4(g, grad + i, n, e.wide);
            read4(a, first + i, n, e.wide);
            if (ADAM) read4(b, second + i, n, e.wide);
            #pragma unroll
            for (int k = 0; k < 4; ++k)
                if (ADAM) adam(w[k], g[k], a[k], b[k], s, rate, decay, e.clip);
                else sgd(w[k], g[k], a[k], s, rate, decay, e.clip);
            write4(master + i, w, n, e.wide);
            write4(first + i, a, n, e.wide);
            if (ADAM) write4(second + i, b, n, e.wide);
        }
        write4(grad + i, zero, n, e.wide);
    }
}

/* ------------------------------------------------------------------------------------------------ the table */

static bool same(const amp_param *a, const amp_param *b)
{
    return a->master == b->master && a->grad == b->grad && a->momentum == b->momentum && a->m == b->m && a->v == b->v &&
        a->count == b->count && a->decay == b->decay && a->rate_scale == b->rate_scale && a->clip == b->clip;
}

static bool table_is_of(const struct amp_cuda_table *t, const amp_param *params, int count)
{
    if (t->count != count) return false;
    for (int i = 0; i < count; ++i)
        if (!same(&t->params[i], &params[i])) return false;
    return true;
}

static size_t chunks_of(const amp_param *p) { return amp_divide_up(p->count, CHUNK); }

static void describe(entry *entries, chunk *chunks, const amp_param *params, int count)
{
    for (int i = 0; i < count; ++i) {
        const amp_param *p = &params[i];
        entry e = { p->master, p->grad, p->momentum, p->m, p->v, p->decay, p->rate_scale, p->clip, 0 };
        e.wide = amp_aligned(p->master) && amp_aligned(p->grad) && amp_aligned(p->momentum) && amp_aligned(p->m) &&
            amp_aligned(p->v);
        entries[i] = e;
        for (size_t k = 0; k < chunks_of(p); ++k) {
            size_t first = k * CHUNK, left = p->count - first;
            chunk c = { first, i, (int)(left < CHUNK ? left : CHUNK) };
            *chunks++ = c;
        }
    }
}

/* Memory on the device, if what is there is too small; and what it holds, for so many entries and chunks. */
static amp_status make_room(struct amp_cuda_table *t, int count, size_t chunks, amp_error *error)
{
    size_t bytes = count * sizeof(entry) + chunks * sizeof(chunk) + (chunks + 1) * sizeof(finding); /* multiples of 8 all */
    if (bytes > t->room) {
        AMP_CUDA_TRY(cudaFree(t->memory));
        t->memory = NULL;
        t->room = 0;
        AMP_CUDA_TRY(cudaMalloc(&t->memory, bytes));
        t->room = bytes;
    }
    if (!t->seen) AMP_CUDA_TRY(cudaMallocHost((void **)&t->seen, sizeof *t->seen));
    t->chunks = (unsigned)chunks;
    t->of_all = (finding *)t->memory;
    t->of_chunks = t->of_all + 1;
    t->entries = (entry *)(t->of_chunks + chunks);
    t->cuts = (chunk *)(t->entries + count);
    return AMP_OK;
}

/* Entries and chunks to the device, and the list itself to keep. */
static amp_status fill_table(amp_backend *backend, struct amp_cuda_table *t, const amp_param *params, int count,
    amp_error *error)
{
    size_t bytes = count * sizeof(entry) + t->chunks * sizeof(chunk);
    entry *image = (entry *)malloc(bytes);
    amp_param *list = (amp_param *)realloc((void *)t->params, count * sizeof *list);
    if (list) t->params = list;
    if (!image || !list) {
        free(image);
        return amp_fail(error, AMP_NO_MEMORY, "no memory for a table of %d parameters", count);
    }
    memcpy((void *)list, params, count * sizeof *list);
    describe(image, (chunk *)(image + count), params, count);
    cudaError_t status = cudaMemcpyAsync(t->entries, image, bytes, cudaMemcpyHostToDevice, amp_cuda_of(backend)->stream);
    if (status == cudaSuccess) status = cudaStreamSynchronize(amp_cuda_of(backend)->stream);
    free(image);
    AMP_CUDA_TRY(status);
    t->count = count;
    return AMP_OK;
}

/* *out: the table of these parameters, which are not none. */
static amp_status table_of(amp_backend *backend, const amp_param *params, int count, struct amp_cuda_table **out,
    amp_error *error)
{
    amp_cuda_backend *cuda = amp_cuda_of(backend);
    size_t chunks = 0;
    if (!cuda->table) {
        cuda->table = (struct amp_cuda_table *)calloc(1, sizeof *cuda->table);
        if (!cuda->table) return amp_fail(error, AMP_NO_MEMORY, "no memory for a table of %d parameters", count);
        cuda->table->count = -1;
    }
    struct amp_cuda_table *t = *out = cuda->table;
    if (table_is_of(t, params, count)) return AMP_OK;
    t->count = -1;
    for (int i = 0; i < count; ++i) chunks += chunks_of(&params[i]);
    AMP_CUDA_TRY(cudaStreamSynchronize(cuda->stream)); /* no kernel reads the old one any more */
    AMP_TRY(make_room(t, count, chunks, error));
    return fill_table(backend, t, params, count, error);
}

void amp_cuda_table_destroy(struct amp_cuda_table *t)
{
    if (!t) return;
    cudaFree(t->memory); /* nothing is left to be done about a failure */
    if (t->seen) cudaFreeHost(t->seen);
    free(t->params);
    free(t);
}

/* ------------------------------------------------------------------------------------------------ operations */

static bool none(const amp_param *params, int count)
{
    for (int i = 0; i < count; ++i)
        if (params[i].count) return false;
    return true;
}

const int *amp_cuda_found_inf(const amp_backend *backend)
{
    const struct amp_cuda_table *t = amp_cuda_of(backend)->table;
    return t && t->count >= 0 ? &t->of_all->found_inf : NULL;
}

amp_status amp_cuda_check_gradients(amp_backend *backend, const amp_param *params, int count, float inverse_scale,
    int *found_inf, double *sum_squares, amp_error *error)
{
    struct amp_cuda_table *t;
    *found_inf = 0;
    *sum_squares = 0;
    if (none(params, count)) return AMP_OK;
    AMP_TRY(table_of(backend, params, count, &t, error));
    AMP_LAUNCH(backend, t->chunks, UPDATE_THREADS, check_chunks, t->entries, t->cuts, t->of_chunks);
    AMP_LAUNCH(backend, 1, UPDATE_THREADS, add_findings, t->of_chunks, t->chunks, t->of_all);
    AMP_CUDA_TRY(cudaMemcpyAsync(t->seen, t->of_all, sizeof *t->seen, cudaMemcpyDeviceToHost,
        amp_cuda_of(backend)->stream));
    AMP_CUDA_TRY(cudaStreamSynchronize(amp_cuda_of(backend)->stream));
    *found_inf = t->seen->found_inf;
    *sum_squares = t->seen->sum_squares * (double)inverse_scale * (double)inverse_scale;
    return AMP_OK;
}

/* A factor below float's normal numbers is one of two steps, as on the CPU. */
static step step_of(const amp_update_args *a)
{
    static const float small = 0x1p-100f;
    int split = a->inverse_scale < FLT_MIN;
    step s = { split ? small : (float)a->inverse_scale, split ? (float)(a->inverse_scale / small) : 1, a->learning_rate,
        (float)a->batch, a->momentum, a->beta1, a->beta2, 1.f - powf(a->beta1, (float)a->t),
        1.f - powf(a->beta2, (float)a->t), a->eps };
    return s;
}

amp_status amp_cuda_update_unless(amp_backend *backend, const amp_param *params, int count, const amp_update_args *args,
    const int *skip, amp_error *error)
{
    struct amp_cuda_table *t;
    for (int i = 0; i < count; ++i)
        if (params[i].count && (args->adam ? !params[i].m || !params[i].v : !params[i].momentum))
            return amp_fail(error, AMP_BACKEND_FAILED, "update: layer %d, %s has no %s", params[i].layer, params[i].name,
                args->adam ? "Adam moments" : "momentum");
    if (none(params, count)) return AMP_OK;
    AMP_TRY(table_of(backend, params, count, &t, error));
    step s = step_of(args);
    if (args->adam) AMP_LAUNCH(backend, t->chunks, UPDATE_THREADS, update_chunks<1>, t->entries, t->cuts, s, skip);
    else AMP_LAUNCH(backend, t->chunks, UPDATE_THREADS, update_chunks<0>, t->entries, t->cuts, s, skip);
    return AMP_OK;
}

amp_status amp_cuda_update(amp_backend *backend, const amp_param *params, int count, const amp_update_args *args,
    amp_error *error)
{
    return amp_cuda_update_unless(backend, params, count, args, NULL, error);
}
