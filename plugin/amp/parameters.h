/* A network's parameters with their gradients and moments, and the statistics that forward changes, which a
 * skipped step must restore. Everything is in .cfg order. */
#pragma once

#include "anomaly.h"
#include "plan.h"

typedef struct amp_parameters {
    amp_backend *backend;     /* all arrays are in its memory */
    int adam, adamw;          /* as in amp_engine_settings */
    amp_param *params;
    int param_count, layer_count;
    const char **layer_types; /* per layer: the host's name for it */
    amp_gradients *gradients; /* per layer: where its backward adds the gradients */
    int taken;                /* whether amp_parameters_take has allocated these three blocks: */
    float *gradient_block, *moment_block, *committed_block;
    size_t gradient_count, committed_count; /* elements of all parameters together, and of all statistics
                                               together */
    amp_statistics *statistics;
    const char *held;  /* a flag per layer: updates do not change its parameters, and drop their gradients.
                          NULL: all are updated. The caller owns it */
    int statistics_count;
    size_t param_room, statistics_room; /* allocated entries of params and of statistics */
} amp_parameters;

/* Fills the rest of a zeroed struct. network's arrays must outlive it, its descriptions need not. */
void amp_parameters_collect(amp_parameters *, const amp_network_desc *network);
/* Allocates the memory that only training needs, unless it exists: gradients and Adam's moments, set to 0,
 * and the committed statistics. A network that only predicts has none of it. */
amp_status amp_parameters_take(amp_parameters *, amp_error *);
void amp_parameters_free(amp_parameters *);

/* keep: commits the current statistics, if they have memory. restore: returns to the committed ones. */
amp_status amp_parameters_keep(amp_parameters *, amp_error *);
amp_status amp_parameters_restore(amp_parameters *, amp_error *);
amp_status amp_parameters_zero_gradients(amp_parameters *, amp_error *);
/* Sets momentum, moments and gradients to 0, as before the first step. */
amp_status amp_parameters_reset(amp_parameters *, amp_error *);

/* Calls backend.finish_step for all of them. decay applies to the parameters that have weight decay. */
amp_status amp_parameters_finish_step(amp_parameters *, const amp_update_args *, float decay,
                                      amp_step_outcome *, amp_error *);
/* Each returns 1 and sets *bad to the first bad array of its kind, in the order in which a step computes
 * them, or returns 0. They serve messages only, so an error of the backend counts as good. With a bad rolling
 * statistic no step can ever be taken. A master is also bad if the sum of its squares exceeds fp32, as after
 * an absurd learning rate: norms and variances would overflow. */
int amp_parameters_bad_gradient(const amp_parameters *, amp_anomaly *bad);
int amp_parameters_bad_statistics(const amp_parameters *, amp_anomaly *bad);
int amp_parameters_bad_master(const amp_parameters *, amp_anomaly *bad);
