/* Collects, checks and restores a network's parameters and statistics: see parameters.h. */
#include "parameters.h"

#include <float.h>
#include <math.h>

/* Returns the index of the parameter with this master, or the next free index if the master is new. Layers
 * that share a master share its gradient and its update. */
static int param_of(const amp_parameters *p, const float *master)
{
    int i = 0;
    while (i < p->param_count && p->params[i].master != master) i++;
    return i;
}

static void add_params(amp_parameters *p, const amp_layer_desc *layer, int index)
{
    for (int k = 0; k < layer->param_count; k++) {
        const amp_param_desc *d = &layer->params[k];
        int param = p->gradients[index].param[k] = param_of(p, d->master);
        p->gradient_count += d->count;
        if (param < p->param_count) continue;
        p->params = amp_grow(p->params, (size_t)p->param_count, &p->param_room, sizeof *p->params);
        p->params[p->param_count++] = (amp_param){ .master = d->master, .momentum = *d->gradient_slot,
                                                   .count = d->count, .clip = d->clip,
                                                   .layer_rate = layer->rate_scale, .decays = d->decays,
                                                   .unsaved = d->unsaved, .layer = index, .name = d->name };
    }
    p->gradients[index].count = layer->param_count;
}

/* Layers that share an array of rolling statistics each update it once per pass. Returns the single factor
 * with the same effect, and stores it in the entries of p->statistics that were added earlier for this
 * array. */
static float join_factors(amp_parameters *p, const amp_statistics_desc *d)
{
    float factor = d->rolling_factor;
    for (int i = 0; i < p->statistics_count; i++) {
        amp_statistics *s = &p->statistics[i];
        if (s->array != d->array) continue;
        factor = 1 - (1 - s->rolling_factor) * (1 - d->rolling_factor);
        s->rolling_factor = factor;
    }
    return factor;
}

static void add_statistics(amp_parameters *p, const amp_layer_desc *layer, int index)
{
    for (int k = 0; k < layer->statistics_count; k++) {
        const amp_statistics_desc *d = &layer->statistics[k];
        float factor = join_factors(p, d);
        p->committed_count += d->count;
        p->statistics = amp_grow(p->statistics, (size_t)p->statistics_count, &p->statistics_room,
                                 sizeof *p->statistics);
        p->statistics[p->statistics_count++] = (amp_statistics){ .array = d->array, .count = d->count,
                                                                 .layer = index,
                                                                 .rolling_factor = factor,
                                                                 .by_host = !layer->kind->normalizes,
                                                                 .unsaved = d->unsaved };
    }
}

void amp_parameters_collect(amp_parameters *p, const amp_network_desc *network)
{
    p->layer_count = network->count;
    p->layer_types = amp_allocated(calloc((size_t)network->count + 1, sizeof *p->layer_types));
    p->gradients = amp_allocated(calloc((size_t)network->count + 1, sizeof *p->gradients));
    for (int i = 0; i < network->count; i++) {
        p->layer_types[i] = network->layers[i].type;
        add_params(p, &network->layers[i], i);
        add_statistics(p, &network->layers[i], i);
    }
}

/* Points each parameter and each array of statistics to its part of the blocks. */
static void share_blocks(amp_parameters *p)
{
    float *gradient = p->gradient_block, *moment = p->moment_block, *committed = p->committed_block;
    for (int i = 0; i < p->param_count; i++) {
        amp_param *param = &p->params[i];
        param->grad = gradient;
        if (moment) param->m = moment, param->v = moment + p->gradient_count, moment += param->count;
        gradient += param->count;
    }
    for (int i = 0; i < p->layer_count; i++)
        for (int k = 0; k < p->gradients[i].count; k++)
            p->gradients[i].all[k] = p->params[p->gradients[i].param[k]].grad;
    for (int i = 0; i < p->statistics_count; i++) {
        p->statistics[i].committed = committed;
        committed += p->statistics[i].count;
    }
}

amp_status amp_parameters_take(amp_parameters *p, amp_error *error)
{
    amp_backend *b = p->backend;
    size_t bytes = p->gradient_count * sizeof(float);
    if (p->taken) return AMP_OK;
    if (!p->committed_block)
        AMP_TRY(b->allocate(b, p->committed_count * sizeof(float), (void **)&p->committed_block, error));
    if (p->adam && !p->moment_block) AMP_TRY(b->allocate(b, 2 * bytes, (void **)&p->moment_block, error));
    if (!p->gradient_block) AMP_TRY(b->allocate(b, bytes, (void **)&p->gradient_block, error));
    if (p->adam) AMP_TRY(b->zero(b, p->moment_block, 2 * bytes, error));
    AMP_TRY(b->zero(b, p->gradient_block, bytes, error));
    share_blocks(p);
    p->taken = 1;
    return amp_parameters_keep(p, error);
}

