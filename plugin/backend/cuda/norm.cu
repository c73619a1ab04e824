/* Batch norm together with its activation, and the bias gradient, which needs the same sums. The formulas are
 * in backend.h.
 *
 * Forward and backward take three launches each:
 *  1. Each block sums its rows (columns.cuh).
 *  2. For each channel, the sums of all blocks are added up, in double, and the factors for launch 3 are
 *     computed.
 *  3. All elements are computed and written.
 * Partial sums and factors are in scratch memory. Launch 3 takes the blocks in reverse order, because launch
 * 1 leaves the end of the tensor in the cache. For frequent activations, each thread has the loads of several
 * rows in flight (N in the kernels).
 *
 * For leaky and relu, backward needs only the sign of y. Instead of reading y, it recomputes y from x with
 * forward's arithmetic, which gives the same bits. This saves two of seven passes over memory. If
 * amp_gradient_wants_input, it recomputes the activation's input in the same way. */
#include "kernels.h"

#include "../check.h"
#include "../batchnorm_rules.h"
#include "columns.cuh"

/* ----------------------------------------------------------------------------------- forward's arithmetic */

/* Returns the factor by which x - mean is multiplied. */
static __device__ __forceinline__ float gain_of(const amp_batchnorm_rule &rule, float scale, float variance)
{
    float spread = rule.epsilon_inside_root ? sqrtf(variance + rule.epsilon) : sqrtf(variance) + rule.epsilon;
    return scale / spread;
}

static __device__ __forceinline__ float normalized(float x, float mean, float gain, float bias)
{
    return fmaf(x - mean, gain, bias);
}

/* Whether backward recomputes y, or the activation's input, from x. A < 0: the activation is not known at
 * compile time. */
template <int A> constexpr bool repeats_forward = A < 0 || A == AMP_LEAKY || A == AMP_RELU || A == AMP_MISH ||
    A == AMP_SWISH || A == AMP_LOGISTIC;

/* Whether backward reads y. */
template <int A> static __device__ __forceinline__ bool reads_output(amp_activation act)
{
    return A < 0 ? !amp_gradient_wants_input(act) : act != AMP_LINEAR && !repeats_forward<A>;
}

/* Like amp_activate and amp_gradient. HALF: results will be rounded to 16 bits, so mish and swish may use the
 * faster __expf (error at most 105 ulp of fp32 if exp(x) is normal) and __fdividef (2 ulp; CUDA C++
 * Programming Guide). Their errors together are less than 1/50 ulp of fp16. */
template <bool HALF> __device__ __forceinline__ float activated(float x, amp_activation act)
{
    if (!HALF || (act != AMP_MISH && act != AMP_SWISH)) return amp_activate(x, act);
    float e = __expf(amp_exp_low(x)), n = act == AMP_MISH ? e * (e + 2) : e;
    return x * __fdividef(n, n + (act == AMP_MISH ? 2 : 1));
}

template <bool HALF> __device__ __forceinline__ float gradient_of(float y, amp_activation act)
{
    if (!HALF || (act != AMP_MISH && act != AMP_SWISH)) return amp_gradient(y, act);
    float low = amp_exp_low(y), e = __expf(low);
    if (act == AMP_SWISH) {
        float r = __fdividef(1, 1 + e);
        return e * r * (1 + low * r);
    }
    float n = e * (e + 2), r = __fdividef(1, n + 2);
    return n * r + low * (4 * e * (e + 1) * r * r);
}

/* Computes a pack of y, rounded to its dtype, from a pack of x. */
template <class P>
static __device__ __forceinline__ P act_of_normalized(const P &x, const float (&mean)[P::count],
    const float (&gain)[P::count], const float (&bias)[P::count], amp_activation act)
{
    P y;
    #pragma unroll
    for (int i = 0; i < P::count; i++)
        y.set(i, activated<P::half>(normalized(x.get(i), mean[i], gain[i], bias[i]), act));
    return y;
}

/* Returns act' for element i of a pack, computed from the activation's input or from y, which the caller has
 * recomputed for leaky and relu. */
template <class P> static __device__ __forceinline__ float slope_of(const P &x, const P &y, int i,
    const float (&mean)[P::count], const float (&gain)[P::count], const float (&bias)[P::count],
    amp_activation act)
{
    bool input = amp_gradient_wants_input(act);
    return gradient_of<P::half>(input ? normalized(x.get(i), mean[i], gain[i], bias[i]) : y.get(i), act);
}

