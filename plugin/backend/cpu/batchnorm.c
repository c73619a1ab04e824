/* Batch norm with a fused activation, add_bias and bias_gradient.
 *
 * Forward and backward each make two passes over memory: the first sums (rows_norm.h), the second writes.
 * backend.h has the formulas.
 *
 * The second pass goes through the blocks from last to first, because the first pass has left the end of the
 * tensor in the cache. */
#include "kernels.h"
#include "blocks.h"
#include "../activate.h"
#include "../check.h"
#include "../batchnorm_rules.h"

#include <math.h>

/* The plan and scratch memory of one call. `sums` is not used by forward_infer. */
typedef struct scratch {
    amp_cpu_plan plan;
    amp_cpu_norm lanes;
    amp_cpu_sums sums;
} scratch;

static scratch scratch_make(const amp_tensor *x)
{
    amp_cpu_plan plan = amp_cpu_plan_make(amp_cpu_pixels(x), (size_t)x->shape.c);
    size_t p = plan.period;
    /* aligned, because loads that cross a cache line take a quarter longer */
    float *lanes = amp_allocated(aligned_alloc(64, (6 * p * sizeof *lanes + 63) / 64 * 64));
    return (scratch){ plan, { p, lanes, lanes + p, lanes + 2 * p, lanes + 3 * p, lanes + 4 * p,
                              lanes + 5 * p }, { NULL } };
}

static void scratch_free(scratch *s)
{
    free(s->lanes.mean);
    amp_cpu_sums_free(&s->sums);
}

amp_status amp_cpu_add_bias(amp_backend *backend, const amp_tensor *y, const float *bias, amp_error *error)
{
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    amp_cpu_plan plan = amp_cpu_plan_make(amp_cpu_pixels(y), (size_t)y->shape.c);
    AMP_TRY(amp_check_pair("bias", y, y, 1, error));
    float *lanes = amp_allocated(malloc(plan.period * sizeof *lanes));
    amp_cpu_replicate(&plan, bias, lanes);
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(plan.rows * plan.channels))
    for (size_t b = 0; b < plan.blocks; b++)
        rows->spread(y->dtype, lanes, plan.period, amp_cpu_into(y, amp_cpu_block_first(&plan, b)),
            amp_cpu_block_count(&plan, b), 1);
    free(lanes);
    return AMP_OK;
}

amp_status amp_cpu_bias_gradient(amp_backend *backend, const amp_tensor *dy, float *db, amp_error *error)
{
    amp_cpu_plan plan = amp_cpu_plan_make(amp_cpu_pixels(dy), (size_t)dy->shape.c);
    AMP_TRY(amp_check_pair("bias gradient", dy, dy, 1, error));
    if (plan.rows == 0) return AMP_OK;
    amp_cpu_sums sums = amp_cpu_sum_pixels(&plan, dy, 0);
    for (size_t c = 0; c < plan.channels; c++) db[c] += (float)sums.first[c];
    amp_cpu_sums_free(&sums);
    return AMP_OK;
}

/* Sets each lane's mean, gain and bias. */
static void forward_lanes(const scratch *s, const amp_batchnorm *norm, const float *mean,
                          const float *variance)
{
    amp_cpu_replicate(&s->plan, mean, s->lanes.mean);
    amp_cpu_replicate(&s->plan, norm->bias, s->lanes.bias);
    for (size_t l = 0; l < s->plan.period; l++) {
        size_t c = l % s->plan.channels;
        double spread = amp_batchnorm_spread(&norm->rule, (double)variance[c]);
        s->lanes.gain[l] = (float)((double)norm->scale[c] / spread);
    }
}

/* y = act((x - mean)/spread·scale + bias), block by block. */
static void normalize(const scratch *s, const amp_tensor *x, const amp_tensor *y, const amp_batchnorm *norm,
                      const float *mean, const float *variance)
{
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    const amp_cpu_plan *plan = &s->plan;
    forward_lanes(s, norm, mean, variance);
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(plan->rows * plan->channels))
    for (size_t i = 0; i < plan->blocks; i++) {
        size_t b = plan->blocks - 1 - i, first = amp_cpu_block_first(plan, b);
        rows->normalize(x->dtype, norm->activation, amp_cpu_at(x, first), amp_cpu_into(y, first),
                        amp_cpu_block_count(plan, b), &s->lanes);
    }
}

