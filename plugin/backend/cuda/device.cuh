/* What the kernels share: how a thread reads and writes a group of numbers, and how many blocks and threads a
 * launch has. For .cu files only.
 *
 * A kernel is a template over N, the number of consecutive elements in a group. If N is AMP_WIDE(T) or a
 * multiple of it, whole groups are read and written in 16-byte accesses, so their addresses must be multiples
 * of 16. With N = 1, any address is allowed. The last group of a row may be incomplete: it has n < N
 * elements, which are read and written one by one. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "../activate.h"
#include "launch.h"

#define AMP_WIDE(T) ((int)(16 / sizeof(T)))

/* ---- groups ---- */

/* Reads n ≤ N elements at p into v; the other elements of v are left unchanged. */
template <class W, int N> __device__ __forceinline__ void amp_read(W (&v)[N], const W *p, int n)
{
    const int bytes = N * (int)sizeof(W);
    if (n == N && bytes % 16 == 0) {
        uint4 piece[(bytes + 15) / 16];
        #pragma unroll
        for (int i = 0; i < bytes / 16; i++) piece[i] = reinterpret_cast<const uint4 *>(p)[i];
        memcpy((void *)v, piece, sizeof v);
    } else if (n == N && bytes == 8) {
        uint2 piece = *reinterpret_cast<const uint2 *>(p);
        memcpy((void *)v, &piece, 8);
    } else if (n == N && bytes == 4) {
        unsigned piece = *reinterpret_cast<const unsigned *>(p);
        memcpy((void *)v, &piece, 4);
    } else {
        #pragma unroll
        for (int i = 0; i < N; i++)
            if (i < n) v[i] = p[i];
    }
}

/* Reads n ≤ N numbers at p as fp32; the other elements of v become 0. */
template <class T, int N> __device__ __forceinline__ void amp_get(float (&v)[N], const T *p, int n)
{
    if (n == N) {
        T raw[N];
        amp_read(raw, p, N);
        #pragma unroll
        for (int i = 0; i < N; i++) v[i] = amp_load(raw[i]);
    } else {
        #pragma unroll
        for (int i = 0; i < N; i++) v[i] = i < n ? amp_load(p[i]) : 0;
    }
}

/* Rounds v to T and packs it into 32-bit words: one float or two 16-bit numbers per word. Without this, nvcc
 * may store 16-bit numbers one by one. The pointer argument only gives the compiler the type T. */
template <int W, int N> __device__ __forceinline__ void amp_words(unsigned (&word)[W], const float *,
                                                                  const float (&v)[N])
{
    #pragma unroll
    for (int i = 0; i < N; i++) word[i] = __float_as_uint(v[i]);
}

template <class T, int W, int N>
__device__ __forceinline__ void amp_words(unsigned (&word)[W], const T *, const float (&v)[N])
{
    #pragma unroll
    for (int i = 0; i < N / 2; i++) {
        T low = amp_store<T>(v[2 * i]), high = amp_store<T>(v[2 * i + 1]);
        uint16_t half[2];
        memcpy(&half[0], (const void *)&low, 2);
        memcpy(&half[1], (const void *)&high, 2);
        word[i] = half[0] | (unsigned)half[1] << 16;
    }
}

/* Writes the first n numbers of v to p, each rounded once. */
template <class T, int N> __device__ __forceinline__ void amp_put(T *p, const float (&v)[N], int n)
{
    const int bytes = N * (int)sizeof(T);
    if (n == N && bytes % 16 == 0) {
        unsigned word[(bytes + 15) / 16 * 4];
        amp_words(word, p, v);
        #pragma unroll
        for (int i = 0; i < bytes / 16; i++)
            reinterpret_cast<uint4 *>(p)[i] = make_uint4(word[4 * i], word[4 * i + 1], word[4 * i + 2],
                                                         word[4 * i + 3]);
    } else {
        #pragma unroll
        for (int i = 0; i < N; i++)
            if (i < n) p[i] = amp_store<T>(v[i]);
    }
}

