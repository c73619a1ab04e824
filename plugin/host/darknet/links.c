/* Searches the layers before a given layer: see room.h. */
#include "room.h"

#include "device.h"

int amp_host_producer(const network *net, int index, int consumer)
{
    while (index >= 0 && index + 1 < consumer && net->layers[index + 1].type == DROPOUT) index++;
    return index;
}

int amp_host_truth_layer(const network *net, int index)
{
    int truth = -1;
    for (int k = 0; k < index; k++) if (net->layers[k].truth) truth = k;
    return truth;
}

int amp_host_truths(const network *net, int index)
{
    int truth = amp_host_truth_layer(net, index);
    return truth < 0 ? net->truths : net->layers[truth].outputs;
}

const float *amp_host_labels(const network *net, int index)
{
    int truth = amp_host_truth_layer(net, index), on_gpu = amp_host_on_gpu(net);
    if (truth >= 0) return *amp_host_output_of(&net->layers[truth], on_gpu);
    return net->truth ? ON_SIDE(on_gpu, net->truth, AMP_OWN_ON_GPU(net->truth_gpu)) : NULL;
}
