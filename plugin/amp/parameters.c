/* Collecting, checking and putting back: see parameters.h. */
#include "parameters.h"

#include <float.h>
#include <stdlib.h>

typedef struct sizes { int params, statistics; size_t elements, committed; } sizes;

static sizes measure(const amp_network_desc *network)
{
    sizes s = { 0, 0, 0, 0 };
    for (int i = 0; i < network->count; i++) {
        const amp_layer_desc *layer = &network->layers[i];
        s.params += layer->param_count;
        s.statistics += layer->statistics_count;
        for (int k = 0; k < layer->param_count; k++) s.elements += layer->params[k].count;
        for (int k = 0; k < layer->statistics_count; k++) s.committed += layer->statistics[k].count;
    }
    return s;
}

static amp_status allocate(amp_parameters *p, const sizes *s, int layers, int adam, amp_backend *b, amp_error *error)
{
    p->params = calloc((size_t)s->params + 1, sizeof *p->params);
    p->decays = calloc((size_t)s->params + 1, 1);
    p->unsaved = calloc((size_t)s->params + 1, 1);
    p->layer_types = calloc((size_t)layers + 1, sizeof *p->layer_types);
    p->gradients = calloc((size_t)layers + 1, sizeof *p->gradients);
    p->statistics = calloc((size_t)s->statistics + 1, sizeof *p->statistics);
    p->states = calloc((size_t)s->statistics + 1, sizeof *p->states);
    p->committed_block = calloc(s->committed + 1, sizeof(float));
    if (!p->params || !p->decays || !p->unsaved || !p->layer_types || !p->gradients || !p->statistics || !p->states || !p->committed_block)
        return amp_fail(error, AMP_NO_MEMORY, "amp: out of memory for the records of %d parameters", s->params);
    AMP_TRY(b->allocate(b, s->elements * sizeof(float), (void **)&p->gradient_block, error));
    AMP_TRY(b->zero(b, p->gradient_block, s->elements * sizeof(float), error));
    if (!adam) return AMP_OK;
    AMP_TRY(b->allocate(b, 2 * s->elements * sizeof(float), (void **)&p->moment_block, error));
    return b->zero(b, p->moment_block, 2 * s->elements * sizeof(float), error);
}

static void map_gradients(amp_gradients *gradients, const amp_layer_desc *layer, int k, float *gradient)
{
    const float *master = layer->params[k].master;
    gradients->all[k] = gradient;
    if (master == layer->weights) gradients->weights = gradient;
    if (master == layer->biases) gradients->biases = gradient;
    if (master == layer->scales) gradients->scales = gradient;
}

static void add_params(amp_parameters *p, const amp_layer_desc *layer, int index, size_t elements, size_t *at)
{
    for (int k = 0; k < layer->param_count; k++) {
        const amp_param_desc *d = &layer->params[k];
        float *gradient = p->gradient_block + *at, *m = p->moment_block ? p->moment_block + *at : NULL;
        p->params[p->param_count] = (amp_param){ .master = d->master, .grad = gradient, .momentum = *d->gradient_slot, .m = m,
            .v = m ? m + elements : NULL, .count = d->count, .clip = d->clip, .rate_scale = layer->rate_scale, .layer = index,
            .name = d->name };
        p->unsaved[p->param_count] = (char)d->unsaved;
        p->decays[p->param_count++] = (char)d->decays;
        map_gradients(&p->gradients[index], layer, k, gradient);
        *at += d->count;
    }
}

static void add_statistics(amp_parameters *p, const amp_layer_desc *layer, int index, size_t *saved)
{
    for (int k = 0; k < layer->statistics_count; k++) {
        const amp_statistics_desc *d = &layer->statistics[k];
        p->states[p->statistics_count] = (amp_param){ .grad = d->array, .count = d->count, .layer = index, .name = "running statistics" };
        p->statistics[p->statistics_count++] = (amp_statistics){ .array = d->array, .committed = p->committed_block + *saved,
            .count = d->count, .layer = index, .unsaved = d->unsaved };
        *saved += d->count;
    }
}

amp_status amp_parameters_collect(amp_parameters *p, const amp_network_desc *network, int adam, amp_backend *b, amp_error *error)
{
    sizes s = measure(network);
    size_t at = 0, saved = 0;
    AMP_TRY(allocate(p, &s, network->count, adam, b, error));
    p->gradient_count = s.elements;
    for (int i = 0; i < network->count; i++) {
        p->layer_types[i] = network->layers[i].type;
        add_params(p, &network->layers[i], i, s.elements, &at);
        add_statistics(p, &network->layers[i], i, &saved);
    }
    return amp_parameters_keep(p, b, error);
}

