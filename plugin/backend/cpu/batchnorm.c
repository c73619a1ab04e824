/* Batch norm with a fused activation; adding a bias, and its gradient, which needs batch norm's sums.
 *
 * Forward and backward each make two passes over memory: one sums, one writes. backend.h has the formulas. A
 * lane's sums are in fp32 over short chunks and in double over the tensor (rows_norm.h), so that the variance
 * stays accurate if the mean is far larger than the spread.
 *
 * The writing pass takes the blocks from last to first, because the summing pass has left the end of the
 * tensor in the cache. */
#include "kernels.h"
#include "blocks.h"
#include "../activate.h"
#include "../check.h"
#include "../batchnorm_rules.h"

#include <math.h>

/* The scratch memory of one call, which frees it: fp32 arrays with a number per lane of a period, and the
 * sums in double. */
enum { MEAN, GAIN, BIAS, A, B, C, LANES };

typedef struct scratch {
    float *lanes[LANES];
    amp_cpu_sums sums;
} scratch;

static scratch scratch_make(const amp_cpu_plan *plan)
{
    scratch s = { .sums = amp_cpu_sums_make(plan) };
    float *memory = amp_allocated(malloc(LANES * plan->period * sizeof *memory));
    for (int i = 0; i < LANES; i++) s.lanes[i] = memory + (size_t)i * plan->period;
    return s;
}

static void scratch_free(scratch *s)
{
    free(s->lanes[MEAN]);
    amp_cpu_sums_free(&s->sums);
}

amp_status amp_cpu_add_bias(amp_backend *backend, const amp_tensor *y, const float *bias, amp_error *error)
{
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    amp_cpu_plan plan = amp_cpu_plan_make(amp_cpu_pixels(y), (size_t)y->shape.c);
    AMP_TRY(amp_check_pair("bias", y, y, 1, error));
    float *lanes = amp_allocated(malloc((plan.period ? plan.period : 1) * sizeof *lanes));
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
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    amp_cpu_plan plan = amp_cpu_plan_make(amp_cpu_pixels(dy), (size_t)dy->shape.c);
    AMP_TRY(amp_check_pair("bias gradient", dy, dy, 1, error));
    if (plan.rows == 0) return AMP_OK;
    amp_cpu_sums sums = amp_cpu_sums_make(&plan);
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(plan.rows * plan.channels))
    for (size_t b = 0; b < plan.blocks; b++)
        rows->sum(dy->dtype, amp_cpu_at(dy, amp_cpu_block_first(&plan, b)), amp_cpu_block_count(&plan, b),
            plan.period, amp_cpu_sums_scratch(&plan, &sums, b), amp_cpu_sums_of(&plan, &sums, b, 0));
    amp_cpu_sums_fold(&plan, &sums);
    for (size_t c = 0; c < plan.channels; c++) db[c] += (float)sums.lanes[c];
    amp_cpu_sums_free(&sums);
    return AMP_OK;
}

/* Fills a period's arrays, lane by lane, for y = (x - mean)·gain + bias, from each channel's mean and
 * variance. */
static void forward_lanes(const amp_cpu_plan *plan, float *const *lanes, const amp_batchnorm *norm,
    const float *mean, const float *variance)
{
    amp_cpu_replicate(plan, mean, lanes[MEAN]);
    amp_cpu_replicate(plan, norm->bias, lanes[BIAS]);
    for (size_t l = 0; l < plan->period; l++) {
        size_t c = l % plan->channels;
        double spread = amp_batchnorm_spread(&norm->rule, (double)variance[c]);
        lanes[GAIN][l] = (float)((double)norm->scale[c] / spread);
    }
}

/* y = act((x - mean)/spread·scale + bias), block by block. */
static void normalize(const amp_cpu_plan *plan, float *const *lanes, const amp_tensor *x, const amp_tensor *y,
    const amp_batchnorm *norm, const float *mean, const float *variance)
{
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    forward_lanes(plan, lanes, norm, mean, variance);
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(plan->rows * plan->channels))
    for (size_t i = 0; i < plan->blocks; i++) {
        size_t b = plan->blocks - 1 - i, first = amp_cpu_block_first(plan, b);
        rows->normalize(x->dtype, norm->activation, amp_cpu_at(x, first), amp_cpu_into(y, first),
            amp_cpu_block_count(plan, b), plan->period, lanes[MEAN], lanes[GAIN], lanes[BIAS]);
    }
}

