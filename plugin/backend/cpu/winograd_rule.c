/* Which passes of which convolutions are computed by Winograd's minimal filtering, and how these are cut: a
 * rule of shapes, dtype and instruction set. Nothing is timed when a program runs, so the same .cfg gives the
 * same bytes on the same kind of processor.
 *
 * It stands on these measurements: times as fast as oneDNN 2.6.3's direct convolution as onednn_conv.c runs
 * it; processor time of one thread, lower quartile of 9 alternating runs (AVX2: 7), AMD EPYC of 2024 (Zen 5,
 * 1 MB of second-level cache a core); docs/results/winograd-2026-11-25.md has all 25 shapes. A tile is 4 x 4
 * pixels. "AVX512_BF16": against convolutions in bf16, which this processor computes twice as fast as fp32.
 *
 *                               AVX2, fp32            AVX-512, fp32         AVX512_BF16, bf16
 *                    tiles  forward data weights  forward data weights  forward data weights
 *   16->32, 208x208  10816    1.84  2.29  4.26      1.46  2.02  1.71       .92  .97  1.36
 *   32->32, 104x104   2704    2.47  2.63  4.80      1.87  2.20  2.23      1.21 1.21  1.58
 *   64->64,   52x52    676    3.17  3.23  3.98      2.50  2.55  2.49      1.46 1.42  1.79
 *   64->128,  52x52    169    2.95  3.21  4.08      2.82  2.89  3.11      1.39 1.41  1.93
 *   128->256, 26x26    196    2.76  3.01  3.47      2.67  2.88  2.82      1.30 1.25  1.54
 *   256->512, 13x13     64    2.24  2.19  2.46      1.52  2.30  2.04       .73  .86  1.26
 *   512->1024         64    2.27  2.28  3.15      1.63  2.28  2.71       .78 1.19  1.42
 *   384->256, 26x26     49    2.52  2.77  3.43      2.14  2.25  2.74      1.09 1.03  1.60
 *   512->1024         32    2.11  2.01  3.09      1.25  1.77  2.52       .61  .95  1.39
 *   512->1024         16    1.79  1.75  2.62       .87  1.22  2.30       .42  .65  1.43
 *   256->512, 13x13    256                         1.65  2.65  2.02       .81  .74   .99
 *
 * An Intel Xeon (Sapphire Rapids, without its AMX) showed less for few tiles, against the library's fastest
 * layout: at 16 tiles 1.1, .9, .9 with AVX2, at 32 tiles .9 to 1.1 with AVX-512, so 16 tiles are left to the
 * library but forward with AVX2. With AMX bf16 takes a quarter to a half of Winograd's time. Intel's bf16
 * without AMX is never computed in (onednn_halves.c), so there halves are fp32's case. */
#include "winograd.h"

#include "onednn.h"

enum { LINE = 16 };

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* What the inner loops and the formulas ask for. */
static int applies(const amp_conv_desc *d, const amp_cpu_rows *rows)
{
    return rows->winograd_panel && !d->direct && !d->transposed && d->size_h == 3 && d->size_w == 3
        && d->stride == 1 && amp_conv_stride_x(d) == 1 && d->pad == 1 && d->groups == 1
        && amp_conv_dilation(d) == 1 && d->x.c % LINE == 0 && d->k % LINE == 0;
}

static int is_wanted(const amp_conv_desc *d, amp_winograd_pass pass)
{
    return pass == AMP_WINOGRAD_FORWARD ? amp_conv_wants_forward(d)
        : pass == AMP_WINOGRAD_DATA ? amp_conv_wants_backward_data(d) : d->training;
}

/* compute: what the library would compute it in. */
static int pays(const amp_winograd *w, amp_dtype compute)
{
    int avx2 = w->rows->winograd_panel == LINE;
    /* At 13 x 13 a third of the tiles' pixels are beyond the image. */
    int full = 5 * w->height * w->width >= 4 * 16 * w->tiles_y * w->tiles_x;
    if (compute != AMP_FP32)
        return !amp_onednn_has_amx() && (w->pass == AMP_WINOGRAD_WEIGHTS ? w->tiles >= 32
                                         : full && w->tiles >= 128 && w->in * w->out >= 1024);
    return w->tiles >= (w->pass == AMP_WINOGRAD_FORWARD && avx2 ? 16 : 32);
}

/* Of tiles of so many channels: 20 MB. */
static size_t largest_block(size_t channels)
{
    size_t tiles = ((size_t)1 << 17) / channels;
    return tiles < 28 ? 28 : least(tiles, 196);
}

/* V, M and the filters in use are about as large as a second-level cache together. Where filters are many or
 * tiles few, transforming the filters takes more memory, and more time, than transforming the tiles. */
static void cut_convolution(amp_winograd *w)
{
    int many_filters = w->in * w->out > 65536 || w->tiles <= 64;
    w->some_out = least(w->out, 64);
    w->some_in = many_filters ? least(w->in, 128) : w->in;
    w->block = least(w->tiles, many_filters && w->in > 128 ? largest_block(w->in) : 28);
}

static void cut_gradient(amp_winograd *w)
{
    size_t filters = w->in * w->out;
    if (filters <= 4096 && w->tiles >= 256) {
        w->parts = least(16, w->tiles / 128);
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
                       .in = (size_t)(data ? d->k : d->x.c), .out = (size_t)(data ? d->x.c : d->k),
                       .tiles_y = tiles_y, .tiles_x = tiles_x,
                       .last = { d->x.h - (tiles_y - 1) * AMP_WINOGRAD_TILE,
                                 d->x.w - (tiles_x - 1) * AMP_WINOGRAD_TILE },
                       .tiles = (size_t)d->x.n * (size_t)tiles_y * (size_t)tiles_x };
    if (!is_wanted(d, pass) || !applies(d, rows) || !pays(&w, compute)) return none;
    if (pass == AMP_WINOGRAD_WEIGHTS) cut_gradient(&w);
    else cut_convolution(&w);
    return w;
}
