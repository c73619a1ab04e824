/* The engine: forward, backward and update of one network under autocast, loss scaling and fp32 master
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
    amp_spikes spikes;   /* its settings; the engine keeps a copy, with their state */
    double clip_norm;    /* 0 is off */
    int adam, adamw;     /* adamw: Adam with decoupled weight decay */
    int sync_batchnorm;  /* batch norm takes the images that all ranks have in a pass for one batch */
    int graphs;          /* record passes and repeat them, where that is possible (recording.h) */
    int direct;          /* amp_conv_desc.direct, of all convolutions */
    int debug;           /* look for the first non-finite tensor of each step */
    amp_recompute_settings recompute;
} amp_engine_settings;

/* What one update did. */
typedef struct amp_step_report {
    int skipped;                 /* nothing was changed: of an overflow, or of a spike that is dropped */
    amp_spike spike;             /* of a step without overflow (spikes.h) */
    float scale_before, scale_after;
    amp_anomaly bad;             /* skipped: which is inf or NaN; if bad.is_first, the first */
    amp_anomaly bad_loss;        /* a loss that is inf or NaN, which alone skips no step */
    int bad_master;              /* skipped, and the weights themselves are bad (amp_parameters_bad_master):
                                    `bad` says which */
    amp_anomaly anomaly;         /* found only with debug=1 and in the step that ends training: the first in
                                    the order of time */
    double gradient_norm;        /* L2 norm of the unscaled gradient, averaged over the batch, before
                                    clipping; 0 after an overflow */
} amp_step_report;

/* The engine takes backend over and destroys it. network describes the layers, one at least, at any shape;
 * the engine copies what it needs. host is copied; its context outlives the engine. */
amp_engine *amp_engine_create(const amp_engine_settings *, amp_backend *backend, const amp_host *host,
                              const amp_network_desc *network);
void amp_engine_free(amp_engine *);

/* The plan for this key, of these weights where it folds them; NULL: there is none yet. It may be gone after
 * the next amp_engine_plan_for. */
amp_plan *amp_engine_find_plan(const amp_engine *, const amp_plan_key *);
/* The same, built if there was none: before a forward with this key, at the host's present shape. */
amp_status amp_engine_plan_for(amp_engine *, const amp_plan_key *, const amp_plan **out, amp_error *);
/* A plan of the same network that cannot run, in any dtype: the backend makes nothing for it, and memory is
 * laid out but not taken. Without settings nothing is recomputed. The caller's, to be freed with
 * amp_plan_free. */
amp_status amp_engine_outline(amp_engine *, const amp_plan_key *, amp_dtype, const amp_recompute_settings *,
                              amp_plan **out, amp_error *);
/* Frees all plans that the engine has. */
void amp_engine_free_plans(amp_engine *);
/* What its plans recompute, from the next one on (recompute.h). */
const amp_recompute_settings *amp_engine_recompute(const amp_engine *);
void amp_engine_set_recompute(amp_engine *, const amp_recompute_settings *);

/* The memory that only a training needs: gradients, moments, statistics to go back to. The first plan that
 * keeps state takes it; this does so earlier, for whoever reads or writes them before. */
amp_status amp_engine_prepare_training(amp_engine *, amp_error *);
/* Whether there has been a plan that keeps state: else the network is only predicted with. */
int amp_engine_trains(const amp_engine *);

/* After a resize: the host's buffers have changed, so no plan is active any more. */
void amp_engine_invalidate(amp_engine *);
/* The masters were changed from outside (weights were loaded, or are another rank's): the next forward makes
 * new half copies. */
void amp_engine_weights_changed(amp_engine *);
/* Training begins again, from whatever weights there are: momentum, moments, gradients of a batch under way
 * and the scaler are as in a new engine. */
amp_status amp_engine_start_anew(amp_engine *, amp_error *);

/* amp_factor.version for the masters, while one of the host's layers runs. */
unsigned long amp_engine_weights_version(const amp_engine *);

/* image: fp32 NCHW, of the key's batch. The sources of all of the backend's upload_later until then may be
 * written to again when it returns. */
amp_status amp_engine_forward(amp_engine *, const amp_plan_key *, float *image, int training, amp_error *);
/* After a forward whose key keeps state. image_delta: where the image's delta is added, without the loss
 * scale, or NULL. */
amp_status amp_engine_backward(amp_engine *, float *image_delta, amp_error *);
/* From now on the network is trained together with comm's other ranks: amp_engine_update is collective, and
 * the caller keeps comm. Gradients travel in the type wire, `bucket` at a time (AMP_BUCKET). */
void amp_engine_join(amp_engine *, amp_comm *, amp_dtype wire, size_t bucket);
/* How many train it. */
int amp_engine_ranks(const amp_engine *);
/* The backward that follows is the step's last: with several ranks, gradients are summed while it goes on. */
void amp_engine_ends_step(amp_engine *);
/* One optimizer step over all parameters. It is skipped as a whole if a gradient, a rolling statistic or a
 * recurrent state is inf or NaN, if it was rejected, or if it is a spike that is to be dropped. args:
 * inverse_scale, clip_norm, norm_limit, adam and adamw are filled in here; t is the number this step has if
 * it is not skipped. AMP_DIVERGED when training cannot go on; *report is filled then too. */
amp_status amp_engine_update(amp_engine *, amp_update_args *args, float decay, amp_step_report *report,
                             amp_error *);

/* The parameters of these layers (a flag each; NULL: of none) are not to change in updates from now on, and
 * their gradients are dropped. The array is the caller's, who keeps it while updates are made. */
void amp_engine_hold(amp_engine *, const char *held);

/* The current step, or the next if none has begun, must be skipped: the host has found inf or NaN (in labels,
 * say). why->found is 1; the first reason counts. */
void amp_engine_reject_step(amp_engine *, const amp_anomaly *why);

/* Show all tensors to observer from the next pass on, or to none (NULL). It is copied. */
void amp_engine_set_observer(amp_engine *, const amp_observer *observer);
/* The first non-finite tensor of the step under way; found is 0 if there is none, or if anomaly
 * detection is off (see amp_step_report). */
const amp_anomaly *amp_engine_anomaly(const amp_engine *);

/* What the user should know of recorded passes (recording.h), once; NULL: nothing. */
const char *amp_engine_note(amp_engine *);

const amp_scaler *amp_engine_scaler(const amp_engine *);
/* Go on with this scaler's state (a resumed training). */
void amp_engine_set_scaler(amp_engine *, const amp_scaler *);
/* The same of what is known of the steps so far, to tell spikes by. */
const amp_spikes *amp_engine_spikes(const amp_engine *);
void amp_engine_set_spikes(amp_engine *, const amp_spikes *);
amp_backend *amp_engine_backend(amp_engine *);
/* The plan that ran last, or NULL: for messages and tests. */
const amp_plan *amp_engine_plan(const amp_engine *);

/* What a sidecar saves of an engine. All of it is the engine's; the arrays lie in its backend's memory.
 * Gradients, moments and committed statistics are NULL until amp_engine_prepare_training. */
const amp_parameters *amp_engine_parameters(const amp_engine *);
