/* The end of a step, in three launches over all arrays:
 *  1. Each block checks a chunk and writes a finding.
 *  2. One block combines all findings into a decision, which is copied to the CPU.
 *  3. Each block updates its chunk, if the decision allows it.
 * The CPU queues all three and waits only for the decision, so it continues while the update runs.
 *
 * Each product and each sum is rounded separately (no fma), as in the separate calls of stock Darknet, so
 * that weights are the same as on the CPU. The square of a gradient is exact in double. The order of
 * summation depends only on the arrays' sizes, so it is the same on every device. */
#include "kernels.h"

#include <math.h>
#include <string.h>

#include "../unscale.h"
#include "device.cuh"
#include "table.cuh"

enum {
    UPDATE_THREADS = 256,
    CHUNK = 8192 /* elements per block, at most */
};

/* A parameter or a statistic. For a statistic, `grad` is its array and `master` its committed copy. */
typedef struct array_row {
    amp_cuda_work work; /* units are elements */
    float *master, *grad, *momentum, *m, *v;
    float decay, rate_scale, clip;
    short wide, is_statistic; /* wide: all arrays can be moved 16 bytes at a time */
} array_row;

/* What check_chunks has found in one chunk. */
typedef struct finding {
    double sum_squares;
    int found_inf;
} finding;

/* The result of the check, from the findings of all chunks. */
typedef struct decision {
    double sum_squares; /* Σ grad²; the gradients are not yet divided by the loss scale */
    amp_unscale unscale;
    int found_inf, above_limit;
} decision;

/* ---- kernels ---- */

/* Reads n ≤ 4 numbers at p into v; the other elements of v become 0. */
static __device__ __forceinline__ void read4(float (&v)[4], const float *p, int n, int wide)
{
    if (wide && n == 4) amp_get(v, p, 4);
    else
        #pragma unroll
        for (int i = 0; i < 4; i++) v[i] = i < n ? p[i] : 0;
}

static __device__ __forceinline__ void write4(float *p, const float (&v)[4], int n, int wide)
{
    if (wide && n == 4) amp_put(p, v, 4);
    else
        #pragma unroll
        for (int i = 0; i < 4; i++)
            if (i < n) p[i] = v[i];
}

/* Combines what the block's threads have found. Only the result of thread 0 is valid. */
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

/* Finds inf and NaN by their exponent bits, because compiler flags may break a test with isfinite. */
__global__ void __launch_bounds__(UPDATE_THREADS) check_chunks(const array_row *__restrict__ rows,
    const amp_cuda_cut *__restrict__ cuts, finding *findings)
{
    const amp_cuda_cut c = cuts[blockIdx.x];
    const float *grad = rows[c.row].grad + c.first;
    int wide = rows[c.row].wide, is_statistic = rows[c.row].is_statistic;
    double sums[4] = {};
    unsigned largest = 0;
    #pragma unroll 4
    for (int i = 4 * (int)threadIdx.x; i < c.count; i += 4 * UPDATE_THREADS) {
        float g[4];
        read4(g, grad + i, c.count - i < 4 ? c.count - i : 4, wide);
        #pragma unroll
        for (int k = 0; k < 4; k++) {
            unsigned magnitude = __float_as_uint(g[k]) & 0x7fffffffu;
            sums[k] += (double)g[k] * (double)g[k];
            largest = magnitude > largest ? magnitude : largest;
        }
    }
    finding f = fold((sums[0] + sums[1]) + (sums[2] + sums[3]), largest >= 0x7f800000u);
    if (is_statistic) f.sum_squares = 0;
    if (threadIdx.x == 0) findings[blockIdx.x] = f;
}

__global__ void __launch_bounds__(UPDATE_THREADS) combine_findings(const finding *__restrict__ findings,
                                                                   unsigned count, amp_update_args args,
                                                                   decision *out)
{
    double sum = 0;
    int found = 0;
    #pragma unroll 8
    for (unsigned i = threadIdx.x; i < count; i += UPDATE_THREADS) {
        sum += findings[i].sum_squares;
        found |= findings[i].found_inf;
    }
    finding f = fold(sum, found);
    if (threadIdx.x != 0) return;
    out->sum_squares = f.sum_squares;
    out->unscale = amp_unscale_of(f.sum_squares, &args);
    out->found_inf = f.found_inf;
    out->above_limit = amp_is_above_limit(out->unscale.gradient_norm, &args);
}

