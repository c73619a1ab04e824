/* What AMP asks of a network of this fork before it takes it over: that its numbers are complete, and that no
 * key asks for what would be trained wrong. */
#include <math.h>

#include "../darknet/room.h"

#include "../common/ranks.h"
#include "../darknet/device.h"

#include "network.h"
#include "resizing.h"

/* train_detector rounds each side to a multiple of resize_step, and adds one resize_step. */
void amp_own_largest_size(const network *net, int *w, int *h)
{
    double most = amp_own_resized_most(net->layers[net->n - 1].random);
    double step = net->resize_step > 0 ? net->resize_step : 32;
    *w = (int)((floor(most * *w / step + 0.5) + 1) * step);
    *h = (int)((floor(most * *h / step + 0.5) + 1) * step);
}

void amp_own_complete(network *net)
{
    const layer *last = &net->layers[net->n - 1];
    if (net->w > 0 && net->h > 0 && net->c > 0) net->inputs = net->w * net->h * net->c;
    net->truths = last->truths ? last->truths : get_network_output_size(*net);
    net->outputs = get_network_output_size(*net);
}

/* ---- keys that fight with AMP, or that Darknet's code does not follow where AMP runs it ---- */

static const char *refused_of_network(const network *net)
{
    if (net->adversarial_lr != 0) return "adversarial_lr";
    if (net->attention) return "attention";
    if (net->dynamic_minibatch) return "dynamic_minibatch";
    if (net->contrastive) return "contrastive";
    if (net->unsupervised) return "unsupervised";
    if (net->badlabels_rejection_percentage != 0) return "badlabels_rejection_percentage";
    if (net->num_sigmas_reject_badlabels != 0) return "num_sigmas_reject_badlabels";
    if (net->equidistant_point) return "equidistant_point";
    return NULL;
}

/* The option, or else the kind of the layer, that cannot be trained; NULL: none. Recurrent layers other
 * than crnn, and antialiasing, have no backward on the CPU. For the other options Darknet has code on a GPU
 * only, or code in which threads race. */
static const char *refused_of_layer(const layer *l)
{
    if (l->activation == GELU) return "activation=gelu"; /* whose gradient it takes at the output */
    switch (l->type) {
    case RNN:
    case GRU:
    case LSTM:
    case CONV_LSTM:
    case HISTORY:
    case CONTRASTIVE: return "such a layer";
    case CONVOLUTIONAL:
        if (l->batch_normalize == 2) return "cbn";
        if (l->coordconv) return "coordconv";
        if (l->deform) return "sway, rotate or stretch";
        if (l->grad_centr) return "grad_centr";
        if (l->reverse != 0) return "reverse";
        if (l->assisted_excitation) return "assisted_excitation";
        if (l->antialiasing) return "antialiasing";
        return l->activation == RELU6 && !amp_host_is_native(l) ? "activation=relu6" : NULL;
    case MAXPOOL:
        if (l->maxpool_zero_nonmax) return "maxpool_zero_nonmax";
        return l->antialiasing ? "antialiasing" : NULL;
    case DROPOUT: return l->dropblock ? "dropblock" : NULL;
    case SAM:
    case SCALE_CHANNELS: return amp_host_is_native(l) ? NULL : "its activation";
    case COST: return l->cost_type == SMOOTH ? "type=smooth" : NULL;
    case YOLO: return l->embedding_output ? "embedding_layer" : NULL;
    default: return NULL;
    }
}

amp_status amp_own_check(const network *net, amp_error *error)
{
    const char *key = refused_of_network(net);
    if (!key && amp_host_on_gpu(net) && net->optimized_memory) key = "optimized_memory";
    if (key)
        return amp_fail(error, AMP_UNSUPPORTED,
                        "amp: [net]: %s cannot be trained with under AMP; remove it, or run with -amp off",
                        key);
    if (amp_ranks_of_step() > amp_ranks_count())
        return amp_fail(error, AMP_UNSUPPORTED,
                        "command line: -gpus: AlexeyAB's Darknet shares no step between GPUs of one program; "
                        "name one GPU, or type mpirun -np %d without -gpus", amp_ranks_of_step());
    if (net->track && amp_ranks_count() > 1)
        return amp_fail(error, AMP_UNSUPPORTED,
                        "amp: [net]: track loads sequences of images, whose order %d ranks cannot share; "
                        "remove it, or start the training alone", amp_ranks_count());
    for (int i = 0; i < net->n; i++) {
        key = refused_of_layer(&net->layers[i]);
        if (key)
            return amp_fail(error, AMP_UNSUPPORTED,
                            "layer %d [%s]: %s cannot be trained with under AMP; run with -amp off", i,
                            amp_host_type_name(net->layers[i].type), key);
    }
    return AMP_OK;
}
