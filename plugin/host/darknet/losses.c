/* See losses.h. */
#include "losses.h"

#include "device.h"
#include "links.h"
#include "own.h"

const float *amp_host_labels(network *net, int index)
{
    int truth = amp_host_truth_layer(net, index);
    return truth < 0 ? amp_own_truth(net) : *amp_host_output_of(&net->layers[truth], amp_host_on_gpu(net));
}
