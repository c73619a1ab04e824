/* What a loss learns from. */
#ifndef AMP_HOST_LOSSES_H
#define AMP_HOST_LOSSES_H

#include "darknet.h"

/* The labels that layer `index` learns from, where the backend can read them: those of the network or, where
 * an earlier layer has truth=1, that layer's output. NULL: there are none. */
const float *amp_host_labels(network *net, int index);

#endif
