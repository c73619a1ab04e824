/* For kernels that compute one result for each channel of an NHWC tensor: divides the tensor among blocks,
 * and sums over its pixels in an order that depends only on the shape.
 *
 * The tensor is a matrix with one row for each pixel. A row consists of packs. A pack is what a thread loads
 * at once: 16 bytes if the channels fill whole packs and memory is aligned, otherwise one element. A block is
 * `lanes` packs wide and AMP_COLUMN_THREADS/lanes rows high. It works on block_rows rows, from top to bottom.
 * With few channels, blocks are narrow and high, so that neighbouring threads read neighbouring memory.
 *
 * A thread sums at most AMP_COLUMN_RUN rows in fp32 and then adds the result to a double. So the rounding
 * error does not grow with the number of rows. */
#pragma once

#include "device.cuh"

enum {
    AMP_COLUMN_THREADS = 256,
    AMP_COLUMN_LANES = 32,    /* maximum width of a block in packs: 32 packs are 512 bytes */
    AMP_COLUMN_BLOCKS = 2048, /* approximate number of blocks: several waves, but few partial sums */
    AMP_COLUMN_ROWS = 8,      /* minimum number of rows per thread */
    AMP_COLUMN_RUN = 64       /* maximum number of rows summed in fp32; doubles are slow on consumer GPUs */
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
    size_t rows;                /* pixels of one image; for sums over all images, `images` is 1 and `rows`
                                   counts all pixels */
    size_t block_rows;
    unsigned images, chunks;    /* chunks: parts of an image, of block_rows rows each */
    int packs, lanes, height;   /* packs: packs in a row; lanes × height: a block in packs × rows */
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

/* What one thread works on: pack number `pack` in each of the rows first, first + step, ... below `end`. */
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
    if (at.pack >= c.packs) at.first = at.end; /* no rows, but the thread must reach the barriers */
    return at;
}

/* S sums for each thread of a block. They are in shared memory, because with fewer registers per thread, more
 * threads run at once and have loads in flight. */
template <int S> struct amp_column_sums {
    double of[S][AMP_COLUMN_THREADS];
    __device__ __forceinline__ void clear()
    {
        #pragma unroll
        for (int i = 0; i < S; i++) of[i][threadIdx.x] = 0;
    }
    /* Without `volatile`, the compiler would load all sums into registers at once. */
    __device__ __forceinline__ void add(int i, double v)
    {
        volatile double *sum = &of[i][threadIdx.x];
        *sum = *sum + v;
    }
    __device__ __forceinline__ double get(int i) const { return of[i][threadIdx.x]; }

    /* Adds up the sums of threads with the same pack. Returns true in the threads that hold a total. */
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