/* Reads a pack's factors, 16 bytes at a time if packs are wide. factors: one value for each channel. */
template <int W>
__device__ __forceinline__ void factors_of(const float *factors, size_t first, float (&out)[W])
{
    #pragma unroll
    for (int i = 0; i < W; i += 4) {
        float4 four = *reinterpret_cast<const float4 *>(factors + first + i);
        out[i] = four.x;
        out[i + 1] = four.y;
        out[i + 2] = four.z;
        out[i + 3] = four.w;
    }
}
__device__ __forceinline__ void factors_of(const float *factors, size_t first, float (&out)[1])
{
    out[0] = factors[first];
}

/* ---------------------------------------------------------------------------------------- sums of a block */

/* Adds up the sums of the block's threads and writes them to partial[chunk][k][channel]. */
template <class P, int K>
__device__ __forceinline__ void write_partial(const amp_columns &c, const amp_column &at,
    amp_column_sums<K * P::count> &sums, double *partial)
{
    if (!sums.fold(c) || at.pack >= c.packs) return;
    size_t channels = (size_t)c.packs * P::count, first = (size_t)at.pack * P::count;
    for (int k = 0; k < K; k++)
        #pragma unroll
        for (int i = 0; i < P::count; i++)
            partial[(at.chunk * (size_t)K + k) * channels + first + i] = sums.get(k * P::count + i);
}

template <class P>
__global__ void __launch_bounds__(AMP_COLUMN_THREADS) sum_of_rows(const P *__restrict__ x, amp_columns c,
    double *partial)
{
    amp_column at = amp_column_of(c, blockIdx.x);
    __shared__ amp_column_sums<P::count> sums;
    sums.clear();
    amp_columns_sum(x, c, at, sums);
    write_partial<P, 1>(c, at, sums, partial);
}

/* Writes Σ(x-origin) and Σ(x-origin)² of each channel. The origin is the tensor's first row.
 *
 * Each run of rows takes its own first row as pivot and sums u = x - pivot and u² in fp32. If the values are
 * close together, u is small, and Σu² keeps the digits that Σx² would lose. Each run's sums are then
 * converted, in double, from its pivot to the origin, so that the sums of all runs can be added. With n rows
 * and s = pivot - origin: Σ(x-origin) = Σu + n·s, Σ(x-origin)² = Σu² + 2s·Σu + n·s². */
template <class P>
__global__ void __launch_bounds__(AMP_COLUMN_THREADS, 4) moments(const P *__restrict__ x, amp_columns c,
    double *partial)
{
    enum { N = 4 };
    amp_column at = amp_column_of(c, blockIdx.x);
    __shared__ amp_column_sums<2 * P::count> sums;
    sums.clear();
    for (size_t row = at.first; row < at.end;) {
        P pivot = x[row * c.packs + at.pack];
        float first[P::count] = {}, second[P::count] = {};
        int n = 0;
        for (int r = 0; r < AMP_COLUMN_RUN && row < at.end; r += N, row += N * at.step) {
            P p[N];
            #pragma unroll
            for (int u = 0; u < N; u++) {
                bool inside = row + u * at.step < at.end;
                p[u] = inside ? x[(row + u * at.step) * c.packs + at.pack] : pivot;
                n += inside;
            }
            #pragma unroll
            for (int i = 0; i < P::count; i++) {
                float zero = pivot.get(i), u0 = p[0].get(i) - zero, u1 = p[1].get(i) - zero,
                    u2 = p[2].get(i) - zero;
                float u3 = p[3].get(i) - zero;
                first[i] += (u0 + u1) + (u2 + u3);
                second[i] += (u0 * u0 + u1 * u1) + (u2 * u2 + u3 * u3);
            }
        }
        P origin = x[at.pack];
        #pragma unroll
        for (int i = 0; i < P::count; i++) {
            double s = (double)pivot.get(i) - (double)origin.get(i), total = n * s;
            sums.add(i, (double)first[i] + total);
            sums.add(P::count + i, (double)second[i] + s * (2 * (double)first[i] + total));
        }
    }
    write_partial<P, 2>(c, at, sums, partial);
}

