/* What AMP asks of a network of this fork before it takes it over: that its numbers are complete, and that no
 * key asks for what would be trained wrong. */
#include <math.h>

#include "../darknet/room.h"

#include "../darknet/device.h"
#include "../program/ranks.h"

#include "network.h"
#include "resizing.h"

int amp_own_size_step(const network *net) { return net->resize_step > 0 ? net->resize_step : 32; }

/* train_detector rounds each side to a multiple of that, and adds one step. */
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

/* ---- keys that fight with AMP, or that Darknet's code does not follow where AMP runs it ---- */

/* The option that cannot be trained; NULL: none. These are only what the check of the .cfg (cfg_keys.c's
 * refusals) does not see: whether a layer is native. */
static const char *refused_of_layer(const layer *l)
{
    switch (l->type) {
    case CRNN: return l->xnor ? "xnor" : NULL; /* see gaps.h, which does not reach into it */
    case CONVOLUTIONAL:
        if (l->batch_normalize == 2) return "batch_normalize=2";
        return l->activation == RELU6 && !amp_host_is_native(l) ? "activation=relu6" : NULL;
    case SAM:
    case SCALE_CHANNELS: return amp_host_is_native(l) ? NULL : "its activation";
    default: return NULL;
    }
}

amp_status amp_own_check(const network *net, amp_error *error)
{
    if (amp_host_on_gpu(net) && net->optimized_memory)
        return amp_fail(error, AMP_UNSUPPORTED, "amp: [net]: optimized_memory cannot be trained with under "
                        "AMP on a GPU; remove it, or run with -amp off");
    if (net->track && amp_ranks_of_step() > 1)
        return amp_fail(error, AMP_UNSUPPORTED,
                        "amp: [net]: track loads sequences of images, whose order %d ranks cannot share; "
                        "remove it, or start the training alone", amp_ranks_of_step());
    for (int i = 0; i < net->n; i++) {
        const char *key = refused_of_layer(&net->layers[i]);
        if (key)
            return amp_fail(error, AMP_UNSUPPORTED,
                            "layer %d [%s]: %s cannot be trained with under AMP; run with -amp off", i,
                            amp_host_type_name(net->layers[i].type), key);
    }
    return AMP_OK;
}
