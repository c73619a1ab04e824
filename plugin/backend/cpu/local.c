/* Locally connected layers: at each place of the output a matrix product of its own, in fp32 and by one
 * thread, so that the number of threads changes no bit.
 *
 * There is no copy of the weights: each is read once a pass, and used for the few numbers of one place and as
 * many images. The columns of a place, (images, channels·size·size), are in the order of Darknet's weights,
 * which a gradient is thereby added to as it is. */
#include "kernels.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "../check.h"
#include "cast.h"
#include "onednn.h"
#include "rows.h"

enum { SLICE_BYTES = 32 << 20 }; /* of deltas of columns at once: about a last-level cache */

struct amp_local {
    amp_local_desc desc;
    const float *weights; /* the masters; NULL: not loaded */
    size_t places, window, filters, images;
    const amp_cpu_rows *rows;
};

amp_status amp_cpu_local_create(amp_backend *backend, const amp_local_desc *d, amp_local **out,
                                amp_error *error)
{
    (void)backend;
    AMP_TRY(amp_check_local(d, error));
    amp_local *local = malloc(sizeof *local);
    if (!local) return amp_fail(error, AMP_NO_MEMORY, "no memory for a locally connected layer");
    *local = (amp_local){ *d, NULL, (size_t)d->y.h * d->y.w, amp_local_window(d), (size_t)d->y.c,
                           (size_t)d->x.n, amp_cpu_rows_best() };
    *out = local;
    return AMP_OK;
}

void amp_cpu_local_destroy(amp_backend *backend, amp_local *local)
{
    (void)backend;
    free(local);
}

amp_status amp_cpu_local_load_weights(amp_backend *backend, amp_local *local, const float *weights,
                                      amp_error *error)
{
    (void)backend, (void)error;
    local->weights = weights;
    return AMP_OK;
}

void amp_cpu_local_drop_weights(amp_backend *backend, amp_local *local)
{
    (void)backend;
    local->weights = NULL;
}

static amp_status local_fail(const char *why, amp_error *error)
{
    return amp_fail(error, AMP_BACKEND_FAILED, "locally connected layer: %s", why);
}

static const char *product_failed = "oneDNN's matrix product failed";

static const void *at(const void *tensor, size_t element, amp_dtype dtype)
{
    return (const char *)tensor + element * amp_dtype_size(dtype);
}

/* ---- windows ---- */

/* The pixel of an image that tap (r, s) of a place's window reads; -1: it lies outside. */
static ptrdiff_t pixel_of(const amp_local_desc *d, size_t place, int r, int s)
{
    ptrdiff_t i = (ptrdiff_t)(place / (size_t)d->y.w) * d->stride - d->pad + r;
    ptrdiff_t j = (ptrdiff_t)(place % (size_t)d->y.w) * d->stride - d->pad + s;
    return i < 0 || j < 0 || i >= d->x.h || j >= d->x.w ? -1 : i * d->x.w + j;
}

/* The inputs of one place, from all images, as columns. row: room for a pixel's channels. */
static void read_columns(const amp_local *local, size_t place, const void *x, float *columns, float *row)
{
    const amp_local_desc *d = &local->desc;
    size_t c = (size_t)d->x.c, taps = (size_t)d->size * d->size;
    for (size_t n = 0; n < local->images; n++, columns += local->window)
        for (size_t tap = 0; tap < taps; tap++) {
            ptrdiff_t pixel = pixel_of(d, place, (int)tap / d->size, (int)tap % d->size);
            if (pixel < 0) memset(row, 0, c * sizeof *row);
            else
                local->rows->widen(d->dtype, at(x, n * amp_shape_image(d->x) + (size_t)pixel * c, d->dtype),
                                   row, c);
            for (size_t k = 0; k < c; k++) columns[k * taps + tap] = row[k];
        }
}

