/* hank-ai's functions that tests call and the plugin does not, which know them by no other name: they take
 * references, which are pointers in C. */
#ifndef HANK_AI_MANGLED_H
#define HANK_AI_MANGLED_H

#include "darknet.h"

float train_network(network *net, data d) __asm__("_Z13train_networkRN7Darknet7NetworkE4data");
#ifdef GPU
void push_shortcut_layer(layer *l) __asm__("_Z19push_shortcut_layerRN7Darknet5LayerE");
#endif

#endif