/* Sums d = dy·act'(y) and d·(x - mean). */
template <class P, int A>
__global__ void __launch_bounds__(AMP_COLUMN_THREADS, 3) delta_sums(const P *__restrict__ x,
    const P *__restrict__ y, const P *__restrict__ dy, amp_columns c, amp_batchnorm norm, double *partial)
{
    enum { N = A < 0 ? 1 : 2, W = P::count };
    const amp_activation act = amp_chosen<A>(norm.activation);
    amp_column at = amp_column_of(c, blockIdx.x);
    size_t channel = (size_t)at.pack * W;
    __shared__ amp_column_sums<2 * W> sums;
    float mean[W], gain[W], bias[W];
    sums.clear();
    if (at.first < at.end) {
        factors_of(norm.mean, channel, mean);
        if (repeats_forward<A>) {
            float scale[W], variance[W];
            factors_of(norm.bias, channel, bias);
            factors_of(norm.scale, channel, scale);
            factors_of(norm.variance, channel, variance);
            #pragma unroll
            for (int i = 0; i < W; i++) gain[i] = gain_of(norm.rule, scale[i], variance[i]);
        }
    }
    for (size_t row = at.first; row < at.end;) {
        float first[W] = {}, second[W] = {};
        for (int r = 0; r < AMP_COLUMN_RUN && row < at.end; r += N, row += N * at.step) {
            P px[N] = {}, py[N] = {}, pd[N] = {};
            #pragma unroll
            for (int u = 0; u < N; u++) {
                size_t i = (row + u * at.step) * c.packs + at.pack;
                if (row + u * at.step >= at.end) continue;
                px[u] = x[i];
                pd[u] = dy[i];
                if (reads_output<A>(act)) py[u] = y[i];
            }
            #pragma unroll
            for (int u = 0; u < N; u++) {
                if (A == AMP_LEAKY || A == AMP_RELU) py[u] = act_of_normalized(px[u], mean, gain, bias, act);
                #pragma unroll
                for (int i = 0; i < W; i++) {
                    float d = pd[u].get(i) * slope_of(px[u], py[u], i, mean, gain, bias, act);
                    first[i] += d;
                    second[i] += d * (px[u].get(i) - mean[i]);
                }
            }
        }
        #pragma unroll
        for (int i = 0; i < W; i++) {
            sums.add(i, (double)first[i]);
            sums.add(W + i, (double)second[i]);
        }
    }
    write_partial<P, 2>(c, at, sums, partial);
}

/* ------------------------------------------------------------------------------------- sums of all blocks */

/* A block adds up the partial sums of CHANNELS channels. CHANNELS is small, so that many threads share the
 * work for one channel. It is 4 because four doubles fill a 32-byte sector of memory. */
enum { FOLD_THREADS = 256, CHANNELS = 4 };

static unsigned fold_blocks(int channels) { return ((unsigned)channels + CHANNELS - 1) / CHANNELS; }

/* Adds up all chunks' partial sums. Returns the channel whose totals are in this thread's `sums`, or -1. */
template <int K>
__device__ __forceinline__ int fold_chunks(const double *partial, unsigned chunks, int channels,
    double (&sums)[K])
{
    __shared__ double tree[K][FOLD_THREADS];
    int t = (int)threadIdx.x, channel = (int)blockIdx.x * CHANNELS + t % CHANNELS;
    for (int k = 0; k < K; k++) sums[k] = 0;
    if (channel < channels)
        #pragma unroll 4
        for (unsigned chunk = t / CHANNELS; chunk < chunks; chunk += FOLD_THREADS / CHANNELS)
            for (int k = 0; k < K; k++) sums[k] += partial[(chunk * (size_t)K + k) * channels + channel];
    for (int k = 0; k < K; k++) tree[k][t] = sums[k];
    for (int half = FOLD_THREADS / 2; half >= CHANNELS; half /= 2) {
        __syncthreads();
        if (t < half) for (int k = 0; k < K; k++) tree[k][t] += tree[k][t + half];
    }
    for (int k = 0; k < K; k++) sums[k] = tree[k][t];
    return t < CHANNELS && channel < channels ? channel : -1;
}

__global__ void add_sums(const double *partial, unsigned chunks, int channels, float *db)
{
    double sums[1];
    int c = fold_chunks(partial, chunks, channels, sums);
    if (c >= 0) db[c] += (float)sums[0];
}

/* The number of launch 3's factors[k][channel]: mean, gain, bias; in backward also a, b, c of
 * normalize_delta. */
