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

typedef struct amp_engine amp_engine;

typedef struct amp_engine_settings {
    amp_dtype dtype;
    amp_scaler scaler;   /* initialised; the engine keeps a copy */
    amp_spikes spikes;   /* its settings; the engine keeps a copy, state included */
    double clip_norm;    /* 0 is off */
    int adam, adamw;     /* adamw: Adam with decoupled weight decay */
    int sync_batchnorm;  /* batch norm treats the images of all ranks in a pass as one batch */
    int graphs;          /* record passes and replay them where possible (recording.h) */
    int direct;          /* amp_conv_desc.direct for all convolutions */
    int debug;           /* look for the first non-finite tensor of each step */
    amp_recompute_settings recompute;
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

/* The engine takes ownership of backend. network describes the layers, at least one, at any shape; the engine
 * copies what it needs. host is copied; its context must outlive the engine. */
amp_engine *amp_engine_create(const amp_engine_settings *, amp_backend *backend, const amp_host *host,
                              const amp_network_desc *network);
void amp_engine_free(amp_engine *);

/* The plan for this key, or NULL if there is none yet; a plan that folds weights must be up to date with
 * them. The next amp_engine_plan_for may free it. */
amp_plan *amp_engine_find_plan(const amp_engine *, const amp_plan_key *);
/* The same, but builds the plan if there is none. Call before a forward with this key, at the host's current
 * shape. */
amp_status amp_engine_plan_for(amp_engine *, const amp_plan_key *, const amp_plan **out, amp_error *);
/* A plan of the same network, in any dtype, that cannot run: the backend creates no objects for it, and
 * memory is laid out but not allocated. Without settings nothing is recomputed. The caller frees it with
 * amp_plan_free. */
amp_status amp_engine_outline(amp_engine *, const amp_plan_key *, amp_dtype, const amp_recompute_settings *,
                              amp_plan **out, amp_error *);
void amp_engine_free_plans(amp_engine *);
/* What its plans recompute (recompute.h); a change applies to plans built later. */
const amp_recompute_settings *amp_engine_recompute(const amp_engine *);
void amp_engine_set_recompute(amp_engine *, const amp_recompute_settings *);

/* Allocates the memory that only training needs: gradients, moments, committed statistics. The first plan
 * that keeps state does so by itself; call this to read or write them earlier. */
amp_status amp_engine_prepare_training(amp_engine *, amp_error *);
/* Whether the engine has had a plan that keeps state; otherwise the network has only predicted. */
int amp_engine_trains(const amp_engine *);

/* Call after a resize: the host's buffers have changed, so no plan is active any more. */
void amp_engine_invalidate(amp_engine *);
/* Call when the masters were changed from outside (weights were loaded or received from another rank): the
 * next forward makes new half copies. */
void amp_engine_weights_changed(amp_engine *);
/* Restarts training from the current weights: momentum, moments, gradients of an unfinished batch and the
 * scaler are reset as in a new engine. */
amp_status amp_engine_start_anew(amp_engine *, amp_error *);

/* amp_factor.version for the masters while a host layer runs. */
unsigned long amp_engine_weights_version(const amp_engine *);

/* image: fp32 NCHW, with the key's batch. When this returns, the sources of all earlier upload_later calls of
 * the backend may be overwritten, and the host has the losses; in a training pass after one that had a
 * backward, it has them when amp_engine_backward returns. */
amp_status amp_engine_forward(amp_engine *, const amp_plan_key *, float *image, int training, amp_error *);
/* Call after a forward whose key keeps state. image_delta: the image's delta is added here, without the loss
 * scale; or NULL. */
amp_status amp_engine_backward(amp_engine *, float *image_delta, amp_error *);
/* From now on the network trains together with comm's other ranks, and amp_engine_update is collective. The
 * caller owns comm. Gradients are sent in the type `wire`, `bucket` elements at a time (AMP_BUCKET). */
void amp_engine_join(amp_engine *, amp_comm *, amp_dtype wire, size_t bucket);
/* How many ranks train the network. */
int amp_engine_ranks(const amp_engine *);
/* The next backward is the step's last: with several ranks, gradients are summed while it runs. */
void amp_engine_ends_step(amp_engine *);
/* One optimizer step over all parameters. The whole step is skipped if a gradient, a rolling statistic or a
 * recurrent state is inf or NaN, if the step was rejected, or if it is a spike to be dropped. args: this
 * function fills in inverse_scale, clip_norm, norm_limit, adam and adamw; t is the number this step will have
 * if it is not skipped. AMP_DIVERGED if training cannot continue; *report is filled then too. */
amp_status amp_engine_update(amp_engine *, amp_update_args *args, float decay, amp_step_report *report,
                             amp_error *);

/* Updates no longer change the parameters of these layers (a flag per layer; NULL: all are updated), and
 * their gradients are dropped. The caller owns the array and keeps it while updates are made. */
void amp_engine_hold(amp_engine *, const char *held);

/* The current step, or the next one if none has begun, must be skipped: the host has found inf or NaN (in
 * labels, say). why->found is 1; the first reason counts. */
void amp_engine_reject_step(amp_engine *, const amp_anomaly *why);

/* From the next pass on, show all tensors to this observer, which is copied; NULL: to none. */
void amp_engine_set_observer(amp_engine *, const amp_observer *observer);
/* The first non-finite tensor of the current step; found is 0 if there is none, or if anomaly detection is
 * off (see amp_step_report). */
const amp_anomaly *amp_engine_anomaly(const amp_engine *);

/* What the user should know about recorded passes (recording.h), once; or NULL. */
const char *amp_engine_note(amp_engine *);

const amp_scaler *amp_engine_scaler(const amp_engine *);
/* Continue with this scaler's state (a resumed training). */
void amp_engine_set_scaler(amp_engine *, const amp_scaler *);
/* The same for the state of spike detection. */
const amp_spikes *amp_engine_spikes(const amp_engine *);
void amp_engine_set_spikes(amp_engine *, const amp_spikes *);
amp_backend *amp_engine_backend(amp_engine *);
/* The plan that ran last, or NULL. For messages and tests. */
const amp_plan *amp_engine_plan(const amp_engine *);

/* What a sidecar saves of an engine. The engine owns all of it; the arrays are in its backend's memory.
 * Gradients, moments and committed statistics are NULL until amp_engine_prepare_training. */
const amp_parameters *amp_engine_parameters(const amp_engine *);
