/* Copies weights to one or two of the layouts in weights_layout.h. The weights are a matrix with one row per
 * filter, and one column for each channel and place in the window. They are copied in tiles of 16 rows that
 * fit in a cache. A tile is transposed, so that the 16 filters of a column become adjacent, and is written in
 * each layout. In bf16, two rows at a time are first rounded and interleaved into one row of pairs. */
#include "weights_layout.h"

#include <omp.h>
#include <string.h>

#include "blocks.h"

enum {
    FILTERS = 16, PAIRS = FILTERS / 2, /* filters and pairs of filters in a tile */
    CHANNELS = 16,                     /* the number of channels in a tile is a multiple of this */
    COLUMNS = 4096,                    /* approximate number of columns in a tile in bf16 */
    FLOAT_COLUMNS = 256                /* the same in fp32: a tile then fits in the L1 cache, and copying
                                          takes 0.7 times as long */
};

typedef struct shape { const amp_cpu_rows *rows; size_t filters, channels, places; } shape;

/* The number of channels in a tile of about `wanted` columns. */
static size_t tile_channels(size_t places, size_t wanted)
{
    size_t blocks = wanted / (CHANNELS * places);
    return CHANNELS * (blocks ? blocks : 1);
}

/* Floats of scratch per thread: a row of zeros (read for missing filters), the rows of a tile (in bf16: rows
 * of pairs), their transpose, and, in fp32, a square of 16 x 16. */
static size_t tile_floats(size_t places, int floats)
{
    return floats ? (1 + 2 * FILTERS) * tile_channels(places, FLOAT_COLUMNS) * places + FILTERS * CHANNELS
        : (1 + 2 * PAIRS) * tile_channels(places, COLUMNS) * places;
}

static int is_fp32(const amp_weights_layout *l) { return l->order >= AMP_WEIGHTS_FLOATS_OF_FILTERS; }

size_t amp_weights_scratch(const amp_weights_layout *layout, size_t places)
{
    return (size_t)omp_get_max_threads() * tile_floats(places, is_fp32(layout)) * sizeof(float);
}

/* pairs[q][column] ← the bf16 weights of the filters first + 2q and first + 2q + 1, for `count` channels from
 * `channel` on. Missing filters and channels become zeros. */
static void pair_rows(const float *masters, const shape *s, size_t first, size_t channel, size_t count,
                      const float *zeros, float *pairs)
{
    size_t columns = count * s->places, row = s->channels * s->places;
    size_t present = channel < s->channels ? (s->channels - channel) * s->places : 0;
    if (present > columns) present = columns;
    for (size_t q = 0; q < PAIRS; q++) {
        size_t even = first + 2 * q, odd = even + 1;
        s->rows->pair_bf16(even < s->filters ? masters + even * row + channel * s->places : zeros,
                           odd < s->filters ? masters + odd * row + channel * s->places : zeros,
                           pairs + q * columns, present);
        memset(pairs + q * columns + present, 0, (columns - present) * sizeof *pairs);
    }
}

/* Writes turned[column][filter], which has 16 halves per column, in a layout that pairs channels. */
static void write_channel_pairs(const float *turned, const shape *s, const amp_weights_target *to,
                                size_t filter, size_t channel, size_t count)
{
    const amp_weights_layout *l = to->layout;
    int eights = l->order == AMP_WEIGHTS_CHANNELS_IN_EIGHTS;
    amp_half_bits *base = (amp_half_bits *)to->copy + filter / l->block * l->filter_stride
        + filter % l->block * 2;
    if (channel + count > l->padded_channels) count = l->padded_channels - channel;
    size_t run = eights ? CHANNELS : count, stride = eights ? 2 * FILTERS : l->channel_stride;
    for (size_t c = 0; c < count; c += run)
        for (size_t k = 0; k < s->places; k++) {
            const float *low = turned + (c * s->places + k) * PAIRS, *high = low + s->places * PAIRS;
            size_t block = eights ? (channel + c) / CHANNELS : channel / 2;
            s->rows->zip(low, high, 2 * s->places * PAIRS,
                         base + block * l->channel_stride + k * l->place_stride, stride, run / 2);
        }
}

/* Like write_channel_pairs, for the layout that pairs filters. */
static void write_filter_pairs(const float *turned, const shape *s, const amp_weights_target *to,
                               size_t filter, size_t channel, size_t count)
{
    const amp_weights_layout *l = to->layout;
    for (size_t c = 0; c < count && channel + c < l->padded_channels; c += CHANNELS) {
        amp_half_bits *base = (amp_half_bits *)to->copy + filter / FILTERS * l->filter_stride
            + (channel + c) / CHANNELS * l->channel_stride;
        for (size_t k = 0; k < s->places; k++)
            s->rows->transpose(turned + (c * s->places + k) * PAIRS, s->places * PAIRS,
                               (float *)(void *)(base + k * l->place_stride), CHANNELS, CHANNELS, PAIRS);
    }
}

/* rows[f][column] ← the weights of filter first + f, for `count` channels from `channel` on. Missing filters
 * and channels become zeros. */
