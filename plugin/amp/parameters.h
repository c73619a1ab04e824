/* A network's parameters with their gradients and moments, and the statistics that forward changes, which a
 * skipped step must restore. Everything is in .cfg order. */
#pragma once

#include "anomaly.h"
#include "plan.h"

/* The places of a parameter in the amp_gradients of a layer that has it. by_name: weights, biases or scales;
 * NULL: it is none. */
typedef struct amp_gradient_entries { int param; float **in_all, **by_name; } amp_gradient_entries;

typedef struct amp_parameters {
    amp_backend *backend;     /* in whose memory all arrays lie */
    int adam, adamw;          /* as in amp_engine_settings */
    amp_param *params;
    int param_count, layer_count;
    const char **layer_types; /* per layer: the host's name for it */
    amp_gradients *gradients; /* per layer: where its backward adds */
    amp_gradient_entries *entries; /* per parameter of each layer: layers may share one */
    int entry_count;
    int taken;                /* whether there is the memory of amp_parameters_take, these three blocks: */
    float *gradient_block, *moment_block, *committed_block;
    size_t gradient_count, committed_count; /* elements of all parameters, and of all statistics, together */
    amp_statistics *statistics;
    float *rates;      /* the params' rate_scale, which is 0 while they are held */
    const char *held;  /* per layer, or NULL: amp_engine_hold */
    int statistics_count;
    size_t param_room, entry_room, statistics_room; /* of params and rates, entries, and statistics */
} amp_parameters;

/* Fills the rest, which is 0 before. network's arrays outlive it, its descriptions need not. */
void amp_parameters_collect(amp_parameters *, const amp_network_desc *network);
/* Takes the memory that only a training needs, if it was not taken yet: gradients and Adam's moments, which
 * are 0, and the committed statistics. A network that is only predicted with has none of it. */
amp_status amp_parameters_take(amp_parameters *, amp_error *);
void amp_parameters_free(amp_parameters *);

/* keep: commit the statistics as they are now, if there is memory for that. restore: go back to the committed
 * ones. */
amp_status amp_parameters_keep(amp_parameters *, amp_error *);
amp_status amp_parameters_restore(amp_parameters *, amp_error *);
amp_status amp_parameters_zero_gradients(amp_parameters *, amp_error *);
/* Momentum, moments and gradients are 0, as before the first step. */
amp_status amp_parameters_reset(amp_parameters *, amp_error *);

/* backend.finish_step over all of them. decay: of those parameters that do. */
amp_status amp_parameters_finish_step(amp_parameters *, const amp_update_args *, float decay,
                                      amp_step_outcome *, amp_error *);
/* Each returns 1 and sets *bad to the first bad array of its kind, in the order in which a step makes them,
 * or returns 0. For messages: an error of the backend counts as good. With a bad rolling statistic no step
 * can ever be taken. A master is also bad if the sum of its squares exceeds fp32, as after an absurd learning
 * rate: norms and variances would overflow. */
int amp_parameters_bad_gradient(const amp_parameters *, amp_anomaly *bad);
int amp_parameters_bad_statistics(const amp_parameters *, amp_anomaly *bad);
int amp_parameters_bad_master(const amp_parameters *, amp_anomaly *bad);
