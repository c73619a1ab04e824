/* Locally connected layers: the windows of all images as rows of a matrix for each place of the output
 * (windows.cu), and a product for each, batched by cuBLAS.
 *
 * The copy of the weights is each place's KRSC in the dtype, as a convolution's of as many filters as there
 * are outputs. Places, and in backward by data images, are taken as many at a time as SLICE_BYTES hold of
 * what lies in between. */
#include <stdlib.h>

#include "../check.h"
#include "gemm.h"
#include "kernels.h"

enum { SLICE_BYTES = 64 << 20, UNIT = 256 };

struct amp_local {
    amp_local_desc desc;
    void *weights;        /* NULL: not loaded */
    amp_cuda_table table; /* for loading them */
};

static size_t places_of(const amp_local_desc *d) { return (size_t)d->y.h * d->y.w; }
static size_t place_weights(const amp_local_desc *d) { return (size_t)d->y.c * amp_local_window(d); }

/* How many of `all` pieces of so many bytes are processed at once. */
static int slice_of(size_t bytes, size_t all)
{
    size_t fit = SLICE_BYTES / bytes;
    return (int)(fit < 1 ? 1 : fit < all ? fit : all);
}

static amp_cuda_product product_of(const amp_local_desc *d, int places, int images)
{
    return (amp_cuda_product){ places, images, (int)amp_local_window(d), d->y.c, (int)places_of(d),
                                     d->dtype };
}

static amp_status local_fail(const char *why, amp_error *error)
{
    return amp_fail(error, AMP_BACKEND_FAILED, "locally connected layer: %s", why);
}

static const char *at(const void *tensor, size_t element, amp_dtype dtype)
{
    return (const char *)tensor + element * amp_dtype_size(dtype);
}

/* ---- life, weights ---- */

amp_status amp_cuda_local_create(amp_backend *backend, const amp_local_desc *desc, amp_local **out,
                                 amp_error *error)
{
    AMP_TRY(amp_check_local(desc, error));
    AMP_TRY(amp_cuda_gemm_start(backend, error));
    amp_local *local = calloc(1, sizeof *local);
    if (!local) return amp_fail(error, AMP_NO_MEMORY, "no memory for a locally connected layer");
    local->desc = *desc;
    *out = local;
    return AMP_OK;
}

void amp_cuda_local_destroy(amp_backend *backend, amp_local *local)
{
    if (!local) return;
    amp_cuda_local_drop_weights(backend, local);
    amp_cuda_table_release(backend, &local->table);
    free(local);
}

amp_status amp_cuda_local_load_weights(amp_backend *backend, amp_local *local, const float *weights,
                                       amp_error *error)
{
    const amp_local_desc *d = &local->desc;
    const size_t bytes = places_of(d) * place_weights(d) * amp_dtype_size(d->dtype);
    if (!local->weights)
        AMP_TRY(amp_cuda_malloc(backend, bytes, "copies of weights", &local->weights, error));
    const amp_cuda_weights all = { weights, local->weights, d->dtype, (int)amp_shape_image(d->y), d->x.c,
                                   d->size, d->size };
    return amp_cuda_weights_to_krsc(backend, &local->table, &all, 1, error);
}

void amp_cuda_local_drop_weights(amp_backend *backend, amp_local *local)
{
    amp_cuda_release(backend, local->weights);
    local->weights = NULL;
}

/* ---- running ---- */

/* Bytes of one place's columns. */
static size_t columns_bytes(const amp_local_desc *d)
{
    return (size_t)d->x.n * amp_local_window(d) * amp_dtype_size(d->dtype);
}

amp_status amp_cuda_local_forward(amp_backend *backend, amp_local *local, const void *x, void *y,
                                  amp_error *error)
{
    const amp_local_desc *d = &local->desc;
    const int all = (int)places_of(d), slice = slice_of(columns_bytes(d), (size_t)all);
    void *columns;
    if (!local->weights) return local_fail("its weights were not loaded", error);
    AMP_TRY(amp_cuda_scratch(backend, (size_t)slice * columns_bytes(d), &columns, error));
    for (int first = 0; first < all; first += slice) {
        const int places = all - first < slice ? all - first : slice;
        const amp_cuda_product product = product_of(d, places, d->x.n);
        AMP_TRY(amp_cuda_window_columns(backend, d, first, places, x, columns, error));
        AMP_TRY(amp_cuda_gemm_forward(backend, &product, columns,
                                      at(local->weights, (size_t)first * place_weights(d), d->dtype),
                                      (void *)at(y, (size_t)first * d->y.c, d->dtype), error));
    }
    return AMP_OK;
}

