/* The engine: forward, backward and update of one network with autocast, loss scaling and fp32 master
 * weights.
 *
 * The engine knows the host only through amp_host and descriptions, and the machine only through amp_backend.
 * There is one engine per network, and one thread at a time may use it. */
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
    amp_scaler scaler;   /* in its state before the first step */
    amp_spikes spikes;   /* likewise */
    double clip_norm;    /* 0: off */
    int adam, adamw;     /* adamw: Adam with decoupled weight decay */
    int sync_batchnorm;  /* batch norm treats the images of all ranks in a pass as one batch */
    int graphs;          /* record passes and replay them where possible (recording.h) */
    int direct;          /* amp_conv_desc.direct for all convolutions */
    int debug;           /* look for the first non-finite tensor of each step */
    amp_recompute_settings recompute; /* a change applies to plans built later */
} amp_engine_settings;

/* What one update did. */
typedef struct amp_step_report {
    int skipped;                 /* weights were not updated, because of an overflow or a dropped spike */
    amp_spike spike;             /* whether a step without overflow was a spike (spikes.h) */
    float scale_before, scale_after;
    amp_anomaly bad;             /* if skipped: a tensor with inf or NaN; the step's first if bad.is_first */
    amp_anomaly bad_loss;        /* a loss that is inf or NaN; this alone does not skip the step */
    int bad_master;              /* the step was skipped and the weights themselves are bad
                                    (amp_parameters_bad_master); `bad` then names their array */
    amp_anomaly anomaly;         /* only with debug=1 and in the step that ends training: the first inf or
                                    NaN in execution order */
    double gradient_norm;        /* L2 norm of the unscaled gradient, averaged over the batch, before
                                    clipping; 0 after an overflow */
} amp_step_report;

enum { AMP_MAX_PLANS = 16 }; /* random=1 uses ten sizes, and validation a few more */

/* Code outside the engine may read all members, and may write to those whose comments say so. */
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
    int trains;           /* the engine has had a plan that keeps state; 0: it has only predicted so far */
    unsigned long weights_version; /* starts at 1 and counts changes of the masters. A copy made at another
                                      version is stale, also the backend's copies of a host layer's masters */

    amp_observer observer; /* may be written: sees all tensors from the next pass on, if its `see` is set */
    int in_step;          /* a training forward has run since the last update */
    int watched_step;     /* anomaly detection is on for this step */
    int watching;         /* anomaly detection is on for the current pass */
    int backward_follows; /* the last training forward was followed by a backward, so the next one is expected
                             to be, too */
    void *losses_due;     /* where download_later puts the last forward's losses; NULL once they are taken */
    amp_anomaly anomaly;  /* the first non-finite tensor of a watched step */
    amp_anomaly rejected; /* why this step must be skipped, regardless of its gradients */
    amp_anomaly bad_loss; /* the step's first loss that is inf or NaN; this alone does not skip the step */
    amp_recording recording; /* passes that the backend replays; its line_is_new may be written */
    amp_parallel parallel; /* the exchange with other ranks, if amp_parallel_join was called; its is_last_pass
                              may be written */

    amp_parameters parameters; /* masters, gradients, moments, statistics; its `held` may be written */
    amp_scaler scaler;    /* may be written, to resume a training */
    amp_spikes spikes;    /* likewise */
} amp_engine;

/* The engine takes ownership of backend. network describes the layers (at least one); their shapes may be
 * those of any input size. The engine copies what it needs from it. host is copied, but its context must
 * outlive the engine. */
amp_engine *amp_engine_create(const amp_engine_settings *, amp_backend *backend, const amp_host *host,
                              const amp_network_desc *network);
void amp_engine_free(amp_engine *);

/* Returns the plan for this key, and builds it on first use. The key must have the host's current shape.
 * Call this before a forward with the key. The next call may free the plan. */
amp_status amp_engine_plan_for(amp_engine *, const amp_plan_key *, const amp_plan **out, amp_error *);
/* Makes an outline: a plan of the same network, in any dtype, that cannot run. The backend creates no objects
 * for it, and memory is laid out but not allocated. recompute = NULL: nothing is recomputed. The caller frees
 * the plan with amp_plan_free. */
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
 * the backend may be overwritten. The host has the losses now or, in a training pass whose predecessor was
 * followed by a backward, when amp_engine_backward returns. */
amp_status amp_engine_forward(amp_engine *, const amp_plan_key *, float *image, int training, amp_error *);
/* Call after a forward whose key has keeps_state. image_delta: where the image's delta is added, without the
 * loss scale; or NULL. */
amp_status amp_engine_backward(amp_engine *, float *image_delta, amp_error *);
/* How many ranks train the network. */
int amp_engine_ranks(const amp_engine *);
/* One optimizer step over all parameters. The whole step is skipped if a gradient, a rolling statistic or a
 * recurrent state is inf or NaN, if the step was rejected, or if it is a spike to be dropped. args: this
 * function fills in inverse_scale, clip_norm, norm_limit, adam and adamw; args->t is the number that this
 * step has if it is not skipped. AMP_DIVERGED: training cannot continue; *report is valid then too. */
amp_status amp_engine_update(amp_engine *, amp_update_args *args, float decay, amp_step_report *report,
                             amp_error *);

/* Call when the host has found inf or NaN, in labels for example: the current step, or the next one if none
 * has begun, is skipped. why->found must be 1. The first reason counts. */
void amp_engine_reject_step(amp_engine *, const amp_anomaly *why);

/* ---- for the engine's own files ---- */

/* What the layers receive in a pass of a plan with this key. The only place where the loss scale is passed to
 * them. */
amp_call amp_engine_call(amp_engine *, const amp_plan_key *);
/* Records inf or NaN in a watched step, unless some was found before. */
void amp_engine_note_first(amp_engine *, const amp_anomaly *bad);
/* The plan for this key, or NULL if it has not been built. A plan that folds batch norm into weights that
 * have changed since does not count. */
amp_plan *amp_engine_find_plan(const amp_engine *, const amp_plan_key *);
/* Makes a plan the active one and provides the memory for its arrays. */
amp_status amp_engine_activate(amp_engine *, amp_plan *, amp_error *);
