/* A pass through AlexeyAB's or hank-ai's Darknet: the arguments of a network and its layers.
 *
 * forward_network, backward_network and a layer's functions get a network_state, which contains a copy of the
 * network. Darknet does not use this copy's input, truth and delta. So AMP's hooks in forward_network and
 * backward_network set them to the pass's arrays in CPU memory. On a GPU, amp_own_push copies images and
 * labels to *input_gpu and *truth_gpu, as Darknet does before its passes. */
#include "../darknet/room.h"

#include <string.h>

#include "convolutional_layer.h"

#ifdef GPU
/* ---- images and labels ---- */

/* Allocates net->input_gpu or net->truth_gpu if it is NULL. Darknet allocates them in the first pass of a
 * size, and frees them in a resize. */
static amp_status make_on_gpu(float **array, size_t bytes, amp_backend *b, amp_error *error)
{
    if (!*array) *array = amp_host_allocate_array(bytes / sizeof **array, 1);
    if (*array) return AMP_OK;
    return amp_fail(error, AMP_NO_MEMORY, "amp: no memory on the GPU (%s) for %zu MB of images or labels; "
                    "use more subdivisions", b->description, bytes >> 20);
}

/* Copies images to the GPU through input_pinned_cpu, Darknet's buffer for predictions, and the few labels
 * through the backend's staging memory. From the second training pass on, images are copied during the
 * previous pass (pinned.h). */
amp_status amp_own_push(network *net, amp_backend *b, amp_error *error)
{
    size_t images = (size_t)net->batch * (size_t)net->inputs * sizeof(float), labels =
        (size_t)net->batch * (size_t)net->truths * sizeof(float);
    /* the first pass may have fewer images than later ones */
    size_t most = (size_t)(net->amp->batch > net->batch ? net->amp->batch : net->batch) * sizeof(float);
    void *staged;
    AMP_TRY(make_on_gpu(net->input_gpu, most * (size_t)net->inputs, b, error));
    memcpy(net->input_pinned_cpu, net->input, images);
    amp_host_pinned *pinned = &net->amp->memory->pinned;
    int ahead = pinned->tried && net->train && amp_host_image_turns(pinned, most * (size_t)net->inputs);
    pinned->tried |= net->train && net->input_pinned_cpu_flag;
    AMP_TRY((ahead ? b->upload_ahead : b->upload_later)(b, amp_fork_image(net), net->input_pinned_cpu, images,
                                                        error));
    if (!net->truth || !labels) return AMP_OK;
    AMP_TRY(make_on_gpu(net->truth_gpu, most * (size_t)net->truths, b, error));
    AMP_TRY(b->stage(b, *net->truth_gpu, labels, &staged, error));
    memcpy(staged, net->truth, labels);
    return b->upload_later(b, *net->truth_gpu, staged, labels, error);
}
#endif

/* A region layer's loss is always computed on the CPU. */
int amp_own_pulls_output(const layer *l) { return l->type == REGION; }

/* Nothing to set: this Darknet reads outputs and costs from the layers. */
void amp_own_end_forward(network *net, int output_layer) {}

/* ---- Darknet's own layers ---- */

size_t amp_own_layer_workspace(const network *net, int index)
{
    layer *l = &net->layers[index];
    size_t most = l->workspace_size;
    amp_own_part parts[AMP_OWN_MOST_PARTS];
    for (int k = amp_host_parts(l, parts) - 1; k >= 0; k--)
        if (parts[k].part->workspace_size > most) most = parts[k].part->workspace_size;
    return ON_SIDE(amp_host_on_gpu(net), most, most + amp_gap_workspace_gpu(net, index));
}

void darknet_amp_workspace(network *net)
{
    amp_error error;
    amp_fork_use_device(net);
    for (int i = 0; i < net->n; i++) {
        layer *l = &net->layers[i];
        if (l->type == CONVOLUTIONAL && !amp_host_is_native(l))
            l->workspace_size = get_convolutional_workspace_size(AMP_NET(l));
    }
    amp_host_check(amp_host_fit_workspace(net->amp, net, &error), &error);
}

/* On a GPU a crnn's products are inside cuDNN's convolutions. */
int amp_own_lends_products(const layer *l, int on_gpu) { return !on_gpu && l->type == CRNN; }

amp_pass amp_own_pass(const network *net, int index, float *input, float *input_delta, float *workspace,
                      int training)
{
    network_state state = { .input = input, .delta = input_delta, .workspace = workspace, .train = training,
                            .index = index, .truth = (float *)amp_host_labels(net, index), .net = *net };
    state.net.cudnn_half = 0; /* Darknet makes 16-bit copies of weights only in its own loops */
    return state;
}

/* A layer finds its inputs other than the layer before by their indices. A shortcut also uses the addresses
 * that their outputs and deltas had when it was made: the copy gets the current addresses, in the arrays of
 * `room`. */
layer amp_own_joined(const network *net, int index, amp_joined *room)
{
    layer l = net->layers[index];
    const int *far;
    int count = amp_own_far_inputs(&l, &far), on_gpu = amp_host_on_gpu(net);
    for (int k = 0; k < count; k++) {
        room->indices[k] = amp_host_producer(net, far[k], index);
        room->outputs[k] = *amp_host_output_of(&net->layers[room->indices[k]], on_gpu);
        room->deltas[k] = *amp_host_delta_of(&net->layers[room->indices[k]], on_gpu);
    }
    if (!count) return l;
    if (l.input_layers) l.input_layers = room->indices;
    if (l.type != ROUTE) l.index = room->indices[0];
    if (l.type == SHORTCUT) {
        l.layers_output = room->outputs;
        l.layers_delta = room->deltas;
    }
    return l;
}
