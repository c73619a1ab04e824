/* Darknet's fp32 layer buffers under AMP: keeps those that Darknet's code uses, and frees the others. */
#include "room.h"

/* ---- buffers that AMP does not use ---- */

/* Frees an array that Darknet keeps on both the CPU and the GPU. */
static void free_pair(float **on_cpu, float **there, int on_gpu)
{
    amp_host_free_array(on_cpu, 0);
    if (on_gpu && there && *there) amp_host_free_array(there, 1);
}

#define FREE_PAIR(field) free_pair(&l->field, ON_SIDE(1, NULL, &l->field##_gpu), on_gpu)

static void free_moments(layer *l, int on_gpu)
{
    FREE_PAIR(m);
    FREE_PAIR(v);
    FREE_PAIR(bias_m);
    FREE_PAIR(bias_v);
    FREE_PAIR(scale_m);
    FREE_PAIR(scale_v);
}

static void free_indexes(layer *l, int on_gpu)
{
    free(l->indexes);
    l->indexes = NULL;
#ifdef GPU
    float *there = (float *)l->indexes_gpu;
    if (!on_gpu || !there) return;
    amp_host_free_array(&there, 1);
    l->indexes_gpu = NULL;
#endif
}

/* Frees the buffers that only Darknet's own forward and backward of this layer use. */
static void free_internals(layer *l, int on_gpu)
{
    if (l->type == CONVOLUTIONAL || l->type == DECONVOLUTIONAL || l->type == CONNECTED
        || l->type == BATCHNORM) {
        FREE_PAIR(x);
        FREE_PAIR(x_norm);
    }
    if (l->type == DROPOUT) FREE_PAIR(rand);
    if (l->type == MAXPOOL) free_indexes(l, on_gpu);
    amp_own_free_internals(l, on_gpu);
}

/* ---- outputs, deltas and the workspace ---- */

float **amp_host_output_of(layer *l, int on_gpu) { return ON_SIDE(on_gpu, &l->output, &l->output_gpu); }
float **amp_host_delta_of(layer *l, int on_gpu) { return ON_SIDE(on_gpu, &l->delta, &l->delta_gpu); }

static size_t elements(const network *net, const layer *l) { return (size_t)l->outputs * net->batch; }

void amp_host_note_buffers(struct darknet_amp *amp, network *net)
{
    int on_gpu = amp_host_on_gpu(net);
    for (int i = 0; i < net->n; i++) {
        layer *l = &net->layers[i];
        size_t made = elements(net, l);
        if (amp_own_borrows_buffers(l) && amp->engine) continue; /* AMP owns these buffers */
        amp->memory->buffers[i] = (amp_host_buffers){ *amp_host_output_of(l, on_gpu) ? made : 0,
                                                      *amp_host_delta_of(l, on_gpu) ? made : 0,
                                                      l->output ? made : 0 };
    }
    amp_host_free_array(&net->workspace, on_gpu);
}

void amp_host_trim(const network *net, layer *l)
{
    int on_gpu = amp_host_on_gpu(net);
    if (!amp_host_is_native(l) || amp_own_borrows_buffers(l)) return;
    free_moments(l, on_gpu);
    free_internals(l, on_gpu);
    amp_host_free_array(amp_host_output_of(l, on_gpu), on_gpu);
    amp_host_free_array(amp_host_delta_of(l, on_gpu), on_gpu);
    if (on_gpu) {
        amp_host_free_array(&l->output, 0);
        amp_host_free_array(&l->delta, 0);
    }
    l->workspace_size = 0;
}

/* Sets a dropout's output and delta to NULL: in Darknet they belong to the layer before it. */
static void forget_borrowed_buffers(struct darknet_amp *amp, network *net, int i)
{
    int on_gpu = amp_host_on_gpu(net);
    layer *l = &net->layers[i];
    l->output = l->delta = *amp_host_output_of(l, on_gpu) = *amp_host_delta_of(l, on_gpu) = NULL;
    amp->memory->buffers[i] = (amp_host_buffers){ 0 };
}

amp_status amp_fork_take_over(struct darknet_amp *amp, struct network *net, amp_error *error)
{
    amp_own_complete(net);
    AMP_TRY(amp_own_check(net, error));
    amp_own_keep_deltas(net);
    amp->memory = amp_allocated(calloc(1, sizeof *amp->memory));
    amp->memory->buffers = amp_allocated(calloc((size_t)net->n + 1, sizeof *amp->memory->buffers));
    amp->memory->held = amp_allocated(calloc((size_t)net->n + 1, 1));
    for (int i = 0; i < net->n; i++) {
        layer *l = &net->layers[i];
        if (!amp_host_is_native(l)) ON_SIDE(amp_host_on_gpu(net), amp_gap_prepare(l), amp_gap_prepare_gpu(l));
    }
    amp_host_note_buffers(amp, net);
    for (int i = 0; i < net->n; i++)
        if (amp_own_borrows_buffers(&net->layers[i])) forget_borrowed_buffers(amp, net, i);
    return AMP_OK;
}

/* Frees the outputs and deltas that AMP gave to dropouts: Darknet's free_layer does not free them. */
static void free_dropout_buffers(network *net)
{
    int on_gpu = amp_host_on_gpu(net);
    for (int i = 0; i < net->n; i++) {
        layer *l = &net->layers[i];
        if (!amp_own_borrows_buffers(l)) continue;
        amp_host_free_array(amp_host_output_of(l, on_gpu), on_gpu);
        amp_host_free_array(amp_host_delta_of(l, on_gpu), on_gpu);
        if (l->output) amp_host_free_array(&l->output, 0);
    }
}

