/* Elementwise products of two tensors; the second may have only one number per channel or per pixel. Also the
 * sums of these products. */
#include "kernels.h"
#include "blocks.h"
#include "../check.h"

static float number_at(const amp_cpu_rows *rows, const amp_tensor *t, size_t i)
{
    float value;
    rows->widen(t->dtype, amp_cpu_at(t, i), &value, 1);
    return value;
}

amp_status amp_cpu_multiply(amp_backend *backend, const amp_tensor *x, const amp_tensor *s,
                            const amp_tensor *y, int accumulate, amp_error *error)
{
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    size_t c = (size_t)x->shape.c, pixels = amp_cpu_pixels(x), image = (size_t)x->shape.h * x->shape.w;
    amp_factor_of of;
    AMP_TRY(amp_check_pair("product", x, y, 1, error));
    AMP_TRY(amp_check_multiply(x, s, &of, error));
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(pixels * c))
    for (size_t p = 0; p < pixels; p++) {
        const void *from = amp_cpu_at(x, p * c);
        void *to = amp_cpu_into(y, p * c);
        size_t row = of == AMP_FACTOR_OF_CHANNEL ? p / image : p;
        if (of == AMP_FACTOR_OF_PIXEL) rows->scale(x->dtype, from, to, c, number_at(rows, s, p), accumulate);
        else rows->product(x->dtype, from, amp_cpu_at(s, row * c), to, c, accumulate);
    }
    return AMP_OK;
}

/* Sums the products of one pixel's channels, in channel order. */
static double sum_of_products(const amp_cpu_rows *rows, const amp_tensor *a, const amp_tensor *b,
                              size_t first)
{
    enum { PART = 64 };
    float left[PART], right[PART];
    size_t c = (size_t)a->shape.c;
    double sum = 0;
    for (size_t i = 0; i < c; i += PART) {
        size_t count = c - i < PART ? c - i : PART;
        rows->widen(a->dtype, amp_cpu_at(a, first + i), left, count);
        rows->widen(b->dtype, amp_cpu_at(b, first + i), right, count);
        for (size_t k = 0; k < count; k++) sum += (double)left[k] * (double)right[k];
    }
    return sum;
}

/* total[c] ← the sum of the products in channel c of one image. */
static void sum_image(const amp_tensor *a, const amp_tensor *b, size_t start, float *total)
{
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    amp_cpu_plan plan = amp_cpu_plan_make((size_t)a->shape.h * a->shape.w, (size_t)a->shape.c);
    amp_cpu_sums sums = amp_cpu_sums_make(&plan);
    /* delta_sums computes Σ d·(x - mean); with mean 0, this is the sum of products */
    amp_cpu_norm zero = { .period = plan.period, .mean = amp_allocated(calloc(plan.period, sizeof(float))) };
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(plan.rows * plan.channels))
    for (size_t k = 0; k < plan.blocks; k++) {
        size_t first = start + amp_cpu_block_first(&plan, k);
        amp_cpu_sums own = amp_cpu_sums_of(&plan, &sums, k);
        rows->delta_sums(a->dtype, AMP_LINEAR, amp_cpu_at(a, first), amp_cpu_at(a, first),
                         amp_cpu_at(b, first), amp_cpu_block_count(&plan, k), &zero, &own);
    }
    amp_cpu_sums_fold(&plan, &sums);
    for (size_t c = 0; c < plan.channels; c++) total[c] = (float)sums.second[c];
    free(zero.mean);
    amp_cpu_sums_free(&sums);
}

static void sum_images(const amp_tensor *a, const amp_tensor *b, const amp_tensor *s, int accumulate)
{
    size_t c = (size_t)a->shape.c;
    float *total = amp_allocated(malloc(c * sizeof *total));
    for (size_t n = 0; n < (size_t)a->shape.n; n++) {
        sum_image(a, b, n * amp_shape_image(a->shape), total);
        amp_cpu_rows_best()->spread(s->dtype, total, c, amp_cpu_into(s, n * c), c, accumulate);
    }
    free(total);
}

amp_status amp_cpu_multiply_sums(amp_backend *backend, const amp_tensor *a, const amp_tensor *b,
                                 const amp_tensor *s, int accumulate, amp_error *error)
{
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    size_t pixels = amp_cpu_pixels(a), c = (size_t)a->shape.c;
    amp_factor_of of;
    AMP_TRY(amp_check_pair("sums of products", a, b, 1, error));
    AMP_TRY(amp_check_multiply(a, s, &of, error));
    if (of == AMP_FACTOR_OF_ELEMENT) return amp_cpu_multiply(backend, a, b, s, accumulate, error);
    if (of == AMP_FACTOR_OF_CHANNEL) {
        sum_images(a, b, s, accumulate);
        return AMP_OK;
    }
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(pixels * c))
    for (size_t p = 0; p < pixels; p++) {
        float sum = (float)sum_of_products(rows, a, b, p * c);
        rows->spread(s->dtype, &sum, 1, amp_cpu_into(s, p), 1, accumulate);
    }
    return AMP_OK;
}