static int ranks_of(const amp_batchnorm *norm) { return norm->ranks ? norm->ranks->count : 1; }

/* Replaces the sums of x - (the first pixel) and of its square by the moments. */
static void find_moments(const amp_cpu_plan *plan, const scratch *s, const amp_tensor *x)
{
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    float *origin = s->lanes[MEAN];
    double *sums = s->sums.lanes, *squares = sums + plan->period;
    rows->widen(x->dtype, x->data, origin, plan->channels);
    for (size_t l = plan->channels; l < plan->period; l++) origin[l] = origin[l - plan->channels];
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(plan->rows * plan->channels))
    for (size_t b = 0; b < plan->blocks; b++)
        rows->moments(x->dtype, amp_cpu_at(x, amp_cpu_block_first(plan, b)), amp_cpu_block_count(plan, b),
            plan->period, origin, amp_cpu_sums_scratch(plan, &s->sums, b),
            amp_cpu_sums_of(plan, &s->sums, b, 0), amp_cpu_sums_of(plan, &s->sums, b, 1));
    amp_cpu_sums_fold(plan, &s->sums);
    for (size_t c = 0; c < plan->channels; c++) {
        amp_moments m = amp_moments_of(sums[c], squares[c], (double)origin[c], (double)plan->rows);
        sums[c] = m.mean;
        squares[c] = m.squares;
    }
}

/* Turns this rank's means and sums of squares into those of all ranks' images. */
static amp_status join_moments(const amp_cpu_plan *plan, double *means, double *squares,
    const amp_batchnorm_ranks *ranks, amp_error *error)
{
    size_t channels = plan->channels, count = AMP_MOMENTS_SHARED * (size_t)ranks->count * channels;
    float *all = amp_allocated(calloc(count, sizeof *all));
    for (size_t c = 0; c < channels; c++)
        amp_moments_put(all, ranks->rank, channels, c, (amp_moments){ means[c], squares[c] });
    amp_status status = ranks->sum(ranks->context, all, count, error);
    for (size_t c = 0; c < channels; c++) {
        amp_moments m = amp_moments_join(all, ranks->count, channels, c, (double)plan->rows);
        means[c] = m.mean;
        squares[c] = m.squares;
    }
    free(all);
    return status;
}

static amp_status statistics(const amp_cpu_plan *plan, const scratch *s, const amp_tensor *x,
    const amp_batchnorm *norm, amp_error *error)
{
    double *means = s->sums.lanes, *squares = means + plan->period;
    double count = (double)plan->rows * ranks_of(norm);
    find_moments(plan, s, x);
    if (norm->ranks) AMP_TRY(join_moments(plan, means, squares, norm->ranks, error));
    for (size_t c = 0; c < plan->channels; c++)
        amp_batchnorm_keep(norm, c, (amp_moments){ means[c], squares[c] }, count);
    return AMP_OK;
}

amp_status amp_cpu_batchnorm_forward_train(amp_backend *backend, const amp_tensor *x, const amp_tensor *y,
    const amp_batchnorm *norm, amp_error *error)
{
    amp_cpu_plan plan = amp_cpu_plan_make(amp_cpu_pixels(x), (size_t)x->shape.c);
    AMP_TRY(amp_check_pair("batch norm", x, y, 1, error));
    if (plan.rows == 0) return AMP_OK;
    scratch s = scratch_make(&plan);
    amp_status status = statistics(&plan, &s, x, norm, error);
    if (status == AMP_OK) normalize(&plan, s.lanes, x, y, norm, norm->mean, norm->variance);
    scratch_free(&s);
    return status;
}

amp_status amp_cpu_batchnorm_forward_infer(amp_backend *backend, const amp_tensor *x, const amp_tensor *y,
    const amp_batchnorm *norm, amp_error *error)
{
    amp_cpu_plan plan = amp_cpu_plan_make(amp_cpu_pixels(x), (size_t)x->shape.c);
    AMP_TRY(amp_check_pair("batch norm", x, y, 1, error));
    float *memory = amp_allocated(malloc(3 * plan.period * sizeof *memory));
    float *lanes[] = { memory, memory + plan.period, memory + 2 * plan.period };
    normalize(&plan, lanes, x, y, norm, norm->rolling_mean, norm->rolling_variance);
    free(memory);
    return AMP_OK;
}