void amp_host_release(struct darknet_amp *amp, network *net)
{
    amp_host_unpin(&amp->memory->pinned);
    free_dropout_buffers(net);
    amp_host_free_array(&amp->memory->workspace, amp_host_on_gpu(net));
    free(amp->memory->buffers);
    free(amp->memory->held);
    free(amp->memory);
}

static amp_status fit(float **buffer, size_t *capacity, size_t wanted, int needed, int on_gpu,
                      int layer_index, amp_error *error)
{
    if (needed && *buffer && *capacity >= wanted) return AMP_OK;
    if (*buffer) amp_host_free_array(buffer, on_gpu);
    if (needed) *buffer = amp_host_allocate_array(wanted, on_gpu);
    *capacity = *buffer ? wanted : 0;
    if (*buffer || !needed) return AMP_OK;
    return amp_fail(error, AMP_NO_MEMORY, "layer %d: no memory%s for %zu MB of fp32 output; lower batch or "
                    "raise subdivisions", layer_index, on_gpu ? " on the GPU" : "",
                    wanted * sizeof **buffer >> 20);
}

/* Allocates the fp32 output and delta of a native layer, or frees them if they are not needed. On a GPU, a
 * needed output also gets a copy in CPU memory. Darknet reads or overwrites this copy when it uses the output
 * as the network's output, or as the input of a loss on the CPU. */
static amp_status fit_native(const network *net, int i, int needs_output, int needs_delta,
                             amp_host_buffers *have, amp_error *error)
{
    layer *l = &net->layers[i];
    int on_gpu = amp_host_on_gpu(net);
    size_t wanted = elements(net, l);
    free_internals(l, on_gpu);
    AMP_TRY(fit(amp_host_output_of(l, on_gpu), &have->output_capacity, wanted, needs_output, on_gpu, i,
                error));
    AMP_TRY(fit(amp_host_delta_of(l, on_gpu), &have->delta_capacity, wanted, needs_delta, on_gpu, i, error));
    if (!on_gpu) return AMP_OK;
    if (l->delta) amp_host_free_array(&l->delta, 0);
    return fit(&l->output, &have->copy_capacity, wanted, needs_output, 0, i, error);
}

amp_status amp_host_fit_workspace(struct darknet_amp *amp, const network *net, amp_error *error)
{
    size_t bytes = amp_fork_workspace(net, 0);
    int on_gpu = amp_host_on_gpu(net);
    if (bytes <= amp->memory->workspace_bytes) return AMP_OK;
    amp_host_free_array(&amp->memory->workspace, on_gpu);
    amp->memory->workspace = amp_host_allocate_array((bytes + sizeof(float) - 1) / sizeof(float), on_gpu);
    amp->memory->workspace_bytes = amp->memory->workspace ? bytes : 0;
    if (!amp->memory->workspace)
        return amp_fail(error, AMP_NO_MEMORY, "amp: no memory for a workspace of %zu MB", bytes >> 20);
    return AMP_OK;
}

amp_status amp_host_fit_buffers(struct darknet_amp *amp, const char *needs_output, const char *needs_delta,
                                amp_error *error)
{
    network *net = amp->net;
    int on_gpu = amp_host_on_gpu(net);
    for (int i = 0; i < net->n; i++) {
        layer *l = &net->layers[i];
        float **delta = amp_host_delta_of(l, on_gpu);
        amp_host_buffers *have = &amp->memory->buffers[i];
        free_moments(l, on_gpu);
        if (amp_host_is_native(l)) {
            AMP_TRY(fit_native(net, i, needs_output[i], needs_delta[i], have, error));
        } else if (net->batch > amp->batch) {
            return amp_fail(error, AMP_BAD_NETWORK, "layer %d: the batch grew from %d to %d images, but "
                            "Darknet made this layer for %d; set batch in the .cfg to the larger number",
                            i, amp->batch, net->batch, amp->batch);
        } else if (needs_delta[i] && !*delta) {
            AMP_TRY(fit(delta, &have->delta_capacity, elements(net, l), 1, on_gpu, i, error));
        }
    }
    return amp_host_fit_workspace(amp, net, error);
}

void amp_fork_forget_overflow(struct darknet_amp *amp)
{
    amp_backend *b = amp->engine->backend;
    amp_error error;
    if (amp->memory->workspace)
        amp_host_check(b->zero(b, amp->memory->workspace, amp->memory->workspace_bytes, &error), &error);
}

/* ---- memory for a fork's gaps.c (declared in own.h) ---- */

float *amp_gap_scratch(size_t count)
{
    float *memory = calloc(count ? count : 1, sizeof *memory);
    if (!memory)
        darknet_amp_refuse("amp: out of memory: a layer that runs in Darknet's own code needs %zu MB",
                           count * sizeof *memory >> 20);
    return memory;
}

void amp_gap_own_buffer(float **buffer, size_t count)
{
    if (!*buffer) *buffer = amp_gap_scratch(count);
}

layer amp_gap_at_step(const layer *inner, int step)
{
    layer l = *inner;
    size_t offset = (size_t)step * (size_t)l.outputs * (size_t)l.batch;
    l.output += offset;
    l.delta += offset;
    if (l.x) l.x += offset;
    if (l.x_norm) l.x_norm += offset;
    return l;
}
