/* Included before a test that is written in AlexeyAB's words, whose networks are passed by value: hank-ai's
 * functions take references, which are pointers in C. */
#ifndef HANK_AI_BY_REFERENCE_H
#define HANK_AI_BY_REFERENCE_H

#include "hank_ai/mangled.h"

#define free_network(net) free_network(&(net))
#define update_network(net) update_network(&(net))
#define save_weights(net, file) save_weights(&(net), file)
#define train_network(net, d) train_network(&(net), d)
#define train_network_datum(net, x, truth) train_network_datum(&(net), x, truth)

#endif