/* amp_update_args in the form that kernels use. */
typedef struct step {
    float learning_rate, batch, momentum;
    float beta1, beta2, correction1, correction2, eps;
    float unscale, unscale_rest; /* factor and rest of the decision's amp_unscale */
    int adamw;
} step;

static __device__ __forceinline__ float unscaled(float g, const step &s)
{
    return __fmul_rn(__fmul_rn(g, s.unscale), s.unscale_rest);
}

/* Like Darknet's constrain: clamps w to -clip … clip; 0: no limit. */
static __device__ __forceinline__ float clipped(float w, float clip)
{
    return clip == 0 ? w : fminf(clip, fmaxf(-clip, w));
}

/* Like Darknet's three calls: axpy with the decay, axpy with the rate, scal with the momentum. */
static __device__ __forceinline__ void sgd(float &w, float g, float &momentum, const step &s, float rate,
                                           float decay, float clip)
{
    float update = __fadd_rn(momentum, unscaled(g, s));
    update = __fadd_rn(update, __fmul_rn(-decay, w));
    w = clipped(__fadd_rn(w, __fmul_rn(rate, update)), clip);
    momentum = __fmul_rn(update, s.momentum);
}

/* Like Darknet's adam_update_gpu. With shrink = rate·decay and decay = 0 it is AdamW: see
 * backend/cpu/rows_update.h. */
static __device__ __forceinline__ void adam(float &w, float g, float &m, float &v, const step &s, float rate,
                                            float decay, float shrink, float clip)
{
    float d = __fadd_rn(unscaled(g, s), __fmul_rn(-decay, w));
    m = __fadd_rn(__fmul_rn(s.beta1, m), __fmul_rn(1 - s.beta1, d));
    v = __fadd_rn(__fmul_rn(s.beta2, v), __fmul_rn(1 - s.beta2, __fmul_rn(d, d)));
    float unbiased = __fdiv_rn(m, s.correction1);
    float spread = __fadd_rn(__fsqrt_rn(__fdiv_rn(v, s.correction2)), s.eps);
    float change = __fadd_rn(__fdiv_rn(__fmul_rn(rate, unbiased), spread), __fmul_rn(-shrink, w));
    w = clipped(__fadd_rn(w, change), clip);
}

/* Updates one chunk. As in Darknet, the rate is divided by the batch for SGD, but not for Adam. */
template <int ADAM> static __device__ __forceinline__ void update_chunk(const array_row &e,
                                                                        const amp_cuda_cut &c, const step &s)
{
    float rate = __fmul_rn(s.learning_rate, e.rate_scale);
    const float zero[4] = {}, decay = s.adamw ? 0 : __fmul_rn(e.decay, s.batch),
        shrink = s.adamw ? __fmul_rn(rate, e.decay) : 0;
    if (!ADAM) rate = __fdiv_rn(rate, s.batch);
    float *first = (ADAM ? e.m : e.momentum) + c.first, *second = ADAM ? e.v + c.first : NULL;
    float *master = e.master + c.first, *grad = e.grad + c.first;
    #pragma unroll 2
    for (int i = 4 * (int)threadIdx.x; i < c.count; i += 4 * UPDATE_THREADS) {
        int n = c.count - i < 4 ? c.count - i : 4;
        float w[4], g[4], a[4], b[4];
        read4(w, master + i, n, e.wide);
        read4(g, grad + i, n, e.wide);
        read4(a, first + i, n, e.wide);
        if (ADAM) read4(b, second + i, n, e.wide);
        #pragma unroll
        for (int k = 0; k < 4; k++)
            if (ADAM) adam(w[k], g[k], a[k], b[k], s, rate, decay, shrink, e.clip);
            else sgd(w[k], g[k], a[k], s, rate, decay, e.clip);
        write4(master + i, w, n, e.wide);
        write4(first + i, a, n, e.wide);
        if (ADAM) write4(second + i, b, n, e.wide);
        write4(grad + i, zero, n, e.wide);
    }
}

