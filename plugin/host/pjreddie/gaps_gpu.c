/* Darknet's own layers on a GPU: gaps.h lists what is wrong in stock's code there. */
#include "gaps.h"

#ifdef GPU

#include "blas.h"
#include "convolutional_layer.h"
#include "cuda.h"
#include "utils.h"

/* ---- what layers need beforehand ---- */

#ifdef CUDNN
static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* Sets the cuDNN descriptors of a crnn's convolution to `batch` images, because the convolution runs on one
 * time step at a time. Darknet sets them to batch * steps images, the size of the convolution's buffers.
 * After the change, cuDNN chooses its algorithms again. */
static void describe_one_step(layer *conv)
{
    size_t forward = 0, filter = 0, data = 0;
    cudnn_convolutional_setup(conv);
    if (cudnnGetConvolutionForwardWorkspaceSize(cudnn_handle(), conv->srcTensorDesc, conv->weightDesc,
            conv->convDesc, conv->dstTensorDesc, conv->fw_algo, &forward) != CUDNN_STATUS_SUCCESS
        || cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnn_handle(), conv->srcTensorDesc,
            conv->ddstTensorDesc, conv->convDesc, conv->dweightDesc, conv->bf_algo,
            &filter) != CUDNN_STATUS_SUCCESS
        || cudnnGetConvolutionBackwardDataWorkspaceSize(cudnn_handle(), conv->weightDesc,
            conv->ddstTensorDesc, conv->convDesc, conv->dsrcTensorDesc, conv->bd_algo,
            &data) != CUDNN_STATUS_SUCCESS)
        error("cuDNN cannot run a convolution of this crnn layer");
    conv->workspace_size = larger(forward, larger(filter, data));
}
#endif

void amp_gap_prepare_gpu(layer *l)
{
#ifdef CUDNN
    if (l->type == CRNN) {
        describe_one_step(l->input_layer);
        describe_one_step(l->self_layer);
        describe_one_step(l->output_layer);
    }
#endif
}

size_t amp_gap_workspace_gpu(const layer *l)
{
    switch (l->type) {
        case NORMALIZATION: return (size_t)l->batch*l->inputs*sizeof(float);
        case CRNN: return amp_gap_workspace(l);
        default: return l->workspace_size;
    }
}

/* ---- losses -------------------------------------------------------------------------------------------- */

/* Runs the CPU code of a loss (gaps.c): copies its input from the GPU, and its results to the GPU. */
static void forward_on_cpu(layer l, network net)
{
    const size_t n = (size_t)l.batch*l.inputs;
    cuda_pull_array(net.input_gpu, net.input, n);
    amp_gap_forward(l, net);
    cuda_push_array(l.output_gpu, l.output, n);
    cuda_push_array(l.delta_gpu, l.delta, n);
}

int amp_gap_is_on_cpu(const layer *l)
{
    return l->type == COST || (l->type == SOFTMAX && l->spatial && !l->softmax_tree);
}

/* ---- any layer ----------------------------------------------------------------------------------------- */

/* Runs a backward that would overwrite net.delta_gpu, and adds its result to net.delta_gpu instead, because
 * other consumers may have added to it already. */
static void adding(layer l, network net)
{
    float *sum = net.delta_gpu;
    net.delta_gpu = net.workspace;
    l.backward_gpu(l, net);
    axpy_gpu(l.batch*l.inputs, 1, net.workspace, 1, sum, 1);
}

void amp_gap_forward_gpu(layer l, network net)
{
    if (l.type == COST && !net.truth) return;
    if (amp_gap_is_on_cpu(&l) || (l.type == ISEG && !net.truth)) forward_on_cpu(l, net);
    else l.forward_gpu(l, net);
}

void amp_gap_backward_gpu(layer l, network net)
{
    if (!net.delta_gpu && !amp_gap_works_without_delta(l.type)) return;
    switch (l.type) {
        case LSTM: fill_gpu(l.outputs*l.batch, 0, l.dc_gpu, 1); break;
        case NORMALIZATION: adding(l, net); return;
        case L2NORM: axpy_gpu(l.batch*l.inputs, 1, l.delta_gpu, 1, net.delta_gpu, 1); return;
        default: break;
    }
    l.backward_gpu(l, net);
}

#endif
