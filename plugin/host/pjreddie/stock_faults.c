/* Known faults that only pjreddie's own code has. Those in gaps.h are not repeated here. */
#include "../darknet/own.h"

/* On the CPU a 1x1 convolution reads its input without im2col, even with padding or a stride above 1. */
static int misplaces_1x1(const network *net, const layer *l, int i, int on_gpu)
{
    return !on_gpu && l->type == CONVOLUTIONAL && l->size == 1 && (l->stride != 1 || l->pad);
}

static int reads_beyond_its_image(const network *net, const layer *l, int i, int on_gpu)
{
    return misplaces_1x1(net, l, i, on_gpu) && l->out_w * l->out_h > l->w * l->h;
}

/* See l2norm in gaps.h. */
static int adds_no_gradient(const network *net, const layer *l, int i, int on_gpu)
{
    return on_gpu && l->type == L2NORM;
}

const amp_own_fault amp_own_faults[] = {
    { reads_beyond_its_image, { AMP_CANNOT_RUN, "is a 1x1 convolution with padding, which reads and writes "
                                                "beyond its image" } },
    { misplaces_1x1, { AMP_WRONG_ALL, "is a 1x1 convolution, and ignores its stride and padding on the "
                                      "CPU" } },
    { adds_no_gradient, { AMP_WRONG_DELTA, "adds a number that is no gradient to each delta on a GPU" } },
    { 0 } };