enum { FORWARD = 3, BACKWARD = 6 };
static __device__ __forceinline__ void forward_factors(float *factors, int channels, int c,
    const amp_batchnorm &norm, float mean, float variance)
{
    factors[c] = mean;
    factors[channels + c] = gain_of(norm.rule, norm.scale[c], variance);
    factors[2 * (size_t)channels + c] = norm.bias[c];
}

static __device__ __forceinline__ void keep_moments(amp_moments m, double count, int channels, int c,
    const amp_batchnorm &norm, float *factors)
{
    amp_batchnorm_keep(&norm, c, m, count);
    forward_factors(factors, channels, c, norm, norm.mean[c], norm.variance[c]);
}

/* Computes the batch's statistics and forward's factors. With several ranks (`all` is not NULL), only stores
 * this rank's moments in `all`; join_moments does the rest. */
template <class T>
__global__ void statistics(const double *partial, unsigned chunks, int channels, const T *origin,
    double count, amp_batchnorm norm, float *factors, int rank, float *all)
{
    double sums[2];
    int c = fold_chunks(partial, chunks, channels, sums);
    if (c < 0) return;
    amp_moments m = amp_moments_of(sums[0], sums[1], (double)amp_load(origin[c]), count);
    if (all) amp_moments_put(all, rank, channels, c, m);
    else keep_moments(m, count, channels, c, norm, factors);
}

__global__ void join_moments(const float *all, int ranks, int channels, double count, amp_batchnorm norm,
    float *factors)
{
    int c = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (c >= channels) return;
    keep_moments(amp_moments_join(all, ranks, channels, c, count), count * ranks, channels, c, norm, factors);
}

__global__ void rolling_factors(int channels, amp_batchnorm norm, float *factors)
{
    int c = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (c >= channels) return;
    forward_factors(factors, channels, c, norm, norm.rolling_mean[c], norm.rolling_variance[c]);
}

static __device__ __forceinline__ void backward_factors(double sum, double product, double count,
    int channels, int c, const amp_batchnorm &norm, float *factors)
{
    amp_batchnorm_line line = amp_batchnorm_line_of(&norm, c, sum, product, count);
    forward_factors(factors, channels, c, norm, norm.mean[c], norm.variance[c]);
    factors[3 * (size_t)channels + c] = line.a;
    factors[4 * (size_t)channels + c] = line.b;
    factors[5 * (size_t)channels + c] = line.c;
}

/* Adds to norm.dscale and norm.dbias, and computes backward's factors. With several ranks (`all` is not
 * NULL), stores this rank's sums in `all` (2, channels) instead of computing the factors; join_delta_sums
 * computes them. */
__global__ void delta_factors(const double *partial, unsigned chunks, int channels, double count,
    amp_batchnorm norm, float *factors, float *all)
{
    double sums[2];
    int c = fold_chunks(partial, chunks, channels, sums);
    if (c < 0) return;
    amp_batchnorm_add_gradients(&norm, c, sums[0], sums[1]);
    if (!all) {
        backward_factors(sums[0], sums[1], count, channels, c, norm, factors);
        return;
    }
    all[c] = (float)sums[0];
    all[channels + c] = (float)sums[1];
}

__global__ void join_delta_sums(const float *all, int channels, double count, amp_batchnorm norm,
    float *factors)
{
    int c = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (c >= channels) return;
    backward_factors((double)all[c], (double)all[channels + c], count, channels, c, norm, factors);
}

/* ----------------------------------------------------------------------------------------- writing passes */

/* y = act((x - mean)·gain + bias). With ADD, `add` is added to the rounded y, by __fadd_rn, because nvcc
 * could fuse a `+` with the activation's last product into one fma. */
template <class P, int A, bool ADD>
__global__ void __launch_bounds__(AMP_COLUMN_THREADS) normalize(const P *__restrict__ x,
    const P *__restrict__ add, P *__restrict__ y, amp_columns c, const float *__restrict__ factors,
    amp_activation given)
{
    enum { N = A < 0 ? 1 : ADD ? 2 : 4 };
    const amp_activation act = amp_chosen<A>(given);
    amp_column at = amp_column_of(c, gridDim.x - 1 - blockIdx.x);
    size_t channels = (size_t)c.packs * P::count, first = (size_t)at.pack * P::count;
    float mean[P::count], gain[P::count], bias[P::count];
    if (at.first >= at.end) return;
    factors_of(factors, first, mean);
    factors_of(factors, channels + first, gain);
    factors_of(factors, 2 * channels + first, bias);
    for (size_t row = at.first; row < at.end; row += N * at.step) {
        P p[N], q[ADD ? N : 1];
        #pragma unroll
        for (int u = 0; u < N; u++) {
            size_t i = (row + u * at.step) * c.packs + at.pack;
            if (row + u * at.step >= at.end) break;
            p[u] = x[i];
            if (ADD) q[u] = add[i];
        }
        #pragma unroll
        for (int u = 0; u < N; u++) {
            if (row + u * at.step >= at.end) break;
            p[u] = act_of_normalized(p[u], mean, gain, bias, act);
            #pragma unroll
            for (int i = 0; ADD && i < P::count; i++) p[u].set(i, __fadd_rn(p[u].get(i), q[u].get(i)));
            y[(row + u * at.step) * c.packs + at.pack] = p[u];
        }
    }
}

