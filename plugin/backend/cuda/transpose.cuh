/* Transposes matrices and casts them from one dtype to another, for cast.cu and weights.cu. For each image,
 * NCHW is a matrix of channels × pixels, and NHWC is its transpose. For each filter, OIHW is a matrix of
 * channels × taps, and KRSC is its transpose.
 *
 * A block moves a tile through shared memory, in fp32. On each side (source and destination), a tile consists
 * of a few lines of `width` elements, which start `pitch` elements apart in memory. Each side is read or
 * written in long runs of contiguous elements, 16 bytes at a time if alignment allows:
 *  - If the matrix is wide (3 channels × many pixels), the tile's lines are long, and each is a run.
 *  - If the matrix is narrow (many channels × 9 taps), the tile is as wide as the matrix, and its lines form
 *    one run. */
#pragma once

#include "device.cuh"

#define AMP_TILE 5120u    /* floats of shared memory: 20 KiB, so that eight blocks are resident */
#define AMP_TILE_EDGE 64u /* a run of this many elements is long enough: 64 halves are 128 bytes */

/* Floats per row of a tile. This number is odd, and one float after every 8 is unused. So the 8 elements of a
 * group lie in different banks of shared memory, both in a row and in a column. */
static inline __host__ __device__ unsigned amp_tile_pitch(unsigned columns)
{
    return (columns + columns / 8) | 1;
}

__device__ __forceinline__ unsigned amp_tile_place(unsigned row, unsigned column, unsigned pitch)
{
    return row * pitch + row / 8 + column + column / 8;
}

/* A group of at most N elements on one side of a tile. offset: its offset in memory, in elements; n: its
 * number of elements; line, place: the position of its first element in the tile. */
struct amp_side_group { size_t offset; int n; unsigned line, place; };

/* One side of a tile: `lines` lines of `width` elements, which start `pitch` elements apart in memory and are
 * moved in groups of N. */
template <int N> struct amp_side {
    unsigned lines, width, groups; /* groups: number of groups in a run */
    size_t pitch;
    bool whole;                    /* 1: the lines are contiguous and form one run; 0: each line is a run */
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

/* Reads a matrix of rows × columns at src into the tile. At src, rows start `pitch` elements apart. */
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

/* Multiplies the tile's columns by factor, and writes (or adds) them to dst, as lines that start `pitch`
 * elements apart. */
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

/* How matrices of rows × columns are cut into tiles. Tiles at the edges may be smaller. src_wide, dst_wide: 1
 * if 16 bytes can be moved at a time. */
struct amp_tiling { unsigned rows, columns, tile_rows, tile_columns; int src_wide, dst_wide; };

/* The number of tiles of one matrix. */
__host__ __device__ __forceinline__ unsigned amp_tiling_count(const amp_tiling &m)
{
    return ((m.columns + m.tile_columns - 1) / m.tile_columns) * ((m.rows + m.tile_rows - 1) / m.tile_rows);
}

/* Transposes tile t of matrix `image`. All the block's threads must call it. tile: AMP_TILE shared floats. */
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

/* dst (+)= factor·srcᵀ for each of `images` matrices. */
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

/* Cuts `all` into nearly equal pieces of at most `most`, and returns their size. If there are several pieces,
 * the size is a multiple of 8. */
static inline unsigned amp_even_piece(unsigned all, unsigned most)
{
    if (all <= most) return all;
    most = most / 8 * 8;
    unsigned pieces = (all + most - 1) / most;
    return ((all + pieces - 1) / pieces + 7) / 8 * 8;
}

/* Chooses the size of tiles: first as many columns as fit into a tile of min(rows, AMP_TILE_EDGE) rows, then
 * as many rows as fit with this number of columns. */
static inline void amp_tile_cut(unsigned rows, unsigned columns, unsigned *tile_rows, unsigned *tile_columns)
{
    unsigned edge = rows < AMP_TILE_EDGE ? rows : AMP_TILE_EDGE;
    unsigned most = (AMP_TILE / edge - 2) * 8 / 9; /* makes (pitch + 1)·edge fit into AMP_TILE */
    *tile_columns = amp_even_piece(columns, most);
    *tile_rows = amp_even_piece(rows, AMP_TILE / (amp_tile_pitch(*tile_columns) + 1));
}

/* Whether a side can be moved 16 bytes at a time. Each of its matrices has `lines` lines of `pitch` elements;
 * its tiles are `width` elements wide. */
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
    amp_tiling m = {};
    m.rows = rows;
    m.columns = columns;
    amp_tile_cut(rows, columns, &m.tile_rows, &m.tile_columns);
    m.src_wide = amp_side_wide(src, src_dtype, images, rows, columns, m.tile_columns);
    m.dst_wide = amp_side_wide(dst, dst_dtype, images, columns, rows, m.tile_rows);
    return m;
}
