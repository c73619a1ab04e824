/* The hooks that a patched Darknet calls when it makes, resizes and frees a network and its layers. */
#include "room.h"

#include <string.h>

#include "../network/fits.h"
#include "../program/cfg.h"

void darknet_amp_resizes(struct network *net, const struct layer *l)
{
    if (net->amp)
        amp_this_thread()->resizing = amp_host_is_native(l) ? AMP_RESIZES_OURS : AMP_RESIZES_DARKNETS;
}

FILE *darknet_amp_open_cfg(const char *file)
{
    amp_fitting_choose(file);
    return amp_cfg_open(file);
}

static void layer_made(struct network *net, struct layer *made)
{
    if (!net->amp && !amp_host_parser_uses_amp()) return;
    if (net->amp) { /* resize_network frees net->input after it has resized the layers */
        amp_this_thread()->resizing = AMP_RESIZES_DARKNETS;
        amp_fork_use_device(net);
        amp_host_unpin(&net->amp->memory->pinned);
    }
    amp_host_trim(net, made);
}

static void resized(struct network *net)
{
    amp_this_thread()->resizing = AMP_RESIZES_NOTHING;
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
    else if ((net->amp = amp_host_create(net))) amp_host_prepare(net);
    /* AlexeyAB's `classifier valid` passes a single image to a network that expects time_steps images. */
    if (net->amp && amp_this_program()->measures && net->batch > 1) set_batch_network(net, 1);
    if (net->amp) amp_host_pin_note(&net->amp->memory->pinned, net);
}

/* Resizes some layers instead of Darknet's resize_network; returns 0 for the others. For activation,
 * batchnorm and dropout layers, updates only the shape: prepare_buffers allocates what AMP needs. */
int darknet_amp_resize_layer(struct layer *l, int w, int h)
{
    if (amp_own_resize(l, w, h)) return 1;
    if (l->type != ACTIVE && l->type != BATCHNORM && !amp_own_borrows_buffers(l)) return 0;
    l->w = l->out_w = w;
    l->h = l->out_h = h;
    l->inputs = l->outputs = w * h * l->out_c;
    return 1;
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

#ifdef GPU
/* Whether the array `name` (its name in Darknet's source) is written by each pass, or by the loop that fills
 * in images and labels, before it is read. Then its old contents are not copied to the GPU. */
static int is_written_first(const char *name)
{
    static const char *const ends[] = { "output", "delta", "input", "truth", "loss", "rand", "squared",
                                        "norms" };
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t end = strlen(ends[i]);
        if (end <= length && !strcmp(name + length - end, ends[i])) return 1;
    }
    return 0;
}

/* Darknet's own function: copies the array to the GPU, or allocates zeros there if array is NULL. It is
 * declared here because AlexeyAB's fork declares it in another header. */
float *(cuda_make_array)(float *array, size_t count);

float *darknet_amp_gpu_array(float *array, size_t count, const char *name)
{
    int resizing = amp_this_thread()->resizing;
    if ((!resizing && !amp_host_parser_uses_amp()) || !is_written_first(name))
        return (cuda_make_array)(array, count);
    return resizing == AMP_RESIZES_OURS ? NULL : (cuda_make_array)(NULL, count);
}
#endif
