/* The batch norm rule of pjreddie's Darknet. It has its own file so that a test program can replace it. */
#include "../darknet/own.h"

/* With this rule, AMP in fp32 computes the same as Darknet without AMP (-amp off), so either can predict with
 * weights that the other trained.
 *
 * On the CPU this is the rule of batchnorm_layer.c and blas.c, where backward adds a different epsilon than
 * forward, and in a different place. On a GPU this is cuDNN's rule, because a build with AMP=1 has CUDNN=1:
 * training divides by the root of Σ(x-mean)²/N + 1e-5, and moves the rolling variance towards
 * Σ(x-mean)²/(N-1). In inference normalize_kernel (blas_kernels.cu) also adds 1e-5 inside the root. */
amp_batchnorm_rule amp_own_batchnorm_rule(const layer *l, int on_gpu)
{
    static const amp_batchnorm_rule cpu = { .unbiased = 1, .epsilon = .000001f, .backward_epsilon = .00001f,
                                            .rolling_factor = .01f };
    static const amp_batchnorm_rule cudnn = { .epsilon_inside_root = 1, .epsilon = .00001f,
                                              .backward_epsilon = .00001f, .rolling_factor = .01f };
    return on_gpu ? cudnn : cpu;
}
