/* A pass through AlexeyAB's Darknet: what a network and its layers are given.
 *
 * Its layers' functions get a network_state, with a copy of the network in it. The hooks of forward_network
 * and backward_network put input, labels and delta of the pass, which lie where the network runs, into fields
 * of their copy of struct network that Darknet itself does not use. */
#include "../darknet/room.h"

#include "../darknet/links.h"
#include "gaps.h"

/* ---- a network's ---- */

float *amp_fork_image(const network *net) { return net->input; }
float *amp_fork_image_delta(const network *net) { return net->delta; }
const float *amp_own_truth(const network *net) { return net->truth; }

/* Darknet has brought them to its device. */
amp_status amp_own_push_input(const network *net, amp_backend *b, amp_error *error)
{
    (void)net, (void)b, (void)error;
    return AMP_OK;
}

/* Darknet looks for outputs and costs in the layers. */
void amp_own_end_forward(network *net, int output_layer) { (void)net, (void)output_layer; }

/* ---- its own layers ---- */

int amp_own_prepare_layer(layer *l, int on_gpu) { return on_gpu || amp_gap_prepare(l); }

size_t amp_own_layer_workspace(const layer *l, int on_gpu)
{
    size_t most = l->workspace_size;
    amp_own_part parts[AMP_OWN_MOST_PARTS];
    (void)on_gpu;
    for (int k = amp_host_parts(l, parts) - 1; k >= 0; k--)
        if (parts[k].part->workspace_size > most) most = parts[k].part->workspace_size;
    return most;
}

/* On a GPU its convolutions are cuDNN's. */
int amp_own_lends_products(const layer *l, int on_gpu) { return !on_gpu && l->type == CRNN; }

amp_pass amp_own_pass(const network *net, int index, float *input, float *input_delta, float *workspace,
                      int training)
{
    int truth = amp_host_truth_layer(net, index);
    network_state state = { .input = input,
                            .delta = input_delta,
                            .workspace = workspace,
                            .train = training,
                            .index = index,
                            .truth = truth < 0 ? net->truth : net->layers[truth].output,
                            .net = *net };
    return state;
}

/* Layers that read others find them by index, and shortcuts by the addresses that their buffers had when they
 * were made. */
layer amp_own_joined(const network *net, int index, amp_joined *room)
{
    layer l = net->layers[index];
    const int *far;
    int count = amp_own_far_inputs(&l, &far), on_gpu = 0;
    for (int k = 0; k < count; k++) {
        room->indices[k] = amp_host_producer(net, far[k], index);
        room->outputs[k] = net->layers[room->indices[k]].output;
        room->deltas[k] = net->layers[room->indices[k]].delta;
    }
    (void)on_gpu;
    if (!count) return l;
    if (l.input_layers) l.input_layers = room->indices;
    if (l.type != ROUTE) l.index = room->indices[0];
    if (l.type == SHORTCUT) {
        l.layers_output = room->outputs;
        l.layers_delta = room->deltas;
    }
    return l;
}

void amp_own_forward_layer(layer l, amp_pass state) { amp_gap_forward(l, state); }
void amp_own_backward_layer(layer l, amp_pass state) { amp_gap_backward(l, state); }