static double count_of(const scratch *s, const amp_batchnorm *norm)
{
    return (double)s->plan.rows * (norm->ranks ? norm->ranks->count : 1);
}

/* Computes each channel's moments from Σu and Σu², where u = x - (the channel's value in the first pixel). */
static void find_moments(scratch *s, const amp_tensor *x)
{
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    const amp_cpu_plan *plan = &s->plan;
    float *origin = s->lanes.mean;
    s->sums = amp_cpu_sums_make(plan);
    rows->widen(x->dtype, x->data, origin, plan->channels);
    for (size_t l = plan->channels; l < plan->period; l++) origin[l] = origin[l - plan->channels];
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(plan->rows * plan->channels))
    for (size_t b = 0; b < plan->blocks; b++) {
        amp_cpu_sums own = amp_cpu_sums_of(plan, &s->sums, b);
        rows->moments(x->dtype, amp_cpu_at(x, amp_cpu_block_first(plan, b)), amp_cpu_block_count(plan, b),
                      plan->period, origin, &own);
    }
    amp_cpu_sums_fold(plan, &s->sums);
    for (size_t c = 0; c < plan->channels; c++) {
        amp_moments m = amp_moments_of(s->sums.first[c], s->sums.second[c], (double)origin[c],
                                       (double)plan->rows);
        s->sums.first[c] = m.mean;
        s->sums.second[c] = m.squares;
    }
}

/* Replaces the means and sums of squares of this rank's images by those of the images of all ranks. */
static amp_status join_moments(const scratch *s, const amp_batchnorm_ranks *ranks, amp_error *error)
{
    size_t channels = s->plan.channels, count = AMP_MOMENTS_SHARED * (size_t)ranks->count * channels;
    float *all = amp_allocated(calloc(count, sizeof *all));
    for (size_t c = 0; c < channels; c++)
        amp_moments_put(all, ranks->rank, channels, c, (amp_moments){ s->sums.first[c], s->sums.second[c] });
    amp_status status = ranks->sum(ranks->context, all, count, error);
    for (size_t c = 0; c < channels; c++) {
        amp_moments m = amp_moments_join(all, ranks->count, channels, c, (double)s->plan.rows);
        s->sums.first[c] = m.mean;
        s->sums.second[c] = m.squares;
    }
    free(all);
    return status;
}

static amp_status statistics(scratch *s, const amp_tensor *x, const amp_batchnorm *norm, amp_error *error)
{
    find_moments(s, x);
    if (norm->ranks) AMP_TRY(join_moments(s, norm->ranks, error));
    for (size_t c = 0; c < s->plan.channels; c++)
        amp_batchnorm_keep(norm, c, (amp_moments){ s->sums.first[c], s->sums.second[c] }, count_of(s, norm));
    return AMP_OK;
}

amp_status amp_cpu_batchnorm_forward_train(amp_backend *backend, const amp_tensor *x, const amp_tensor *y,
    const amp_batchnorm *norm, amp_error *error)
{
    AMP_TRY(amp_check_pair("batch norm", x, y, 1, error));
    if (amp_shape_count(x->shape) == 0) return AMP_OK;
    scratch s = scratch_make(x);
    amp_status status = statistics(&s, x, norm, error);
    if (status == AMP_OK) normalize(&s, x, y, norm, norm->mean, norm->variance);
    scratch_free(&s);
    return status;
}

amp_status amp_cpu_batchnorm_forward_infer(amp_backend *backend, const amp_tensor *x, const amp_tensor *y,
    const amp_batchnorm *norm, amp_error *error)
{
    AMP_TRY(amp_check_pair("batch norm", x, y, 1, error));
    if (amp_shape_count(x->shape) == 0) return AMP_OK;
    scratch s = scratch_make(x);
    normalize(&s, x, y, norm, norm->rolling_mean, norm->rolling_variance);
    scratch_free(&s);
    return AMP_OK;
}

