/* Helpers for kernels that compute one result for each channel of an NHWC tensor. They divide the tensor
 * among blocks, and sum over its pixels in an order that depends only on the shape.
 *
 * The tensor is a matrix with one row for each pixel. A row consists of packs. A pack is what one thread
 * loads at once: 16 bytes if the channels fill whole packs and memory is aligned, otherwise one element. The
 * threads of a block are arranged `lanes` packs wide and AMP_COLUMN_THREADS/lanes rows high. The block works
 * on block_rows rows, from top to bottom. If there are few channels, blocks are narrow and high, so that
 * neighbouring threads always read neighbouring memory.
 *
 * A thread sums at most AMP_COLUMN_RUN rows in fp32 and then adds the result to a double. So the rounding
 * error does not grow with the number of rows. */
#pragma once

#include "device.cuh"

enum {
    AMP_COLUMN_THREADS = 256,
    AMP_COLUMN_LANES = 32,    /* maximum width of a block in packs: 32 packs are 512 bytes */
    AMP_COLUMN_BLOCKS = 2048, /* approximate number of blocks: several waves on the largest GPU, but still few
                                 partial sums */
    AMP_COLUMN_ROWS = 8,      /* minimum number of rows per thread: fewer would not be worth a thread */
    AMP_COLUMN_RUN = 64       /* number of rows summed in fp32 before the sum is added to a double (doubles
                                 are slow on consumer GPUs) */
};

/* A pack of one element, with the same functions as amp_pack, which has 16 bytes. */
template <class T> struct amp_single {
    static const int count = 1;
    static const bool half = sizeof(T) == 2;
    T one;
    __device__ __forceinline__ float get(int) const { return amp_load(one); }
    __device__ __forceinline__ void set(int, float v) { one = amp_store<T>(v); }
};

/* Runs a statement with `T` as the C++ type of a dtype and `P` as its pack. */
#define AMP_CUDA_BY_PACK(dtype, wide, ...) do { \
        if (wide) AMP_CUDA_BY_DTYPE(dtype, typedef amp_pack<T> P; __VA_ARGS__); \
        else AMP_CUDA_BY_DTYPE(dtype, typedef amp_single<T> P; __VA_ARGS__); \
    } while (0)

static inline int amp_cuda_packs(const amp_tensor *t, bool wide)
{
    return wide ? (int)((size_t)t->shape.c * amp_dtype_size(t->dtype) / 16) : t->shape.c;
}

typedef struct amp_columns {
    size_t rows;                /* pixels of one image. If the sums run over all images, the tensor is treated
                                   as a single image: `images` is 1, and `rows` counts the pixels of all
                                   images */
    size_t block_rows;
    unsigned images, chunks;    /* chunks: the number of parts of an image; each part has block_rows rows */
    int packs, lanes, height;   /* packs: packs in a row; lanes: packs across a block; height: rows that a
                                   block covers at once */
    int groups;                 /* blocks side by side that cover a row */
} amp_columns;

static inline amp_columns amp_columns_make(size_t rows, unsigned images, int packs)
{
    amp_columns c = { rows, 0, images, 0, packs, 1, 0, 0 };
    while (c.lanes < AMP_COLUMN_LANES && c.lanes < packs) c.lanes *= 2;
    c.groups = (packs + c.lanes - 1) / c.lanes;
    c.height = AMP_COLUMN_THREADS / c.lanes;
    size_t each = amp_divide_up(rows * images * c.groups, (size_t)c.height * AMP_COLUMN_BLOCKS);
    if (each < AMP_COLUMN_ROWS) each = AMP_COLUMN_ROWS;
    c.block_rows = c.height * each;
    c.chunks = (unsigned)(amp_divide_up(rows, c.block_rows));
    return c;
}

/* Like amp_columns_make, but a block covers all rows of an image. */
static inline amp_columns amp_columns_whole(size_t rows, unsigned images, int packs)
{
    amp_columns c = amp_columns_make(rows, images, packs);
    c.block_rows = rows;
    c.chunks = 1;
    return c;
}

static inline unsigned amp_columns_blocks(const amp_columns *c) { return c->images * c->chunks * c->groups; }

/* The elements that one thread works on: pack number `pack` of each of the rows first, first + step,
 * first + 2·step, ... up to but not including row `end`. */
typedef struct amp_column {
    size_t first, end;
    int step, pack;
    unsigned image, chunk;
} amp_column;

static __device__ __forceinline__ amp_column amp_column_of(const amp_columns &c, unsigned block)
{
    amp_column at;
    unsigned chunk = block / c.groups;
    at.pack = (int)(block % c.groups) * c.lanes + (int)threadIdx.x % c.lanes;
    at.image = chunk / c.chunks;
    at.chunk = chunk % c.chunks;
    at.step = c.height;
    at.first = at.chunk * c.block_rows;
    at.end = at.first + c.block_rows < c.rows ? at.first + c.block_rows : c.rows;
    at.first += threadIdx.x / c.lanes;
    if (at.pack >= c.packs) at.first = at.end; /* outside the tensor: the thread gets no rows, but must
                                                  reach the block's barriers */
    return at;
}

/* S sums for each thread of a block. They are in shared memory because registers limit these kernels: with
 * fewer registers per thread, more threads run at once and have loads in flight. */
template <int S> struct amp_column_sums {
    double of[S][AMP_COLUMN_THREADS];
    __device__ __forceinline__ void clear()
    {
        #pragma unroll
        for (int i = 0; i < S; i++) of[i][threadIdx.x] = 0;
    }
    /* `volatile` makes the compiler update one sum after the other. Otherwise it would load all sums into
     * registers at once. */
    __device__ __forceinline__ void add(int i, double v)
    {
        volatile double *sum = &of[i][threadIdx.x];
        *sum = *sum + v;
    }
    __device__ __forceinline__ double get(int i) const { return of[i][threadIdx.x]; }

    /* Adds up the sums of those threads of the block that have the same pack. Returns true in the threads
     * that hold a total afterwards. */
    __device__ __forceinline__ bool fold(const amp_columns &c)
    {
        int t = (int)threadIdx.x;
        for (int half = AMP_COLUMN_THREADS / 2; half >= c.lanes; half /= 2) {
            __syncthreads();
            if (t < half)
                #pragma unroll
                for (int i = 0; i < S; i++) of[i][t] += of[i][t + half];
        }
        return t < c.lanes;
    }
};

/* Adds this thread's rows of x to its sums. */
template <class P> __device__ __forceinline__ void amp_columns_sum(const P *__restrict__ x,
    const amp_columns &c, const amp_column &at, amp_column_sums<P::count> &sums)
{
    const int n = 4; /* rows whose loads are in flight together */
    x += at.image * c.rows * c.packs + at.pack;
    for (size_t row = at.first; row < at.end;) {
        float run[P::count] = {};
        for (int r = 0; r < AMP_COLUMN_RUN && row < at.end; r += n, row += n * at.step) {
            P p[n] = {};
            #pragma unroll
            for (int u = 0; u < n; u++)
                if (row + u * at.step < at.end) p[u] = x[(row + u * at.step) * c.packs];
            #pragma unroll
            for (int i = 0; i < P::count; i++)
                run[i] += (p[0].get(i) + p[1].get(i)) + (p[2].get(i) + p[3].get(i));
        }
        #pragma unroll
        for (int i = 0; i < P::count; i++) sums.add(i, (double)run[i]);
    }
}