/* Adds this rank's part to dbias and dscale. Then turns sums and products, which have a number per channel,
 * into those of all ranks' images. */
static amp_status sum_deltas(const amp_cpu_plan *plan, double *sums, double *products,
    const amp_batchnorm *norm, amp_error *error)
{
    const amp_batchnorm_ranks *ranks = norm->ranks;
    size_t channels = plan->channels;
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

static amp_status backward_lanes(const amp_cpu_plan *plan, const scratch *s, const amp_batchnorm *norm,
    amp_error *error)
{
    float *const *lanes = s->lanes;
    double *sums = s->sums.lanes, *products = sums + plan->period;
    double count = (double)plan->rows * ranks_of(norm);
    amp_cpu_sums_fold(plan, &s->sums);
    AMP_TRY(sum_deltas(plan, sums, products, norm, error));
    for (size_t c = 0; c < plan->channels; c++) {
        amp_batchnorm_line line = amp_batchnorm_line_of(norm, c, sums[c], products[c], count);
        lanes[A][c] = line.a;
        lanes[B][c] = line.b;
        lanes[C][c] = line.c;
    }
    for (size_t l = plan->channels; l < plan->period; l++)
        for (int i = A; i <= C; i++) lanes[i][l] = lanes[i][l - plan->channels];
    return AMP_OK;
}

static void write_delta(const amp_cpu_plan *plan, const scratch *s, const amp_tensor *x, const amp_tensor *y,
    const amp_tensor *dy, const amp_tensor *dx, amp_activation activation)
{
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(plan->rows * plan->channels))
    for (size_t i = 0; i < plan->blocks; i++) {
        size_t b = plan->blocks - 1 - i, first = amp_cpu_block_first(plan, b);
        rows->normalize_delta(x->dtype, activation, amp_cpu_at(x, first), amp_cpu_at(y, first),
            amp_cpu_at(dy, first), amp_cpu_into(dx, first), amp_cpu_block_count(plan, b), plan->period,
            s->lanes[MEAN], s->lanes[GAIN], s->lanes[BIAS], s->lanes[A], s->lanes[B], s->lanes[C]);
    }
}

amp_status amp_cpu_batchnorm_backward(amp_backend *backend, const amp_tensor *x, const amp_tensor *y,
    const amp_tensor *dy, const amp_tensor *dx, const amp_batchnorm *norm, amp_error *error)
{
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    amp_cpu_plan plan = amp_cpu_plan_make(amp_cpu_pixels(x), (size_t)x->shape.c);
    AMP_TRY(amp_check_pair("batch norm backward", x, y, 1, error));
    AMP_TRY(amp_check_pair("batch norm backward", x, dy, 1, error));
    AMP_TRY(amp_check_pair("batch norm backward", x, dx, 1, error));
    if (plan.rows == 0) return AMP_OK;
    scratch s = scratch_make(&plan);
    if (amp_cpu_repeats_forward(norm->activation, x->dtype))
        forward_lanes(&plan, s.lanes, norm, norm->mean, norm->variance);
    else amp_cpu_replicate(&plan, norm->mean, s.lanes[MEAN]);
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(plan.rows * plan.channels))
    for (size_t b = 0; b < plan.blocks; b++) {
        size_t first = amp_cpu_block_first(&plan, b);
        rows->delta_sums(x->dtype, norm->activation, amp_cpu_at(x, first), amp_cpu_at(y, first),
            amp_cpu_at(dy, first), amp_cpu_block_count(&plan, b), plan.period, s.lanes[MEAN], s.lanes[GAIN],
            s.lanes[BIAS], amp_cpu_sums_scratch(&plan, &s.sums, b), amp_cpu_sums_of(&plan, &s.sums, b, 0),
            amp_cpu_sums_of(&plan, &s.sums, b, 1));
    }
    amp_status status = backward_lanes(&plan, &s, norm, error);
    if (status == AMP_OK) write_delta(&plan, &s, x, y, dy, dx, norm->activation);
    scratch_free(&s);
    return status;
}
