/* Makes the copies of weights that convolutions compute with, for a whole network in one launch. For each
 * filter k it computes krsc[k][tap][c] = round(oihw[k][c][tap]). */
#include "kernels.h"

#include <limits.h>

#include "table.cuh"
#include "transpose.cuh"

static const unsigned SHARE = 8192; /* approximate number of elements per block */

/* One convolution's masters and copy. If OIHW and KRSC are the same order in memory, all filters of the
 * convolution are treated as one line. */
typedef struct weights_row {
    amp_cuda_work work; /* the units of work are tiles */
    const float *masters;
    void *copy;
    amp_tiling tiling; /* has no padding, so it may be assigned as a whole: see amp_cuda_table_rows */
    unsigned tiles;     /* tiles per filter */
    amp_dtype dtype;    /* dtype of the copy */
} weights_row;

template <class T> static __device__ __forceinline__ void load_tile(float *tile, const weights_row &r,
                                                                    unsigned at)
{
    amp_transpose_tile(tile, r.masters, (T *)r.copy, at / r.tiles, at % r.tiles, r.tiling, 1, 0);
}

__global__ void __launch_bounds__(AMP_CUDA_THREADS) load_weights(const weights_row *__restrict__ rows,
    const amp_cuda_cut *__restrict__ cuts)
{
    __shared__ float tile[AMP_TILE];
    const amp_cuda_cut c = cuts[blockIdx.x];
    const weights_row r = rows[c.row];
    for (int i = 0; i < c.count; i++) {
        unsigned at = (unsigned)c.first + (unsigned)i;
        if (r.dtype == AMP_FP16) load_tile<__half>(tile, r, at);
        else if (r.dtype == AMP_BF16) load_tile<__nv_bfloat16>(tile, r, at);
        else load_tile<float>(tile, r, at);
    }
}

static void describe(weights_row *row, const amp_cuda_weights *w)
{
    size_t filters = (size_t)w->k, channels = (size_t)w->c, taps = (size_t)w->size_h * w->size_w;
    int line = (channels == 1 || taps == 1) && filters * channels * taps <= UINT_MAX;
    size_t images = line ? 1 : filters;
    unsigned height = line ? 1 : (unsigned)channels,
        width = (unsigned)(line ? filters * channels * taps : taps);
    row->work.share = 1;
    if (!filters || !channels || !taps) return;
    amp_tiling t = amp_tiling_of(w->oihw, AMP_FP32, w->krsc, w->dtype, images, height, width);
    /* a line's tiles begin at multiples of 8 elements, so only the line's start must be aligned */
    if (line) t.src_wide = amp_aligned(w->oihw), t.dst_wide = amp_aligned(w->krsc);
    row->masters = w->oihw, row->copy = w->krsc, row->dtype = w->dtype;
    row->tiling = t;
    row->tiles = amp_tiling_count(t);
    row->work.units = images * row->tiles;
    row->work.share = (int)amp_divide_up(SHARE, (size_t)t.tile_rows * t.tile_columns);
}

amp_status amp_cuda_weights_to_krsc(amp_backend *backend, amp_cuda_table *t, const amp_cuda_weights *all,
                                    int count, amp_error *error)
{
    weights_row *rows = (weights_row *)amp_cuda_table_rows(sizeof *rows, count);
    for (int i = 0; i < count; i++) describe(&rows[i], &all[i]);
    AMP_TRY(amp_cuda_table_set(backend, t, rows, sizeof *rows, count, error));
    if (!t->cuts) return AMP_OK;
    AMP_LAUNCH(backend, t->cuts, AMP_CUDA_THREADS, load_weights, amp_cuda_rows_of<weights_row>(t),
               amp_cuda_cuts_of(t));
    return AMP_OK;
}