/* Writes v to p. With `accumulate`, adds v to p instead: the sum is computed in fp32 and rounded once. */
template <class T, int N> __device__ __forceinline__ void amp_put_or_add(T *p, float (&v)[N], int n,
                                                                         int accumulate)
{
    if (accumulate) {
        float old[N];
        amp_get(old, p, n);
        #pragma unroll
        for (int i = 0; i < N; i++) v[i] += old[i];
    }
    amp_put(p, v, n);
}

/* How many of a group's N elements from `first` exist in an array of `count` elements; first < count. */
template <int N> __device__ __forceinline__ int amp_present(size_t first, size_t count)
{
    return count - first < (size_t)N ? (int)(count - first) : N;
}

/* Whether p is a multiple of `to` bytes. */
static inline int amp_aligned(const void *p, size_t to = 16) { return (uintptr_t)p % to == 0; }

/* Whether rows that start at p, `step` elements apart, can be moved in 16-byte groups. */
static inline bool amp_wide_rows(const void *p, size_t rows, size_t step, amp_dtype dtype)
{
    return amp_aligned(p) && (rows <= 1 || step * amp_dtype_size(dtype) % 16 == 0);
}

/* Whether each pixel of t starts at a multiple of 16 bytes. */
static inline bool amp_cuda_wide(const amp_tensor *t)
{
    return amp_aligned(t->data) && (size_t)t->shape.c * amp_dtype_size(t->dtype) % 16 == 0;
}

/* Runs a statement with the constant `N`: AMP_WIDE(T) if wide, else 1. */
#define AMP_CUDA_BY_GROUP(wide, ...) do { \
        if (wide) { const int N = AMP_WIDE(T); __VA_ARGS__; } \
        else { const int N = 1; __VA_ARGS__; } \
    } while (0)

/* Runs a statement with the constant `A`: the activation if it is frequent, else -1 (see amp_chosen). */
#define AMP_CUDA_BY_ACTIVATION(activation, ...) do { \
        switch (activation) { \
        case AMP_LINEAR: { const int A = AMP_LINEAR; __VA_ARGS__; break; } \
        case AMP_LEAKY: { const int A = AMP_LEAKY; __VA_ARGS__; break; } \
        case AMP_RELU: { const int A = AMP_RELU; __VA_ARGS__; break; } \
        case AMP_LOGISTIC: { const int A = AMP_LOGISTIC; __VA_ARGS__; break; } \
        case AMP_MISH: { const int A = AMP_MISH; __VA_ARGS__; break; } \
        case AMP_SWISH: { const int A = AMP_SWISH; __VA_ARGS__; break; } \
        default: { const int A = -1; __VA_ARGS__; break; } \
        } \
    } while (0)

template <int A> __device__ __forceinline__ amp_activation amp_chosen(amp_activation given)
{
    return A < 0 ? given : (amp_activation)A;
}

/* ---- launches ---- */

enum {
    AMP_CUDA_THREADS = 256,         /* threads per block, unless a kernel needs another number */
    AMP_CUDA_BLOCKS_PER_SM = 32     /* maximum to launch: four times as many as can be resident, to balance
                                       the load at the end */
};

static inline size_t amp_pixels(const amp_tensor *t) { return (size_t)t->shape.n * t->shape.h * t->shape.w; }

static inline size_t amp_divide_up(size_t a, size_t b) { return (a + b - 1) / b; }

static inline size_t amp_cuda_most_blocks(const amp_backend *backend)
{
    return (size_t)amp_cuda_of(backend)->multiprocessors * AMP_CUDA_BLOCKS_PER_SM;
}

/* The number of blocks, with AMP_CUDA_THREADS threads each, to launch for a grid-stride loop over `items`. */
static inline unsigned amp_cuda_blocks(const amp_backend *backend, size_t items)
{
    size_t blocks = amp_divide_up(items, AMP_CUDA_THREADS), most = amp_cuda_most_blocks(backend);
    return (unsigned)(blocks < 1 ? 1 : blocks < most ? blocks : most);
}

/* Queues a copy from one device array to another. */
static inline amp_status amp_cuda_copy(const amp_backend *backend, const void *from, void *to, size_t bytes,
    amp_error *error)
{
    AMP_CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, amp_cuda_of(backend)->stream));
    return AMP_OK;
}

