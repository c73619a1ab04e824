/* What AMP adds to a training step: the check and update of the parameters, the half copies of the weights, the casts of
 * activations and deltas. For step.c, in its build with AMP. */
#ifndef BENCH_COSTS_H
#define BENCH_COSTS_H

typedef struct costs {
    double check_update, half_copies, casts; /* milliseconds of CPU time, all threads together */
} costs;

struct network;

/* From now on the backend's functions of this network are timed. 0 where AMP is off: there is nothing to time. */
int costs_watch(struct network *net);

/* What was measured since the last call, or since costs_watch. */
costs costs_take(void);

/* The clock of the above, in milliseconds. */
double costs_now(void);

#endif
