/* Spikes: steps whose gradient, or whose loss, is far larger than that of the steps before them.
 *
 * A step is a spike if the L2 norm of its gradient is more than `factor` times the median of the last
 * AMP_SPIKE_WINDOW steps' norms, or if its loss is more than `factor` times the median of their losses. Only
 * steps that were taken are in the windows: a step that was skipped or dropped is not. Until AMP_SPIKE_LEAST
 * steps were taken nothing is a spike, since a median of fewer says little, and the first gradients of a
 * training are its largest.
 *
 * Nothing here knows of a network. Plain structs that own no memory: copying one saves its whole state. */
#pragma once

#include <stdint.h>

enum { AMP_SPIKE_WINDOW = 128, AMP_SPIKE_LEAST = 16 };

/* So many steps may be dropped before AMP_SPIKE_SHARE counts, and what share of all steps. */
enum { AMP_SPIKE_FREE_DROPS = 8 };
#define AMP_SPIKE_SHARE 0.01

/* The last numbers of steps: number n of those seen lies at n % AMP_SPIKE_WINDOW. */
typedef struct amp_spike_window { uint64_t seen; double values[AMP_SPIKE_WINDOW]; } amp_spike_window;

void amp_spike_window_add(amp_spike_window *, double value);
/* The median of those kept, which is the mean of the middle two of an even number; 0 while fewer than
 * AMP_SPIKE_LEAST were seen. */
double amp_spike_window_median(const amp_spike_window *);

/* Settings and state in one. */
typedef struct amp_spikes {
    double factor;            /* 0: nothing is a spike, and nothing below is used */
    int drop;                 /* a spike's update is not made; else it is only told */
    uint64_t dropped;         /* steps */
    double loss;              /* of the step under way: the sum so far over its passes */
    amp_spike_window norms, losses;
} amp_spikes;

/* What a step is. value is the norm, or where by_loss is 1 the loss; median is that of its window. */
typedef struct amp_spike { int found, dropped, by_loss; double value, median; } amp_spike;

/* Judges a step of this norm and loss, by its norm first. Changes nothing. */
amp_spike amp_spikes_judge(const amp_spikes *, double norm, double loss);

/* amp_update_args.norm_limit for a step of this loss, so that the backend drops just the steps that
 * amp_spikes_judge says are to be: 0: it may take any; below 0: it is to drop it whatever the norm is. */
double amp_spikes_norm_limit(const amp_spikes *, double loss);

/* A step that was taken, of this norm and loss, enters the windows. */
void amp_spikes_take(amp_spikes *, double norm, double loss);

/* Whether more steps were dropped than may be: more than AMP_SPIKE_FREE_DROPS, and more than AMP_SPIKE_SHARE
 * of all steps, which are those taken and those dropped. */
int amp_spikes_too_many(const amp_spikes *);

/* As before the first step: the settings stay. */
void amp_spikes_reset(amp_spikes *);
/* Goes on from a saved state with these settings, which win. */
void amp_spikes_resume(amp_spikes *, const amp_spikes *saved);
/* What is wrong with a state that was read from a file, or NULL if the functions above can have made it. */
const char *amp_spikes_problem(const amp_spikes *);
