/* Decides which passes of which convolutions use Winograd's minimal filtering, and how they are cut, by a
 * rule of shapes, dtype and instruction set. Nothing is timed at run time, so the same .cfg gives the same
 * bytes on the same kind of processor.
 *
 * It is based on these speed-ups over oneDNN 2.6.3's direct convolution, as onednn_conv.c runs it; CPU time
 * of one thread, lower quartiles of alternating runs, AMD EPYC of 2023 (Zen 4, 1 MB of L2 cache per core);
 * docs/results/winograd.md has more of them. A tile is 4 x 4 pixels. "AVX512_BF16": compared with
 * convolutions in bf16, which these processors compute twice as fast as fp32.
 *
 *                               AVX2, fp32            AVX-512, fp32         AVX512_BF16, bf16
 *                    tiles  forward data weights  forward data weights  forward data weights
 *   16->32, 208x208   10816    1.58  2.42  4.53      1.89  2.73  2.08      1.01  1.12  1.49
 *   32->32, 104x104    2704    2.26  2.32  4.20      2.17  2.18  2.52      1.19  1.20  1.50
 *   32->64, 104x104    2704    2.60  3.22  4.51      2.34  2.37  2.42      1.29  1.39  1.48
 *   64->64,   52x52     676    3.05  3.00  3.60      2.50  2.61  2.42      1.47  1.41  1.56
 *   64->128,  52x52     169    2.93  2.83  3.36      2.70  2.57  2.84      1.42  1.40  1.71
 *   128->256, 26x26     196    2.71  2.21  2.73      2.50  2.52  2.68      1.35  1.36  1.29
 *   384->256, 26x26     196    2.79  2.76  2.65      2.30  2.54  2.66      1.24  1.17  1.22
 *   384->256, 26x26      49    2.57  2.68  3.14      2.29  2.55  2.81      1.31  1.39  1.55
 *   256->512, 13x13      64    2.66  2.42  2.73      2.26  2.28  2.51      1.14  1.22  1.46
 *   512->1024            64    3.05  2.23  3.60      2.36  2.28  2.80      1.22  1.20  1.47
 *   512->1024            32    2.70  1.68  3.50      2.07  1.87  2.59      1.09  1.06  1.50
 *   512->1024            16    2.16  1.79  2.63      1.76  1.59  2.43       .88   .95  1.52
 *
 * Before narrow tiles and prefetching, 512->1024 with AVX-512 had .87, 1.22, 2.30 at 16 tiles on a Zen 5,
 * whose AVX-512 is twice as wide, and in bf16 .61, .95, 1.39 at 32 and .78, 1.19, 1.42 at 64; on an Intel
 * Xeon (Sapphire Rapids, without its AMX) with AVX2 1.1, .9, .9 at 16, against the library's fastest layout.
 * With AMX, bf16 takes a quarter to a half of Winograd's time. bf16 is never used for arithmetic on Intel
 * without AMX (onednn_halves.c), so halves are the same as fp32 there.
 *
 * In groups, batch 4, with this many channels each:
 *
 *                               AVX2, fp32            AVX-512, fp32         AVX512_BF16, bf16
 *                    tiles  forward data weights  forward data weights  forward data weights
 *   2 of 64->64,   52x52     676    3.48  3.01  3.82      2.30  2.57  2.36      1.42  1.38  1.51
 *   2 of 128->128, 26x26     196    2.92  2.71  3.16      2.46  2.46  2.69      1.34  1.37  1.48
 *   8 of 32->32,   26x26     196    2.53  2.07  2.37      1.81  1.68  1.72      1.26  1.18  1.27
 *   16 of 64->64,  19x19     100    2.48  2.20  3.98      1.93  5.30  2.59      1.23  1.15  1.66
 *   32 of 32->32,  19x19     100    1.99  1.25  2.89      1.33  3.43  1.62      1.06  1.01  1.29
 *   32 of 16->16,  38x38     400    1.74  1.26  1.86      1.78  1.57  1.44         -     -   .98 */