/* One image's columns of a place are added to its pixels. */
static void add_columns(const amp_local *local, size_t place, const float *columns, float *image)
{
    const amp_local_desc *d = &local->desc;
    size_t c = (size_t)d->x.c, taps = (size_t)d->size * d->size;
    for (size_t tap = 0; tap < taps; tap++) {
        ptrdiff_t pixel = pixel_of(d, place, (int)tap / d->size, (int)tap % d->size);
        for (size_t k = 0; pixel >= 0 && k < c; k++) image[(size_t)pixel * c + k] += columns[k * taps + tap];
    }
}

static size_t at_place(const amp_local *local, size_t n, size_t place)
{
    return (n * local->places + place) * local->filters;
}

/* A place's numbers of all images, (images, filters), from an output or a delta. */
static void read_place(const amp_local *local, size_t place, const void *y, float *out)
{
    amp_dtype dtype = local->desc.dtype;
    for (size_t n = 0; n < local->images; n++)
        local->rows->widen(dtype, at(y, at_place(local, n, place), dtype), out + n * local->filters,
                           local->filters);
}

static void write_place(const amp_local *local, size_t place, const float *from, void *y)
{
    amp_dtype dtype = local->desc.dtype;
    for (size_t n = 0; n < local->images; n++)
        local->rows->narrow(dtype, from + n * local->filters, (void *)at(y, at_place(local, n, place), dtype),
                            local->filters, 0);
}

/* ---- scratch ---- */

/* For each thread: a place's columns, its outputs, and a pixel. */
typedef struct room { float *block; size_t each; } room;

static amp_status take_room(const amp_local *local, room *out, amp_error *error)
{
    out->each = (local->images * (local->window + local->filters) + (size_t)local->desc.x.c + 15) / 16 * 16;
    return amp_cpu_allocate(NULL, (size_t)omp_get_max_threads() * out->each * sizeof(float),
                            (void **)&out->block, error);
}

typedef struct own_room { float *columns, *place, *row; } own_room;

static own_room room_of_thread(const amp_local *local, const room *all)
{
    float *block = all->block + (size_t)omp_get_thread_num() * all->each;
    float *place = block + local->images * local->window;
    return (own_room){ block, place, place + local->images * local->filters };
}

/* ---- passes ---- */

/* out (rows, columns), packed, (+)= a·b, a being rows × inner. Not 0: it failed. */
static int product(amp_factor a, amp_factor b, float *out, size_t rows, size_t columns, size_t inner,
                   int accumulate)
{
    const amp_gemm_desc d = { .m = (int)rows, .n = (int)columns, .k = (int)inner, .alpha = 1,
                              .beta = accumulate ? 1 : 0, .a = a, .b = b, .c = out, .ldc = (int)columns,
                              .dtype = AMP_FP32 };
    return amp_onednn_sgemm(&d, NULL) != AMP_OK;
}

/* A factor of `row` numbers a row; transposed: the product uses its transpose. */
static amp_factor matrix(const float *numbers, size_t row, int transposed)
{
    return (amp_factor){ .data = numbers, .ld = (int)row, .transposed = transposed };
}

amp_status amp_cpu_local_forward(amp_backend *backend, amp_local *local, const void *x, void *y,
                                 amp_error *error)
{
    (void)backend;
    const size_t images = local->images, window = local->window, filters = local->filters;
    int failed = 0;
    room all;
    if (!local->weights) return local_fail("its weights were not loaded", error);
    AMP_TRY(take_room(local, &all, error));
    #pragma omp parallel for schedule(static) reduction(|: failed)
    for (size_t place = 0; place < local->places; place++) {
        const own_room own = room_of_thread(local, &all);
        read_columns(local, place, x, own.columns, own.row);
        failed |= product(matrix(own.columns, window, 0), matrix(local->weights + place * filters * window,
                                                                 window, 1), own.place, images, filters,
                          window, 0);
        write_place(local, place, own.place, y);
    }
    free(all.block);
    return failed ? local_fail(product_failed, error) : AMP_OK;
}

