/* The hooks a patched Darknet calls when it makes, resizes and frees a network and its layers. */
#include <stdlib.h>

#include "deconvolutional_layer.h"
#include "device.h"
#include "pjreddie.h"

void darknet_amp_layer_made(struct network *net, struct darknet_amp_options *options, struct layer *made)
{
    (void)options;
    if (amp_host_is_parsing()) amp_host_trim(net, made);
}

/* resize_network goes on to free net->input, when it is through with its layers. */
void darknet_amp_layer_resized(struct network *net, struct layer *resized)
{
    amp_fork_use_device(net);
    amp_host_unpin(&net->amp->memory->pinned);
    amp_host_trim(net, resized);
}

int darknet_amp_resize_layer(struct layer *l, int w, int h)
{
    if (l->type == DECONVOLUTIONAL) resize_deconvolutional_layer(l, h, w);
    return l->type == DECONVOLUTIONAL;
}

/* A dropout borrows its neighbour's buffers; AMP's has its own. */
static void forget_borrowed_buffers(struct darknet_amp *amp, network *net, int i)
{
    int on_gpu = amp_host_on_gpu(net);
    layer *l = &net->layers[i];
    l->output = l->delta = *amp_host_output_of(l, on_gpu) = *amp_host_delta_of(l, on_gpu) = NULL;
    amp->memory->buffers[i] = (amp_host_buffers){ 0 };
}

amp_status amp_fork_take_over(struct darknet_amp *amp, struct network *net, amp_error *error)
{
    amp->memory = calloc(1, sizeof *amp->memory);
    if (amp->memory) amp->memory->buffers = calloc((size_t)net->n + 1, sizeof *amp->memory->buffers);
    if (!amp->memory || !amp->memory->buffers) return amp_fail(error, AMP_NO_MEMORY, "amp: out of memory");
    for (int i = 0; i < net->n; i++)
        if (!amp_host_is_native(&net->layers[i]) && !amp_host_layer_prepare(&net->layers[i], amp_host_on_gpu(net)))
            return amp_fail(error, AMP_NO_MEMORY, "layer %d: out of memory for its delta", i);
    amp_host_note_buffers(amp, net);
    for (int i = 0; i < net->n; i++) if (net->layers[i].type == DROPOUT) forget_borrowed_buffers(amp, net, i);
    return AMP_OK;
}

void darknet_amp_attach(struct network *net, struct darknet_amp_options *options)
{
    net->amp = NULL;
    net->amp = amp_host_make(net, options);
    if (net->amp) amp_host_pin_note(&net->amp->memory->pinned, net);
}

/* Darknet's free_layer leaves a dropout's output and delta alone, since they used to be its neighbour's. */
static void free_dropout_buffers(network *net)
{
    int on_gpu = amp_host_on_gpu(net);
    for (int i = 0; i < net->n; i++) {
        layer *l = &net->layers[i];
        if (l->type != DROPOUT) continue;
        amp_host_give_back(amp_host_output_of(l, on_gpu), on_gpu);
        amp_host_give_back(amp_host_delta_of(l, on_gpu), on_gpu);
        if (l->output) amp_host_give_back(&l->output, 0);
    }
}

void darknet_amp_free(struct network *net)
{
    struct darknet_amp *amp = net->amp;
    if (!amp) return;
    amp_fork_use_device(net);
    amp_host_unpin(&amp->memory->pinned);
    free_dropout_buffers(net);
    amp_host_give_back(&amp->memory->workspace, amp_host_on_gpu(net));
    free(amp->memory->buffers);
    free(amp->memory);
    net->amp = NULL;
    amp_host_free(amp);
}

void darknet_amp_resized(struct network *net)
{
    amp_fork_use_device(net);
    amp_host_note_buffers(net->amp, net);
    amp_host_pin_note(&net->amp->memory->pinned, net);
    amp_engine_invalidate(net->amp->engine);
}

void darknet_amp_gpu_wanted(int gpu)
{
    amp_error error;
    if (gpu >= 0) return;
    amp_fail(&error, AMP_UNSUPPORTED, "darknet: -nogpu: this command runs on a GPU alone, since a Darknet built with GPU=1 leaves "
             "parts of its losses out on the CPU; leave -nogpu out, or build without GPU=1 to train on the CPU");
    amp_host_die(&error);
}
