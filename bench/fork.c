/* See fork.h. */
#include "fork.h"

#ifndef ALEXEYAB

void fork_start(void) {}

network *fork_load(char *cfg, unsigned seed)
{
    srand(seed);
    return load_network(cfg, NULL, 0);
}

void fork_save(network *net, char *file) { save_weights(net, file); }

int fork_label_numbers(const layer *l)
{
    (void)l;
    return 5;
}

float fork_train(network *net) { return train_network_datum(net); }

void fork_forward(network *net)
{
    *net->seen += net->batch;
    net->train = 1;
    forward_network(net);
}

void fork_backward(network *net) { backward_network(net); }
void fork_update(network *net) { update_network(net); }

#ifdef GPU
const float *fork_images(const network *net) { return net->input_gpu; }
const float *fork_labels(const network *net) { return net->truth_gpu; }
#endif

#else
#include "network.h"
#include "parser.h"
#ifdef GPU
#include "convolutional_layer.h"
#include "dark_cuda.h"
#else
#include "gemm.h"
#endif

void fork_start(void)
{
#ifdef GPU
    cuda_set_device(gpu_index);
    cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync);
#else
    gpu_index = -1;
    init_cpu();
#endif
}

/* Its layers seed rand() with the time as they are made. This stands before the C library's, so that the
 * weights are the same in every process; rand() draws what srandom seeds. */
void (srand)(unsigned seed) { (void)seed; } /* in brackets: AMP has a macro of that name */

network *fork_load(char *cfg, unsigned seed)
{
    srandom(seed);
    network *net = load_network(cfg, NULL, 0);
    layer last = net->layers[net->n - 1];
    net->truths = last.truths ? last.truths : get_network_output_size(*net);
    net->input = calloc((size_t)net->inputs * net->batch, sizeof(float));
    net->truth = calloc((size_t)net->truths * net->batch, sizeof(float));
    if (net->input && net->truth) return net;
    fprintf(stderr, "step: out of memory\n");
    exit(1);
}

void fork_save(network *net, char *file) { save_weights(*net, file); }

int fork_label_numbers(const layer *l) { return l->truth_size; }

float fork_train(network *net)
{
    float loss = train_network_datum(*net, net->input, net->truth);
    if (*net->seen / net->batch % net->subdivisions == 0) fork_update(net);
    return loss;
}

static network_state pass;

void fork_forward(network *net)
{
    *net->seen += net->batch;
#ifdef AMP
    net->train = 1;
    if (net->amp) {
        darknet_amp_forward(net);
        return;
    }
#endif
    pass = (network_state){ .input = net->input, .truth = net->truth, .train = 1, .net = *net };
#ifdef GPU
    pass.input = *net->input_gpu;
    pass.truth = *net->truth_gpu;
    cuda_push_array(pass.input, net->input, (size_t)net->inputs * net->batch);
    cuda_push_array(pass.truth, net->truth, (size_t)net->truths * net->batch);
#ifdef CUDNN_HALF
    for (int i = 0; i < net->n; i++) {
        layer *l = &net->layers[i];
        if (net->cudnn_half && l->type == CONVOLUTIONAL && l->weights_gpu16)
            cuda_convert_f32_to_f16(l->weights_gpu, l->nweights, l->weights_gpu16);
    }
#endif
    forward_network_gpu(*net, pass);
#else
    forward_network(*net, pass);
#endif
}

void fork_backward(network *net)
{
#ifdef AMP
    if (net->amp) {
        darknet_amp_backward(net);
        return;
    }
#endif
#ifdef GPU
    backward_network_gpu(*net, pass);
#else
    backward_network(*net, pass);
#endif
}

void fork_update(network *net)
{
    ++*net->cur_iteration;
#ifdef GPU
    update_network_gpu(*net);
#else
    update_network(*net);
#endif
}

#ifdef GPU
const float *fork_images(const network *net) { return *net->input_gpu; }
const float *fork_labels(const network *net) { return *net->truth_gpu; }
#endif
#endif
