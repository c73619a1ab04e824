/* The arrays of Darknet's structs, and its layers, on the CPU and on a GPU: see device.h. */
#include "device.h"
#include "links.h"

#include <stdlib.h>
#include <string.h>

#include "pjreddie.h"
#include "losses.h"
#include "gaps.h"
#include "gaps_gpu.h"

#ifdef GPU
/* A CUDA call of this file's failed: nothing can be gone on with. */
static void check(cudaError_t status, const char *call)
{
    amp_error error;
    if (status == cudaSuccess) return;
    amp_fail(&error, AMP_UNSUPPORTED, "amp: %s: %s (%s)", call, cudaGetErrorName(status), cudaGetErrorString(status));
    amp_host_die(&error);
}
#endif

/* ---- where ---- */

int amp_host_on_gpu(const network *net)
{
#ifdef GPU
    return net->gpu_index >= 0;
#else
    (void)net;
    return 0;
#endif
}

amp_dtype amp_fork_default_dtype(void)
{
#ifdef GPU
    return AMP_FP16;
#else
    return AMP_BF16;
#endif
}

/* Not cuda_set_device, which writes a global of Darknet's: replicas' threads come through here side by side. */
void amp_fork_use_device(const network *net)
{
#ifdef GPU
    if (net->gpu_index >= 0) check(cudaSetDevice(net->gpu_index), "cudaSetDevice");
#else
    (void)net;
#endif
}

#ifdef GPU
/* Makes the GPU the thread's, with a context on it. */
static size_t gpu_free(int gpu, size_t *all)
{
    size_t available = 0;
    check(cudaSetDevice(gpu), "cudaSetDevice");
    check(cudaMemGetInfo(&available, all), "cudaMemGetInfo");
    return available;
}
#endif

size_t amp_fork_free_gpu_memory(size_t *all)
{
    *all = 0;
#ifdef GPU
    if (gpu_index >= 0) return gpu_free(gpu_index, all);
#endif
    return 0;
}

double amp_fork_gpu_memory_in_use_mb(const network *net)
{
#ifdef GPU
    size_t all = 0;
    if (net->gpu_index >= 0) {
        size_t available = gpu_free(net->gpu_index, &all);
        return (double)(all - available) / (1 << 20);
    }
#endif
    (void)net;
    return -1;
}

void amp_host_wait(const network *net)
{
#ifdef GPU
    if (net->gpu_index >= 0) check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
#else
    (void)net;
#endif
}

int amp_fork_device(void)
{
#ifdef GPU
    return gpu_index;
#else
    return -1;
#endif
}

/* ---- arrays ---- */

#ifdef GPU
static amp_host_arrays gpu_arrays_of(layer *l)
{
    amp_host_arrays a = { .weights = l->weights_gpu, .biases = l->biases_gpu, .scales = l->scales_gpu,
                          .rolling_mean = l->rolling_mean_gpu, .rolling_variance = l->rolling_variance_gpu,
                          .weight_updates = &l->weight_updates_gpu, .bias_updates = &l->bias_updates_gpu,
                          .scale_updates = &l->scale_updates_gpu };
    if (l->type == RNN || l->type == GRU) a.state[0] = l->state_gpu;
    if (l->type == LSTM) {
        a.state[0] = l->h_gpu;
        a.state[1] = l->c_gpu;
    }
    return a;
}
#endif

amp_host_arrays amp_host_arrays_of(layer *l, int on_gpu)
{
#ifdef GPU
    if (on_gpu) return gpu_arrays_of(l);
#endif
    (void)on_gpu;
    amp_host_arrays a = { .weights = l->weights, .biases = l->biases, .scales = l->scales, .rolling_mean = l->rolling_mean,
                          .rolling_variance = l->rolling_variance, .weight_updates = &l->weight_updates,
                          .bias_updates = &l->bias_updates, .scale_updates = &l->scale_updates };
    if (l->type == RNN || l->type == GRU) a.state[0] = l->state;
    if (l->type == LSTM) {
        a.state[0] = l->h_cpu;
        a.state[1] = l->c_cpu;
    }
    return a;
}

float **amp_host_output_of(layer *l, int on_gpu)
{
#ifdef GPU
    if (on_gpu) return &l->output_gpu;
#endif
    (void)on_gpu;
    return &l->output;
}

