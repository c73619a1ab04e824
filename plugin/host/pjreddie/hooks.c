/* The hooks a patched Darknet calls when it makes, resizes and frees a network and its layers. */
#include "deconvolutional_layer.h"
#include "device.h"
#include "pjreddie.h"

static void layer_made(struct network *net, struct layer *made)
{
    if (!net->amp && !amp_host_is_asked()) return;
    if (net->amp) { /* resize_network goes on to free net->input, when it is through with its layers */
        amp_fork_use_device(net);
        amp_host_unpin(&net->amp->memory->pinned);
    }
    amp_host_trim(net, made);
}

static void resized(struct network *net)
{
    amp_fork_use_device(net);
    amp_host_note_buffers(net->amp, net);
    amp_engine_invalidate(net->amp->engine);
}

void darknet_amp_made(struct network *net, struct layer *made)
{
    if (made) {
        layer_made(net, made);
        return;
    }
    if (net->amp) resized(net);
    else net->amp = amp_host_make(net);
    if (net->amp) amp_host_pin_note(&net->amp->memory->pinned, net);
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

void darknet_amp_free(struct network *net)
{
    struct darknet_amp *amp = net->amp;
    if (!amp) return;
    amp_fork_use_device(net);
    amp_host_release(amp, net);
    net->amp = NULL;
    amp_host_free(amp);
}
