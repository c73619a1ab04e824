/* As darknet_gpu_double.cc, for AlexeyAB's Darknet, whose kernels run on a stream of its own: get_cuda_stream
 * says which. */
#include <vector>

#include "darknet.h"

#include "activations.h"
#include "blas.h"
#include "convolutional_layer.h"
#include "dark_cuda.h"

#define DARKNET_STREAM get_cuda_stream()
#include "darknet_kernels.h"

extern "C" {

void fill_ongpu(int n, float a, float *x, int ix) { KERNEL(fill_cpu(n, a, x, ix)); }
void copy_ongpu(int n, float *x, int ix, float *y, int iy) { KERNEL(copy_cpu(n, x, ix, y, iy)); }
void simple_copy_ongpu(int n, float *x, float *y) { KERNEL(copy_cpu(n, x, 1, y, 1)); }
void memcpy_ongpu(void *to, void *from, int bytes)
{
    cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDefault, DARKNET_STREAM);
}
void axpy_ongpu(int n, float a, float *x, int ix, float *y, int iy) { KERNEL(axpy_cpu(n, a, x, ix, y, iy)); }
void scal_ongpu(int n, float a, float *x, int ix) { KERNEL(scal_cpu(n, a, x, ix)); }
void scal_add_ongpu(int n, float a, float b, float *x, int ix) { KERNEL(scal_add_cpu(n, a, b, x, ix)); }
void mul_ongpu(int n, float *x, int ix, float *y, int iy) { KERNEL(mul_cpu(n, x, ix, y, iy)); }
void pow_ongpu(int n, float a, float *x, int ix, float *y, int iy) { KERNEL(pow_cpu(n, a, x, ix, y, iy)); }
void const_ongpu(int n, float a, float *x, int ix) { KERNEL(const_cpu(n, a, x, ix)); }
void mask_ongpu(int n, float *x, float number, float *mask)
{
    KERNEL(for (int i = 0; i < n; i++) if (mask[i] == number) x[i] = number);
}
void activate_array_ongpu(float *x, int n, ACTIVATION a) { KERNEL(activate_array(x, n, a)); }
void gradient_array_ongpu(float *x, int n, ACTIVATION a, float *delta)
{
    KERNEL(gradient_array(x, n, a, delta));
}
void activate_array_mish_ongpu(float *x, int n, float *input, float *y)
{
    KERNEL(activate_array_mish(x, n, input, y));
}
void gradient_array_mish_ongpu(int n, float *input, float *delta)
{
    KERNEL(gradient_array_mish(n, input, delta));
}
void activate_array_swish_ongpu(float *x, int n, float *sigmoid, float *y)
{
    KERNEL(activate_array_swish(x, n, sigmoid, y));
}
void gradient_array_swish_ongpu(float *x, int n, float *sigmoid, float *delta)
{
    KERNEL(gradient_array_swish(x, n, sigmoid, delta));
}
void scale_bias_gpu(float *x, float *scales, int batch, int n, int size)
{
    KERNEL(scale_bias(x, scales, batch, n, size));
}
void backward_scale_gpu(float *x, float *delta, int batch, int n, int size, float *updates)
{
    KERNEL(backward_scale_cpu(x, delta, batch, n, size, updates));
}
void l2_gpu(int n, float *x, float *truth, float *delta, float *error)
{
    KERNEL(l2_cpu(n, x, truth, delta, error));
}
void softmax_gpu_new_api(float *x, int n, int batch, int batch_offset, int groups, int group_offset,
                         int stride, float temp, float *y)
{
    KERNEL(softmax_cpu(x, n, batch, batch_offset, groups, group_offset, stride, temp, y));
}
void softmax_gpu(float *x, int n, int offset, int groups, float temp, float *y)
{
    KERNEL(softmax_cpu(x, n, groups, offset, 1, 0, 1, temp, y));
}
void softmax_x_ent_gpu(int n, float *x, float *truth, float *delta, float *error)
{
    KERNEL(softmax_x_ent_cpu(n, x, truth, delta, error));
}
/* x: (batch, layers, spatial), y: (batch, spatial, layers); forward is 0: the other way round */
void flatten_ongpu(float *x, int spatial, int layers, int batch, int forward, float *y)
{
    KERNEL(for (int at = 0; at < batch * layers * spatial; at++) {
        int b = at / (layers * spatial), c = at / spatial % layers, i = at % spatial;
        size_t planar = (size_t)at, packed = ((size_t)b * spatial + i) * layers + c;
        if (forward) y[packed] = x[planar];
        else y[planar] = x[packed];
    });
}

/* A convolution as Darknet's own on the CPU does it with what lies on the GPU, but that this one's col2im
 * adds to the delta there is. */
static layer on_gpu(layer l)
{
    l.weights = l.weights_gpu;
    l.biases = l.biases_gpu;
    l.output = l.output_gpu;
    l.delta = l.delta_gpu;
    l.weight_updates = l.weight_updates_gpu;
    l.bias_updates = l.bias_updates_gpu;
    return l;
}
static void check_convolution(const layer &l, const network_state &state)
{
    if (l.batch_normalize || l.activation_input_gpu) amp_cuda_report("a convolution that the double has not");
    if (state.net.cudnn_half) amp_cuda_report("a convolution of Darknet's own would compute in half");
    if (state.workspace) amp_cuda_is_device(state.workspace, l.workspace_size, "a convolution's workspace");
}
void forward_convolutional_layer_gpu(layer l, network_state state)
{
    check_convolution(l, state);
    KERNEL(forward_convolutional_layer(on_gpu(l), state));
}
void backward_convolutional_layer_gpu(layer l, network_state state)
{
    check_convolution(l, state);
    KERNEL({
        network_state mine = state;
        std::vector<float> part((size_t)l.inputs * l.batch);
        if (state.delta) mine.delta = part.data();
        backward_convolutional_layer(on_gpu(l), mine);
        for (size_t i = 0; state.delta && i < part.size(); i++) state.delta[i] += part[i];
    });
}

/* What is not a kernel, and yet in convolutional_kernels.cu. */
static void move_convolutional(layer l, void (*move)(float *, float *, size_t))
{
    move(l.weights_gpu, l.weights, (size_t)l.nweights);
    move(l.biases_gpu, l.biases, (size_t)l.n);
    if (l.weight_updates_gpu) move(l.weight_updates_gpu, l.weight_updates, (size_t)l.nweights);
    if (l.bias_updates_gpu) move(l.bias_updates_gpu, l.bias_updates, (size_t)l.n);
    if (l.adam) move(l.m_gpu, l.m, (size_t)l.nweights);
    if (!l.batch_normalize) return;
    move(l.scales_gpu, l.scales, (size_t)l.n);
    move(l.rolling_mean_gpu, l.rolling_mean, (size_t)l.n);
    move(l.rolling_variance_gpu, l.rolling_variance, (size_t)l.n);
}
void pull_convolutional_layer(layer l) { move_convolutional(l, cuda_pull_array); }
void push_convolutional_layer(layer l) { move_convolutional(l, cuda_push_array); }

}
