/* The engine: forward, backward and update of one network with autocast, loss scaling and fp32 master
 * weights.
 *
 * The engine knows the host only through amp_host and the host's descriptions of the network. It knows the
 * machine only through amp_backend. There is one engine per network, and one thread at a time may use it. */
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
    amp_scaler scaler;   /* the state before the first step */
    amp_spikes spikes;   /* the state before the first step */
    double clip_norm;    /* 0: off */
    int adam, adamw;     /* adamw: Adam with decoupled weight decay */
    int sync_batchnorm;  /* 1: batch norm treats the images of all ranks in a pass as one batch */
    int graphs;          /* 1: record passes and replay them where possible (recording.h) */
    int direct;          /* amp_conv_desc.direct for all convolutions */
    int debug;           /* 1: find the first non-finite tensor of each step */
    amp_recompute_settings recompute; /* activation checkpointing; a change applies to plans built later */
} amp_engine_settings;

typedef struct amp_step_report {
    int skipped;                 /* 1: the weights were not updated: overflow or dropped spike */
    amp_spike spike;             /* the verdict on a step without overflow (spikes.h) */
    float scale_before, scale_after;
    amp_anomaly bad;             /* a tensor with inf or NaN, if the step was skipped because of one.
                                    bad.is_first: 1 if no earlier tensor of the step contains any */
    amp_anomaly bad_loss;        /* a loss that is inf or NaN; a bad loss alone does not skip the step */
    int bad_master;              /* 1: weights are bad (amp_parameters_bad_master); `bad` names them */
    amp_anomaly anomaly;         /* the first inf or NaN in execution order; only with debug=1, or in a step
                                    in which an overflow ends training */
    double gradient_norm;        /* L2 norm of the unscaled gradient, averaged over the batch, before
                                    clipping; 0 after an overflow */
} amp_step_report;

enum { AMP_MAX_PLANS = 16 }; /* random=1 uses ten sizes, and validation a few more */

/* Code outside the engine may read all members, and may write to those whose comments say so. */
typedef struct amp_engine {
    amp_engine_settings settings; /* only settings.recompute may be changed */
    amp_backend *backend;
    amp_host host;
    amp_plan *plans[AMP_MAX_PLANS];
    amp_plan *active;     /* the plan that has run most recently, or NULL */
    int plan_count;
    unsigned long uses;
    void *block;          /* memory of the active plan's arena */
    size_t block_bytes;
    int training;         /* 1: the current pass belongs to a training */
    int trains;           /* 1: the engine has had a plan that keeps state; 0: it has only predicted so far */
    unsigned long weights_version; /* starts at 1, and increases by 1 when the masters change. A copy of the
                                      masters is stale if it was made at another version. This holds for the
                                      plans' half copies and for the backend's copies for host layers */

    amp_observer observer; /* the observer (`see` NULL: none); the caller may change it between passes */
    int in_step;          /* 1: a training forward has run since the last update */
    int watched_step;     /* 1: anomaly detection is on for this step */
    int watching;         /* 1: anomaly detection is on for the current pass */
    int backward_follows; /* 1: a backward has followed the latest training forward */
    void *losses_due;     /* the latest forward's losses (download_later); NULL: the host already has them */
    amp_anomaly anomaly;  /* the first non-finite tensor of a watched step */
    amp_anomaly rejected; /* the reason to skip this step, whatever its gradients are */
    amp_anomaly bad_loss; /* the step's first loss that is inf or NaN */
    amp_recording recording; /* recorded passes, for replay; recording.line_is_new may be written */
    amp_parallel parallel; /* other ranks (amp_parallel_join); parallel.is_last_pass may be written */

    amp_parameters parameters; /* masters, gradients, moments, statistics; parameters.held may be written */
    amp_scaler scaler;    /* may be written, to resume a training */
    amp_spikes spikes;    /* may be written, to resume a training */
} amp_engine;

/* Takes ownership of backend. Copies what it needs from host and network; host->context must outlive the
 * engine. network: at least one layer; the shapes may be those of any input size. */
amp_engine *amp_engine_create(const amp_engine_settings *, amp_backend *backend, const amp_host *host,
                              const amp_network_desc *network);
void amp_engine_free(amp_engine *);

/* Sets *out to the plan for this key, and builds the plan on first use. The next call may free it. The key's
 * shape must be the host's current shape. */
amp_status amp_engine_plan_for(amp_engine *, const amp_plan_key *, amp_plan **out, amp_error *);
/* Makes an outline: a plan of the same network, in any dtype, that cannot run. It has no backend objects, and
 * its memory is laid out but not allocated. recompute may be NULL. The caller frees it with amp_plan_free. */
amp_status amp_engine_outline(amp_engine *, const amp_plan_key *, amp_dtype, const amp_recompute_settings *,
                              amp_plan **out, amp_error *);
void amp_engine_free_plans(amp_engine *);

/* Call after a resize: the host's buffers have changed, so no plan is active any more. */
void amp_engine_invalidate(amp_engine *);
/* Call when weights were loaded or received from another rank: the next forward makes new half copies. */
void amp_engine_weights_changed(amp_engine *);
/* Restarts training from the current weights: resets momentum, moments, gradients, scaler and spikes. */
amp_status amp_engine_start_anew(amp_engine *, amp_error *);

/* Runs a forward with the plan that amp_engine_plan_for has just returned. image: fp32 NCHW. Afterwards the
 * sources of all earlier upload_later calls may be overwritten. If a backward followed the previous training
 * forward, the host may have to wait for this forward's losses until amp_engine_backward. */
amp_status amp_engine_forward(amp_engine *, amp_plan *, float *image, int training, amp_error *);
/* Runs a backward, after a forward whose plan keeps state. image_delta: where to add the image's delta
 * without the loss scale, or NULL. */
amp_status amp_engine_backward(amp_engine *, float *image_delta, amp_error *);
int amp_engine_ranks(const amp_engine *);
/* Ends a step: updates all parameters, or skips the step if a gradient, a rolling statistic or a recurrent
 * state is inf or NaN, if the step was rejected, or if it is a spike to be dropped. Fills in args, except t:
 * the caller sets t to 1 plus the number of earlier steps that were not skipped. AMP_DIVERGED: training
 * cannot continue; *report is valid. */
amp_status amp_engine_update(amp_engine *, amp_update_args *args, float decay, amp_step_report *report,
                             amp_error *);

/* Call when the host has found inf or NaN, for example in labels. Skips the current step or, outside a step,
 * the next. why->found must be 1. A step's first reason is kept. */
void amp_engine_reject_step(amp_engine *, const amp_anomaly *why);

/* ---- for the engine's own files ---- */

/* Returns the arguments that layers get in a pass of a plan with this key, including the loss scale. */
amp_call amp_engine_call(amp_engine *, const amp_plan_key *);
/* Records the first inf or NaN of a watched step. */
void amp_engine_note_first(amp_engine *, const amp_anomaly *bad);
