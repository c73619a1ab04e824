/* Runs Winograd convolutions: orders the transforms and products, and divides them among threads. winograd.h
 * explains the arithmetic and the layouts. rows_winograd.h has the inner loops. */
#include "winograd.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "blocks.h"

enum {
    PLANES = AMP_WINOGRAD_PLANES, SIDE = AMP_WINOGRAD_SIDE, TILE = AMP_WINOGRAD_TILE,
    LINE = 16, PLACES = 9,
    APART = 80 /* padding between planes, in floats */
};

typedef amp_cpu_matrix matrix;

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* ---- scratch ---- */

static size_t matrix_plane(size_t tiles, size_t channels) { return tiles * channels + APART; }

/* Makes a matrix of `tiles` tiles in the memory at *next, and moves *next past it. */
static matrix matrix_at(float **next, size_t tiles, size_t channels)
{
    matrix m = { *next, matrix_plane(tiles, channels), tiles * LINE };
    *next += PLANES * m.plane;
    return m;
}

static matrix from_tile(const matrix *m, size_t t)
{
    return (matrix){ m->data + t * LINE, m->plane, m->line };
}

/* The address of a channel of a tile in one plane. */
static float *plane_at(const matrix *m, size_t plane, size_t channel, size_t tile)
{
    return m->data + plane * m->plane + channel / LINE * m->line + tile * LINE;
}

/* Floats of scratch: own_floats for each thread, shared_floats for all threads together. */
static size_t own_floats(const amp_winograd *w)
{
    size_t panel = w->rows->winograd_panel, sums = PLANES * (LINE * panel + APART);
    int whole = w->some_in == w->in;
    if (w->pass == AMP_WINOGRAD_WEIGHTS)
        return w->parts ? PLANES * (matrix_plane(w->block, w->in) + matrix_plane(w->block, w->out)) : sums;
    return PLANES * matrix_plane(w->block, w->some_out) + w->out
        + PLANES * (whole ? matrix_plane(w->block, w->in) : w->some_in * w->some_out + APART);
}

static size_t shared_floats(const amp_winograd *w)
{
    size_t filters = PLANES * (w->in * w->out + APART), outside = w->in + w->out;
    if (w->pass == AMP_WINOGRAD_WEIGHTS)
        return outside + (w->parts ? w->parts * filters : PLANES * (matrix_plane(w->block, w->in)
                                                                    + matrix_plane(w->block, w->out)));
    return outside + (w->some_in == w->in ? filters : PLANES * matrix_plane(w->block, w->in));
}

size_t amp_winograd_scratch(const amp_winograd *w)
{
    if (!w->is_used) return 0;
    return (shared_floats(w) + (size_t)omp_get_max_threads() * own_floats(w)) * sizeof(float)
        + (w->pass == AMP_WINOGRAD_WEIGHTS ? w->tiles : 0);
}

/* ---- tiles ---- */

/* The number of tiles of each of the four kinds in winograd.h's picture. */
typedef struct kinds { size_t count[4]; } kinds;

static kinds count_kinds(const amp_winograd *w)
{
    size_t high = (size_t)w->tiles_y, wide = (size_t)w->tiles_x, images = w->tiles / (high * wide);
    size_t low = w->last.rows < TILE, right = w->last.columns < TILE;
    return (kinds){ { images * low * (wide - right), images * (high - low) * (wide - right),
                      images * (high - low) * right, images * low * right } };
}

/* A tile's image, the row and column of its first output pixel, and its size. */
typedef struct place { size_t image; int top, left; amp_cpu_tile_size size; } place;

static place place_of(const amp_winograd *w, size_t tile)
{
    const kinds k = count_kinds(w);
    size_t images = w->tiles / ((size_t)w->tiles_y * (size_t)w->tiles_x), kind = 0;
    for (; tile >= k.count[kind]; kind++) tile -= k.count[kind];
    int low = kind == 0 || kind == 3, right = kind >= 2;
    size_t of_image = k.count[kind] / images, within = tile % of_image;
    size_t wide = (size_t)(right ? 1 : w->tiles_x - (w->last.columns < TILE));
    int y = low ? w->tiles_y - 1 : (int)(within / wide), x = right ? w->tiles_x - 1 : (int)(within % wide);
    return (place){ tile / of_image, y * TILE, x * TILE, { y == w->tiles_y - 1 ? w->last.rows : TILE,
                                                           x == w->tiles_x - 1 ? w->last.columns : TILE } };
}

/* The tiles of [first, end) that use a given plane: `count` consecutive tiles, beginning at tile first +
 * from. Tiles at the lower and right edges do not use all planes. */
