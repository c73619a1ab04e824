/* A batch for measuring speed: random images, and labels that the network's loss can read. */
#ifndef AMP_COMMANDS_BENCH_SYNTHETIC_BATCH_H
#define AMP_COMMANDS_BENCH_SYNTHETIC_BATCH_H

#include "darknet.h"

/* Fills net->input, uniform in [0,1), and net->truth: 1 to 10 boxes an image for a detector, else one class. The same seed gives
 * the same batch. */
void amp_synthetic_batch(network *net, unsigned seed);

#endif
