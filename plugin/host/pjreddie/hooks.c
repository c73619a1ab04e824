/* The hooks a patched Darknet calls when it makes, resizes and frees a network and its layers. */
#include "deconvolutional_layer.h"
#include "device.h"
#include "pjreddie.h"

void darknet_amp_layer_made(struct network *net, struct darknet_amp_options *options, struct layer *made)
{
    if (amp_host_is_enabled(options)) amp_host_trim(net, made);
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
    switch (l->type) {
    case DECONVOLUTIONAL:
        resize_deconvolutional_layer(l, h, w);
        return 1;
    case ACTIVE: case BATCHNORM: case DROPOUT: /* AMP's own: what they need of buffers is made in prepare_buffers */
        l->w = l->out_w = w;
        l->h = l->out_h = h;
        l->inputs = l->outputs = w * h * l->out_c;
        return 1;
    default:
        return 0;
    }
}

void darknet_amp_attach(struct network *net, struct darknet_amp_options *options)
{
    net->amp = NULL;
    net->amp = amp_host_make(net, options);
    if (net->amp) amp_host_pin_note(&net->amp->memory->pinned, net);
}

void darknet_amp_free(struct network *net)
{
    struct darknet_amp *amp = net->amp;
    if (!amp) return;
    amp_fork_use_device(net);
    amp_host_release(amp, net);
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

void darknet_amp_read_output(struct network *net, int i)
{
    amp_error error;
    if (!net->amp || net->layers[i].output || !net->layers[i].out_w) return;
    amp_fail(&error, AMP_UNSUPPORTED, "amp: an inner layer's fp32 output is wanted (layer %d), which is not kept; run with -amp off", i);
    amp_host_die(&error);
}

void darknet_amp_gpu_wanted(int gpu)
{
    amp_error error;
    if (gpu >= 0) return;
    amp_fail(&error, AMP_UNSUPPORTED, "darknet: -nogpu: this command runs on a GPU alone, since a Darknet built with GPU=1 leaves "
             "parts of its losses out on the CPU; leave -nogpu out, or build without GPU=1 to train on the CPU");
    amp_host_die(&error);
}