amp_status amp_cpu_local_backward_weights(amp_backend *backend, amp_local *local, const void *x,
                                          const void *dy, float *dw, amp_error *error)
{
    (void)backend;
    const size_t images = local->images, window = local->window, filters = local->filters;
    int failed = 0;
    room all;
    if (!local->desc.training) return local_fail("it was created without training", error);
    AMP_TRY(take_room(local, &all, error));
    #pragma omp parallel for schedule(static) reduction(|: failed)
    for (size_t place = 0; place < local->places; place++) {
        const own_room own = room_of_thread(local, &all);
        read_columns(local, place, x, own.columns, own.row);
        read_place(local, place, dy, own.place);
        failed |= product(matrix(own.place, filters, 1), matrix(own.columns, window, 0),
                          dw + place * filters * window, filters, window, images, 1);
    }
    free(all.block);
    return failed ? local_fail(product_failed, error) : AMP_OK;
}

/* sums (n,h,w,c) += the columns of `count` places from `first` on: first all columns, then every image by one
 * thread, in the order of the places. */
static int add_places(const amp_local *local, const room *all, size_t first, size_t count, const void *dy,
                      float *columns, float *sums)
{
    const size_t images = local->images, window = local->window, filters = local->filters;
    int failed = 0;
    #pragma omp parallel for schedule(static) reduction(|: failed)
    for (size_t k = 0; k < count; k++) {
        const own_room own = room_of_thread(local, all);
        read_place(local, first + k, dy, own.place);
        failed |= product(matrix(own.place, filters, 0),
                          matrix(local->weights + (first + k) * filters * window, window, 0),
                          columns + k * images * window, images, window, filters, 0);
    }
    #pragma omp parallel for schedule(static)
    for (size_t n = 0; n < images; n++)
        for (size_t k = 0; k < count; k++)
            add_columns(local, first + k, columns + (k * images + n) * window,
                        sums + n * amp_shape_image(local->desc.x));
    return failed;
}

static size_t places_at_once(const amp_local *local)
{
    size_t fit = SLICE_BYTES / (local->images * local->window * sizeof(float)),
        threads = (size_t)omp_get_max_threads();
    if (fit < threads) fit = threads;
    return fit < local->places ? fit : local->places;
}

amp_status amp_cpu_local_backward_data(amp_backend *backend, amp_local *local, const void *dy, void *dx,
                                       int accumulate, amp_error *error)
{
    (void)backend;
    const size_t slice = places_at_once(local), count = amp_shape_count(local->desc.x);
    int failed = 0;
    float *columns = NULL, *sums = NULL;
    room all = { NULL, 0 };
    if (!local->desc.training) return local_fail("it was created without training", error);
    if (!local->weights) return local_fail("its weights were not loaded", error);
    amp_status status = take_room(local, &all, error);
    if (status == AMP_OK)
        status = amp_cpu_allocate(NULL, slice * local->images * local->window * sizeof(float),
                                  (void **)&columns, error);
    if (status == AMP_OK) status = amp_cpu_allocate(NULL, count * sizeof(float), (void **)&sums, error);
    if (status == AMP_OK) {
        memset(sums, 0, count * sizeof(float));
        for (size_t first = 0; first < local->places; first += slice) {
            size_t left = local->places - first;
            failed |= add_places(local, &all, first, left < slice ? left : slice, dy, columns, sums);
        }
        amp_cpu_cast_flat(AMP_FP32, sums, local->desc.dtype, dx, count, accumulate);
    }
    free(sums);
    free(columns);
    free(all.block);
    return failed ? local_fail(product_failed, error) : status;
}

/* ---- facts ---- */

void amp_cpu_local_facts(const amp_backend *backend, const amp_local *local, amp_conv_facts *out)
{
    const amp_local_desc *d = &local->desc;
    (void)backend;
    *out = (amp_conv_facts){ .computes = AMP_FP32, .padded_in = d->x.c, .padded_out = d->y.c };
    if (d->training)
        out->workspace_bytes = (places_at_once(local) * local->images * local->window + amp_shape_count(d->x))
            * sizeof(float);
    snprintf(out->kernel, sizeof out->kernel, "sgemm");
}
