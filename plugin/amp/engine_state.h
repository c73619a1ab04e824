/* The engine's struct, for its three files: engine.c, engine_plans.c and engine_passes.c. */
#pragma once

#include "engine.h"

enum { MAX_PLANS = 16 }; /* random=1 has ten sizes, validation adds a few */

struct amp_engine {
    amp_engine_settings settings;
    amp_backend *backend;
    amp_host host;
    amp_plan *plans[MAX_PLANS], *active;
    int plan_count;
    unsigned long uses;
    void *block;          /* memory of the active plan's arena */
    size_t block_bytes;
    int training;         /* the current pass belongs to a training */
    int trains;           /* amp_engine_trains */
    unsigned long weights_version; /* starts at 1, counts changes of the masters; a copy made at another
                                      count is stale */

    amp_observer observer;
    int in_step;          /* a training forward has run since the last update */
    int watched_step;     /* anomaly detection is on for this step */
    int watching;         /* and for the current pass */
    int backward_follows; /* the last training forward had a backward: the next is expected to have one */
    void *losses_due;     /* where the last forward's losses will be (download_later), until they are taken */
    amp_anomaly anomaly;  /* the first non-finite tensor of a watched step */
    amp_anomaly rejected; /* why this step must be skipped, regardless of its gradients */
    amp_anomaly bad_loss; /* the step's first loss that is inf or NaN; this alone does not skip the step */
    amp_recording recording; /* passes that the backend replays */
    amp_parallel parallel; /* with the other ranks that train this network */

    amp_parameters parameters;
    amp_scaler first_scaler; /* as in the settings, before any step */
};

/* What the layers receive in a pass of a plan with this key. The only place where the loss scale enters a
 * step. */
static inline amp_call amp_engine_call(amp_engine *engine, const amp_plan_key *key)
{
    return (amp_call){ .backend = engine->backend, .host = &engine->host, .training = engine->training,
                       .keeps_state = key->keeps_state, .loss_scale = engine->settings.scaler.scale,
                       .direct = engine->settings.direct,
                       .ranks = engine->training ? amp_parallel_batchnorm(&engine->parallel) : NULL };
}

/* Records inf or NaN in a watched step, unless some was found before. */
static inline void amp_engine_note_first(amp_engine *engine, const amp_anomaly *bad)
{
    if (engine->anomaly.found) return;
    engine->anomaly = *bad;
    engine->anomaly.is_first = 1;
}

/* engine_plans.c: makes a plan the active one and provides the memory for its arrays. */
amp_status amp_engine_activate(amp_engine *, amp_plan *, amp_error *);
/* Updates the plan's copies of the weights from the current masters. */
amp_status amp_engine_refresh_weights(amp_engine *, amp_plan *, amp_error *);
