/* The engine: forward, backward and update of one network with autocast, loss scaling and fp32 master
 * weights.
 *
 * It knows the host only through amp_host and descriptions, and the machine only through amp_backend. One
 * engine serves one network and is used by one thread at a time. */
#pragma once

#include "anomaly.h"
#include "parallel.h"
#include "parameters.h"
#include "plan.h"
#include "recompute.h"
#include "recording.h"
#include "scaler.h"
#include "spikes.h"

typedef struct amp_engine_settings {
    amp_dtype dtype;
    amp_scaler scaler;   /* initialised: as before the first step */
    amp_spikes spikes;   /* likewise */
    double clip_norm;    /* 0 is off */
    int adam, adamw;     /* adamw: Adam with decoupled weight decay */
    int sync_batchnorm;  /* batch norm treats the images of all ranks in a pass as one batch */
    int graphs;          /* record passes and replay them where possible (recording.h) */
    int direct;          /* amp_conv_desc.direct for all convolutions */
    int debug;           /* look for the first non-finite tensor of each step */
    amp_recompute_settings recompute; /* a change applies to plans built later */
} amp_engine_settings;

/* What one update did. */
typedef struct amp_step_report {
    int skipped;                 /* nothing was changed, because of an overflow or a dropped spike */
    amp_spike spike;             /* of a step without overflow (spikes.h) */
    float scale_before, scale_after;
    amp_anomaly bad;             /* if skipped: the tensor with inf or NaN; the first one if bad.is_first */
    amp_anomaly bad_loss;        /* a loss that is inf or NaN; this alone does not skip the step */
    int bad_master;              /* skipped, and the weights themselves are bad
                                    (amp_parameters_bad_master): `bad` names the array */
    amp_anomaly anomaly;         /* only with debug=1 and in the step that ends training: the first one in
                                    execution order */
    double gradient_norm;        /* L2 norm of the unscaled gradient, averaged over the batch, before
                                    clipping; 0 after an overflow */
} amp_step_report;

enum { AMP_MAX_PLANS = 16 }; /* random=1 has ten sizes, validation adds a few */

/* Code outside the engine may read all of it, and writes only to the members that say so. */
typedef struct amp_engine {
    amp_engine_settings settings; /* of these, only recompute may be changed */
    amp_backend *backend;
    amp_host host;
    amp_plan *plans[AMP_MAX_PLANS];
    amp_plan *active;     /* the plan that ran last, or NULL */
    int plan_count;
    unsigned long uses;
    void *block;          /* memory of the active plan's arena */
    size_t block_bytes;
    int training;         /* the current pass belongs to a training */
    int trains;           /* the engine has had a plan that keeps state; else the network has only
                             predicted */
    unsigned long weights_version; /* starts at 1, counts changes of the masters; a copy made at another
                                      count is stale. Masters that a host layer lends have this version */

    amp_observer observer; /* may be written: sees all tensors from the next pass on, if its `see` is set */
    int in_step;          /* a training forward has run since the last update */
    int watched_step;     /* anomaly detection is on for this step */
    int watching;         /* and for the current pass */
    int backward_follows; /* the last training forward had a backward: the next is expected to have one */
    void *losses_due;     /* where the last forward's losses will be (download_later), until they are taken */
    amp_anomaly anomaly;  /* the first non-finite tensor of a watched step */
    amp_anomaly rejected; /* why this step must be skipped, regardless of its gradients */
    amp_anomaly bad_loss; /* the step's first loss that is inf or NaN; this alone does not skip the step */
    amp_recording recording; /* passes that the backend replays. line_is_new may be written */
    amp_parallel parallel; /* with the other ranks that train this network, once amp_parallel_join was called;
                              is_last_pass may be written */

    amp_parameters parameters; /* masters, gradients, moments, statistics. held may be written */
    amp_scaler scaler;    /* may be written: a resumed training continues with another state */
    amp_spikes spikes;    /* likewise */
} amp_engine;

/* The engine takes ownership of backend. network describes the layers, at least one, at any shape; the engine
 * copies what it needs. host is copied; its context must outlive the engine. */
amp_engine *amp_engine_create(const amp_engine_settings *, amp_backend *backend, const amp_host *host,
                              const amp_network_desc *network);
void amp_engine_free(amp_engine *);

/* The plan for this key, which is built if there is none. Call before a forward with this key, at the host's
 * current shape. The next call may free the plan. */
amp_status amp_engine_plan_for(amp_engine *, const amp_plan_key *, const amp_plan **out, amp_error *);
/* A plan of the same network, in any dtype, that cannot run: the backend creates no objects for it, and
 * memory is laid out but not allocated. Without settings nothing is recomputed. The caller frees it with
 * amp_plan_free. */
amp_status amp_engine_outline(amp_engine *, const amp_plan_key *, amp_dtype, const amp_recompute_settings *,
                              amp_plan **out, amp_error *);
void amp_engine_free_plans(amp_engine *);

/* Call after a resize: the host's buffers have changed, so no plan is active any more. */
void amp_engine_invalidate(amp_engine *);
/* Call when the masters were changed from outside (weights were loaded or received from another rank): the
 * next forward makes new half copies. */
void amp_engine_weights_changed(amp_engine *);
/* Restarts training from the current weights: momentum, moments, gradients of an unfinished batch and the
 * scaler are reset as in a new engine. */
amp_status amp_engine_start_anew(amp_engine *, amp_error *);

/* image: fp32 NCHW, with the key's batch. When this returns, the sources of all earlier upload_later calls of
 * the backend may be overwritten, and the host has the losses; in a training pass after one that had a
 * backward, it has them when amp_engine_backward returns. */
amp_status amp_engine_forward(amp_engine *, const amp_plan_key *, float *image, int training, amp_error *);
/* Call after a forward whose key keeps state. image_delta: the image's delta is added here, without the loss
 * scale; or NULL. */
amp_status amp_engine_backward(amp_engine *, float *image_delta, amp_error *);
/* How many ranks train the network. */
int amp_engine_ranks(const amp_engine *);
/* One optimizer step over all parameters. The whole step is skipped if a gradient, a rolling statistic or a
 * recurrent state is inf or NaN, if the step was rejected, or if it is a spike to be dropped. args: this
 * function fills in inverse_scale, clip_norm, norm_limit, adam and adamw; t is the number this step will have
 * if it is not skipped. AMP_DIVERGED if training cannot continue; *report is filled then too. */
amp_status amp_engine_update(amp_engine *, amp_update_args *args, float decay, amp_step_report *report,
                             amp_error *);

/* The current step, or the next one if none has begun, must be skipped: the host has found inf or NaN (in
 * labels, say). why->found is 1; the first reason counts. */
void amp_engine_reject_step(amp_engine *, const amp_anomaly *why);

/* ---- for the engine's own files ---- */

/* What the layers receive in a pass of a plan with this key. The only place where the loss scale enters a
 * step. */
amp_call amp_engine_call(amp_engine *, const amp_plan_key *);
/* Records inf or NaN in a watched step, unless some was found before. */
void amp_engine_note_first(amp_engine *, const amp_anomaly *bad);
/* The plan for this key, or NULL if there is none yet; a plan that folds weights must be up to date with
 * them. */
amp_plan *amp_engine_find_plan(const amp_engine *, const amp_plan_key *);
/* Makes a plan the active one and provides the memory for its arrays. */
amp_status amp_engine_activate(amp_engine *, amp_plan *, amp_error *);