void amp_parameters_free(amp_parameters *p, amp_backend *b)
{
    if (p->gradient_block) b->release(b, p->gradient_block);
    if (p->moment_block) b->release(b, p->moment_block);
    free(p->params);
    free(p->decays);
    free(p->unsaved);
    free(p->layer_types);
    free(p->gradients);
    free(p->statistics);
    free(p->states);
    free(p->committed_block);
    *p = (amp_parameters){ 0 };
}

/* ---- a step that happened, or did not ---- */

amp_status amp_parameters_keep(amp_parameters *p, amp_backend *b, amp_error *error)
{
    for (int i = 0; i < p->statistics_count; i++) {
        amp_statistics *s = &p->statistics[i];
        AMP_TRY(b->upload(b, s->committed, s->array, s->count * sizeof(float), error));
    }
    return AMP_OK;
}

amp_status amp_parameters_restore(amp_parameters *p, amp_backend *b, amp_error *error)
{
    for (int i = 0; i < p->statistics_count; i++) {
        amp_statistics *s = &p->statistics[i];
        AMP_TRY(b->upload(b, s->array, s->committed, s->count * sizeof(float), error));
    }
    return AMP_OK;
}

amp_status amp_parameters_drop_gradients(amp_parameters *p, amp_backend *b, amp_error *error)
{
    return b->zero(b, p->gradient_block, p->gradient_count * sizeof(float), error);
}

amp_status amp_parameters_forget(amp_parameters *p, amp_backend *b, amp_error *error)
{
    for (int i = 0; i < p->param_count; i++)
        AMP_TRY(b->zero(b, p->params[i].momentum, p->params[i].count * sizeof(float), error));
    if (p->moment_block) AMP_TRY(b->zero(b, p->moment_block, 2 * p->gradient_count * sizeof(float), error));
    return amp_parameters_drop_gradients(p, b, error);
}

/* ---- finite or not ---- */

amp_status amp_parameters_check(const amp_parameters *p, amp_backend *b, float inverse_scale, int *found_inf, double *squares,
                                amp_error *error)
{
    int bad_gradient = 0, bad_state = 0;
    double ignored;
    AMP_TRY(b->check_gradients(b, p->params, p->param_count, inverse_scale, &bad_gradient, squares, error));
    AMP_TRY(b->check_gradients(b, p->states, p->statistics_count, 1, &bad_state, &ignored, error));
    *found_inf = bad_gradient | bad_state;
    return AMP_OK;
}

static int find_bad(const amp_param *params, int count, amp_backend *b, amp_anomaly *bad)
{
    for (int i = 0; i < count; i++) {
        int found = 0;
        if (amp_array_found_inf(b, params[i].grad, params[i].count, &found, NULL) != AMP_OK || !found) continue;
        *bad = (amp_anomaly){ .found = 1, .layer = params[i].layer, .tensor = params[i].name };
        return 1;
    }
    return 0;
}

int amp_parameters_bad_gradient(const amp_parameters *p, amp_backend *b, amp_anomaly *bad)
{
    if (!find_bad(p->params, p->param_count, b, bad)) return 0;
    bad->pass = "backward";
    bad->is_gradient = 1;
    return 1;
}

int amp_parameters_bad_statistics(const amp_parameters *p, amp_backend *b, amp_anomaly *bad)
{
    if (!find_bad(p->states, p->statistics_count, b, bad)) return 0;
    bad->pass = "forward";
    return 1;
}

int amp_parameters_bad_master(const amp_parameters *p, amp_backend *b, amp_anomaly *bad)
{
    for (int i = 0; i < p->param_count; i++) {
        amp_param as_gradient = { .grad = p->params[i].master, .count = p->params[i].count };
        int found = 0;
        double squares = 0;
        if (b->check_gradients(b, &as_gradient, 1, 1, &found, &squares, NULL) != AMP_OK || (!found && squares <= FLT_MAX)) continue;
        *bad = (amp_anomaly){ .found = 1, .layer = p->params[i].layer, .pass = "update", .tensor = p->params[i].name };
        return 1;
    }
    return 0;
}
