/* Images and labels for networks of a Darknet built with GPU=1. Include network.h first. */
#pragma once

#include <string.h>

/* Numbers from 0 to below 1; returns the seed of those after them. */
static inline unsigned random_floats(float *to, int count, unsigned seed)
{
    for (int i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        to[i] = (float)(seed >> 8) / 16777216.0f;
    }
    return seed;
}

/* Image b shows one box, of class number % 2, or it is of the class with this number. */
static inline void set_truth(network *net, int b, unsigned number)
{
    const layer *last = &net->layers[net->n - 1];
    const float box[5] = { .5f, .4f, .3f, .2f, (float)(number % 2) };
    float *truth = net->truth + (size_t)b * (size_t)net->truths;
    memset(truth, 0, sizeof(float) * (size_t)net->truths);
    if (last->type == COST || last->type == SOFTMAX) truth[number % (unsigned)net->truths] = 1;
    else memcpy(truth, box, sizeof box);
}