static void take_rows(const float *masters, const shape *s, size_t first, size_t channel, size_t count,
                      float *rows)
{
    size_t columns = count * s->places, row = s->channels * s->places;
    size_t inside = channel < s->channels ? (s->channels - channel) * s->places : 0;
    if (inside > columns) inside = columns;
    for (size_t f = 0; f < FILTERS; f++, rows += columns) {
        size_t present = first + f < s->filters ? inside : 0;
        if (present)
            memcpy(rows, masters + (first + f) * row + channel * s->places, present * sizeof *rows);
        memset(rows + present, 0, (columns - present) * sizeof *rows);
    }
}

/* Writes turned[column][filter], which has 16 floats per column, in a layout with lines of 16 filters. */
static void write_filters(const float *turned, const shape *s, const amp_weights_target *to, size_t filter,
                          size_t channel, size_t count)
{
    const amp_weights_layout *l = to->layout;
    float *base = (float *)to->copy + filter / l->block * l->filter_stride + filter % l->block
        + channel * l->channel_stride;
    if (channel + count > l->padded_channels) count = l->padded_channels - channel;
    for (size_t k = 0; k < s->places; k++)
        s->rows->lines(turned + k * FILTERS, s->places * FILTERS, base + k * l->place_stride,
                       l->channel_stride, count);
}

/* Like write_filters, for a layout with lines of 16 channels. square: scratch for 16 x 16 floats. */
static void write_channels(const float *turned, const shape *s, const amp_weights_target *to, size_t filter,
                           size_t channel, size_t count, float *square)
{
    const amp_weights_layout *l = to->layout;
    size_t left = l->padded_filters - filter, filters = left < FILTERS ? left : FILTERS;
    for (size_t c = channel; c < channel + count && c < l->padded_channels; c += CHANNELS) {
        float *base = (float *)to->copy + filter / l->block * l->filter_stride
            + c / l->channel_block * l->channel_stride + c % l->channel_block;
        for (size_t k = 0; k < s->places; k++) {
            s->rows->transpose(turned + ((c - channel) * s->places + k) * FILTERS, s->places * FILTERS,
                               square, CHANNELS, CHANNELS, FILTERS);
            s->rows->lines(square, CHANNELS, base + k * l->place_stride,
                           l->block > 1 ? CHANNELS : l->filter_stride, filters);
        }
    }
}

static void write_copy(const float *turned, const shape *s, const amp_weights_target *to, size_t filter,
                       size_t channel, size_t count, float *square)
{
    if (!to->copy || filter >= to->layout->padded_filters || channel >= to->layout->padded_channels) return;
    if (to->layout->order == AMP_WEIGHTS_FLOATS_OF_FILTERS)
        write_filters(turned, s, to, filter, channel, count);
    else if (to->layout->order == AMP_WEIGHTS_FLOATS_OF_CHANNELS)
        write_channels(turned, s, to, filter, channel, count, square);
    else if (to->layout->order == AMP_WEIGHTS_FILTERS_IN_EIGHTS)
        write_filter_pairs(turned, s, to, filter, channel, count);
    else write_channel_pairs(turned, s, to, filter, channel, count);
}

/* Returns the largest padded number of filters (or channels) among the copies to make; at least `least`. */
static size_t largest(size_t least, const amp_weights_target *a, const amp_weights_target *b, int channels)
{
    const amp_weights_target *both[] = { a, b };
    for (int i = 0; i < 2; i++) {
        if (!both[i]->copy) continue;
        size_t padded = channels ? both[i]->layout->padded_channels : both[i]->layout->padded_filters;
        if (padded > least) least = padded;
    }
    return least;
}

void amp_weights_copy(const float *masters, size_t filters, size_t channels, size_t places,
                      amp_weights_target one, amp_weights_target other, void *scratch)
{
    const int floats = is_fp32(one.copy ? one.layout : other.layout);
    const size_t rows = floats ? FILTERS : PAIRS;
    const shape s = { amp_cpu_rows_best(), filters, channels, places };
    size_t step = tile_channels(places, floats ? FLOAT_COLUMNS : COLUMNS), columns = step * places;
    size_t all_filters = largest(filters, &one, &other, 0), all_channels = largest(channels, &one, &other, 1);
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(filters * channels * places))
    for (size_t filter = 0; filter < all_filters; filter += FILTERS) {
        float *zeros = (float *)scratch + (size_t)omp_get_thread_num() * tile_floats(places, floats);
        float *taken = zeros + columns, *turned = taken + rows * columns;
        float *square = turned + rows * columns;
        if (filter + FILTERS > filters) memset(zeros, 0, columns * sizeof *zeros);
        for (size_t channel = 0; channel < all_channels; channel += step) {
            size_t left = (all_channels - channel + CHANNELS - 1) / CHANNELS * CHANNELS,
                count = left < step ? left : step;
            if (floats) take_rows(masters, &s, filter, channel, count, taken);
            else pair_rows(masters, &s, filter, channel, count, zeros, taken);
            s.rows->transpose(taken, count * places, turned, rows, rows, count * places);
            write_copy(turned, &s, &one, filter, channel, count, square);
            write_copy(turned, &s, &other, filter, channel, count, square);
        }
        s.rows->end_copies();
    }
}
