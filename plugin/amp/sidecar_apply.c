/* Restores an engine from a sidecar. First compares everything with the network, then copies everything.
 * Copying fails only if the device fails. The arrays may be in a GPU's memory, so only the backend's
 * operations write to them. */
#include "sidecar_format.h"

enum { NOTE = 256 };

__attribute__((format(printf, 2, 3)))
static void add_note(char note[NOTE], const char *format, ...)
{
    size_t used = strlen(note);
    va_list args;
    if (used && used + 2 < NOTE) used += (size_t)snprintf(note + used, NOTE - used, "; ");
    va_start(args, format);
    vsnprintf(note + used, NOTE - used, format, args);
    va_end(args);
}

/* ---- does it belong to this network? ---- */

static int shown(amp_saved_text text) { return text.length < 60 ? text.length : 60; }

static int same_text(amp_saved_text saved, const char *text)
{
    return strlen(text) == (size_t)saved.length && !memcmp(saved.at, text, (size_t)saved.length);
}

#define mismatch(c, error, why, ...) \
    amp_fail(error, AMP_BAD_SIDECAR, "%s: it belongs to another network: " why "; train with the .cfg " \
             "that it was saved with, or " AMP_SIDECAR_REMEDY, (c)->name, ##__VA_ARGS__)

static amp_status compare_layers(const amp_sidecar *c, const amp_parameters *e, amp_error *error)
{
    int common = c->layer_count < e->layer_count ? c->layer_count : e->layer_count;
    for (int i = 0; i < common; i++)
        if (!same_text(c->layers[i], e->layer_types[i]))
            return mismatch(c, error, "layer %d is [%.*s] in the file and [%s] in this network", i,
                            shown(c->layers[i]), c->layers[i].at, e->layer_types[i]);
    if (c->layer_count != e->layer_count)
        return mismatch(c, error, "the file has %d layers, but this network has %d", c->layer_count,
                        e->layer_count);
    return AMP_OK;
}

static amp_status compare_params(const amp_sidecar *c, const amp_parameters *e, amp_error *error)
{
    for (int i = 0; i < c->param_count && i < e->param_count; i++) {
        const amp_saved_entry *s = &c->params[i];
        const amp_param *p = &e->params[i];
        int layer = s->layer < p->layer ? s->layer : p->layer;
        if (s->layer != p->layer || !same_text(s->name, p->name))
            return mismatch(c, error, "layer %d [%s] differs: the file has %.*s of layer %d where this "
                                      "network has %s of layer %d",
                            layer, e->layer_types[layer], shown(s->name), s->name.at, s->layer, p->name,
                            p->layer);
        if (s->count != p->count)
            return mismatch(c, error, "layer %d [%s] has %zu %.*s in the file and %zu in this network",
                            p->layer, e->layer_types[p->layer], s->count, shown(s->name), s->name.at,
                            p->count);
    }
    if (c->param_count != e->param_count)
        return mismatch(c, error, "the file has %d parameters, but this network has %d", c->param_count,
                        e->param_count);
    return AMP_OK;
}

/* Whether statistics[i] is a recurrent layer's state that starts at zero because the batch has changed. */
static int starts_anew(const amp_sidecar *c, const amp_parameters *e, int i)
{
    return c->statistics[i].unsaved && e->statistics[i].unsaved
        && c->statistics[i].count != e->statistics[i].count;
}

static amp_status compare_statistics(const amp_sidecar *c, const amp_parameters *e, amp_error *error)
{
    for (int i = 0; i < c->statistics_count && i < e->statistics_count; i++) {
        const amp_saved_entry *saved = &c->statistics[i];
        const amp_statistics *s = &e->statistics[i];
        if (saved->layer == s->layer && (saved->count == s->count || starts_anew(c, e, i))) continue;
        return mismatch(c, error, "the file has statistics of layer %d (%zu numbers) where this network has "
                                  "statistics of layer %d (%zu numbers)",
                        saved->layer, saved->count, s->layer, s->count);
    }
    if (c->statistics_count != e->statistics_count)
        return mismatch(c, error, "the file has %d arrays of statistics, but this network has %d",
                        c->statistics_count, e->statistics_count);
    return AMP_OK;
}

/* ---- the scaler ---- */

/* Returns a scaler with the settings of `now` (from the .cfg) and the state of `saved`. If the kind of loss
 * scaling or the scale has changed, appends a sentence about this to `note`. */
static amp_scaler resumed_scaler(const amp_scaler *now, const amp_scaler *saved, char note[NOTE])
{
    amp_scaler s = *now;
    amp_scaler_resume(&s, saved);
    if (!now->enabled || !saved->enabled) return s;
    if (now->dynamic != saved->dynamic)
        add_note(note, "loss scaling was %s and is %s now: the scale starts at %g",
                 saved->dynamic ? "dynamic" : "static", now->dynamic ? "dynamic" : "static", (double)s.scale);
    else if (s.scale != saved->scale && now->dynamic)
        add_note(note, "the saved loss scale %g is not between min_scale and max_scale: the scale is %g now",
                 (double)saved->scale, (double)s.scale);
    else if (s.scale != saved->scale)
        add_note(note, "the static loss scale was %g and is %g now", (double)saved->scale, (double)s.scale);
    return s;
}

/* ---- copying ---- */

/* The context of functions that write arrays in the backend's memory. */
typedef struct copier { amp_backend *backend; amp_error *error; } copier;

static amp_status copy_array(const copier *c, float *to, const unsigned char *from, size_t count)
{
    return c->backend->upload(c->backend, to, from, count * sizeof *to, c->error);
}

/* Copies an array, or writes zeros if the file lacks it (gradients between steps, another optimizer's
 * moments). */
static amp_status copy_or_clear(const copier *c, float *to, const unsigned char *from, size_t count)
{
    if (from) return copy_array(c, to, from, count);
    return c->backend->zero(c->backend, to, count * sizeof *to, c->error);
}

static amp_status copy_params(const copier *copy, const amp_sidecar *c, const amp_parameters *e)
{
    for (int i = 0; i < e->param_count; i++) {
        const amp_param *p = &e->params[i];
        const unsigned char *const *from = c->params[i].arrays;
        if (from[AMP_SAVED_MASTER]) AMP_TRY(copy_array(copy, p->master, from[AMP_SAVED_MASTER], p->count));
        AMP_TRY(copy_or_clear(copy, p->grad, from[AMP_SAVED_GRADIENT], p->count));
        AMP_TRY(copy_or_clear(copy, p->momentum, e->adam ? NULL : from[AMP_SAVED_MOMENTUM], p->count));
        if (!e->adam) continue;
        AMP_TRY(copy_or_clear(copy, p->m, from[AMP_SAVED_M], p->count));
        AMP_TRY(copy_or_clear(copy, p->v, from[AMP_SAVED_V], p->count));
    }
    return AMP_OK;
}

/* Copies all arrays. amp_engine_weights_changed commits the current statistics; if the file has an unfinished
 * batch, its committed statistics then overwrite the committed copies. */
static amp_status copy_all(const copier *copy, const amp_sidecar *c, amp_engine *engine,
                           const amp_parameters *e)
{
    AMP_TRY(copy_params(copy, c, e));
    for (int kind = AMP_SAVED_LIVE; kind <= AMP_SAVED_COMMITTED; kind++) {
        if (kind == AMP_SAVED_COMMITTED) amp_engine_weights_changed(engine);
        for (int i = 0; i < e->statistics_count; i++) {
            const unsigned char *from = c->statistics[i].arrays[kind];
            const amp_statistics *s = &e->statistics[i];
            if (from && !starts_anew(c, e, i))
                AMP_TRY(copy_array(copy, kind == AMP_SAVED_LIVE ? s->array : s->committed, from, s->count));
        }
    }
    return AMP_OK;
}

amp_status amp_sidecar_apply(const amp_sidecar *c, amp_engine *engine, char note[NOTE],
                                amp_error *error)
{
    const amp_parameters *e = &engine->parameters;
    int renewed = 0;
    note[0] = 0;
    AMP_TRY(compare_layers(c, e, error));
    AMP_TRY(compare_params(c, e, error));
    AMP_TRY(compare_statistics(c, e, error));
    AMP_TRY(amp_parameters_take(&engine->parameters, error));
    copier copy = { e->backend, error };

    if (c->adam != e->adam)
        add_note(note, "the optimizer was %s and is %s now: its moments start at 0", c->adam ? "Adam" : "SGD",
                 e->adam ? "Adam" : "SGD");
    else if (c->adamw != e->adamw)
        add_note(note, "the optimizer was %s and is %s now: its moments are kept",
                 c->adamw ? "AdamW" : "Adam", e->adamw ? "AdamW" : "Adam");
    engine->scaler = resumed_scaler(&engine->scaler, &c->scaler, note);
    amp_spikes_resume(&engine->spikes, &c->spikes);
    for (int i = 0; i < e->statistics_count; i++) renewed += starts_anew(c, e, i);
    if (renewed) add_note(note, "the batch has changed: recurrent layers start from an empty state");
    return copy_all(&copy, c, engine, e);
}

amp_status amp_sidecar_fit_rank(const amp_sidecar *c, amp_engine *engine, int rank, int ranks,
                                   char note[NOTE], amp_error *error)
{
    const amp_parameters *e = &engine->parameters;
    size_t count = amp_sidecar_state_count(engine);
    int saved = c->run.ranks > 1 ? c->run.ranks : 1;
    int own = saved == ranks && c->state_count == count; /* 1: the file has this rank's own state; it
                                                            replaces rank 0's, set by amp_sidecar_apply */
    if (!count || (saved == ranks && rank == 0)) return AMP_OK;
    const unsigned char *from = own ? c->states + 4 * count * (size_t)(rank - 1) : NULL;
    copier copy = { e->backend, error };
    if (saved != ranks)
        add_note(note, "saved by %d ranks, now %d: recurrent layers start from an empty state", saved, ranks);
    amp_status status = AMP_OK;
    for (int i = 0; i < e->statistics_count && status == AMP_OK; i++) {
        const amp_statistics *s = &e->statistics[i];
        if (!amp_saved_is_state(e, i)) continue;
        status = copy_or_clear(&copy, s->array, from, s->count);
        if (from) from += 4 * s->count;
    }
    amp_engine_weights_changed(engine);
    return status;
}

amp_status amp_sidecar_fit_averages(const amp_sidecar *c, const amp_average *averages, int count,
                                       amp_error *error)
{
    int differ = c->average_count != count;
    if (!c->average_count || !count) return AMP_OK;
    for (int i = 0; i < count && !differ; i++) differ = c->averages[i].count != averages[i].count;
    if (differ) return mismatch(c, error, "the averaged weights in the file do not fit this network");
    for (int i = 0; i < count; i++)
        memcpy(averages[i].values, c->averages[i].arrays[AMP_SAVED_AVERAGE],
               averages[i].count * sizeof(float));
    return AMP_OK;
}

void amp_sidecar_fit_ranks(const amp_sidecar *c, amp_dtype wire, int sync_batchnorm, char note[NOTE])
{
    int wire_then = c->run.wire, sync_then = c->run.sync_batchnorm;
    if (wire_then >= 0 && wire_then != (int)wire)
        add_note(note, "gradients were exchanged in %s and are exchanged in %s now (wire=)",
                 amp_dtype_name((amp_dtype)wire_then), amp_dtype_name(wire));
    if (sync_then >= 0 && sync_then != sync_batchnorm)
        add_note(note, "sync_batchnorm was %d and is %d now", sync_then, sync_batchnorm);
}

static amp_status multiply(const copier *c, float *array, size_t count, double factor)
{
    return array ? c->backend->scale(c->backend, array, count, (float)factor, c->error) : AMP_OK;
}

amp_status amp_sidecar_fit_batch(const amp_sidecar *c, amp_engine *engine, int images, char note[NOTE],
                                 amp_error *error)
{
    const amp_parameters *e = &engine->parameters;
    double saved = (double)c->run.batch * c->run.subdivisions, factor = images / saved;
    copier scaling = { e->backend, error };
    if (!(saved > 0) || saved == images) return AMP_OK;
    for (int i = 0; i < e->param_count; i++) {
        const amp_param *p = &e->params[i];
        AMP_TRY(multiply(&scaling, p->momentum, p->count, factor));
        AMP_TRY(multiply(&scaling, p->m, p->count, factor));
        AMP_TRY(multiply(&scaling, p->v, p->count, factor * factor));
    }
    add_note(note, "the batch was %g images and is %d now: %s scaled to match", saved, images,
             e->adam ? "moments are" : "momentum is");
    return AMP_OK;
}
