/* Darknet's own fp32 buffers under AMP: kept where a layer of Darknet's reads or writes them, given back elsewhere. */
#include "host.h"

#include <stdlib.h>
#include <string.h>

#include "pjreddie_gaps.h"
#include "utils.h"

static size_t elements(const network *net, const layer *l) { return (size_t)l->outputs * net->batch; }

void amp_host_note_buffers(struct darknet_amp *amp, network *net)
{
    for (int i = 0; i < net->n; i++) {
        const layer *l = &net->layers[i];
        size_t made = elements(net, l);
        if (l->type == DROPOUT && amp->engine) continue; /* ours, and Darknet does not resize it */
        amp->buffers[i] = (amp_host_buffers){ l->output ? made : 0, l->delta ? made : 0 };
    }
    free(net->workspace);
    net->workspace = NULL;
}

static void give_back(float **buffer) { free(*buffer); *buffer = NULL; }

static amp_status fit(float **buffer, size_t *capacity, size_t wanted, int needed, int layer_index, amp_error *error)
{
    if (!needed) {
        give_back(buffer);
        *capacity = 0;
    } else if (*capacity < wanted || !*buffer) {
        free(*buffer);
        *buffer = calloc(wanted, sizeof **buffer);
        *capacity = *buffer ? wanted : 0;
        if (!*buffer) return amp_fail(error, AMP_NO_MEMORY, "layer %d: no memory for %zu MB of fp32 output; lower batch or raise subdivisions",
                                      layer_index, wanted * sizeof **buffer >> 20);
    }
    return AMP_OK;
}

/* Darknet's Adam moments: the engine keeps its own, for every kind of parameter. */
static void give_back_moments(layer *l)
{
    give_back(&l->m);
    give_back(&l->v);
    give_back(&l->bias_m);
    give_back(&l->bias_v);
    give_back(&l->scale_m);
    give_back(&l->scale_v);
}

/* What only Darknet's own forward and backward of this layer would use. */
static void give_back_internals(layer *l)
{
    if (l->type == CONVOLUTIONAL || l->type == CONNECTED || l->type == BATCHNORM) {
        give_back(&l->x);
        give_back(&l->x_norm);
    }
    if (l->type == DROPOUT) give_back(&l->rand);
    if (l->type == MAXPOOL) {
        free(l->indexes);
        l->indexes = NULL;
    }
}

/* Darknet's layers share one workspace. It is ours, since network_predict puts the network's fields back as they were.
 * local and crnn ask for too little and get their own (pjreddie_gaps.h). */
static amp_status fit_workspace(struct darknet_amp *amp, const network *net, amp_error *error)
{
    size_t bytes = 0;
    for (int i = 0; i < net->n; i++) {
        const layer *l = &net->layers[i];
        if (!amp_host_is_native(l) && l->type != LOCAL && l->workspace_size > bytes) bytes = l->workspace_size;
    }
    if (bytes <= amp->workspace_bytes) return AMP_OK;
    free(amp->workspace);
    amp->workspace = calloc(1, bytes);
    amp->workspace_bytes = amp->workspace ? bytes : 0;
    if (!amp->workspace) return amp_fail(error, AMP_NO_MEMORY, "amp: no memory for a workspace of %zu MB", bytes >> 20);
    return AMP_OK;
}

void amp_host_forget_overflow(struct darknet_amp *amp)
{
    if (amp->workspace) memset(amp->workspace, 0, amp->workspace_bytes);
}

static amp_status prepare_buffers(void *context, const char *needs_output, const char *needs_delta, amp_error *error)
{
    struct darknet_amp *amp = context;
    network *net = amp->net;
    for (int i = 0; i < net->n; i++) {
        layer *l = &net->layers[i];
        size_t wanted = elements(net, l);
        amp_host_buffers *have = &amp->buffers[i];
        give_back_moments(l);
        if (amp_host_is_native(l)) {
            give_back_internals(l);
            AMP_TRY(fit(&l->output, &have->output_capacity, wanted, needs_output[i], i, error));
            AMP_TRY(fit(&l->delta, &have->delta_capacity, wanted, needs_delta[i], i, error));
        } else if (net->batch > amp->batch) {
            return amp_fail(error, AMP_BAD_NETWORK, "layer %d: batch grew from %d to %d, but Darknet made this layer for %d; set batch in the .cfg",
                            i, amp->batch, net->batch, amp->batch);
        } else if (needs_delta[i] && !l->delta) {
            AMP_TRY(fit(&l->delta, &have->delta_capacity, wanted, 1, i, error));
        }
    }
    return fit_workspace(amp, net, error);
}

static float *output_of(void *context, int i) { return ((struct darknet_amp *)context)->net->layers[i].output; }
static float *delta_of(void *context, int i) { return ((struct darknet_amp *)context)->net->layers[i].delta; }

/* The network as Darknet's layer functions see it: a copy, with this layer's input, delta and truth. */
static network view(struct darknet_amp *amp, int i, float *input, float *input_delta, int training)
{
    network net = *amp->net;
    net.index = i;
    net.input = input;
    net.delta = input_delta;
    net.train = training;
    net.workspace = amp->workspace;
    for (int k = 0; k < i; k++) if (net.layers[k].truth) net.truth = net.layers[k].output;
    return net;
}

/* A layer that joins others reads them through its indices, which must see behind dropouts. */
static layer joined(struct darknet_amp *amp, int i, int *indices)
{
    layer l = amp->net->layers[i];
    for (int k = 0; l.type == ROUTE && k < l.n; k++) indices[k] = amp_host_producer(amp->net, l.input_layers[k], i);
    if (l.type == ROUTE) l.input_layers = indices;
    if (l.type == SHORTCUT) l.index = amp_host_producer(amp->net, l.index, i);
    return l;
}

static int join_count(struct darknet_amp *amp, int i)
{
    return amp->net->layers[i].type == ROUTE ? amp->net->layers[i].n : 1;
}

static void run_forward(void *context, int i, float *input, int training)
{
    struct darknet_amp *amp = context;
    int indices[join_count(amp, i)];
    amp_gap_forward(joined(amp, i, indices), view(amp, i, input, NULL, training));
}

static void run_backward(void *context, int i, float *input, float *input_delta, int training)
{
    struct darknet_amp *amp = context;
    int indices[join_count(amp, i)];
    amp_gap_backward(joined(amp, i, indices), view(amp, i, input, input_delta, training));
}

static float loss_of(void *context, int i) { return *((struct darknet_amp *)context)->net->layers[i].cost; }

static void random_uniform(void *context, float *numbers, size_t count)
{
    (void)context;
    for (size_t i = 0; i < count; i++) numbers[i] = rand_uniform(0, 1);
}

amp_host amp_host_callbacks(struct darknet_amp *amp)
{
    return (amp_host){ .context = amp, .prepare_buffers = prepare_buffers, .output = output_of, .delta = delta_of,
                       .forward = run_forward, .backward = run_backward, .loss = loss_of,
                       .random_uniform = random_uniform };
}
