/* The hooks a patched Darknet calls when it makes, resizes and frees a network and its layers. */
#include "room.h"

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
    amp_own_complete(net);
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
    else if ((net->amp = amp_host_make(net))) amp_host_made(net);
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
