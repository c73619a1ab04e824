/* How many numbers a layer learns, and how many Darknet reads for it from a .weights file: see room.h and
 * fork.h. The sizes follow the readers in parser.c. */
#include <string.h>

#include "room.h"

amp_host_sizes amp_host_sizes_of(const layer *l)
{
    size_t outputs = (size_t)l->outputs;
    switch (l->type) {
    case CONVOLUTIONAL: case DECONVOLUTIONAL: return (amp_host_sizes){ (size_t)l->nweights, (size_t)l->n };
    case CONNECTED: return (amp_host_sizes){ (size_t)l->inputs * outputs, outputs };
    case LOCAL: /* each output has a bias, and weights of its own */
        return (amp_host_sizes){ (size_t)l->size * (size_t)l->size * (size_t)l->c * outputs, outputs };
    case BATCHNORM: return (amp_host_sizes){ 0, (size_t)l->c };
    default: return (amp_host_sizes){ (size_t)l->nweights, 0 };
    }
}

int amp_host_parts(const layer *l, amp_own_part parts[AMP_OWN_MOST_PARTS])
{
    const amp_own_part simple[] = { AMP_OWN_PART(input_layer), AMP_OWN_PART(self_layer),
                                    AMP_OWN_PART(output_layer) };
    const amp_own_part gru[] = { AMP_OWN_GRU_PARTS }, lstm[] = { AMP_OWN_LSTM_PARTS };
    const amp_own_part *from = l->type == GRU ? gru : l->type == LSTM ? lstm : simple;
    int count = l->type == GRU ? 6 : l->type == LSTM ? 8 : l->type == RNN || l->type == CRNN ? 3 : 0;
    if (count) memcpy(parts, from, (size_t)count * sizeof *parts);
    return count;
}

/* Any layer may have numload=N, but only convolutions obey it: Darknet reads only their first N filters. */
static int is_numloaded(const layer *l)
{
    return l->numload && (l->type == CONVOLUTIONAL || l->type == DECONVOLUTIONAL);
}

/* Returns how many floats are read for a layer: weights, biases and, if it normalizes, scales, means and
 * variances. */
static size_t saved_floats(const layer *l)
{
    amp_host_sizes sizes = amp_host_sizes_of(l);
    size_t of_channel = l->batch_normalize && !l->dontloadscales ? 4 : 1;
    if (l->type == BATCHNORM) of_channel = 3 + AMP_OWN_SAVES_BATCHNORM_BIASES;
    if (is_numloaded(l))
        sizes = (amp_host_sizes){ sizes.weights / (size_t)l->n * (size_t)l->numload, (size_t)l->numload };
    return sizes.weights + sizes.channels * of_channel;
}

/* saved_floats of a layer, or the sum over the layers inside a recurrent layer. */
static size_t floats_of(const layer *l)
{
    amp_own_part parts[AMP_OWN_MOST_PARTS];
    int count = amp_host_parts(l, parts);
    size_t floats = 0;
    for (int k = 0; k < count; k++) floats += saved_floats(parts[k].part);
    return count ? floats : saved_floats(l);
}

size_t amp_fork_weights_bytes(const struct network *net, int index)
{
    const layer *l = &net->layers[index];
    return l->dontload || amp_own_shares_weights(l) ? 0 : floats_of(l) * sizeof(float);
}

/* Returns the first layer that reads other floats from a .weights file than it writes there, or -1. A layer
 * with flipped=1 counts too, because it reads its matrix transposed. */
int amp_fork_one_sided_layer(const struct network *net)
{
    for (int i = 0; i < net->n; i++) {
        const layer *l = &net->layers[i];
        if (floats_of(l) && (l->dontload != l->dontsave || l->dontloadscales || is_numloaded(l)
                             || l->flipped)) return i;
    }
    return -1;
}

int amp_fork_negative_variance(const struct network *net, float *value)
{
    for (int i = 0; i < net->n && !amp_host_on_gpu(net); i++) {
        const layer *l = &net->layers[i];
        size_t count = l->rolling_variance ? amp_host_sizes_of(l).channels : 0;
        for (size_t k = 0; k < count; k++) {
            *value = l->rolling_variance[k];
            if (*value < 0) return i;
        }
    }
    return -1;
}
