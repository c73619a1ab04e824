/* Spikes: steps whose gradient or loss is far larger than in earlier steps.
 *
 * A step is a spike if the L2 norm of its gradient is more than `factor` times the median norm of the last
 * AMP_SPIKE_WINDOW steps, or if its loss is more than `factor` times the median of their losses. The windows
 * contain only steps that were taken, not skipped or dropped steps. No step is a spike until AMP_SPIKE_LEAST
 * steps were taken: the median of fewer steps is unreliable, and the first gradients of a training are its
 * largest.
 *
 * Nothing here depends on a network. The structs own no memory: copying one saves its whole state. */
#pragma once

#include <stdint.h>

enum { AMP_SPIKE_WINDOW = 128, AMP_SPIKE_LEAST = 16 };

/* At most the fraction AMP_SPIKE_SHARE of all steps may be dropped. This limit applies once more than
 * AMP_SPIKE_FREE_DROPS steps were dropped. */
enum { AMP_SPIKE_FREE_DROPS = 8 };
#define AMP_SPIKE_SHARE 0.01

/* A ring buffer of the last values. `seen` counts all values added so far. Value n, counted from 0, is at
 * index n % AMP_SPIKE_WINDOW. */
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

/* The verdict on a step. value: the norm, or the loss if by_loss is 1. median: the median of the norms or
 * losses in the window. */
typedef struct amp_spike { int found, dropped, by_loss; double value, median; } amp_spike;

/* Judges a step by its norm first, then by its loss. Changes nothing. */
amp_spike amp_spikes_judge(const amp_spikes *, double norm, double loss);

/* Returns the norm_limit (amp_update_args) for a step with this loss. The backend drops a step whose norm is
 * above this limit. So it drops exactly the steps for which amp_spikes_judge sets `dropped`. 0: the step is
 * never dropped. Below 0: it is always dropped. */
double amp_spikes_norm_limit(const amp_spikes *, double loss);

/* Adds a step's norm and loss to the windows. Call this only for steps that were taken. */
void amp_spikes_take(amp_spikes *, double norm, double loss);

/* Whether too many steps were dropped: more than AMP_SPIKE_FREE_DROPS, and more than AMP_SPIKE_SHARE of all
 * steps (taken and dropped). */
int amp_spikes_too_many(const amp_spikes *);

/* Continues from a saved state, but keeps the settings of this struct. */
void amp_spikes_resume(amp_spikes *, const amp_spikes *saved);
/* Returns NULL if the functions above can have produced this state, else what is wrong with it. For states
 * read from a file. */
const char *amp_spikes_problem(const amp_spikes *);