#include "winograd.h"

#include "onednn.h"

enum { LINE = 16 };

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Whether the inner loops and the formulas apply. If the image has one row or column, six of the nine weights
 * only multiply padding: their gradient, 0, would get lost in the rounding of the others'. */
static int applies(const amp_conv_desc *d, const amp_cpu_rows *rows)
{
    return rows->winograd_panel && !d->direct && !d->transposed && d->size_h == 3 && d->size_w == 3
        && d->stride == 1 && amp_conv_stride_x(d) == 1 && d->pad == 1 && amp_conv_dilation(d) == 1
        && d->x.h > 1 && d->x.w > 1 && d->x.c % (LINE * d->groups) == 0 && d->k % (LINE * d->groups) == 0;
}

static int is_wanted(const amp_conv_desc *d, amp_winograd_pass pass)
{
    return pass == AMP_WINOGRAD_FORWARD ? amp_conv_wants_forward(d)
        : pass == AMP_WINOGRAD_DATA ? amp_conv_wants_backward_data(d) : d->training;
}

/* Whether Winograd is faster than the library; compute: the dtype in which the library would compute the
 * pass. */
static int pays(const amp_winograd *w, amp_dtype compute)
{
    if (compute == AMP_FP32) return w->tiles >= 16;
    return !amp_onednn_has_amx() && (w->pass == AMP_WINOGRAD_WEIGHTS ? w->tiles >= 16
                                     : w->tiles >= 48 && w->in * w->out >= 512);
}

/* The most tiles in a block with this many channels: about 20 MB of V. */
static size_t largest_block(size_t channels)
{
    size_t tiles = ((size_t)1 << 17) / channels;
    return tiles < 28 ? 28 : least(tiles, 196);
}

/* At most 28 tiles, in blocks of nearly equal size; if there are few, an even number of blocks, so that two
 * threads have equal work. */
static size_t even_blocks(size_t tiles)
{
    size_t blocks = 2 * ((tiles + 55) / 56);
    return (tiles + blocks - 1) / blocks;
}

/* V, M and the filters in use leave space in the L2 cache for what is read and written. With many filters or
 * few tiles, transforming the filters takes more memory, and more time, than transforming the tiles. */
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
        w->parts = least(16, w->tiles / 256 * 2); /* even, like blocks */
        w->block = 28;
    }
    else w->block = least(w->tiles, filters > 65536 ? largest_block(w->in + w->out) : 98);
}

amp_winograd amp_winograd_make(const amp_conv_desc *d, amp_winograd_pass pass, amp_dtype compute)
{
    static const amp_winograd none = { .rows = NULL };
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    int tiles_y = (d->x.h + AMP_WINOGRAD_TILE - 1) / AMP_WINOGRAD_TILE;
    int tiles_x = (d->x.w + AMP_WINOGRAD_TILE - 1) / AMP_WINOGRAD_TILE, data = pass == AMP_WINOGRAD_DATA;
    amp_winograd w = { .rows = rows, .pass = pass, .dtype = d->dtype, .height = d->x.h, .width = d->x.w,
                       .in = (size_t)((data ? d->k : d->x.c) / d->groups),
                       .out = (size_t)((data ? d->x.c : d->k) / d->groups), .groups = (size_t)d->groups,
                       .tiles_y = tiles_y, .tiles_x = tiles_x,
                       .last = { d->x.h - (tiles_y - 1) * AMP_WINOGRAD_TILE,
                                 d->x.w - (tiles_x - 1) * AMP_WINOGRAD_TILE },
                       .tiles = (size_t)d->x.n * (size_t)tiles_y * (size_t)tiles_x };
    if (!is_wanted(d, pass) || !applies(d, rows) || !pays(&w, compute)) return none;
    if (pass == AMP_WINOGRAD_WEIGHTS) cut_gradient(&w);
    else cut_convolution(&w);
    return w;
}
