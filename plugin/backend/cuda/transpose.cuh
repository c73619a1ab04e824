/* Transposing a matrix and casting it from one dtype to another, for cast.cu and weights.cu: NCHW is a matrix
 * of channels × pixels for each image, NHWC its transpose; OIHW and KRSC are the same for each filter.
 *
 * A block moves a tile through shared memory, in fp32. Each side of a tile is a few lines of memory: `count`
 * lines of `width` elements, `pitch` apart. Where the tile is as wide as the matrix they are one line. So
 * both sides are read and written in long runs, 16 bytes at a time where alignment allows, whatever the
 * shape: 3 channels × many pixels, many channels × 9 taps. */
#pragma once

#include "device.cuh"

#define AMP_TILE 5120u    /* floats of shared memory: 20 KiB, so that eight blocks are resident */
#define AMP_TILE_EDGE 64u /* as long as a run should be: 128 bytes of halves */

/* Numbers in a row of a tile: one unused after each 8, and an odd number in all, so that neither groups of 8
 * along a row nor groups of 8 down a column meet in one bank. */
static inline __host__ __device__ unsigned amp_tile_pitch(unsigned columns)
{
    return (columns + columns / 8) | 1;
}

__device__ __forceinline__ unsigned amp_tile_place(unsigned row, unsigned column, unsigned pitch)
{
    return row * pitch + row / 8 + column + column / 8;
}

/* A group of N of one side of a tile: where it is in memory, how many it has, where its first is in the
 * tile. */
struct amp_side_group { size_t offset; int n; unsigned line, place; };

/* One side of a tile: `lines` of `width` elements, `pitch` apart, in groups of N. */
template <int N> struct amp_side {
    unsigned lines, width, groups; /* groups in a run */
    size_t pitch;
    bool whole;                    /* all lines are one run */
    __device__ amp_side(unsigned lines_, unsigned width_, size_t pitch_)
        : lines(lines_), width(width_), pitch(pitch_), whole(width_ == pitch_)
    {
        groups = ((whole ? lines * width : width) + N - 1) / N;
    }
    __device__ unsigned count() const { return whole ? groups : groups * lines; }
    __device__ amp_side_group at(unsigned g) const
    {
        amp_side_group it;
        if (whole) {
            unsigned first = g * N;
            it.offset = first, it.n = amp_present<N>(first, lines * width);
            it.line = first / width, it.place = first - it.line * width;
        } else {
            it.line = g / groups, it.place = (g - it.line * groups) * N;
            it.offset = it.line * pitch + it.place, it.n = amp_present<N>(it.place, width);
        }
        return it;
    }
    __device__ void next(amp_side_group *it) const { if (++it->place == width) it->place = 0, ++it->line; }
};

/* Rows × columns at src, `pitch` apart, into the tile. */
template <int N, class S>
__device__ void amp_tile_fill(float *tile, unsigned tile_pitch, const S *src, unsigned rows, unsigned columns,
                              size_t pitch)
{
    const amp_side<N> side(rows, columns, pitch);
    for (unsigned g = threadIdx.x; g < side.count(); g += blockDim.x) {
        amp_side_group it = side.at(g);
        float v[N];
        amp_get(v, src + it.offset, it.n);
        #pragma unroll
        for (int i = 0; i < N; i++)
            if (i < it.n) tile[amp_tile_place(it.line, it.place, tile_pitch)] = v[i], side.next(&it);
    }
}

/* The tile's columns, times factor, to lines at dst, `pitch` apart. */
template <int N, class D>
__device__ void amp_tile_drain(const float *tile, unsigned tile_pitch, D *dst, unsigned rows,
                               unsigned columns, size_t pitch, float factor, int accumulate)
{
    const amp_side<N> side(columns, rows, pitch);
    for (unsigned g = threadIdx.x; g < side.count(); g += blockDim.x) {
        amp_side_group it = side.at(g);
        float v[N] = { 0 };
        #pragma unroll
        for (int i = 0; i < N; i++)
            if (i < it.n) v[i] = factor * tile[amp_tile_place(it.place, it.line, tile_pitch)], side.next(&it);
        amp_put_or_add(dst + it.offset, v, it.n, accumulate);
    }
}

/* How matrices of rows × columns are cut into tiles, which are smaller at the edges; wide: 16 bytes at a
 * time. */
struct amp_tiling { unsigned rows, columns, tile_rows, tile_columns; int src_wide, dst_wide; };