typedef struct range { size_t from, count; } range;

static range range_of(const amp_winograd *w, size_t plane, size_t first, size_t end)
{
    const kinds k = count_kinds(w);
    int i = (int)plane / SIDE, j = (int)plane % SIDE;
    size_t low = i <= w->last.rows || i == SIDE - 1, right = j <= w->last.columns || j == SIDE - 1;
    size_t begin = low ? 0 : k.count[0];
    size_t stop = k.count[0] + k.count[1] + right * (k.count[2] + low * k.count[3]);
    if (begin < first) begin = first;
    if (stop > end) stop = end;
    return begin < stop ? (range){ begin - first, stop - begin } : (range){ 0, 0 };
}

/* Finds the addresses of side x side pixels. They begin `before` pixels above and to the left of a tile's
 * first pixel. A pixel outside the image gets the address `outside`. channels: channels per group. */
static void find_pixels(const amp_winograd *w, const void *tensor, size_t channels, place p, int before,
                        int side, const void *outside, const void **pixels)
{
    size_t pixel = w->groups * channels * amp_dtype_size(w->dtype), row = pixel * (size_t)w->width;
    const char *image = (const char *)tensor + p.image * row * (size_t)w->height;
    for (int i = 0; i < side; i++)
        for (int j = 0; j < side; j++) {
            int y = p.top - before + i, x = p.left - before + j;
            int inside = y >= 0 && y < w->height && x >= 0 && x < w->width;
            pixels[i * side + j] = inside ? image + (size_t)y * row + (size_t)x * pixel : outside;
        }
}

/* ---- forward, and the data gradient (dx) ---- */

typedef struct job {
    const amp_winograd *w;
    const amp_winograd_task *task;
    amp_cpu_filters filters;
    const float *zeros;  /* w->in + w->out zeros, for pixels outside the image and for a missing bias */
} job;

/* For the tiles [first, end), stores V in *v, and in `large` one flag per tile: 1 if the tile is large.
 * Writes both from position `at` on. */
static void input_tiles(const job *j, size_t first, size_t end, const matrix *v, size_t at,
                        unsigned char *large)
{
    const amp_winograd *w = j->w;
    const void *pixels[SIDE * SIDE];
    for (size_t t = first; t < end; t++, at++) {
        place p = place_of(w, t);
        find_pixels(w, j->task->x, w->in, p, 1, SIDE, j->zeros, pixels);
        int is_large = w->rows->winograd_transform(w->dtype, SIDE, pixels, p.size, w->in, w->groups,
                                                   from_tile(v, at));
        if (is_large && w->pass == AMP_WINOGRAD_DATA)
            is_large = w->rows->winograd_is_finite(w->dtype, pixels, PLANES, w->in);
        large[at] = (unsigned char)is_large;
    }
}

/* Computes `some` channels of y, starting at channel `from`, from the block's M. Uses the direct sum if
 * large[tile] or large_filters is set. nowhere: a dummy pixel for writes outside the image. */
static void output_tiles(const job *j, const matrix *m, size_t first, size_t count, size_t from, size_t some,
                         const unsigned char *large, int large_filters, float *nowhere)
{
    const amp_winograd *w = j->w;
    const amp_winograd_task *task = j->task;
    const amp_cpu_tile_end end = { task->bias ? task->bias + from : j->zeros, task->leaky ? .1f : 1,
                                   task->accumulate };
    const char *y = (char *)task->y + from * amp_dtype_size(w->dtype);
    const void *pixels[SIDE * SIDE], *to[TILE * TILE];
    for (size_t t = 0; t < count; t++) {
        place p = place_of(w, first + t);
        find_pixels(w, y, w->out, p, 0, TILE, nowhere, to);
        if (!large[t] && !large_filters) {
            w->rows->winograd_output(w->dtype, from_tile(m, t), some, (void *const *)to, p.size, &end);
            continue;
        }
        find_pixels(w, task->x, w->in, p, 1, SIDE, j->zeros, pixels);
        w->rows->winograd_direct(w->dtype, pixels, w->in, &j->filters, from, some, (void *const *)to, &end);
    }
}

/* Writes U of the channels [i, i + some_in) of the filters [o, o + some_out) to u. Returns 1 if any of
 * their panels is large. */
static int transform_filters(const job *j, size_t i, size_t some_in, size_t o, size_t some_out, float *u,
                             size_t plane)
{
    size_t panel = j->w->rows->winograd_panel;
    int large = 0;
    for (size_t p = 0; p < some_out; p += panel)
        large |= j->w->rows->winograd_filters(&j->filters, o + p, least(panel, some_out - p), i, some_in,
                                              u + p * some_in, plane);
    return large;
}

