/* The hooks a patched Darknet calls when it makes, resizes and frees a network and its layers. */
#include "device.h"
#include "room.h"

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
    amp_own_complete(net);
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
