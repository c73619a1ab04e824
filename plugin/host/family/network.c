/* Called before AMP takes over a network of this fork. Sets fields that AMP reads but this Darknet leaves
 * unset, and rejects networks that AMP would train incorrectly. */
#include <math.h>

#include "../darknet/room.h"
#include "../program/ranks.h"
#include "network.h"
#include "resizing.h"

int amp_own_size_step(const network *net) { return net->resize_step > 0 ? net->resize_step : 32; }

/* train_detector rounds each side to a multiple of amp_own_size_step, and then adds one more step. */
void amp_own_largest_size(const network *net, int *w, int *h)
{
    double most = amp_own_resized_most(net->layers[net->n - 1].random);
    double step = amp_own_size_step(net);
    *w = (int)((floor(most * *w / step + 0.5) + 1) * step);
    *h = (int)((floor(most * *h / step + 0.5) + 1) * step);
}

void amp_own_complete(network *net)
{
    const layer *last = &net->layers[net->n - 1];
    if (net->w > 0 && net->h > 0 && net->c > 0) net->inputs = net->w * net->h * net->c;
    net->truths = last->truths ? last->truths : get_network_output_size(AMP_NET(net));
    net->outputs = get_network_output_size(AMP_NET(net));
}

/* Checks only what depends on how a training is started; cfg_keys.c and cfg_own.c check the .cfg. */
amp_status amp_own_check(const network *net, amp_error *error)
{
    if (amp_host_on_gpu(net) && net->optimized_memory)
        return amp_fail(error, AMP_UNSUPPORTED, "amp: optimized_memory in [net] does not work under AMP on "
                        "a GPU; remove this key, or run with -amp off");
    if (net->track && amp_ranks_of_step() > 1)
        return amp_fail(error, AMP_UNSUPPORTED,
                        "amp: track=1 in [net] loads images as sequences, which cannot be divided among "
                        "%d ranks; remove this key, or train with one rank", amp_ranks_of_step());
    return AMP_OK;
}
