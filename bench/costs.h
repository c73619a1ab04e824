/* What AMP adds to a training step: the check and update of the parameters, the half copies of the weights,
 * the casts of activations and deltas. For step.c, in its build with AMP. */
#ifndef BENCH_COSTS_H
#define BENCH_COSTS_H

typedef struct costs {
    double check_update, half_copies, casts; /* milliseconds by costs_now's clock */
} costs;

struct network;

/* From now on the backend's functions of this network are timed. 0 where AMP is off: there
 * is nothing to time. */
int costs_watch(struct network *net);

/* What was measured since the last call, or since costs_watch. */
costs costs_take(void);

/* The clock of the above, in milliseconds: CPU time of all threads together; in a GPU build wall time,
 * read when the device has done what was queued. Small operations look dearer so than they are in a step
 * that nobody interrupts. */
#ifdef GPU
#define COSTS_CLOCK "wall time with waits"
#else
#define COSTS_CLOCK "CPU time"
#endif

double costs_now(void);

#endif
