/* Summary and picture of a training's log (-log), for `darknet amp log`. */
#pragma once

#include "../../amp/spikes.h"
#include "../../host/training/training_log.h"

#include <stddef.h>

/* Spikes are the steps that the training itself found (amp_log_row.spike). For steps where it did not look,
 * the same rule (../../amp/spikes.h) is applied here, with this factor. */
#define AMP_LOG_SPIKE_FACTOR 20.0
enum { AMP_SPIKES_KEPT = 10 };

/* Two skipped steps belong to one cluster if at most this many steps were made between them. */
enum { AMP_CLUSTER_GAP = 10 };

/* The summary warns if the last steps, at least this many, had a gradient of 0. */
enum { AMP_ZERO_NORMS = 10 };

typedef struct amp_log_spike {
    long iteration;
    int by_loss, dropped;   /* by_loss: the loss was the spike; 0: the gradient's norm was */
    double value, median;
} amp_log_spike;

typedef struct amp_log_extreme { double value; long iteration; } amp_log_extreme;

typedef struct amp_log_summary {
    size_t rows, skipped;
    long first, last;                          /* iterations */
    double seconds, load_seconds;              /* sums over all steps: with loading; of loading alone */
    double images_per_second, images_lately;   /* medians over all steps and over the last quarter */
    double loss[4], norm[4];                   /* medians over each quarter; NaN: not known */
    amp_log_extreme largest_norm;              /* value NaN: not known */
    double least_rate, most_rate, last_rate;
    double first_scale, last_scale;
    amp_log_extreme least_scale, most_scale;
    size_t raised, lowered;                    /* how often the loss scale changed */
    size_t clusters, largest_cluster;          /* clusters of skipped steps; steps in the largest cluster */
    long cluster_first, cluster_last;          /* the largest cluster's first and last iteration */
    size_t spikes, dropped;                    /* dropped: spikes whose step was not made */
    amp_log_spike spike[AMP_SPIKES_KEPT];      /* the largest ones, by value / median, in order of steps */
    int scale_falls;                           /* a sign of a collapse: see log_summary.c */
    double norm_grows;                         /* the factor by which the norm grew; 0: no growth */
    size_t zero_norms;                         /* steps made since the gradient's norm was last above 0 */
    long zero_since;                           /* the iteration of the first of these steps */
} amp_log_summary;

/* Summarizes the rows; count is at least 1. */
void amp_log_summarize(const amp_log_row *rows, size_t count, amp_log_summary *);

/* Draws loss, gradient norm and loss scale over the steps as SVG, each on a logarithmic axis, with a mark for
 * each skipped step. name: the log's, for the title. */
void amp_log_draw(FILE *, const char *name, const amp_log_row *rows, size_t count);
