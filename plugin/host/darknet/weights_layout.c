/* What Darknet reads for each layer of a .weights file. The sizes follow the readers in parser.c, function
 * by function. */
#include <string.h>

#include "../fork.h"
#include "device.h"
#include "own.h"

static size_t normalized(const layer *l) { return l->batch_normalize && !l->dontloadscales; }

/* load_convolutional_weights: biases, scales, statistics, weights. */
static int convolutional(const layer *l, amp_weights_run *runs)
{
    size_t n = (size_t)(l->numload ? l->numload : l->n), groups = l->groups ? (size_t)l->groups : 1,
        norm = normalized(l) ? n : 0;
    runs[0] = (amp_weights_run){ n + norm, 2 * norm };
    runs[1] = (amp_weights_run){ (size_t)l->c / groups * n * (size_t)l->size * (size_t)l->size, 0 };
    return 2;
}

/* load_connected_weights: biases, weights, scales, statistics. */
static int connected(const layer *l, amp_weights_run *runs)
{
    size_t outputs = (size_t)l->outputs, norm = normalized(l) ? outputs : 0;
    runs[0] = (amp_weights_run){ outputs + outputs * (size_t)l->inputs + norm, 2 * norm };
    return 1;
}

int amp_host_parts(const layer *l, amp_own_part parts[AMP_OWN_MOST_PARTS])
{
    const amp_own_part simple[] = { AMP_OWN_PART(input_layer, 0), AMP_OWN_PART(self_layer, 1),
                                    AMP_OWN_PART(output_layer, 2) };
    const amp_own_part gru[] = { AMP_OWN_GRU_PARTS }, lstm[] = { AMP_OWN_LSTM_PARTS };
    const amp_own_part *from = l->type == GRU ? gru : l->type == LSTM ? lstm : simple;
    int count = l->type == GRU ? 6 : l->type == LSTM ? 8 : l->type == RNN || l->type == CRNN ? 3 : 0;
    if (count) memcpy(parts, from, (size_t)count * sizeof *parts);
    return count;
}

static int of_parts(const layer *l, amp_weights_run *runs)
{
    amp_own_part parts[AMP_OWN_MOST_PARTS];
    int count = amp_host_parts(l, parts), written = 0;
    for (int place = 0; place < count; place++)
        for (int k = 0; k < count; k++)
            if (parts[k].place == place)
                written += (parts[k].part->type == CONNECTED
                            ? connected : convolutional)(parts[k].part, runs + written);
    return written;
}

int amp_fork_weights_runs(const struct network *net, int index, amp_weights_run runs[AMP_WEIGHTS_RUNS])
{
    const layer *l = &net->layers[index];
    if (l->dontload || amp_own_shares_weights(l)) return 0;
    switch (l->type) {
    case CONVOLUTIONAL: case DECONVOLUTIONAL: return convolutional(l, runs);
    case CONNECTED: return connected(l, runs);
    case BATCHNORM:
        runs[0] = (amp_weights_run){ (size_t)l->c * (1 + AMP_OWN_SAVES_BATCHNORM_BIASES), 2 * (size_t)l->c };
        return 1;
    case LOCAL: /* each output has a bias, and weights of its own */
        runs[0].learnt = (size_t)l->outputs * (1 + (size_t)l->size * (size_t)l->size * (size_t)l->c);
        runs[0].statistics = 0;
        return 1;
    case RNN: case CRNN: case GRU: case LSTM: return of_parts(l, runs);
    default: return amp_own_weights_runs(l, runs);
    }
}

/* One that reads less than it writes, or the other way round, makes a file that is not the network's; a
 * flipped one reads its matrix transposed. */
int amp_fork_one_sided_layer(const struct network *net)
{
    for (int i = 0; i < net->n; i++) {
        const layer *l = &net->layers[i];
        if (l->dontload != l->dontsave || l->dontloadscales || l->numload || l->flipped) return i;
    }
    return -1;
}

int amp_fork_negative_variance(const struct network *net, float *value)
{
    for (int i = 0; i < net->n && !amp_host_on_gpu(net); i++) {
        const layer *l = &net->layers[i];
        int count = l->type == CONNECTED ? l->outputs
                  : l->type == CONVOLUTIONAL || l->type == DECONVOLUTIONAL ? l->n
                  : l->type == BATCHNORM ? l->c : 0;
        for (int k = 0; l->rolling_variance && k < count; k++) {
            *value = l->rolling_variance[k];
            if (*value < 0) return i;
        }
    }
    return -1;
}