static __device__ __forceinline__ void copy_chunk(const float *from, float *to, const amp_cuda_cut &c,
                                                  int wide)
{
    for (int i = 4 * (int)threadIdx.x; i < c.count; i += 4 * UPDATE_THREADS) {
        int n = c.count - i < 4 ? c.count - i : 4;
        float v[4];
        read4(v, from + c.first + i, n, wide);
        write4(to + c.first + i, v, n, wide);
    }
}

/* Updates parameters and commits statistics, if the decision allows it. */
template <int ADAM>
__global__ void __launch_bounds__(UPDATE_THREADS) move_chunks(const array_row *__restrict__ rows,
    const amp_cuda_cut *__restrict__ cuts, step s, const decision *__restrict__ v)
{
    if (v->found_inf || v->above_limit) return;
    const amp_cuda_cut c = cuts[blockIdx.x];
    const array_row e = rows[c.row];
    s.unscale = v->unscale.factor;
    s.unscale_rest = v->unscale.rest;
    if (e.is_statistic) copy_chunk(e.grad, e.master, c, e.wide);
    else update_chunk<ADAM>(e, c, s);
}

__global__ void __launch_bounds__(UPDATE_THREADS) copy_statistics(const array_row *__restrict__ rows,
    const amp_cuda_cut *__restrict__ cuts, int back)
{
    const amp_cuda_cut c = cuts[blockIdx.x];
    const array_row e = rows[c.row];
    copy_chunk(back ? e.master : e.grad, back ? e.grad : e.master, c, e.wide);
}

/* ---- tables ---- */

static void describe_array(array_row *row, size_t count)
{
    row->work.units = count;
    row->work.share = CHUNK;
    row->wide = amp_aligned(row->master) && amp_aligned(row->grad) && amp_aligned(row->momentum)
        && amp_aligned(row->m) && amp_aligned(row->v);
}

static amp_status list(amp_backend *backend, amp_cuda_table *t, const amp_param *params, int param_count,
    const amp_statistics *statistics, int statistics_count, amp_error *error)
{
    int count = param_count + statistics_count;
    array_row *rows = (array_row *)amp_cuda_table_rows(sizeof *rows, count), *r = rows;
    for (const amp_param *p = params; p < params + param_count; p++, r++) {
        r->master = p->master, r->grad = p->grad, r->momentum = p->momentum, r->m = p->m, r->v = p->v;
        r->decay = p->decay, r->rate_scale = p->rate_scale, r->clip = p->clip;
        describe_array(r, p->count);
    }
    for (const amp_statistics *s = statistics; s < statistics + statistics_count; s++, r++) {
        r->grad = s->array, r->master = s->committed, r->is_statistic = 1;
        describe_array(r, s->count);
    }
    return amp_cuda_table_set(backend, t, rows, sizeof *rows, count, error);
}

/* ---- operations ---- */

/* Queues launches 1 and 2. Sets *out to the decision in device memory. The decision is also copied to
 * the CPU, and the event cuda->decided is recorded after that copy. */
static amp_status decide(amp_backend *backend, const amp_cuda_table *t, const amp_update_args *args,
                         const decision **out, amp_error *error)
{
    amp_cuda_backend *cuda = amp_cuda_of(backend);
    void *scratch;
    if (!cuda->decision) AMP_CUDA_TRY(cudaMallocHost(&cuda->decision, sizeof(decision)));
    if (!cuda->decided) AMP_CUDA_TRY(cudaEventCreateWithFlags(&cuda->decided, cudaEventDisableTiming));
    AMP_TRY(amp_cuda_scratch(backend, sizeof(decision) + t->cuts * sizeof(finding), &scratch, error));
    decision *all = (decision *)scratch;
    finding *findings = (finding *)(all + 1);
    AMP_LAUNCH(backend, t->cuts, UPDATE_THREADS, check_chunks, amp_cuda_rows_of<array_row>(t),
               amp_cuda_cuts_of(t), findings);
    AMP_LAUNCH(backend, 1, UPDATE_THREADS, combine_findings, findings, t->cuts, *args, all);
    AMP_CUDA_TRY(cudaMemcpyAsync(cuda->decision, all, sizeof *all, cudaMemcpyDeviceToHost, cuda->stream));
    AMP_CUDA_TRY(cudaEventRecord(cuda->decided, cuda->stream));
    *out = all;
    return AMP_OK;
}

