/* Included before a test that is written in AlexeyAB's words, whose networks are passed by value: hank-ai's
 * functions take references, which are pointers in C. */
#ifndef HANK_AI_BY_REFERENCE_H
#define HANK_AI_BY_REFERENCE_H

#include "darknet.h"

/* libdarknet.so exports these by their names in C++ alone: the plugin's shims are hidden there. */
network own_parse_network_cfg(char *cfg) __asm__("_Z17parse_network_cfgPKc");
void own_free_network(network *net) __asm__("_Z12free_networkRN7Darknet7NetworkE");
void own_update_network(network *net) __asm__("_Z14update_networkRN7Darknet7NetworkE");
void own_load_weights(network *net, char *file) __asm__("_Z12load_weightsPN7Darknet7NetworkEPKc");
void own_save_weights(network *net, char *file) __asm__("_Z12save_weightsRKN7Darknet7NetworkEPKc");
float own_train_network(network *net, data d) __asm__("_Z13train_networkRN7Darknet7NetworkE4data");
float own_train_network_datum(network *net, float *x, float *y)
    __asm__("_Z19train_network_datumRN7Darknet7NetworkEPfS2_");

#define parse_network_cfg own_parse_network_cfg
#define free_network(net) own_free_network(&(net))
#define update_network(net) own_update_network(&(net))
#define load_weights own_load_weights
#define save_weights(net, file) own_save_weights(&(net), file)
#define train_network(net, d) own_train_network(&(net), d)
#define train_network_datum(net, x, truth) own_train_network_datum(&(net), x, truth)

#endif
