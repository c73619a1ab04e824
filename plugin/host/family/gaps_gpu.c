/* Runs Darknet's own layers on a GPU: see gaps.h. */
#include "gaps.h"

#ifdef GPU

#include "../darknet/own.h"
#include "blas.h"
#include "dark_cuda.h"

/* The bytes of `count` floats, rounded up to 256, so that cuDNN's workspace after them is aligned. */
static size_t part_bytes(size_t count) { return (count * sizeof(float) + 255) / 256 * 256; }

static void own_array(float **array, size_t count)
{
    if (!*array) *array = cuda_make_array(NULL, count);
}

void amp_gap_prepare_gpu(layer *l)
{
    l->adam = 0; /* see free_internals_gpu in own.c */
    if (l->type != CONVOLUTIONAL || !l->batch_normalize) return;
    own_array(&l->mean_gpu, (size_t)l->n);
    own_array(&l->variance_gpu, (size_t)l->n);
    own_array(&l->x_gpu, (size_t)l->outputs * (size_t)l->batch);
}

size_t amp_gap_workspace_gpu(const network *net, int index)
{
    const layer *l = &net->layers[index];
    return part_bytes(l->type == SHORTCUT ? amp_gap_shortcut_room(l) : amp_gap_input_count(net, index));
}

void amp_gap_forward_gpu(layer l, network_state state)
{
    if (l.type == COST && l.cost_type == MASKED && state.truth) {
        copy_ongpu((int)amp_gap_input_count(&state.net, state.index), state.input, 1, state.workspace, 1);
        state.input = state.workspace;
    }
    layer inner[AMP_GAP_INNER];
    amp_gap_copy_inner(&l, inner);
    if (l.type == SHORTCUT) amp_gap_forward_shortcut_gpu(l, state);
    else AMP_RUN(l.forward_gpu, l, state);
}

void amp_gap_backward_gpu(layer l, network_state state)
{
    int count = (int)amp_gap_input_count(&state.net, state.index);
    float *sum = state.delta, *part = state.workspace;
    if (l.type == ROUTE) { /* adds to the deltas of the layers that it joins, and ignores state.delta */
        AMP_RUN(l.backward_gpu, l, state);
        return;
    }
    if (l.type == SHORTCUT) {
        amp_gap_backward_shortcut_gpu(l, state);
        return;
    }
    fill_ongpu(count, 0, part, 1);
    state.delta = part;
    state.workspace = part + part_bytes((size_t)count) / sizeof *part;
    layer inner[AMP_GAP_INNER];
    amp_gap_copy_inner(&l, inner);
    AMP_RUN(l.backward_gpu, l, state);
    if (sum) axpy_ongpu(count, 1, part, 1, sum, 1);
}

#endif
