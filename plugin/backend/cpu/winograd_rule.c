/* Decides which passes of a convolution use Winograd's minimal filtering, and how their work is cut. The rule
 * depends only on shapes, dtype and processor, so the same .cfg gives the same bytes on the same kind of
 * processor.
 *
 * The rule is based on measurements on a Zen 4 (docs/results/winograd.md). In fp32, all passes use Winograd
 * from 16 tiles (of 4 x 4 pixels) on. AVX512_BF16 computes direct convolutions in bf16 twice as fast as in
 * fp32. So in bf16, forward and the data gradient use Winograd only from 48 tiles on, and not with few
 * channels per group.
 *
 * Other processors were measured before narrow tiles and prefetching existed. The numbers are Winograd's
 * speed relative to the direct convolution, for 512->1024 channels, for forward, the data gradient and the
 * weight gradient:
 * - On a Zen 5, whose AVX-512 is twice as wide: .87, 1.22 and 2.30 in fp32 at 16 tiles; .61, .95 and 1.39 in
 *   bf16 at 32 tiles; .78, 1.19 and 1.42 in bf16 at 64 tiles.
 * - On an Intel Xeon (Sapphire Rapids, without its AMX) with AVX2: 1.1, .9 and .9 at 16 tiles, compared with
 *   the library's fastest layout.
 *
 * With AMX, direct convolution in bf16 takes a quarter to a half of Winograd's time. On Intel without AMX,
 * bf16 is only a storage format (onednn_halves.c), so it follows the rule for fp32. */
#include "winograd.h"

#include "onednn.h"

enum { LINE = 16 };

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Whether the inner loops and the formulas can compute this convolution. In an image with only one row or
 * column, the gradient of six of the nine weights should be 0, but would consist of rounding errors. */
static int applies(const amp_conv_desc *d, const amp_cpu_rows *rows)
{
    return rows->winograd_panel && !d->direct && !d->transposed && d->size_h == 3 && d->size_w == 3
        && d->stride == 1 && amp_conv_stride_x(d) == 1 && d->pad == 1 && amp_conv_dilation(d) == 1
        && d->x.h > 1 && d->x.w > 1 && d->x.c % (LINE * d->groups) == 0 && d->k % (LINE * d->groups) == 0;
}

int amp_winograd_wanted(const amp_conv_desc *d, amp_winograd_pass pass)
{
    return pass == AMP_WINOGRAD_FORWARD ? amp_conv_wants_forward(d)
        : pass == AMP_WINOGRAD_DATA ? amp_conv_wants_backward_data(d) : d->training;
}

/* Whether Winograd is faster than the library, which would compute the pass in the dtype `compute`. */
static int pays(const amp_winograd *w, amp_dtype compute)
{
    if (compute == AMP_FP32) return w->tiles >= 16;
    return !amp_onednn_has_amx() && (w->pass == AMP_WINOGRAD_WEIGHTS ? w->tiles >= 16
                                     : w->tiles >= 48 && w->in * w->out >= 512);
}

/* The largest number of tiles in a block with this many channels. V then takes about 20 MB. */
static size_t largest_block(size_t channels)
{
    size_t tiles = ((size_t)1 << 17) / channels;
    return tiles < 28 ? 28 : least(tiles, 196);
}

/* Returns the number of tiles per block, at most 28, for an even number of nearly equal blocks, so that two
 * threads have equal work. */
static size_t even_blocks(size_t tiles)
{
    size_t blocks = 2 * ((tiles + 55) / 56);
    return (tiles + blocks - 1) / blocks;
}

/* Chooses sizes for which V, M and the filters in use leave space in the L2 cache for x and y. */
static void cut_convolution(amp_winograd *w)
{
    int many_filters = w->in * w->out > 65536 || w->tiles <= 64;
    w->some_out = least(w->out, 64);
    w->some_in = many_filters ? least(w->in, 128) : w->in;
    w->block = many_filters && w->in > 128 ? least(w->tiles, largest_block(w->in)) : even_blocks(w->tiles);
}

static void cut_gradient(amp_winograd *w)
{
    size_t filters = w->in * w->out;
    if (filters <= 4096 && w->tiles >= 256) {
        w->parts = least(16, w->tiles / 256 * 2); /* even, so that two threads have equal work */
        w->block = 28;
    }
    else w->block = least(w->tiles, filters > 65536 ? largest_block(w->in + w->out) : 98);
}

amp_winograd amp_winograd_make(const amp_conv_desc *d, amp_winograd_pass pass, amp_dtype compute)
{
    static const amp_winograd none = { .is_used = 0 };
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    int tiles_y = (d->x.h + AMP_WINOGRAD_TILE - 1) / AMP_WINOGRAD_TILE;
    int tiles_x = (d->x.w + AMP_WINOGRAD_TILE - 1) / AMP_WINOGRAD_TILE, data = pass == AMP_WINOGRAD_DATA;
    amp_winograd w = { .is_used = 1, .rows = rows, .pass = pass, .dtype = d->dtype, .height = d->x.h,
                       .width = d->x.w, .in = (size_t)((data ? d->k : d->x.c) / d->groups),
                       .out = (size_t)((data ? d->x.c : d->k) / d->groups), .groups = (size_t)d->groups,
                       .tiles_y = tiles_y, .tiles_x = tiles_x,
                       .last = { d->x.h - (tiles_y - 1) * AMP_WINOGRAD_TILE,
                                 d->x.w - (tiles_x - 1) * AMP_WINOGRAD_TILE },
                       .tiles = (size_t)d->x.n * (size_t)tiles_y * (size_t)tiles_x };
    if (!amp_winograd_wanted(d, pass) || !applies(d, rows) || !pays(&w, compute)) return none;
    if (pass == AMP_WINOGRAD_WEIGHTS) cut_gradient(&w);
    else cut_convolution(&w);
    return w;
}
