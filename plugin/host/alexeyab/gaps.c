/* See gaps.h. */
#include "gaps.h"

#include <stdlib.h>
#include <string.h>

#include "../common/failure.h"
#include "../../tensor/status.h"

static int own_buffer(float **buffer, size_t count)
{
    if (!*buffer) *buffer = calloc(count ? count : 1, sizeof **buffer);
    return *buffer != NULL;
}

int amp_gap_prepare(layer *l)
{
    size_t count = (size_t)l->outputs * (size_t)l->batch;
    if (l->type != CONVOLUTIONAL || !l->batch_normalize) return 1;
    return own_buffer(&l->mean, (size_t)l->n) && own_buffer(&l->variance, (size_t)l->n)
        && own_buffer(&l->x, count) && own_buffer(&l->x_norm, count);
}

static float *scratch(size_t count)
{
    amp_error error;
    float *memory = calloc(count ? count : 1, sizeof *memory);
    if (memory) return memory;
    amp_fail(&error, AMP_NO_MEMORY, "amp: no memory for %zu MB in a layer of Darknet's own",
             count * sizeof *memory >> 20);
    amp_host_die(&error);
}

/* Of all images (and time steps) that go in; l.inputs is not always that. */
static size_t input_count(const network_state *state)
{
    const network *net = &state->net;
    return (size_t)(state->index ? net->layers[state->index - 1].outputs : net->inputs) * (size_t)net->batch;
}

void amp_gap_forward(layer l, network_state state)
{
    size_t count = input_count(&state);
    float *copy = NULL;
    if (l.type == COST && l.cost_type == MASKED && state.truth) {
        copy = scratch(count);
        memcpy(copy, state.input, count * sizeof *copy);
        state.input = copy;
    }
    l.forward(l, state);
    free(copy);
}

void amp_gap_backward(layer l, network_state state)
{
    size_t count = input_count(&state);
    float *sum = state.delta, *part = NULL;
    /* A route's, which adds to the layers it joins, does not look at it. */
    if (l.type != ROUTE) state.delta = part = scratch(count);
    l.backward(l, state);
    for (size_t i = 0; part && sum && i < count; i++) sum[i] += part[i];
    free(part);
}
