/* The end of a step: is every gradient finite, and the update of every parameter, in one pass over each array.
 *
 * All arrays are cut into stretches, numbered through all parameters, and the threads share out the numbers: one large
 * layer does not leave a thread idle. The sum of squares is by stretch, then in stretch order, so it does not depend on
 * the thread count. */
#include "kernels.h"
#include "blocks.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* Where stretch number `at` lies. Numbers asked of one cursor must not fall. */
typedef struct cursor {
    const amp_param *param;
    size_t passed; /* stretches of the parameters before it */
} cursor;

static void seek(cursor *c, size_t at)
{
    while (at - c->passed >= amp_cpu_stretches(c->param->count)) c->passed += amp_cpu_stretches(c->param++->count);
}

static size_t all_stretches(const amp_param *params, int count)
{
    size_t total = 0;
    for (int i = 0; i < count; ++i) total += amp_cpu_stretches(params[i].count);
    return total;
}

amp_status amp_cpu_check_gradients(amp_backend *backend, const amp_param *params, int count, float inverse_scale,
    int *found_inf, double *sum_squares, amp_error *error)
{
    (void)backend;
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    size_t stretches = all_stretches(params, count);
    double total = 0, *sums = malloc((stretches ? stretches : 1) * sizeof *sums);
    int found = 0;
    if (!sums) return amp_fail(error, AMP_NO_MEMORY, "no memory to check the gradients of %d parameters", count);
    #pragma omp parallel reduction(|| : found) if (stretches > 2)
    {
        cursor c = { params, 0 };
        #pragma omp for schedule(static)
        for (size_t s = 0; s < stretches; ++s) {
            seek(&c, s);
            size_t local = s - c.passed;
            int here = 0;
            sums[s] = rows->squares(c.param->grad + local * AMP_CPU_STRETCH,
                amp_cpu_stretch_count(c.param->count, local), &here);
            found = found || here;
        }
    }
    for (size_t s = 0; s < stretches; ++s) total += sums[s];
    free(sums);
    *found_inf = found;
    *sum_squares = total * (double)inverse_scale * (double)inverse_scale;
    return AMP_OK;
}

/* Under Adam, Darknet does not divide the rate by the batch. A factor below float's normal numbers would be flushed to 0
 * in a host built with -Ofast; in two steps it is not. */
static amp_cpu_rule rule_of(const amp_param *p, const amp_update_args *a)
{
    static const float small = 0x1p-100f;
    int split = a->inverse_scale < FLT_MIN;
    float rate = a->learning_rate * p->rate_scale;
    return (amp_cpu_rule){ .unscale = split ? small : (float)a->inverse_scale,
        .unscale_rest = split ? (float)(a->inverse_scale / small) : 1, .decay = p->decay * (float)a->batch,
        .rate = a->adam ? rate : rate / (float)a->batch, .clip = p->clip, .momentum = a->momentum, .beta1 = a->beta1,
        .beta2 = a->beta2, .correction1 = 1.f - powf(a->beta1, (float)a->t),
        .correction2 = 1.f - powf(a->beta2, (float)a->t), .eps = a->eps };
}

/* Stretch `local` of one parameter. */
static void update_stretch(const amp_cpu_rows *rows, const amp_param *p, size_t local, const amp_update_args *a)
{
    size_t first = local * AMP_CPU_STRETCH, n = amp_cpu_stretch_count(p->count, local);
    amp_cpu_rule rule = rule_of(p, a);
    if (a->adam) rows->adam(p->master + first, p->grad + first, p->m + first, p->v + first, n, &rule);
    else rows->sgd(p->master + first, p->grad + first, p->momentum + first, n, &rule);
}

amp_status amp_cpu_update(amp_backend *backend, const amp_param *params, int count, const amp_update_args *args,
    amp_error *error)
{
    (void)backend;
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    size_t stretches = all_stretches(params, count);
    for (int i = 0; i < count; ++i)
        if (params[i].count && (args->adam ? !params[i].m || !params[i].v : !params[i].momentum))
            return amp_fail(error, AMP_BACKEND_FAILED, "update: layer %d, %s has no %s", params[i].layer,
                params[i].name, args->adam ? "Adam moments" : "momentum");
    #pragma omp parallel if (stretches > 2)
    {
        cursor c = { params, 0 };
        #pragma omp for schedule(static)
        for (size_t s = 0; s < stretches; ++s) {
            seek(&c, s);
            update_stretch(rows, c.param, s - c.passed, args);
        }
    }
    return AMP_OK;
}
