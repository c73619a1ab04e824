/* See arrays.h. */
#include "room.h"

#define ARRAY(field) ON_SIDE(on_gpu, l->field, l->field##_gpu)
#define PLACE(field) ON_SIDE(on_gpu, &l->field, &l->field##_gpu)

amp_host_arrays amp_host_arrays_of(layer *l, int on_gpu)
{
    amp_host_arrays a = { .weights = ARRAY(weights),
                          .biases = ARRAY(biases),
                          .scales = ARRAY(scales),
                          .rolling_mean = ARRAY(rolling_mean),
                          .rolling_variance = ARRAY(rolling_variance),
                          .weight_updates = PLACE(weight_updates),
                          .bias_updates = PLACE(bias_updates),
                          .scale_updates = PLACE(scale_updates) };
    if (l->type == RNN || l->type == GRU) a.state[0] = ARRAY(state);
    if (l->type == LSTM) {
        a.state[0] = ON_SIDE(on_gpu, l->h_cpu, l->h_gpu);
        a.state[1] = ON_SIDE(on_gpu, l->c_cpu, l->c_gpu);
    }
    return a;
}

float **amp_host_output_of(layer *l, int on_gpu) { return PLACE(output); }
float **amp_host_delta_of(layer *l, int on_gpu) { return PLACE(delta); }
