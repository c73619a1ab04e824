/* Known faults of AlexeyAB's and hank-ai's own code, except those that gaps.h lists. */
#include "../darknet/own.h"

/* On the CPU backward_batchnorm_layer does not call backward_bias; backward_batchnorm_layer_gpu does. */
static int forgets_biases(const network *net, const layer *l, int i, int on_gpu)
{
    return !on_gpu && ((l->type == CONVOLUTIONAL && l->batch_normalize) || l->type == BATCHNORM);
}

/* activate() returns 0 for activations that it does not know. For some of these, convolutions call other
 * functions; for swish and mish, shortcuts do too. */
static int knows_no_activation(const network *net, const layer *l, int i, int on_gpu)
{
    if (on_gpu) return 0;
    switch (l->activation) {
    case RELU6: return !AMP_OWN_ACTIVATES_RELU6;
    case SWISH: case MISH: return l->type != CONVOLUTIONAL && l->type != SHORTCUT;
    case HARD_MISH: return l->type != CONVOLUTIONAL;
    default: return 0;
    }
}

/* On the CPU a shortcut compares its own size with the input size, not the output size, of the layer that
 * from= names. If these are equal, it assumes that both layers output the same number of floats per image. */
static int takes_sizes_for_equal(const network *net, const layer *l, int i, int on_gpu)
{
    if (on_gpu || l->type != SHORTCUT || l->n != 1 || l->nweights) return 0;
    const layer *from = &net->layers[l->index];
    return from->w == l->w && from->h == l->h && from->c == l->c && from->outputs != l->outputs;
}

static int reads_beyond_its_input(const network *net, const layer *l, int i, int on_gpu)
{
    return takes_sizes_for_equal(net, l, i, on_gpu) && net->layers[l->index].outputs < l->outputs;
}

/* On the CPU a 1x1 convolution of stride 1 reads its input without im2col, ignoring padding. */
static int ignores_padding(const network *net, const layer *l, int i, int on_gpu)
{
    return !on_gpu && l->type == CONVOLUTIONAL && l->size == 1 && l->stride == 1 && l->dilation == 1
           && l->pad;
}

/* On the CPU a 1x1 convolution with stride_x=1 uses the first out_w * out_h pixels of its input instead of
 * im2col's matrix, whatever its stride_y is. */
static int ignores_stride_y(const network *net, const layer *l, int i, int on_gpu)
{
    return !on_gpu && l->type == CONVOLUTIONAL && l->size == 1 && l->stride_x == 1 && l->stride_y > 1;
}

/* On a GPU, stock's gradient of a shortcut's weights is not the derivative of what forward computes;
 * shortcut_gpu.c computes the right gradient. On the CPU gaps.c replaces stock's code. */
static int derives_shares_wrongly(const network *net, const layer *l, int i, int on_gpu)
{
    return on_gpu && l->type == SHORTCUT && l->nweights;
}

static int divides_delta(const network *net, const layer *l, int i, int on_gpu)
{
    return on_gpu && l->type == SCALE_CHANNELS && l->scale_wh;
}

/* On the CPU several threads add to one number of the multiplier's delta without a lock. */
static int races(const network *net, const layer *l, int i, int on_gpu)
{
    return !on_gpu && l->type == SCALE_CHANNELS;
}

/* On the CPU a sam overwrites the delta of the layer that from= names, instead of adding to it. On a GPU it
 * adds. */
static int sam_overwrites(const network *net, const layer *l, int i, int on_gpu)
{
    return !on_gpu && l->type == SAM;
}

/* Layers with share_index also share the arrays of the batch's statistics, so the backward of each of them
 * uses the statistics of the layer whose forward ran last. */
static int shares_statistics(const network *net, const layer *l, int i, int on_gpu)
{
    for (int k = i + 1; l->type == CONVOLUTIONAL && l->batch_normalize && k < net->n; k++) {
        const layer *later = &net->layers[k];
        if (later->type == CONVOLUTIONAL && later->rolling_mean == l->rolling_mean) return 1;
    }
    return 0;
}

const amp_own_fault amp_own_faults[] = {
    { reads_beyond_its_input, { AMP_CANNOT_RUN, "adds an input that is smaller than it assumes, and reads "
                                                "beyond it" } },
    { ignores_padding, { AMP_CANNOT_RUN, "is a 1x1 convolution with padding, which reads and writes beyond "
                                         "its image" } },
    { ignores_stride_y, { AMP_WRONG_ALL, "is a 1x1 convolution with stride_x=1, and ignores its stride_y on "
                                         "the CPU" } },
    { forgets_biases, { AMP_WRONG_BIASES, "computes no gradient for its biases after batch norm on "
                                         "the CPU" } },
    { knows_no_activation, { AMP_WRONG_ALL, "has an activation that its CPU code does not know, and outputs "
                                            "0" } },
    { shares_statistics, { AMP_WRONG_BACKWARD, "shares its batch's statistics with a later layer "
                                               "(share_index), which overwrites them before its backward" } },
    { derives_shares_wrongly, { AMP_WRONG_WEIGHTS, "computes the gradient of its weights wrongly on a "
                                                   "GPU" } },
    { divides_delta, { AMP_WRONG_NEAR_DELTA, "divides the delta of its multipliers by width times height on "
                                             "a GPU" } },
    { races, { AMP_WRONG_NEAR_DELTA, "adds up the delta of its multipliers in several threads, which lose "
                                     "parts of it on the CPU" } },
    { sam_overwrites, { AMP_WRONG_DELTA, "overwrites the delta of the layer that it multiplies with" } },
    { takes_sizes_for_equal, { AMP_WRONG_OUTPUT, "adds a larger input in the wrong place from the second "
                                                 "image on" } },
    { 0 } };
