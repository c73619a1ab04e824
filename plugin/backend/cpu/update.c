/* The end of a step: checks that every gradient is finite, and updates every parameter. The check and the
 * update each make one pass over each array.
 *
 * Stretches of all parameters are divided among threads, so that one large layer keeps all threads busy.
 * Squares are summed per stretch, and these sums are added in stretch order, so that the total does not
 * depend on the number of threads. */
#include "kernels.h"
#include "../unscale.h"
#include "blocks.h"

#include <math.h>
#include <string.h>

/* A position in the stretches of all parameters. seek moves it to the parameter that contains stretch `at`;
 * `at` must not decrease from call to call. */
typedef struct cursor {
    const amp_param *param;
    size_t passed; /* number of stretches in all earlier parameters */
} cursor;

static void seek(cursor *c, size_t at)
{
    while (at - c->passed >= amp_cpu_stretches(c->param->count))
        c->passed += amp_cpu_stretches(c->param++->count);
}

static size_t all_stretches(const amp_param *params, int count)
{
    size_t total = 0;
    for (int i = 0; i < count; i++) total += amp_cpu_stretches(params[i].count);
    return total;
}

/* ---- finite or not ---- */

amp_status amp_cpu_check_gradients(amp_backend *backend, const amp_param *params, int count,
                                   float inverse_scale, int *found_inf, double *sum_squares, amp_error *error)
{
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    size_t stretches = all_stretches(params, count);
    double total = 0, *sums = amp_allocated(malloc((stretches ? stretches : 1) * sizeof *sums));
    int found = 0;
    #pragma omp parallel reduction(|| : found) if (stretches > 2)
    {
        cursor c = { params, 0 };
        #pragma omp for schedule(static)
        for (size_t s = 0; s < stretches; s++) {
            seek(&c, s);
            size_t first = (s - c.passed) * AMP_CPU_STRETCH;
            int here = 0;
            sums[s] = rows->squares(c.param->grad + first, amp_cpu_stretch_count(c.param->count, first),
                                    &here);
            found = found || here;
        }
    }
    for (size_t s = 0; s < stretches; s++) total += sums[s];
    free(sums);
    *found_inf = found;
    *sum_squares = total * (double)inverse_scale * (double)inverse_scale;
    return AMP_OK;
}

/* Whether any statistic is inf or NaN. The arrays are many and small, so each thread takes whole arrays. */
static int any_bad(const amp_statistics *statistics, int count)
{
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    int found = 0;
    #pragma omp parallel for schedule(static) reduction(|| : found) if (count > 8)
    for (int i = 0; i < count; i++) {
        int here = 0;
        rows->squares(statistics[i].array, statistics[i].count, &here);
        found = found || here;
    }
    return found;
}

/* ---- the update ---- */

/* As in Darknet, the rate is divided by the batch for SGD, but not for Adam. SGD and Adam add the decay to
 * the gradient, which is a sum over images, so the decay is multiplied by the batch. AdamW subtracts the
 * decay from the weights, so its decay is not multiplied by the batch. */
static amp_cpu_rule rule_of(const amp_param *p, const amp_update_args *a, const amp_unscale *unscale)
{
    float rate = a->learning_rate * p->rate_scale;
    return (amp_cpu_rule){ .unscale = unscale->factor, .unscale_rest = unscale->rest,
                           .decay = a->adamw ? 0 : p->decay * (float)a->batch,
                           .shrink = a->adamw ? rate * p->decay : 0,
                           .rate = a->adam ? rate : rate / (float)a->batch, .clip = p->clip,
                           .momentum = a->momentum, .beta1 = a->beta1, .beta2 = a->beta2,
                           .correction1 = 1.f - powf(a->beta1, (float)a->t),
                           .correction2 = 1.f - powf(a->beta2, (float)a->t), .eps = a->eps };
}

static void update_stretch(const amp_cpu_rows *rows, const amp_param *p, size_t first,
                           const amp_update_args *a, const amp_unscale *unscale)
{
    size_t n = amp_cpu_stretch_count(p->count, first);
    amp_cpu_rule rule = rule_of(p, a, unscale);
    if (a->adam) rows->adam(p->master + first, p->grad + first, p->m + first, p->v + first, n, &rule);
    else rows->sgd(p->master + first, p->grad + first, p->momentum + first, n, &rule);
}

static void update(const amp_step_end *end, const amp_unscale *unscale)
{
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    size_t stretches = all_stretches(end->params, end->param_count);
    #pragma omp parallel if (stretches > 2)
    {
        cursor c = { end->params, 0 };
        #pragma omp for schedule(static)
        for (size_t s = 0; s < stretches; s++) {
            seek(&c, s);
            update_stretch(rows, c.param, (s - c.passed) * AMP_CPU_STRETCH, &end->update, unscale);
        }
    }
}

/* ---- operations ---- */

amp_status amp_cpu_copy_statistics(amp_backend *backend, const amp_statistics *statistics, int count,
                                   int back, amp_error *error)
{
    #pragma omp parallel for schedule(static) if (count > 8)
    for (int i = 0; i < count; i++) {
        const amp_statistics *s = &statistics[i];
        if (s->count)
            memcpy(back ? s->array : s->committed, back ? s->committed : s->array, s->count * sizeof(float));
    }
    return AMP_OK;
}

amp_status amp_cpu_finish_step(amp_backend *backend, const amp_step_end *end, amp_step_outcome *out,
                               amp_error *error)
{
    int found;
    double sum_squares;
    *out = (amp_step_outcome){ 0 };
    AMP_TRY(amp_cpu_check_gradients(backend, end->params, end->param_count, 1, &found, &sum_squares, error));
    if (found || any_bad(end->statistics, end->statistics_count)) return AMP_OK;
    const amp_unscale unscale = amp_unscale_of(sum_squares, &end->update);
    int above_limit = amp_is_above_limit(unscale.gradient_norm, &end->update);
    *out = (amp_step_outcome){ !above_limit, above_limit, unscale.gradient_norm };
    if (!out->taken) return AMP_OK;
    update(end, &unscale);
    return amp_cpu_copy_statistics(backend, end->statistics, end->statistics_count, 0, error);
}