amp_status amp_cuda_local_backward_data(amp_backend *backend, amp_local *local, const void *dy, void *dx,
                                        int accumulate, amp_error *error)
{
    const amp_local_desc *d = &local->desc;
    const size_t image = places_of(d) * amp_local_window(d) * sizeof(float);
    const int slice = slice_of(image, (size_t)d->x.n);
    void *columns;
    if (!d->training) return local_fail("it was created without training", error);
    if (!local->weights) return local_fail("its weights were not loaded", error);
    AMP_TRY(amp_cuda_scratch(backend, (size_t)slice * image, &columns, error));
    for (int first = 0; first < d->x.n; first += slice) {
        const int images = d->x.n - first < slice ? d->x.n - first : slice;
        const amp_cuda_product product = product_of(d, (int)places_of(d), images);
        AMP_TRY(amp_cuda_gemm_backward_data(backend, &product,
                                            at(dy, (size_t)first * amp_shape_image(d->y), d->dtype),
                                            local->weights, columns, AMP_FP32, 0, error));
        AMP_TRY(amp_cuda_window_delta(backend, d, images, columns,
                                      (void *)at(dx, (size_t)first * amp_shape_image(d->x), d->dtype),
                                      accumulate, error));
    }
    return AMP_OK;
}

/* Straight into the sum where (c, rows, columns) and (rows, columns, c) are one order. */
amp_status amp_cuda_local_backward_weights(amp_backend *backend, amp_local *local, const void *x,
                                           const void *dy, float *dw, amp_error *error)
{
    const amp_local_desc *d = &local->desc;
    const int same_order = d->x.c == 1 || d->size == 1, all = (int)places_of(d);
    const size_t gradient_bytes = same_order ? 0 : place_weights(d) * sizeof(float);
    const int slice = slice_of(columns_bytes(d) + gradient_bytes, (size_t)all);
    const size_t rounded = ((size_t)slice * columns_bytes(d) + UNIT - 1) / UNIT * UNIT;
    void *columns;
    if (!d->training) return local_fail("it was created without training", error);
    AMP_TRY(amp_cuda_scratch(backend, rounded + (size_t)slice * gradient_bytes, &columns, error));
    float *krsc = (float *)((char *)columns + rounded);
    for (int first = 0; first < all; first += slice) {
        const int places = all - first < slice ? all - first : slice;
        const amp_cuda_product product = product_of(d, places, d->x.n);
        const void *delta = at(dy, (size_t)first * d->y.c, d->dtype);
        float *sum = dw + (size_t)first * place_weights(d);
        AMP_TRY(amp_cuda_window_columns(backend, d, first, places, x, columns, error));
        AMP_TRY(amp_cuda_gemm_backward_weights(backend, &product, columns, delta, same_order ? sum : krsc,
                                               same_order, error));
        if (same_order) continue;
        AMP_TRY(amp_cuda_gradient_from_krsc(backend, krsc, AMP_FP32, 1, sum, places * d->y.c, d->x.c, d->size,
                                            d->size, error));
    }
    return AMP_OK;
}

/* ---- what it is ---- */

/* Intermediate results are in scratch, which all operations share. */
void amp_cuda_local_facts(const amp_backend *backend, const amp_local *local, amp_conv_facts *out)
{
    const amp_local_desc *d = &local->desc;
    (void)backend;
    *out = (amp_conv_facts){ .computes = d->dtype, .padded_in = d->x.c, .padded_out = d->y.c,
                             .weight_bytes = places_of(d) * place_weights(d) * amp_dtype_size(d->dtype) };
    snprintf(out->kernel, sizeof out->kernel, "cuBLAS");
}
