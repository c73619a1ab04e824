/* Darknet's own layers on a GPU: gaps.h lists what stock's get wrong there. */
#include "gaps.h"

#ifdef GPU

#include "activations.h"
#include "blas.h"
#include "convolutional_layer.h"
#include "cuda.h"
#include "utils.h"

/* ---- what layers need beforehand ---- */

#ifdef CUDNN
static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/*
 * crnn makes its convolutions for batch * steps images, so that their buffers hold all steps, and then runs
 * them on batch images: their descriptors still have to learn that. Algorithms are chosen anew, and may
 * want another workspace.
 */
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
    layer *connected[] = {l->input_layer, l->self_layer, l->output_layer, l->ur, l->uz, l->uh, l->wr,
                          l->wz, l->wh, l->uf, l->ui, l->ug, l->uo, l->wf, l->wi, l->wg, l->wo};
    for (size_t i = 0; i < sizeof connected/sizeof *connected; i++){
        if (connected[i]) connected[i]->amp_unclipped = 1;
    }
#ifdef CUDNN
    if (l->type == CRNN){
        describe_one_step(l->input_layer);
        describe_one_step(l->self_layer);
        describe_one_step(l->output_layer);
    }
#endif
}

size_t amp_gap_workspace_gpu(const layer *l)
{
    switch (l->type){
        case NORMALIZATION: return (size_t)l->batch*l->inputs*sizeof(float);
        case COST: return l->smooth ? (size_t)l->batch*l->inputs*sizeof(float) : 0;
        case CRNN: return amp_gap_workspace(l);
        default: return l->workspace_size;
    }
}

/* ---- losses -------------------------------------------------------------------------------------------- */

/* The arguments that stock gives its CPU form. */
static void forward_spatial_softmax(layer l, network net)
{
    const int n = l.batch*l.inputs;
    softmax_gpu(net.input_gpu, l.c, l.batch, l.inputs, l.w*l.h, 1, l.w*l.h, 1, l.output_gpu);
    if (!net.truth || l.noloss) return;
    softmax_x_ent_gpu(n, l.output_gpu, net.truth_gpu, l.delta_gpu, l.loss_gpu);
    cuda_pull_array(l.loss_gpu, l.loss, n);
    l.cost[0] = sum_array(l.loss, n);
}

/* The labels decide what is masked (SECRET_NUM) and what is background (0); `truth`, maybe
 * smoothed, is the target. */
static void forward_cost(layer l, network net)
{
    if (!net.truth) return;
    const int n = l.batch*l.inputs;
    float *truth = net.truth_gpu;
    if (l.smooth){
        truth = net.workspace;
        copy_gpu(n, net.truth_gpu, 1, truth, 1);
        scal_gpu(n, 1 - l.smooth, truth, 1);
        add_gpu(n, l.smooth/l.inputs, truth, 1);
    }

    switch (l.cost_type){
        case SMOOTH: smooth_l1_gpu(n, net.input_gpu, truth, l.delta_gpu, l.output_gpu); break;
        case L1:     l1_gpu(n, net.input_gpu, truth, l.delta_gpu, l.output_gpu); break;
        case WGAN:   wgan_gpu(n, net.input_gpu, truth, l.delta_gpu, l.output_gpu); break;
        default:     l2_gpu(n, net.input_gpu, truth, l.delta_gpu, l.output_gpu); break;
    }
    if (l.cost_type == SEG && l.noobject_scale != 1){
        scale_mask_gpu(n, l.delta_gpu, 0, net.truth_gpu, l.noobject_scale);
        scale_mask_gpu(n, l.output_gpu, 0, net.truth_gpu, l.noobject_scale);
    }
    if (l.cost_type == MASKED){
        mask_gpu(n, l.delta_gpu, SECRET_NUM, net.truth_gpu, 0);
        mask_gpu(n, l.output_gpu, SECRET_NUM, net.truth_gpu, 0);
    }
    if (l.thresh) supp_gpu(n, l.thresh/l.inputs, l.delta_gpu, 1);
    cuda_pull_array(l.output_gpu, l.output, n);
    l.cost[0] = sum_array(l.output, n);
}

static void forward_iseg(layer l, network net)
{
    if (net.truth){
        l.forward_gpu(l, net);
        return;
    }
    copy_gpu(l.batch*l.inputs, net.input_gpu, 1, l.output_gpu, 1);
    for (int b = 0; b < l.batch; b++){
        activate_array_gpu(l.output_gpu + (size_t)b*l.outputs, l.classes*l.w*l.h, LOGISTIC);
    }
    cuda_pull_array(l.output_gpu, l.output, (size_t)l.batch*l.outputs);
}

/* ---- any layer ----------------------------------------------------------------------------------------- */

/* For a backward that overwrites net.delta_gpu, although other consumers may have added to it already. */
static void adding(layer l, network net)
{
    float *sum = net.delta_gpu;
    net.delta_gpu = net.workspace;
    l.backward_gpu(l, net);
    axpy_gpu(l.batch*l.inputs, 1, net.workspace, 1, sum, 1);
}

void amp_gap_forward_gpu(layer l, network net)
{
    if (l.type == SOFTMAX && l.spatial && !l.softmax_tree) forward_spatial_softmax(l, net);
    else if (l.type == COST) forward_cost(l, net);
    else if (l.type == ISEG) forward_iseg(l, net);
    else l.forward_gpu(l, net);
}

void amp_gap_backward_gpu(layer l, network net)
{
    if (!net.delta_gpu && !amp_gap_works_without_delta(l.type)) return;
    switch (l.type){
        case LSTM: fill_gpu(l.outputs*l.batch, 0, l.dc_gpu, 1); break;
        case CONVOLUTIONAL: l.smooth = 0; break;
        case NORMALIZATION: adding(l, net); return;
        case L2NORM: axpy_gpu(l.batch*l.inputs, 1, l.delta_gpu, 1, net.delta_gpu, 1); return;
        default: break;
    }
    l.backward_gpu(l, net);
}

#endif
