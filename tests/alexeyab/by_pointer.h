/* Included before a test of the engine's: its networks are AlexeyAB's, which are passed by value, in the
 * words of a Darknet that passes pointers. */
#ifndef ALEXEYAB_BY_POINTER_H
#define ALEXEYAB_BY_POINTER_H

#define _DEFAULT_SOURCE /* as the tests do, before any header */

#include <stdlib.h>

#include "host/darknet/room.h"
#include "network.h"
#include "parser.h"
#undef _DEFAULT_SOURCE /* which they define once more */

static inline void forward_by_pointer(network *net)
{
    amp_own_forward(net);
    net->output = get_network_output(*net);
}

/* A pass of a mini-batch, and the update behind a batch's last one. */
static inline float train_datum_by_pointer(network *net)
{
    float loss = train_network_datum(*net, net->input, net->truth);
    net->output = get_network_output(*net);
    if (*net->seen / (uint64_t)net->batch % (uint64_t)net->subdivisions == 0) amp_own_update(net);
    return loss;
}

static inline float *predict_by_pointer(network *net, float *image)
{
    return network_predict(AMP_NET(net), image);
}

static inline void resize_by_pointer(network *net, int w, int h)
{
    resize_network(net, w, h);
    net->input = realloc(net->input, sizeof(float) * (size_t)net->inputs * (size_t)net->batch);
    net->truth = realloc(net->truth, sizeof(float) * (size_t)net->truths * (size_t)net->batch);
}

#define resize_network resize_by_pointer
#define parse_network_cfg amp_own_parse
#define forward_network forward_by_pointer
#define backward_network amp_own_backward
#define update_network amp_own_update
#define train_network_datum train_datum_by_pointer
#define network_predict predict_by_pointer
#define free_network amp_own_free
#define get_current_rate amp_fork_rate
#define get_current_batch(net) get_current_batch(*(net))
#define save_weights(net, file) save_weights(*(net), file)

#endif