float **amp_host_delta_of(layer *l, int on_gpu)
{
#ifdef GPU
    if (on_gpu) return &l->delta_gpu;
#endif
    (void)on_gpu;
    return &l->delta;
}

float *amp_fork_image(const network *net)
{
#ifdef GPU
    if (net->gpu_index >= 0) return net->input_gpu;
#endif
    return net->input;
}

float *amp_fork_image_delta(const network *net)
{
#ifdef GPU
    if (net->gpu_index >= 0) return net->delta_gpu;
#endif
    return net->delta;
}

const float *amp_host_truth(const network *net)
{
#ifdef GPU
    if (net->gpu_index >= 0) return net->truth ? net->truth_gpu : NULL;
#endif
    return net->truth;
}

/* ---- between the two sides ---- */

#ifdef GPU
/* The labels, through memory that is page-locked already: they are few. */
static amp_status push_truth(const network *net, amp_backend *b, amp_error *error)
{
    size_t bytes = (size_t)net->batch * (size_t)net->truths * sizeof(float);
    void *staged;
    AMP_TRY(b->stage(b, net->truth_gpu, bytes, &staged, error));
    memcpy(staged, net->truth, bytes);
    return b->upload_later(b, net->truth_gpu, staged, bytes, error);
}
#endif

/* Without waiting. Darknet writes to net->input again in the next get_next_batch, and a caller of network_predict to what it has put
 * there when that returns: both after this forward's hook, before the end of which the engine waits for these copies. */
amp_status amp_host_push_input(const network *net, amp_backend *b, amp_error *error)
{
#ifdef GPU
    if (net->gpu_index >= 0) {
        AMP_TRY(b->upload_later(b, net->input_gpu, net->input, (size_t)net->batch * (size_t)net->inputs * sizeof(float), error));
        if (net->truth && net->truths) return push_truth(net, b, error);
    }
#endif
    (void)net, (void)b, (void)error;
    return AMP_OK;
}

amp_status amp_host_pull_output(const network *net, int layer, size_t count, amp_backend *b, amp_error *error)
{
#ifdef GPU
    if (net->gpu_index >= 0)
        return b->download(b, net->layers[layer].output, net->layers[layer].output_gpu, count * sizeof(float), error);
#endif
    (void)net, (void)layer, (void)count, (void)b, (void)error;
    return AMP_OK;
}

/* ---- memory that Darknet may free or make anew: calloc's, and on a GPU cudaMalloc's ---- */

float *amp_host_take(size_t count, int on_gpu)
{
#ifdef GPU
    if (on_gpu) {
        void *memory = NULL;
        if (cudaMalloc(&memory, count * sizeof(float)) != cudaSuccess) {
            cudaGetLastError(); /* or Darknet would meet it at its next call */
            return NULL;
        }
        check(cudaMemset(memory, 0, count * sizeof(float)), "cudaMemset");
        return memory;
    }
#endif
    (void)on_gpu;
    return calloc(count, sizeof(float));
}

void amp_host_give_back(float **buffer, int on_gpu)
{
#ifdef GPU
    if (on_gpu) {
        check(cudaFree(*buffer), "cudaFree"); /* waits for what is queued */
        *buffer = NULL;
        return;
    }
#endif
    (void)on_gpu;
    free(*buffer);
    *buffer = NULL;
}

void amp_host_give_back_moments(layer *l, int on_gpu)
{
    float **moments[] = { &l->m, &l->v, &l->bias_m, &l->bias_v, &l->scale_m, &l->scale_v };
    for (size_t k = 0; k < sizeof moments / sizeof *moments; k++) amp_host_give_back(moments[k], 0);
#ifdef GPU
    if (!on_gpu) return;
    float **on_device[] = { &l->m_gpu, &l->v_gpu, &l->bias_m_gpu, &l->bias_v_gpu, &l->scale_m_gpu, &l->scale_v_gpu };
    for (size_t k = 0; k < sizeof on_device / sizeof *on_device; k++)
        if (*on_device[k]) amp_host_give_back(on_device[k], 1);
#else
    (void)on_gpu;
#endif
}

