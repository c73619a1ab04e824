/* Reads and writes .weights as stock Darknet does, also under AMP: without its hooks, which do more. */
#ifndef STOCK_WEIGHTS_H
#define STOCK_WEIGHTS_H

#include "network.h"
#include "parser.h"

static inline void save_stock_weights(network *net, const char *file)
{
    struct darknet_amp *amp = net->amp;
    net->amp = NULL;
    save_weights(net, (char *)file);
    net->amp = amp;
}

static inline void load_stock_weights(network *net, const char *file)
{
    struct darknet_amp *amp = net->amp;
    net->amp = NULL;
    load_weights(net, (char *)file);
    net->amp = amp;
}

#endif
