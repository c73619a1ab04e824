/* Max pooling, global average pooling and nearest-neighbour upsampling. Threads divide the rows of the
 * output. rows_pool.h has the loops over one row. */
#include "kernels.h"
#include "../check.h"
#include "blocks.h"

#include <string.h>

static amp_status pool_make(const amp_tensor *x, const amp_tensor *y, int size, int stride, int pad,
                            amp_cpu_pool *out, amp_error *error)
{
    AMP_TRY(amp_check_maxpool(x, y, error));
    *out = (amp_cpu_pool){ .h = x->shape.h, .w = x->shape.w, .c = x->shape.c, .out_h = y->shape.h,
                            .out_w = y->shape.w,
        .size = size, .stride = stride, .offset = pad / 2 };
    return AMP_OK;
}

amp_status amp_cpu_maxpool_forward(amp_backend *backend, const amp_tensor *x, const amp_tensor *y,
                                   uint8_t *choice, int size, int stride, int pad, amp_error *error)
{
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    amp_cpu_pool pool;
    AMP_TRY(pool_make(x, y, size, stride, pad, &pool, error));
    size_t lines = (size_t)y->shape.n * y->shape.h, line = (size_t)y->shape.w * y->shape.c;
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(amp_shape_count(x->shape)))
    for (size_t l = 0; l < lines; l++) {
        size_t image = l / (size_t)pool.out_h;
        rows->maxpool(x->dtype, &pool, amp_cpu_at(x, image * amp_shape_image(x->shape)),
                      (int)(l % (size_t)pool.out_h), amp_cpu_into(y, l * line), choice + l * line);
    }
    return AMP_OK;
}

amp_status amp_cpu_maxpool_backward(amp_backend *backend, const amp_tensor *dy, const uint8_t *choice,
    const amp_tensor *dx, int size, int stride, int pad, int accumulate, amp_error *error)
{
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    amp_cpu_pool pool;
    AMP_TRY(pool_make(dx, dy, size, stride, pad, &pool, error));
    size_t lines = (size_t)dx->shape.n * dx->shape.h, line = (size_t)dx->shape.w * dx->shape.c;
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(amp_shape_count(dx->shape)))
    for (size_t l = 0; l < lines; l++) {
        size_t from = l / (size_t)pool.h * amp_shape_image(dy->shape);
        rows->maxpool_delta(dy->dtype, &pool, amp_cpu_at(dy, from), choice + from, (int)(l % (size_t)pool.h),
            amp_cpu_into(dx, l * line), accumulate);
    }
    return AMP_OK;
}

amp_status amp_cpu_avgpool_forward(amp_backend *backend, const amp_tensor *x, const amp_tensor *y,
                                   amp_error *error)
{
    size_t pixels = (size_t)x->shape.h * x->shape.w, channels = (size_t)x->shape.c;
    amp_cpu_plan plan = amp_cpu_plan_make(pixels, channels);
    AMP_TRY(amp_check_avgpool(x, y, error));
    if (pixels == 0) return AMP_OK;
    float *average = amp_allocated(malloc(channels * sizeof *average));
    for (int image = 0; image < x->shape.n; image++) {
        amp_cpu_sums sums = amp_cpu_sum_pixels(&plan, x, (size_t)image * amp_shape_image(x->shape));
        for (size_t c = 0; c < channels; c++) average[c] = (float)(sums.first[c] / (double)pixels);
        amp_cpu_cast_flat(AMP_FP32, average, y->dtype, amp_cpu_into(y, (size_t)image * channels), channels,
                          0);
        amp_cpu_sums_free(&sums);
    }
    free(average);
    return AMP_OK;
}

amp_status amp_cpu_avgpool_backward(amp_backend *backend, const amp_tensor *dy, const amp_tensor *dx,
                                    int accumulate, amp_error *error)
{
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    size_t pixels = (size_t)dx->shape.h * dx->shape.w, channels = (size_t)dx->shape.c;
    amp_cpu_plan plan = amp_cpu_plan_make(pixels, channels);
    AMP_TRY(amp_check_avgpool(dx, dy, error));
    float *share = amp_allocated(malloc(plan.period * sizeof *share)); /* one period of dy/(h·w) */
    for (int image = 0; image < dx->shape.n; image++) {
        rows->widen(dy->dtype, amp_cpu_at(dy, (size_t)image * channels), share, channels);
        for (size_t c = 0; c < channels; c++) share[c] /= (float)pixels;
        for (size_t l = channels; l < plan.period; l++) share[l] = share[l - channels];
        size_t start = (size_t)image * amp_shape_image(dx->shape);
        #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(pixels * channels))
        for (size_t b = 0; b < plan.blocks; b++)
            rows->spread(dx->dtype, share, plan.period,
                         amp_cpu_into(dx, start + amp_cpu_block_first(&plan, b)),
                         amp_cpu_block_count(&plan, b), accumulate);
    }
    free(share);
    return AMP_OK;
}

amp_status amp_cpu_upsample_forward(amp_backend *backend, const amp_tensor *x, const amp_tensor *y,
                                    int stride, float scale, amp_error *error)
{
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    AMP_TRY(amp_check_upsample(x, y, stride, error));
    size_t lines = (size_t)x->shape.n * x->shape.h, line = (size_t)x->shape.w * x->shape.c,
        long_line = line * stride;
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(amp_shape_count(y->shape)))
    for (size_t l = 0; l < lines; l++) {
        void *first = amp_cpu_into(y, l * stride * long_line);
        rows->upsample(x->dtype, amp_cpu_at(x, l * line), first, x->shape.w, x->shape.c, stride, scale);
        for (int r = 1; r < stride; r++)
            memcpy(amp_cpu_into(y, (l * stride + r) * long_line), first,
                   long_line * amp_dtype_size(y->dtype));
    }
    return AMP_OK;
}

amp_status amp_cpu_upsample_backward(amp_backend *backend, const amp_tensor *dy, const amp_tensor *dx,
                                     int stride, float scale, int accumulate, amp_error *error)
{
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    AMP_TRY(amp_check_upsample(dx, dy, stride, error));
    size_t lines = (size_t)dx->shape.n * dx->shape.h, line = (size_t)dx->shape.w * dx->shape.c;
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(amp_shape_count(dy->shape)))
    for (size_t l = 0; l < lines; l++)
        rows->upsample_delta(dx->dtype, amp_cpu_at(dy, l * stride * stride * line),
                             amp_cpu_into(dx, l * line), dx->shape.w, dx->shape.c, stride, scale, accumulate);
    return AMP_OK;
}