#ifdef GPU
static void give_back_gpu_internals(layer *l)
{
    if (l->type == CONVOLUTIONAL || l->type == DECONVOLUTIONAL || l->type == CONNECTED || l->type == BATCHNORM) {
        if (l->x_gpu) amp_host_give_back(&l->x_gpu, 1);
        if (l->x_norm_gpu) amp_host_give_back(&l->x_norm_gpu, 1);
    }
    if (l->type == DROPOUT && l->rand_gpu) amp_host_give_back(&l->rand_gpu, 1);
    if (l->type == MAXPOOL && l->indexes_gpu) {
        check(cudaFree(l->indexes_gpu), "cudaFree");
        l->indexes_gpu = NULL;
    }
}
#endif

void amp_host_give_back_internals(layer *l, int on_gpu)
{
    if (l->type == CONVOLUTIONAL || l->type == DECONVOLUTIONAL || l->type == CONNECTED || l->type == BATCHNORM) {
        amp_host_give_back(&l->x, 0);
        amp_host_give_back(&l->x_norm, 0);
    }
    if (l->type == DROPOUT) amp_host_give_back(&l->rand, 0);
    if (l->type == MAXPOOL) {
        free(l->indexes);
        l->indexes = NULL;
    }
#ifdef GPU
    if (on_gpu) give_back_gpu_internals(l);
#else
    (void)on_gpu;
#endif
}

void amp_host_give_back_workspace(network *net)
{
    amp_host_give_back(&net->workspace, amp_host_on_gpu(net));
}

/* ---- Darknet's own layers ---- */

int amp_host_layer_prepare(layer *l, int on_gpu)
{
#ifdef GPU
    if (on_gpu) {
        amp_gap_prepare_gpu(l);
        return 1;
    }
#endif
    (void)on_gpu;
    return amp_gap_prepare(l);
}

size_t amp_host_layer_workspace(const layer *l, int on_gpu)
{
#ifdef GPU
    if (on_gpu) return amp_gap_workspace_gpu(l);
#endif
    (void)on_gpu;
    return l->workspace_size; /* crnn makes its own (gaps.h) */
}

/* With cuDNN, Darknet's crnn has no products on a GPU: its convolutions are cuDNN's there. */
int amp_host_lends_products(const layer *l, int on_gpu)
{
#ifdef CUDNN
    if (on_gpu && l->type == CRNN) return 0;
#endif
    (void)on_gpu;
    return l->type == RNN || l->type == GRU || l->type == LSTM || l->type == CRNN;
}

#ifdef GPU
/* Those whose loss Darknet computes on the CPU, from the host's copy of the labels. */
static int reads_labels_on_host(const layer *l)
{
    return l->type == YOLO || l->type == REGION || l->type == DETECTION || l->type == ISEG;
}

/* A layer with truth=1 gives later losses their labels. */
static void view_truth_gpu(network *net, const layer *truth, int pulled)
{
    net->truth = truth->output;
    net->truth_gpu = truth->output_gpu;
    if (pulled) cuda_pull_array(truth->output_gpu, truth->output, (size_t)truth->outputs * (size_t)net->batch);
}

/* As in stock, yolo and its like pull into their producer's host output, whether or not anyone else reads that. */
static void view_gpu(network *net, int index, float *input, float *input_delta)
{
    int producer = amp_host_producer(net, index - 1, index), truth = amp_host_truth_layer(net, index);
    net->input_gpu = input;
    net->delta_gpu = input_delta;
    net->delta = NULL;
    if (producer >= 0) net->input = net->layers[producer].output;
    if (truth >= 0) view_truth_gpu(net, &net->layers[truth], reads_labels_on_host(&net->layers[index]));
}
#endif

void amp_host_layer_view(network *net, int index, float *input, float *input_delta)
{
#ifdef GPU
    if (net->gpu_index >= 0) {
        view_gpu(net, index, input, input_delta);
        return;
    }
#endif
    net->input = input;
    net->delta = input_delta;
    int truth = amp_host_truth_layer(net, index);
    if (truth >= 0) net->truth = net->layers[truth].output;
}

void amp_host_layer_forward(layer l, network net)
{
#ifdef GPU
    if (net.gpu_index >= 0) {
        amp_gap_forward_gpu(l, net);
        return;
    }
#endif
    amp_gap_forward(l, net);
}

void amp_host_layer_backward(layer l, network net)
{
#ifdef GPU
    if (net.gpu_index >= 0) {
        amp_gap_backward_gpu(l, net);
        return;
    }
#endif
    amp_gap_backward(l, net);
}
