/* Spikes: steps whose gradient or loss is far larger than in earlier steps.
 *
 * A step is a spike if the L2 norm of its gradient is more than `factor` times the median norm of the
 * previous AMP_SPIKE_WINDOW steps, or if its loss is more than `factor` times the median loss of these steps.
 * Only steps that were taken count. The first AMP_SPIKE_LEAST steps are no spikes: a median of fewer values
 * is unreliable, and a training's first gradients are its largest.
 *
 * The structs own no memory: copying one saves its whole state. */
#pragma once

#include <stdint.h>

enum { AMP_SPIKE_WINDOW = 128, AMP_SPIKE_LEAST = 16 };

/* Too many steps were dropped if their number exceeds AMP_SPIKE_FREE_DROPS, and also exceeds AMP_SPIKE_SHARE
 * times the number of all steps. */
enum { AMP_SPIKE_FREE_DROPS = 8 };
#define AMP_SPIKE_SHARE 0.01

/* A ring buffer of the latest values. seen: the number of values added so far. Value number n, from 0, is
 * values[n % AMP_SPIKE_WINDOW]. */
typedef struct amp_spike_window { uint64_t seen; double values[AMP_SPIKE_WINDOW]; } amp_spike_window;

void amp_spike_window_add(amp_spike_window *, double value);
/* The median of the values in the window; for an even number of values, the mean of the middle two. Returns 0
 * until AMP_SPIKE_LEAST values were added. */
double amp_spike_window_median(const amp_spike_window *);

/* Settings and state. */
typedef struct amp_spikes {
    double factor;            /* 0: no step is a spike, and the other members are not used */
    int drop;                 /* 1: a spike's update is dropped; 0: the spike is only reported */
    uint64_t dropped;         /* number of steps dropped so far */
    double loss;              /* sum of the losses of the current step's passes so far */
    amp_spike_window norms, losses;
} amp_spikes;

/* The verdict on a step. value: the norm or, if by_loss is 1, the loss. median: the median of the window. */
typedef struct amp_spike { int found, dropped, by_loss; double value, median; } amp_spike;

/* Judges a step by its norm first, then by its loss. Changes nothing. */
amp_spike amp_spikes_judge(const amp_spikes *, double norm, double loss);

/* Returns the norm_limit (amp_update_args) for a step with this loss. With it, the backend drops exactly the
 * steps for which amp_spikes_judge sets `dropped`. 0: it drops no step; below 0: it drops every step. */
double amp_spikes_norm_limit(const amp_spikes *, double loss);

/* Adds a step's norm and loss to the windows. Call this only for steps that were taken. */
void amp_spikes_take(amp_spikes *, double norm, double loss);

/* Whether more than AMP_SPIKE_FREE_DROPS steps and more than AMP_SPIKE_SHARE of all were dropped. */
int amp_spikes_too_many(const amp_spikes *);

/* Continues from a saved state, but keeps the settings of this struct. */
void amp_spikes_resume(amp_spikes *, const amp_spikes *saved);
/* Returns NULL, or what is wrong with a state read from a file. */
const char *amp_spikes_problem(const amp_spikes *);
