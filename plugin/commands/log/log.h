/* Summary and picture of a training's log (-log), for `darknet amp log`. */
#pragma once

#include "../../amp/spikes.h"
#include "../../host/training/training_log.h"

#include <stddef.h>

/* Spikes are steps that the training itself marked (amp_log_row.spike). If the training did not check a step,
 * the summary checks it by the same rule (../../amp/spikes.h) with the factor AMP_LOG_SPIKE_FACTOR. */
#define AMP_LOG_SPIKE_FACTOR 20.0
enum { AMP_SPIKES_KEPT = 10 };

/* The largest number of steps between two skipped steps of one cluster. */
enum { AMP_CLUSTER_GAP = 10 };

/* The summary warns if the gradient was 0 in each of the last AMP_ZERO_NORMS steps. */
enum { AMP_ZERO_NORMS = 10 };

typedef struct amp_log_spike {
    long iteration;
    int by_loss, dropped;   /* by_loss 1: the loss, not the norm, was too large. dropped 1: the update
                               was dropped */
    double value, median;
} amp_log_spike;

typedef struct amp_log_extreme { double value; long iteration; } amp_log_extreme;

typedef struct amp_log_summary {
    size_t rows, skipped;
    long first, last;                          /* iterations */
    double seconds, load_seconds;              /* sums over all steps: the whole time; loading alone */
    double images_per_second, images_lately;   /* medians: over all steps; over the last quarter */
    double loss[4], norm[4];                   /* medians over each quarter; NaN: not known */
    amp_log_extreme largest_norm;              /* value NaN: not known */
    double least_rate, most_rate, last_rate;
    double first_scale, last_scale;
    amp_log_extreme least_scale, most_scale;
    size_t raised, lowered;                    /* how often the loss scale was raised, and lowered */
    size_t clusters, largest_cluster;          /* clusters of skipped steps; steps in the largest cluster */
    long cluster_first, cluster_last;          /* the largest cluster's first and last iteration */
    size_t spikes, dropped;                    /* number of spikes; number of dropped updates */
    amp_log_spike spike[AMP_SPIKES_KEPT];      /* the spikes with the largest value / median, in step order */
    int scale_falls;                           /* 1: in the last 50 steps the scale fell far and never rose */
    double norm_grows;                         /* the factor by which the norm grew; 0: it grew little */
    size_t zero_norms;                         /* number of steps since the norm was last above 0 */
    long zero_since;                           /* the iteration of the first of these steps */
} amp_log_summary;

/* Summarizes the rows; count is at least 1. */
void amp_log_summarize(const amp_log_row *rows, size_t count, amp_log_summary *);

/* Draws loss, gradient norm and loss scale over the steps as SVG, each on a logarithmic axis, with marks for
 * skipped steps. name: the log's file name, for the title. */
void amp_log_draw(FILE *, const char *name, const amp_log_row *rows, size_t count);
