/* Matrix products of Darknet's own layers (rnn, gru, lstm, crnn), which the backend makes
 * instead of its gemm: see products.c. */
#pragma once

#include "state.h"

/* From begin to end, the calling thread's products are those of the engine's active plan's layer. */
void amp_host_products_begin(struct darknet_amp *amp, int layer);
void amp_host_products_end(void);