__device__ __forceinline__ size_t amp_thread() { return (size_t)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ __forceinline__ size_t amp_threads() { return (size_t)gridDim.x * blockDim.x; }

/* Returns how many rows of `across` blocks to launch (the grid's y). This is `wanted`, unless that exceeds
 * CUDA's limit or makes more than amp_cuda_most_blocks blocks in all; the result is then smaller, but at
 * least 1. */
static inline unsigned amp_cuda_down(const amp_backend *backend, size_t across, size_t wanted)
{
    size_t most = amp_cuda_most_blocks(backend) / across;
    if (most > 65535) most = 65535; /* CUDA's limit */
    if (wanted > most) wanted = most;
    return (unsigned)(wanted < 1 ? 1 : wanted);
}

/* A launch over a plane of rows × columns. x is the column and y the row, so that a kernel needs no division.
 * A block is as wide as a row if possible; otherwise blocks divide a row evenly. */
typedef struct amp_plane { dim3 blocks, threads; } amp_plane;

static inline amp_plane amp_cuda_plane(const amp_backend *backend, size_t rows, size_t columns)
{
    size_t most = amp_cuda_most_blocks(backend), threads = AMP_CUDA_THREADS;
    size_t across = amp_divide_up(columns, threads), x = amp_divide_up(columns, across ? across : 1);
    if (x < 1) x = 1;
    size_t y = threads / x, down = amp_divide_up(rows, y);
    if (y > rows) y = rows < 1 ? 1 : rows;
    if (across > most) across = most;
    if (across < 1) across = 1;
    amp_plane plane = { dim3((unsigned)across, amp_cuda_down(backend, across, down)),
                        dim3((unsigned)x, (unsigned)y) };
    return plane;
}

/* A launch over the lines (rows of pixels) of all images of t. Threads: x runs over the groups of a pixel's
 * channels, y over pixels. Blocks: x runs over pixels, y over lines. */
static inline amp_plane amp_cuda_lines(const amp_backend *backend, const amp_tensor *t, int group)
{
    size_t lines = (size_t)t->shape.n * t->shape.h, width = (size_t)t->shape.w;
    amp_plane pixel = amp_cuda_plane(backend, width, amp_divide_up((size_t)t->shape.c, group));
    size_t across = amp_divide_up(width, pixel.threads.y);
    pixel.blocks = dim3((unsigned)across, amp_cuda_down(backend, across, lines));
    return pixel;
}

/* These macros launch kernel<T, N>, where N is AMP_WIDE(T) if wide, else 1. The launch covers `count`
 * numbers, rows × columns numbers, or the lines of t. The kernel's arguments may use T. Like AMP_LAUNCH, the
 * macros return from the calling function on an error. */
#define AMP_LAUNCH_ALONG(backend, dtype, wide, count, kernel, ...) \
    AMP_CUDA_BY_DTYPE(dtype, AMP_CUDA_BY_GROUP(wide, \
        AMP_LAUNCH(backend, amp_cuda_blocks(backend, amp_divide_up(count, N)), AMP_CUDA_THREADS, \
                   (kernel<T, N>), __VA_ARGS__)))
#define AMP_LAUNCH_PLANE(backend, dtype, wide, rows, columns, kernel, ...) \
    AMP_CUDA_BY_DTYPE(dtype, AMP_CUDA_BY_GROUP(wide, \
        amp_plane plane_ = amp_cuda_plane(backend, rows, amp_divide_up(columns, N)); \
        AMP_LAUNCH(backend, plane_.blocks, plane_.threads, (kernel<T, N>), __VA_ARGS__)))
#define AMP_LAUNCH_LINES(backend, t, wide, kernel, ...) \
    AMP_CUDA_BY_DTYPE((t)->dtype, AMP_CUDA_BY_GROUP(wide, \
        amp_plane plane_ = amp_cuda_lines(backend, t, N); \
        AMP_LAUNCH(backend, plane_.blocks, plane_.threads, (kernel<T, N>), __VA_ARGS__)))

__device__ __forceinline__ size_t amp_row() { return (size_t)blockIdx.y * blockDim.y + threadIdx.y; }
__device__ __forceinline__ size_t amp_rows() { return (size_t)gridDim.y * blockDim.y; }
