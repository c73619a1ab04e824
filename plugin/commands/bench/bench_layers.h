/* Clocks around the layers of one network: with AMP as an observer, in stock by the fork
 * (amp_fork_watch_layers). They make a step slower, so they are for steps of their own. */
#ifndef AMP_COMMANDS_BENCH_BENCH_LAYERS_H
#define AMP_COMMANDS_BENCH_BENCH_LAYERS_H

#include "../../host/fork_commands.h"
#include "bench.h"

typedef struct amp_layer_clocks amp_layer_clocks;

/* Room for `steps` passes. One at a time in a program; net must outlive it. */
amp_status amp_layer_clocks_create(struct network *net, int steps, amp_layer_clocks **out, amp_error *);
void amp_layer_clocks_free(amp_layer_clocks *);
/* Forward and backward of one pass, whose images are counted. More than `steps` are not noted. */
void amp_layer_clocks_pass(amp_layer_clocks *);
/* What was found of layer `index`: medians over the passes. */
amp_bench_layer amp_layer_clocks_of(const amp_layer_clocks *, int index);

double amp_bench_now_ms(void);

#endif