/* Blocks of normalize_delta per multiprocessor: with three, mish and swish would spill registers. */
template <int A> constexpr int delta_blocks = A == AMP_MISH || A == AMP_SWISH ? 2 : 3;

/* dx = a·d + (b·(x - mean) + c). dx may be dy: a thread reads each element before it overwrites it. */
template <class P, int A>
__global__ void __launch_bounds__(AMP_COLUMN_THREADS, delta_blocks<A>) normalize_delta(
    const P *__restrict__ x, const P *__restrict__ y, const P *dy, P *dx, amp_columns c,
    const float *__restrict__ factors, amp_activation given)
{
    enum { N = A < 0 ? 1 : 2 };
    const amp_activation act = amp_chosen<A>(given);
    amp_column at = amp_column_of(c, gridDim.x - 1 - blockIdx.x);
    size_t channels = (size_t)c.packs * P::count, first = (size_t)at.pack * P::count;
    float mean[P::count], gain[P::count], bias[P::count], fa[P::count], fb[P::count], fc[P::count];
    if (at.first >= at.end) return;
    factors_of(factors, first, mean);
    if (repeats_forward<A>) {
        factors_of(factors, channels + first, gain);
        factors_of(factors, 2 * channels + first, bias);
    }
    factors_of(factors, 3 * channels + first, fa);
    factors_of(factors, 4 * channels + first, fb);
    factors_of(factors, 5 * channels + first, fc);
    for (size_t row = at.first; row < at.end; row += N * at.step) {
        P px[N], py[N] = {}, pd[N];
        #pragma unroll
        for (int u = 0; u < N; u++) {
            size_t i = (row + u * at.step) * c.packs + at.pack;
            if (row + u * at.step >= at.end) break;
            px[u] = x[i];
            pd[u] = dy[i];
            if (reads_output<A>(act)) py[u] = y[i];
        }
        #pragma unroll
        for (int u = 0; u < N; u++) {
            if (row + u * at.step >= at.end) break;
            if (A == AMP_LEAKY || A == AMP_RELU) py[u] = act_of_normalized(px[u], mean, gain, bias, act);
            #pragma unroll
            for (int i = 0; i < P::count; i++) {
                float along = pd[u].get(i) * slope_of(px[u], py[u], i, mean, gain, bias, act) * fa[i];
                pd[u].set(i, along + ((px[u].get(i) - mean[i]) * fb[i] + fc[i]));
            }
            dx[(row + u * at.step) * c.packs + at.pack] = pd[u];
        }
    }
}

/* --------------------------------------------------------------------------------------------- operations */

typedef struct scratch {
    double *partial; /* [chunk][sum][channel] */
    float *factors;  /* [factor][channel] */
} scratch;

static amp_status scratch_take(amp_backend *backend, const amp_columns *c, int channels, int sums,
    int factors, scratch *out, amp_error *error)
{
    size_t partial = (size_t)sums * c->chunks * channels * sizeof(double);
    void *memory;
    partial = (partial + 15) / 16 * 16; /* the factors follow, and are read 16 bytes at a time */
    AMP_TRY(amp_cuda_scratch(backend, partial + (size_t)factors * channels * sizeof(float), &memory, error));
    out->partial = (double *)memory;
    out->factors = (float *)((char *)memory + partial);
    return AMP_OK;
}