/* M (+)= V·U for the tiles [first, end), the `some_out` filters at *m, and the channels [i, i + some_in).
 * Overwrites M if i is 0. */
static void multiply(const amp_winograd *w, const matrix *v, size_t i, size_t some_in, const float *u,
                     size_t u_plane, size_t some_out, const matrix *m, size_t first, size_t end)
{
    size_t panel = w->rows->winograd_panel;
    for (size_t p = 0; p < PLANES; p++) {
        range r = range_of(w, p, first, end);
        for (size_t o = 0; o < some_out; o += panel)
            w->rows->winograd_products(plane_at(v, p, i, r.from), v->line, some_in / LINE,
                                       u + p * u_plane + o * some_in, least(panel, some_out - o),
                                       plane_at(m, p, o, r.from), m->line, r.count, i > 0);
    }
}

/* First transforms all filters. Then divides the blocks of tiles among threads. */
static void convolve_blocks(const job *j, float *shared, float *own, size_t own_size)
{
    const amp_winograd *w = j->w;
    const size_t plane = w->in * w->out + APART, panel = w->rows->winograd_panel;
    int large_filters = 0;
    #pragma omp parallel for reduction(|: large_filters) if (amp_cpu_worth_threads(plane))
    for (size_t o = 0; o < w->out; o += panel)
        large_filters |= transform_filters(j, 0, w->in, o, least(panel, w->out - o), shared + o * w->in,
                                           plane);
    #pragma omp parallel for schedule(dynamic)
    for (size_t first = 0; first < w->tiles; first += w->block) {
        float *next = own + (size_t)omp_get_thread_num() * own_size, *nowhere = next;
        unsigned char large[AMP_WINOGRAD_BLOCK];
        size_t count = least(w->block, w->tiles - first);
        next += w->out;
        matrix v = matrix_at(&next, w->block, w->in), m = matrix_at(&next, w->block, w->some_out);
        input_tiles(j, first, first + count, &v, 0, large);
        for (size_t o = 0; o < w->out; o += w->some_out) {
            size_t some = least(w->some_out, w->out - o);
            multiply(w, &v, 0, w->in, shared + o * w->in, plane, some, &m, first, first + count);
            output_tiles(j, &m, first, count, o, some, large, large_filters, nowhere);
        }
    }
}

/* For each block, first transforms the block's tiles. Then divides the filters among threads; each thread
 * transforms its filters in rectangles. */
static void convolve_rectangles(const job *j, float *shared, float *own, size_t own_size)
{
    const amp_winograd *w = j->w;
    const size_t plane = w->some_in * w->some_out + APART;
    matrix v = matrix_at(&shared, w->block, w->in);
    for (size_t first = 0; first < w->tiles; first += w->block) {
        unsigned char large[AMP_WINOGRAD_BLOCK];
        size_t count = least(w->block, w->tiles - first);
        #pragma omp parallel for
        for (size_t t = 0; t < count; t++)
            input_tiles(j, first + t, first + t + 1, &v, t, large);
        #pragma omp parallel for schedule(dynamic)
        for (size_t o = 0; o < w->out; o += w->some_out) {
            float *nowhere = own + (size_t)omp_get_thread_num() * own_size, *u = nowhere + w->out;
            float *next = u + PLANES * plane;
            matrix m = matrix_at(&next, w->block, w->some_out);
            size_t some = least(w->some_out, w->out - o);
            int large_filters = 0;
            for (size_t i = 0; i < w->in; i += w->some_in) {
                size_t some_in = least(w->some_in, w->in - i);
                large_filters |= transform_filters(j, i, some_in, o, some, u, plane);
                multiply(w, &v, i, some_in, u, plane, some, &m, first, first + count);
            }
            output_tiles(j, &m, first, count, o, some, large, large_filters, nowhere);
        }
    }
}