/* Adds this rank's sums to dbias and dscale. Then replaces these sums by those over all ranks. */
static amp_status sum_deltas(const scratch *s, const amp_batchnorm *norm, amp_error *error)
{
    const amp_batchnorm_ranks *ranks = norm->ranks;
    double *sums = s->sums.first, *products = s->sums.second;
    size_t channels = s->plan.channels;
    for (size_t c = 0; c < channels; c++) amp_batchnorm_add_gradients(norm, c, sums[c], products[c]);
    if (!ranks) return AMP_OK;
    float *all = amp_allocated(malloc(2 * channels * sizeof *all));
    for (size_t c = 0; c < channels; c++) {
        all[c] = (float)sums[c];
        all[channels + c] = (float)products[c];
    }
    amp_status status = ranks->sum(ranks->context, all, 2 * channels, error);
    for (size_t c = 0; c < channels; c++) {
        sums[c] = (double)all[c];
        products[c] = (double)all[channels + c];
    }
    free(all);
    return status;
}

static amp_status backward_lanes(const scratch *s, const amp_batchnorm *norm, amp_error *error)
{
    const amp_cpu_norm *lanes = &s->lanes;
    AMP_TRY(sum_deltas(s, norm, error));
    for (size_t l = 0; l < s->plan.period; l++) {
        size_t c = l % s->plan.channels;
        amp_batchnorm_line line = amp_batchnorm_line_of(norm, c, s->sums.first[c], s->sums.second[c],
                                                        count_of(s, norm));
        lanes->a[l] = line.a, lanes->b[l] = line.b, lanes->c[l] = line.c;
    }
    return AMP_OK;
}

static void write_delta(const scratch *s, const amp_tensor *x, const amp_tensor *y, const amp_tensor *dy,
                        const amp_tensor *dx, amp_activation activation)
{
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    const amp_cpu_plan *plan = &s->plan;
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(plan->rows * plan->channels))
    for (size_t i = 0; i < plan->blocks; i++) {
        size_t b = plan->blocks - 1 - i, first = amp_cpu_block_first(plan, b);
        rows->normalize_delta(x->dtype, activation, amp_cpu_at(x, first), amp_cpu_at(y, first),
                              amp_cpu_at(dy, first), amp_cpu_into(dx, first), amp_cpu_block_count(plan, b),
                              &s->lanes);
    }
}

amp_status amp_cpu_batchnorm_backward(amp_backend *backend, const amp_tensor *x, const amp_tensor *y,
    const amp_tensor *dy, const amp_tensor *dx, const amp_batchnorm *norm, amp_error *error)
{
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    AMP_TRY(amp_check_pair("batch norm backward", x, y, 1, error));
    AMP_TRY(amp_check_pair("batch norm backward", x, dy, 1, error));
    AMP_TRY(amp_check_pair("batch norm backward", x, dx, 1, error));
    if (amp_shape_count(x->shape) == 0) return AMP_OK;
    scratch s = scratch_make(x);
    const amp_cpu_plan *plan = &s.plan;
    s.sums = amp_cpu_sums_make(plan);
    if (amp_cpu_repeats_forward(norm->activation, x->dtype))
        forward_lanes(&s, norm, norm->mean, norm->variance);
    else amp_cpu_replicate(plan, norm->mean, s.lanes.mean);
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(plan->rows * plan->channels))
    for (size_t b = 0; b < plan->blocks; b++) {
        size_t first = amp_cpu_block_first(plan, b);
        amp_cpu_sums own = amp_cpu_sums_of(plan, &s.sums, b);
        rows->delta_sums(x->dtype, norm->activation, amp_cpu_at(x, first), amp_cpu_at(y, first),
                         amp_cpu_at(dy, first), amp_cpu_block_count(plan, b), &s.lanes, &own);
    }
    amp_cpu_sums_fold(plan, &s.sums);
    amp_status status = backward_lanes(&s, norm, error);
    if (status == AMP_OK) write_delta(&s, x, y, dy, dx, norm->activation);
    scratch_free(&s);
    return status;
}