amp_status amp_cuda_bias_gradient(amp_backend *backend, const amp_tensor *dy, float *db, amp_error *error)
{
    scratch s;
    AMP_TRY(amp_check_pair("bias gradient", dy, dy, 1, error));
    if (amp_shape_count(dy->shape) == 0) return AMP_OK;
    bool wide = amp_cuda_wide(dy);
    int channels = dy->shape.c;
    amp_columns c = amp_columns_make(amp_pixels(dy), 1, amp_cuda_packs(dy, wide));
    AMP_TRY(scratch_take(backend, &c, channels, 1, 0, &s, error));
    AMP_CUDA_BY_PACK(dy->dtype, wide, AMP_LAUNCH(backend, amp_columns_blocks(&c), AMP_COLUMN_THREADS,
        sum_of_rows<P>, (const P *)dy->data, c, s.partial));
    AMP_LAUNCH(backend, fold_blocks(channels), FOLD_THREADS, add_sums, s.partial, c.chunks, channels, db);
    return AMP_OK;
}

template <bool ADD> static amp_status write_normalized(amp_backend *backend, const amp_columns &c, bool wide,
    const amp_tensor *x, const amp_tensor *y, const float *factors, const amp_batchnorm *norm,
    amp_error *error)
{
    AMP_CUDA_BY_PACK(x->dtype, wide, AMP_CUDA_BY_ACTIVATION(norm->activation,
        AMP_LAUNCH(backend, amp_columns_blocks(&c), AMP_COLUMN_THREADS, (normalize<P, A, ADD>),
        (const P *)x->data, (const P *)norm->add, (P *)y->data, c, factors, norm->activation)));
    return AMP_OK;
}

static amp_status write_output(amp_backend *backend, const amp_columns &c, bool wide, const amp_tensor *x,
    const amp_tensor *y, const float *factors, const amp_batchnorm *norm, amp_error *error)
{
    return (norm->add ? write_normalized<true> : write_normalized<false>)(backend, c, wide, x, y, factors,
        norm, error);
}

static bool forward_is_wide(const amp_tensor *x, const amp_tensor *y, const amp_batchnorm *norm)
{
    return amp_cuda_wide(x) && amp_cuda_wide(y) && amp_aligned(norm->add);
}

/* Returns a copy of *norm for kernels, without `ranks`, which points to CPU memory. */
static amp_batchnorm for_device(const amp_batchnorm *norm)
{
    amp_batchnorm copy = *norm;
    copy.ranks = NULL;
    return copy;
}

/* Threads per block, for kernels with one thread for each channel. */
enum { CHANNEL_THREADS = 256 };
static unsigned channel_blocks(int channels)
{
    return ((unsigned)channels + CHANNEL_THREADS - 1) / CHANNEL_THREADS;
}

/* Computes the statistics and forward's factors from the sums of all blocks. */
static amp_status find_statistics(amp_backend *backend, const amp_columns &c, const amp_tensor *x,
    const amp_batchnorm *norm, const scratch &s, amp_error *error)
{
    const amp_batchnorm_ranks *ranks = norm->ranks;
    int channels = x->shape.c;
    size_t floats = ranks ? AMP_MOMENTS_SHARED * (size_t)ranks->count * channels : 0;
    float *all = ranks ? s.factors + FORWARD * (size_t)channels : NULL;
    if (ranks) AMP_TRY(backend->zero(backend, all, floats * sizeof *all, error));
    AMP_CUDA_BY_DTYPE(x->dtype, AMP_LAUNCH(backend, fold_blocks(channels), FOLD_THREADS, statistics<T>,
        s.partial, c.chunks, channels, (const T *)x->data, (double)c.rows, for_device(norm), s.factors,
        ranks ? ranks->rank : 0, all));
    if (!ranks) return AMP_OK;
    AMP_TRY(ranks->sum(ranks->context, all, floats, error));
    AMP_LAUNCH(backend, channel_blocks(channels), CHANNEL_THREADS, join_moments, all, ranks->count, channels,
        (double)c.rows, for_device(norm), s.factors);
    return AMP_OK;
}

static amp_status find_delta_factors(amp_backend *backend, const amp_columns &c, int channels,
    const amp_batchnorm *norm, const scratch &s, amp_error *error)
{
    const amp_batchnorm_ranks *ranks = norm->ranks;
    float *all = ranks ? s.factors + BACKWARD * (size_t)channels : NULL;
    AMP_LAUNCH(backend, fold_blocks(channels), FOLD_THREADS, delta_factors, s.partial, c.chunks, channels,
        (double)c.rows, for_device(norm), s.factors, all);
    if (!ranks) return AMP_OK;
    AMP_TRY(ranks->sum(ranks->context, all, 2 * (size_t)channels, error));
    AMP_LAUNCH(backend, channel_blocks(channels), CHANNEL_THREADS, join_delta_sums, all, channels,
        (double)c.rows * ranks->count, for_device(norm), s.factors);
    return AMP_OK;
}