void amp_winograd_convolve(const amp_winograd *w, const amp_winograd_task *task, void *scratch)
{
    float *zeros = scratch, *shared = zeros + w->in + w->out;
    float *own = (float *)scratch + shared_floats(w);
    size_t own_size = own_floats(w), size = amp_dtype_size(w->dtype);
    memset(zeros, 0, (w->in + w->out) * sizeof *zeros);
    for (int t = 0; t < omp_get_max_threads(); t++)
        /* the dummy pixel (`nowhere` in output_tiles), which is also read if accumulate is set */
        memset(own + (size_t)t * own_size, 0, w->out * sizeof *own);
    for (size_t g = 0; g < w->groups; g++) {
        amp_winograd_task part = *task;
        part.x = (const char *)task->x + g * w->in * size;
        part.y = (char *)task->y + g * w->out * size;
        part.filters = task->filters + g * w->in * w->out * PLACES;
        if (task->bias) part.bias = task->bias + g * w->out;
        const amp_cpu_filters filters = w->pass == AMP_WINOGRAD_DATA
            ? (amp_cpu_filters){ part.filters, PLACES, w->out * PLACES, 1 }
            : (amp_cpu_filters){ part.filters, w->in * PLACES, PLACES, 0 };
        const job j = { w, &part, filters, zeros };
        if (w->some_in == w->in) convolve_blocks(&j, shared, own, own_size);
        else convolve_rectangles(&j, shared, own, own_size);
    }
}

/* ---- the weight gradient (dw) ---- */

typedef struct gradient_job {
    const amp_winograd *w;
    const void *x, *dy;
    const float *zeros;
    unsigned char *large; /* one flag per tile */
    float *dw;
} gradient_job;

/* Computes V and D of a tile. Returns 1 if they may overflow. */
static int transform_pair(const amp_winograd *w, const void *const *x, const void *const *dy,
                          amp_cpu_tile_size size, matrix v, matrix d)
{
    int large = w->rows->winograd_transform(w->dtype, SIDE, x, size, w->in, w->groups, v);
    return large | w->rows->winograd_transform(w->dtype, TILE, dy, size, w->out, w->groups, d);
}

/* Stores V and D of the tiles [first, end) from position `at` on. For a large tile, stores zeros. */
static void factor_tiles(const gradient_job *j, size_t first, size_t end, const matrix *v, const matrix *d,
                         size_t at)
{
    const amp_winograd *w = j->w;
    const void *x[SIDE * SIDE], *dy[TILE * TILE];
    for (size_t t = first; t < end; t++, at++) {
        place p = place_of(w, t);
        find_pixels(w, j->x, w->in, p, 1, SIDE, j->zeros, x);
        find_pixels(w, j->dy, w->out, p, 0, TILE, j->zeros, dy);
        j->large[t] = transform_pair(w, x, dy, p.size, from_tile(v, at), from_tile(d, at))
            && w->rows->winograd_is_finite(w->dtype, x, SIDE * SIDE, w->in)
            && w->rows->winograd_is_finite(w->dtype, dy, TILE * TILE, w->out);
        if (!j->large[t]) continue;
        for (int i = 0; i < SIDE * SIDE; i++) x[i] = j->zeros;
        for (int i = 0; i < TILE * TILE; i++) dy[i] = j->zeros;
        transform_pair(w, x, dy, p.size, from_tile(v, at), from_tile(d, at));
    }
}

/* dw += the contributions of the large tiles, by the direct sum. */
static void add_large_tiles(const gradient_job *j)
{
    const amp_winograd *w = j->w;
    if (!memchr(j->large, 1, w->tiles)) return;
    #pragma omp parallel for
    for (size_t k = 0; k < w->out; k++)
        for (size_t t = 0; t < w->tiles; t++) {
            const void *x[SIDE * SIDE], *dy[TILE * TILE];
            if (!j->large[t]) continue;
            place p = place_of(w, t);
            find_pixels(w, j->x, w->in, p, 1, SIDE, j->zeros, x);
            find_pixels(w, j->dy, w->out, p, 0, TILE, j->zeros, dy);
            w->rows->winograd_direct_gradient(w->dtype, x, w->in, dy, k, j->dw + k * w->in * PLACES);
        }
}

/* A panel of filters and a block of 16 channels. Rectangles are numbered so that groups of four panels are
 * finished one after the other, and stay in the cache. */
typedef struct rectangle { size_t channel, filter, width; } rectangle;

static size_t rectangles(const amp_winograd *w)
{
    size_t panel = w->rows->winograd_panel;
    return (w->out + panel - 1) / panel * (w->in / LINE);
}

static rectangle rectangle_of(const amp_winograd *w, size_t number)
{
    const size_t panel = w->rows->winograd_panel, panels = (w->out + panel - 1) / panel, lines = w->in / LINE;
    size_t first = number / (4 * lines) * 4, group = least(4, panels - first);
    size_t within = number - first * lines;
    size_t filter = (first + within % group) * panel;
    return (rectangle){ within / group * LINE, filter, least(panel, w->out - filter) };
}