/* Tiles of one matrix. */
__host__ __device__ __forceinline__ unsigned amp_tiling_count(const amp_tiling &m)
{
    return ((m.columns + m.tile_columns - 1) / m.tile_columns) * ((m.rows + m.tile_rows - 1) / m.tile_rows);
}

/* Tile t of matrix `image`, by the whole block, through `tile`, which has AMP_TILE floats. */
template <class S, class D>
__device__ void amp_transpose_tile(float *tile, const S *src, D *dst, size_t image, unsigned t,
                                   const amp_tiling &m, float factor, int accumulate)
{
    unsigned pitch = amp_tile_pitch(m.tile_columns),
        across = (m.columns + m.tile_columns - 1) / m.tile_columns;
    unsigned row = t / across * m.tile_rows, column = t % across * m.tile_columns;
    unsigned r = min(m.tile_rows, m.rows - row), c = min(m.tile_columns, m.columns - column);
    const S *from = src + (image * m.rows + row) * m.columns + column;
    D *to = dst + (image * m.columns + column) * m.rows + row;
    if (m.src_wide) amp_tile_fill<AMP_WIDE(S)>(tile, pitch, from, r, c, m.columns);
    else amp_tile_fill<1>(tile, pitch, from, r, c, m.columns);
    __syncthreads();
    if (m.dst_wide) amp_tile_drain<AMP_WIDE(D)>(tile, pitch, to, r, c, m.rows, factor, accumulate);
    else amp_tile_drain<1>(tile, pitch, to, r, c, m.rows, factor, accumulate);
    __syncthreads();
}

/* images × (rows × columns) → images × (columns × rows). */
template <class S, class D> __global__ void __launch_bounds__(AMP_CUDA_THREADS)
transpose(const S *src, D *dst, size_t images, amp_tiling m, float factor, int accumulate)
{
    __shared__ float tile[AMP_TILE];
    unsigned tiles = amp_tiling_count(m);
    for (size_t image = blockIdx.y; image < images; image += gridDim.y)
        for (unsigned t = blockIdx.x; t < tiles; t += gridDim.x)
            amp_transpose_tile(tile, src, dst, image, t, m, factor, accumulate);
}

/* ---- the CPU's part ---- */

/* Pieces of at most `most` that cover `all`: equal ones, but for the last, and multiples of 8 if there are
 * several. */
static inline unsigned amp_even_piece(unsigned all, unsigned most)
{
    if (all <= most) return all;
    most = most / 8 * 8;
    unsigned pieces = (all + most - 1) / most;
    return ((all + pieces - 1) / pieces + 7) / 8 * 8;
}

/* Tiles of AMP_TILE_EDGE rows at most, and of as many columns as fit; then of as many rows as fit, should
 * that be more. */
static inline void amp_tile_cut(unsigned rows, unsigned columns, unsigned *tile_rows, unsigned *tile_columns)
{
    unsigned edge = rows < AMP_TILE_EDGE ? rows : AMP_TILE_EDGE;
    unsigned most = (AMP_TILE / edge - 2) * 8 / 9; /* the pitch of so many, and one, times edge fits */
    *tile_columns = amp_even_piece(columns, most);
    *tile_rows = amp_even_piece(rows, AMP_TILE / (amp_tile_pitch(*tile_columns) + 1));
}

/* May groups of 16 bytes be used on a side whose images have `lines` of `pitch` elements, in tiles `width`
 * wide? */
static inline int amp_side_wide(const void *p, amp_dtype dtype, size_t images, size_t lines, size_t pitch,
                                size_t width)
{
    size_t element = amp_dtype_size(dtype);
    return amp_aligned(p) && (images <= 1 || lines * pitch * element % 16 == 0) &&
        (width == pitch || pitch * element % 16 == 0);
}

static inline amp_tiling amp_tiling_of(const void *src, amp_dtype src_dtype, const void *dst,
                                       amp_dtype dst_dtype, size_t images, unsigned rows, unsigned columns)
{
    amp_tiling m = { rows, columns, 0, 0, 0, 0 };
    amp_tile_cut(rows, columns, &m.tile_rows, &m.tile_columns);
    m.src_wide = amp_side_wide(src, src_dtype, images, rows, columns, m.tile_columns);
    m.dst_wide = amp_side_wide(dst, dst_dtype, images, columns, rows, m.tile_rows);
    return m;
}
