/* A network's parameters with their gradients and moments, and its rolling statistics. Forward changes the
 * statistics, so a skipped step must restore them. All arrays are in .cfg order. */
#pragma once

#include "anomaly.h"
#include "plan.h"

typedef struct amp_parameters {
    amp_backend *backend;     /* all arrays are in its memory */
    int adam, adamw;          /* as in amp_engine_settings */
    amp_param *params;
    int param_count, layer_count;
    const char **layer_types; /* per layer: the host's name for its type */
    amp_gradients *gradients; /* per layer: the arrays to which its backward adds gradients */
    int taken;                /* 1: amp_parameters_take has allocated the next three blocks */
    float *gradient_block, *moment_block, *committed_block;
    size_t gradient_count, committed_count; /* elements of all parameters, and of all statistics */
    amp_statistics *statistics;
    const char *held;  /* one flag per layer, owned by the caller. 1: updates discard the gradients of the
                          layer's parameters, and leave the parameters unchanged. NULL: no layer is held */
    int statistics_count;
    size_t param_room, statistics_room; /* allocated entries of params and of statistics */
} amp_parameters;

/* Collects the network's parameters and statistics. Before the call, set `backend`, `adam` and `adamw`, and
 * zero the rest. Arrays and strings that `network` points to must outlive the amp_parameters; descriptions
 * need not. */
void amp_parameters_collect(amp_parameters *, const amp_network_desc *network);
/* Allocates what only training needs, unless it exists: gradients and Adam's moments, set to 0, and the
 * committed statistics. */
amp_status amp_parameters_take(amp_parameters *, amp_error *);
void amp_parameters_free(amp_parameters *);

/* keep commits the current statistics (after amp_parameters_take); restore replaces them by the committed
 * ones. */
amp_status amp_parameters_keep(amp_parameters *, amp_error *);
amp_status amp_parameters_restore(amp_parameters *, amp_error *);
amp_status amp_parameters_zero_gradients(amp_parameters *, amp_error *);
/* Sets momentum, moments and gradients to 0. */
amp_status amp_parameters_reset(amp_parameters *, amp_error *);

/* Calls the backend's finish_step for all parameters. decay: the weight decay; with SGD and AdamW it applies
 * only to parameters with amp_param.decays. */
amp_status amp_parameters_finish_step(amp_parameters *, const amp_update_args *, float decay,
                                      amp_step_outcome *, amp_error *);
/* Each function finds the first bad array of its kind in execution order, sets *bad and returns 1. If none is
 * bad, it returns 0. Bad means inf or NaN; for masters also a sum of squares beyond fp32's range (as after an
 * absurd learning rate), because norms and variances would overflow. An array that cannot be checked counts
 * as good. While a rolling statistic is bad, every step is skipped. */
int amp_parameters_bad_gradient(const amp_parameters *, amp_anomaly *bad);
int amp_parameters_bad_statistics(const amp_parameters *, amp_anomaly *bad);
int amp_parameters_bad_master(const amp_parameters *, amp_anomaly *bad);