static void add_rectangle(const gradient_job *j, rectangle r, const float *sums, size_t plane, size_t parts,
                          size_t part)
{
    const amp_winograd *w = j->w;
    w->rows->winograd_gradient(sums, plane, parts, part, r.width,
                               j->dw + (r.filter * w->in + r.channel) * PLACES, w->in * PLACES);
}

/* Sums the products over one part of the tiles, for all filters. */
static void sum_part(const gradient_job *j, size_t part, float *sums, size_t plane, float *own)
{
    const amp_winograd *w = j->w;
    const size_t panel = w->rows->winograd_panel;
    size_t begin = w->tiles * part / w->parts, end = w->tiles * (part + 1) / w->parts;
    matrix v = matrix_at(&own, w->block, w->in), d = matrix_at(&own, w->block, w->out);
    for (size_t first = begin; first < end; first += w->block) {
        size_t last = least(first + w->block, end);
        factor_tiles(j, first, last, &v, &d, 0);
        for (size_t p = 0; p < PLANES; p++) {
            range r = range_of(w, p, first, last);
            for (size_t o = 0; o < w->out; o += panel)
                for (size_t c = 0; c < w->in; c += LINE) {
                    size_t width = least(panel, w->out - o);
                    w->rows->winograd_sums(plane_at(&v, p, c, r.from), plane_at(&d, p, o, r.from), d.line,
                                           r.count, width, sums + p * plane + o * w->in + c * width,
                                           first > begin);
                }
        }
    }
}

/* Divides the parts of the tiles among threads. Each part has its own sums. Best for many tiles with few
 * channels. */
static void gradient_by_parts(const gradient_job *j, float *shared, float *own, size_t own_size)
{
    const amp_winograd *w = j->w;
    const size_t plane = w->in * w->out + APART, part = PLANES * plane;
    #pragma omp parallel for schedule(dynamic)
    for (size_t p = 0; p < w->parts; p++)
        sum_part(j, p, shared + p * part, plane, own + (size_t)omp_get_thread_num() * own_size);
    #pragma omp parallel for if (amp_cpu_worth_threads(part))
    for (size_t i = 0; i < rectangles(w); i++) {
        rectangle r = rectangle_of(w, i);
        add_rectangle(j, r, shared + r.filter * w->in + r.channel * r.width, plane, w->parts, part);
    }
}

/* Divides the rectangles of filters and channels among threads. Best for few tiles with many channels. */
static void gradient_by_rectangles(const gradient_job *j, float *shared, float *own, size_t own_size)
{
    const amp_winograd *w = j->w;
    matrix v = matrix_at(&shared, w->block, w->in), d = matrix_at(&shared, w->block, w->out);
    const size_t plane = LINE * w->rows->winograd_panel + APART;
    for (size_t first = 0; first < w->tiles; first += w->block) {
        size_t count = least(w->block, w->tiles - first);
        #pragma omp parallel for
        for (size_t t = 0; t < count; t++)
            factor_tiles(j, first + t, first + t + 1, &v, &d, t);
        #pragma omp parallel for
        for (size_t i = 0; i < rectangles(w); i++) {
            float *sums = own + (size_t)omp_get_thread_num() * own_size;
            rectangle r = rectangle_of(w, i);
            for (size_t p = 0; p < PLANES; p++) {
                range t = range_of(w, p, first, first + count);
                w->rows->winograd_sums(plane_at(&v, p, r.channel, t.from), plane_at(&d, p, r.filter, t.from),
                                       d.line, t.count, r.width, sums + p * plane, 0);
            }
            add_rectangle(j, r, sums, plane, 1, 0);
        }
    }
}

void amp_winograd_gradient(const amp_winograd *w, const void *x, const void *dy, float *dw, void *scratch)
{
    float *zeros = scratch, *shared = zeros + w->in + w->out, *own = zeros + shared_floats(w);
    unsigned char *large = (unsigned char *)(own + (size_t)omp_get_max_threads() * own_floats(w));
    size_t size = amp_dtype_size(w->dtype);
    memset(zeros, 0, (w->in + w->out) * sizeof *zeros);
    for (size_t g = 0; g < w->groups; g++) {
        const gradient_job j = { w, (const char *)x + g * w->in * size, (const char *)dy + g * w->out * size,
                                 zeros, large, dw + g * w->in * w->out * PLACES };
        if (w->parts) gradient_by_parts(&j, shared, own, own_floats(w));
        else gradient_by_rectangles(&j, shared, own, own_floats(w));
        add_large_tiles(&j);
    }
}
