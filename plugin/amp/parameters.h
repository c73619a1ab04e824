/* A network's parameters with their gradients and moments, and the statistics, which forward changes and a
 * skipped step must restore. All arrays are in .cfg order. */
#pragma once

#include "anomaly.h"
#include "plan.h"

typedef struct amp_parameters {
    amp_backend *backend;     /* all arrays are in its memory */
    int adam, adamw;          /* as in amp_engine_settings */
    amp_param *params;
    int param_count, layer_count;
    const char **layer_types; /* per layer: the host's name for its type */
    amp_gradients *gradients; /* per layer: where its backward adds the gradients */
    int taken;                /* whether amp_parameters_take has allocated the next three blocks */
    float *gradient_block, *moment_block, *committed_block;
    size_t gradient_count, committed_count; /* number of elements of all parameters, and of all statistics */
    amp_statistics *statistics;
    const char *held;  /* a flag per layer, owned by the caller: 1: updates do not change the layer's
                          parameters, and discard their gradients. NULL: all layers are updated */
    int statistics_count;
    size_t param_room, statistics_room; /* allocated entries of params and of statistics */
} amp_parameters;

/* Collects the network's parameters and statistics. backend, adam and adamw must be set, and the rest 0. The
 * arrays that network points to must outlive the struct, its descriptions need not. */
void amp_parameters_collect(amp_parameters *, const amp_network_desc *network);
/* Allocates the memory that only training needs, unless it exists: gradients and Adam's moments, set to 0,
 * and the committed statistics. A network that only predicts does not need this memory. */
amp_status amp_parameters_take(amp_parameters *, amp_error *);
void amp_parameters_free(amp_parameters *);

/* keep: commits the current statistics, if amp_parameters_take was called. restore: returns to the committed
 * statistics. */
amp_status amp_parameters_keep(amp_parameters *, amp_error *);
amp_status amp_parameters_restore(amp_parameters *, amp_error *);
amp_status amp_parameters_zero_gradients(amp_parameters *, amp_error *);
/* Sets momentum, moments and gradients to 0, as before the first step. */
amp_status amp_parameters_reset(amp_parameters *, amp_error *);

/* Calls the backend's finish_step for all parameters. decay applies to those that have weight decay. */
amp_status amp_parameters_finish_step(amp_parameters *, const amp_update_args *, float decay,
                                      amp_step_outcome *, amp_error *);
/* Each returns 1 and sets *bad to the first bad array of its kind, in the order in which a step computes
 * them, or returns 0. They are used only for messages and for ending a training, so an array counts as good
 * if the backend cannot check it. With a bad rolling statistic no step can ever be taken. A master is also
 * bad if the sum of its squares is out of fp32's range, as after an absurd learning rate: norms and variances
 * would overflow. */
int amp_parameters_bad_gradient(const amp_parameters *, amp_anomaly *bad);
int amp_parameters_bad_statistics(const amp_parameters *, amp_anomaly *bad);
int amp_parameters_bad_master(const amp_parameters *, amp_anomaly *bad);