void amp_parameters_free(amp_parameters *p)
{
    amp_backend *b = p->backend;
    if (p->committed_block) b->release(b, p->committed_block);
    if (p->gradient_block) b->release(b, p->gradient_block);
    if (p->moment_block) b->release(b, p->moment_block);
    free(p->params);
    free(p->layer_types);
    free(p->gradients);
    free(p->statistics);
    *p = (amp_parameters){ 0 };
}

/* ---- the end of a step ---- */

/* Sets gradient, rate and decay of held layers' parameters (amp_parameters.held) to 0. */
static amp_status hold(amp_parameters *p, amp_error *error)
{
    for (int i = 0; i < p->param_count; i++) {
        amp_param *param = &p->params[i];
        int held = p->held && p->held[param->layer];
        param->rate_scale = held ? 0 : param->layer_rate;
        if (held) param->decay = 0;
        if (held) AMP_TRY(p->backend->zero(p->backend, param->grad, param->count * sizeof(float), error));
    }
    return AMP_OK;
}

amp_status amp_parameters_finish_step(amp_parameters *p, const amp_update_args *args, float decay,
                                      amp_step_outcome *out, amp_error *error)
{
    int all_decay = args->adam && !args->adamw;
    for (int i = 0; i < p->param_count; i++)
        p->params[i].decay = all_decay || p->params[i].decays ? decay : 0;
    AMP_TRY(hold(p, error));
    const amp_step_end end = { .params = p->params, .statistics = p->statistics,
                               .param_count = p->param_count, .statistics_count = p->statistics_count,
                               .update = *args };
    return p->backend->finish_step(p->backend, &end, out, error);
}

amp_status amp_parameters_keep(amp_parameters *p, amp_error *error)
{
    if (!p->taken) return AMP_OK;
    return p->backend->copy_statistics(p->backend, p->statistics, p->statistics_count, 0, error);
}

amp_status amp_parameters_restore(amp_parameters *p, amp_error *error)
{
    return p->backend->copy_statistics(p->backend, p->statistics, p->statistics_count, 1, error);
}

amp_status amp_parameters_zero_gradients(amp_parameters *p, amp_error *error)
{
    amp_backend *b = p->backend;
    return b->zero(b, p->gradient_block, p->gradient_count * sizeof(float), error);
}

amp_status amp_parameters_reset(amp_parameters *p, amp_error *error)
{
    amp_backend *b = p->backend;
    for (int i = 0; i < p->param_count; i++)
        AMP_TRY(b->zero(b, p->params[i].momentum, p->params[i].count * sizeof(float), error));
    if (p->moment_block) AMP_TRY(b->zero(b, p->moment_block, 2 * p->gradient_count * sizeof(float), error));
    return p->taken ? amp_parameters_zero_gradients(p, error) : AMP_OK;
}

/* ---- finite or not ---- */

/* Whether an array contains inf or NaN, or its sum of squares exceeds `most`. If so, sets *bad to `place`. */
static int is_bad(amp_backend *b, const float *array, size_t count, double most, amp_anomaly place,
                  amp_anomaly *bad)
{
    int found = 0;
    double squares = 0;
    amp_param as_param = { .grad = (float *)array, .count = count };
    amp_status status = b->check_gradients(b, &as_param, 1, 1, &found, &squares, NULL);
    if (status != AMP_OK || !(found || squares > most)) return 0;
    place.found = 1;
    *bad = place;
    return 1;
}

int amp_parameters_bad_gradient(const amp_parameters *p, amp_anomaly *bad)
{
    for (int i = p->param_count - 1; i >= 0; i--) {
        const amp_param *param = &p->params[i];
        amp_anomaly place = { .layer = param->layer, .pass = "backward", .tensor = param->name,
                              .is_gradient = 1 };
        if (is_bad(p->backend, param->grad, param->count, INFINITY, place, bad)) return 1;
    }
    return 0;
}

int amp_parameters_bad_statistics(const amp_parameters *p, amp_anomaly *bad)
{
    for (int i = 0; i < p->statistics_count; i++) {
        const amp_statistics *s = &p->statistics[i];
        amp_anomaly place = { .layer = s->layer, .pass = "forward", .tensor = "rolling statistics" };
        if (is_bad(p->backend, s->array, s->count, INFINITY, place, bad)) return 1;
    }
    return 0;
}

int amp_parameters_bad_master(const amp_parameters *p, amp_anomaly *bad)
{
    for (int i = 0; i < p->param_count; i++) {
        const amp_param *param = &p->params[i];
        amp_anomaly place = { .layer = param->layer, .pass = "update", .tensor = param->name };
        if (is_bad(p->backend, param->master, param->count, FLT_MAX, place, bad)) return 1;
    }
    return 0;
}