static amp_status wait_for_decision(amp_backend *backend, decision *out, amp_error *error)
{
    amp_cuda_backend *cuda = amp_cuda_of(backend);
    AMP_CUDA_TRY(cudaEventSynchronize(cuda->decided));
    *out = *(const decision *)cuda->decision;
    return AMP_OK;
}

amp_status amp_cuda_check_gradients(amp_backend *backend, const amp_param *params, int count,
                                    float inverse_scale, int *found_inf, double *sum_squares,
                                    amp_error *error)
{
    amp_cuda_table *t = &amp_cuda_of(backend)->arrays;
    amp_update_args as_it_is = {};
    const decision *there;
    decision v = {};
    as_it_is.batch = 1;
    as_it_is.inverse_scale = 1;
    *found_inf = 0;
    *sum_squares = 0;
    AMP_TRY(list(backend, t, params, count, NULL, 0, error));
    if (!t->cuts) return AMP_OK;
    AMP_TRY(decide(backend, t, &as_it_is, &there, error));
    AMP_TRY(wait_for_decision(backend, &v, error));
    *found_inf = v.found_inf;
    *sum_squares = v.sum_squares * (double)inverse_scale * (double)inverse_scale;
    return AMP_OK;
}

static step step_of(const amp_update_args *a)
{
    step s = { a->learning_rate, (float)a->batch, a->momentum, a->beta1, a->beta2,
               1.f - powf(a->beta1, (float)a->t), 1.f - powf(a->beta2, (float)a->t), a->eps, 0, 0,
               a->adamw };
    return s;
}

static amp_status move(amp_backend *backend, const amp_cuda_table *t, const amp_update_args *args,
                       const decision *allowed, amp_error *error)
{
    const array_row *rows = amp_cuda_rows_of<array_row>(t);
    const amp_cuda_cut *cuts = amp_cuda_cuts_of(t);
    step s = step_of(args);
    if (args->adam) AMP_LAUNCH(backend, t->cuts, UPDATE_THREADS, move_chunks<1>, rows, cuts, s, allowed);
    else AMP_LAUNCH(backend, t->cuts, UPDATE_THREADS, move_chunks<0>, rows, cuts, s, allowed);
    return AMP_OK;
}

amp_status amp_cuda_finish_step(amp_backend *backend, const amp_step_end *end, amp_step_outcome *out,
                                amp_error *error)
{
    amp_cuda_table *t = &amp_cuda_of(backend)->step;
    const decision *there;
    decision v = {};
    memset(out, 0, sizeof *out);
    AMP_TRY(list(backend, t, end->params, end->param_count, end->statistics, end->statistics_count, error));
    if (t->cuts) {
        AMP_TRY(decide(backend, t, &end->update, &there, error));
        AMP_TRY(move(backend, t, &end->update, there, error));
        AMP_TRY(wait_for_decision(backend, &v, error));
    }
    if (v.found_inf) return AMP_OK;
    out->taken = !v.above_limit;
    out->above_limit = v.above_limit;
    out->gradient_norm = v.unscale.gradient_norm;
    return AMP_OK;
}

amp_status amp_cuda_copy_statistics(amp_backend *backend, const amp_statistics *statistics, int count,
                                    int back, amp_error *error)
{
    amp_cuda_table *t = &amp_cuda_of(backend)->statistics;
    AMP_TRY(list(backend, t, NULL, 0, statistics, count, error));
    if (!t->cuts) return AMP_OK;
    AMP_LAUNCH(backend, t->cuts, UPDATE_THREADS, copy_statistics, amp_cuda_rows_of<array_row>(t),
               amp_cuda_cuts_of(t), back);
    return AMP_OK;
}
