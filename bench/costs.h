/* What AMP adds to a training step: the check and update of the parameters, the half copies of the weights,
 * the casts of activations and deltas. For step.c, in its build with AMP. */
#ifndef BENCH_COSTS_H
#define BENCH_COSTS_H

#include <stdio.h>

typedef struct costs {
    double check_update, half_copies, casts; /* milliseconds by costs_now's clock */
} costs;

struct network;

/* From now on the backend's functions of this network are timed. 0 where AMP is off: there
 * is nothing to time. */
int costs_watch(struct network *net);

/* What was measured since the last call, or since costs_watch. */
costs costs_take(void);

/* begin is called before anything watches the network. Then `steps` calls of step without those clocks, and
 * what each operation of the backend took on the device in one step, as a part of a JSON object: "operations"
 * lists kind of layer, operation, calls, ms, MB, GFLOP, and whether in 16 bits; "limits" are the device's
 * GB/s, and its GFLOP/s in 16 bits and in fp32. Prints nothing where the backend cannot tell. */
void costs_operations_begin(struct network *net);
void costs_print_operations(struct network *net, int steps, float (*step)(struct network *), FILE *result);

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