amp_status amp_cuda_batchnorm_forward_train(amp_backend *backend, const amp_tensor *x, const amp_tensor *y,
    const amp_batchnorm *norm, amp_error *error)
{
    scratch s;
    AMP_TRY(amp_check_pair("batch norm", x, y, 1, error));
    if (amp_shape_count(x->shape) == 0) return AMP_OK;
    bool wide = forward_is_wide(x, y, norm);
    int channels = x->shape.c;
    amp_columns c = amp_columns_make(amp_pixels(x), 1, amp_cuda_packs(x, wide));
    int shared = norm->ranks ? AMP_MOMENTS_SHARED * norm->ranks->count : 0;
    AMP_TRY(scratch_take(backend, &c, channels, 2, FORWARD + shared, &s, error));
    AMP_CUDA_BY_PACK(x->dtype, wide, AMP_LAUNCH(backend, amp_columns_blocks(&c), AMP_COLUMN_THREADS,
        moments<P>, (const P *)x->data, c, s.partial));
    AMP_TRY(find_statistics(backend, c, x, norm, s, error));
    return write_output(backend, c, wide, x, y, s.factors, norm, error);
}

amp_status amp_cuda_batchnorm_forward_infer(amp_backend *backend, const amp_tensor *x, const amp_tensor *y,
    const amp_batchnorm *norm, amp_error *error)
{
    scratch s;
    AMP_TRY(amp_check_pair("batch norm", x, y, 1, error));
    if (amp_shape_count(x->shape) == 0) return AMP_OK;
    bool wide = forward_is_wide(x, y, norm);
    int channels = x->shape.c;
    amp_columns c = amp_columns_make(amp_pixels(x), 1, amp_cuda_packs(x, wide));
    AMP_TRY(scratch_take(backend, &c, channels, 0, FORWARD, &s, error));
    AMP_LAUNCH(backend, channel_blocks(channels), CHANNEL_THREADS, rolling_factors, channels,
        for_device(norm), s.factors);
    return write_output(backend, c, wide, x, y, s.factors, norm, error);
}

amp_status amp_cuda_batchnorm_backward(amp_backend *backend, const amp_tensor *x, const amp_tensor *y,
    const amp_tensor *dy, const amp_tensor *dx, const amp_batchnorm *norm, amp_error *error)
{
    scratch s;
    AMP_TRY(amp_check_pair("batch norm backward", x, y, 1, error));
    AMP_TRY(amp_check_pair("batch norm backward", x, dy, 1, error));
    AMP_TRY(amp_check_pair("batch norm backward", x, dx, 1, error));
    if (amp_shape_count(x->shape) == 0) return AMP_OK;
    const amp_activation activation = norm->activation;
    bool wide = amp_cuda_wide(x) && amp_cuda_wide(y) && amp_cuda_wide(dy) && amp_cuda_wide(dx) &&
        amp_aligned(norm->scale) && amp_aligned(norm->bias) && amp_aligned(norm->mean) &&
        amp_aligned(norm->variance);
    int channels = x->shape.c;
    amp_columns c = amp_columns_make(amp_pixels(x), 1, amp_cuda_packs(x, wide));
    AMP_TRY(scratch_take(backend, &c, channels, 2, BACKWARD + (norm->ranks ? 2 : 0), &s, error));
    AMP_CUDA_BY_PACK(x->dtype, wide, AMP_CUDA_BY_ACTIVATION(activation,
        AMP_LAUNCH(backend, amp_columns_blocks(&c), AMP_COLUMN_THREADS, (delta_sums<P, A>),
        (const P *)x->data, (const P *)y->data, (const P *)dy->data, c, for_device(norm), s.partial)));
    AMP_TRY(find_delta_factors(backend, c, channels, norm, s, error));
    AMP_CUDA_BY_PACK(x->dtype, wide, AMP_CUDA_BY_ACTIVATION(activation,
        AMP_LAUNCH(backend, amp_columns_blocks(&c), AMP_COLUMN_THREADS, (normalize_delta<P, A>),
        (const P *)x->data, (const P *)y->data, (const P *)dy->data,
        (P *)dx->data, c, s.factors, activation)));
    return AMP_OK;
}
