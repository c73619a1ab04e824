/* A pass through pjreddie's Darknet, on the CPU and on a GPU: the arguments of a network and its layers. */
#include "../darknet/room.h"

#include <string.h>

#ifdef GPU
/* ---- images and labels ---- */

/* Copies the few labels through the backend's page-locked memory. */
static amp_status push_truth(const network *net, amp_backend *b, amp_error *error)
{
    size_t bytes = (size_t)net->batch * (size_t)net->truths * sizeof(float);
    void *staged;
    AMP_TRY(b->stage(b, net->truth_gpu, bytes, &staged, error));
    memcpy(staged, net->truth, bytes);
    return b->upload_later(b, net->truth_gpu, staged, bytes, error);
}

/* The engine waits for these copies at the end of the forward's hook, before anything writes net->input. */
amp_status amp_own_push(network *net, amp_backend *b, amp_error *error)
{
    amp_host_pinned *pinned = &net->amp->memory->pinned;
    int ahead = amp_host_image_ahead(pinned, net);
    size_t bytes = (size_t)net->batch * (size_t)net->inputs * sizeof(float);
    amp_host_pin(pinned, net);
    AMP_TRY((ahead ? b->upload_ahead : b->upload_later)(b, amp_fork_image(net), net->input, bytes, error));
    return net->truth && net->truths ? push_truth(net, b, error) : AMP_OK;
}
#endif

int amp_own_pulls_output(const layer *l) { return 0; }

/* ---- Darknet's own layers ---- */

/* On the CPU a crnn or local layer allocates its own workspace (gaps.h). */
size_t amp_own_layer_workspace(const network *net, int index)
{
    const layer *l = &net->layers[index];
    return ON_SIDE(net->gpu_index >= 0, l->workspace_size, amp_gap_workspace_gpu(l));
}

/* On a GPU with cuDNN, a crnn's products are inside cuDNN's convolutions. */
int amp_own_lends_products(const layer *l, int on_gpu)
{
#ifdef CUDNN
    if (on_gpu && l->type == CRNN) return 0;
#endif
    return l->type == RNN || l->type == GRU || l->type == LSTM || l->type == CRNN;
}

#ifdef GPU
/* Whether Darknet computes this layer's loss on the CPU. */
static int reads_labels_on_host(const layer *l)
{
    return l->type == YOLO || l->type == REGION || l->type == DETECTION || l->type == ISEG
        || amp_gap_is_on_cpu(l);
}

/* Makes the output of `truth`, a layer with truth=1, the labels. pulled: 1 to copy it to CPU memory too. */
static void view_truth_gpu(network *net, const layer *truth, int pulled)
{
    net->truth = truth->output;
    net->truth_gpu = truth->output_gpu;
    if (pulled)
        cuda_pull_array(truth->output_gpu, truth->output, (size_t)truth->outputs * (size_t)net->batch);
}

/* Sets the fields of `net`, a copy of the network, for a layer's pass on a GPU. net->input is the CPU buffer
 * into which yolo and similar layers copy the previous layer's output, as in stock. */
static void view_gpu(network *net, int index, float *input, float *input_delta)
{
    int producer = amp_host_producer(net, index - 1, index), truth = amp_host_truth_layer(net, index);
    net->input_gpu = input;
    net->delta_gpu = input_delta;
    net->delta = NULL;
    if (producer >= 0) net->input = net->layers[producer].output;
    if (truth >= 0) view_truth_gpu(net, &net->layers[truth], reads_labels_on_host(&net->layers[index]));
}
#endif

static void view(network *net, int index, float *input, float *input_delta)
{
#ifdef GPU
    if (net->gpu_index >= 0) {
        view_gpu(net, index, input, input_delta);
        return;
    }
#endif
    net->input = input;
    net->delta = input_delta;
    int truth = amp_host_truth_layer(net, index);
    if (truth >= 0) net->truth = net->layers[truth].output;
}

/* Returns a copy of the network, with this layer's input, delta and truth, for Darknet's layer functions. */
amp_pass amp_own_pass(const network *of, int index, float *input, float *input_delta, float *workspace,
                      int training)
{
    network net = *of;
    net.index = index;
    net.train = training;
    net.workspace = workspace;
    view(&net, index, input, input_delta);
    return net;
}

/* A route finds its inputs by their indices. If dropouts follow an input, the route must read the final one
 * of these dropouts. */
layer amp_own_joined(const network *net, int index, amp_joined *room)
{
    layer l = net->layers[index];
    if (l.type != ROUTE) return l;
    for (int k = 0; k < l.n; k++) room->indices[k] = amp_host_producer(net, l.input_layers[k], index);
    l.input_layers = room->indices;
    return l;
}
