/* Which layers a layer reads, and where its labels come from. */
#pragma once

#include "darknet.h"

/* The layer whose output stands for layer `index` when a later layer `consumer` reads it: Darknet's
 * dropout works inside its neighbour's output, so that later layers read what it left there. */
int amp_host_producer(const network *net, int index, int consumer);

/* The last layer before `index` with truth=1, which gives it its labels; -1: none, they are the network's. */
int amp_host_truth_layer(const network *net, int index);

/* How many numbers of labels an image has for layer `index`. */
int amp_host_truths(const network *net, int index);

/* The labels themselves, where the backend can read them: the network's or, where an earlier layer has
 * truth=1, that layer's output. NULL: there are none. */
const float *amp_host_labels(const network *net, int index);
