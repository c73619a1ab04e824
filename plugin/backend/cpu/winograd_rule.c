/* Which passes of which convolutions are computed by Winograd's minimal filtering, and how these are cut: a
 * rule of shapes, dtype and instruction set. Nothing is timed when a program runs, so the same .cfg gives the
 * same bytes on the same kind of processor.
 *
 * It stands on these measurements: times as fast as oneDNN 2.6.3's direct convolution as onednn_conv.c runs
 * it; processor time of one thread, lower quartiles of alternating runs, AMD EPYC of 2023 (Zen 4, 1 MB of
 * second-level cache a core); docs/results/winograd-2026-11-28.md has more of them, winograd-2026-11-25.md
 * those of a Zen 5, before the last tiles were narrow. A tile is 4 x 4 pixels. "AVX512_BF16": against
 * convolutions in bf16, which these processors compute twice as fast as fp32.
 *
 *                               AVX2, fp32            AVX-512, fp32         AVX512_BF16, bf16
 *                    tiles  forward data weights  forward data weights  forward data weights
TABLE
 *
 * A Zen 5, whose AVX-512 is twice as wide, showed .87, 1.2 and 1.9 for 512->1024 at 16 tiles with AVX-512 when
 * this took 1.5 times as long as now; in bf16 .61, .95, 1.39 at 32 tiles and .78, 1.19, 1.42 at 64. An Intel
 * Xeon (Sapphire Rapids, without its AMX) showed 1.1, .9, .9 at 16 tiles then, against the library's fastest
 * layout. With AMX bf16 takes a quarter to a half of Winograd's time. Intel's bf16 without AMX is never
 * computed in (onednn_halves.c), so there halves are fp32's case. */
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
    if (compute == AMP_FP32) return w->tiles >= 16;
    return !amp_onednn_has_amx() && (w->pass == AMP_WINOGRAD_WEIGHTS ? w->tiles >= 16
                                     : w->tiles >= 48 && w->in * w->out >= 512);
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
