/* How batch norm computes in pjreddie's Darknet. Alone in its file, so that a program of a test
 * can have another rule. */
#include "../darknet/own.h"

/* So that AMP's fp32 computes what -amp off does, and either trains weights that the other predicts with.
 *
 * CPU: batchnorm_layer.c and blas.c, whose backward adds another number than their forward, and elsewhere.
 * GPU: a build with AMP=1 has CUDNN=1 and trains with cuDNN, which divides by the root of Σ(x-mean)²/N + 1e-5
 * and moves the rolling variance by Σ(x-mean)²/(N-1). For inference normalize_kernel (blas_kernels.cu) adds
 * 1e-5 inside of the root as well. */
amp_batchnorm_rule amp_own_batchnorm_rule(const layer *l, int on_gpu)
{
    static const amp_batchnorm_rule cpu = { .unbiased = 1, .epsilon = .000001f, .backward_epsilon = .00001f,
                                            .rolling_factor = .01f };
    static const amp_batchnorm_rule cudnn = { .epsilon_inside_root = 1, .epsilon = .00001f,
                                              .backward_epsilon = .00001f, .rolling_factor = .01f };
    (void)l;
    return on_gpu ? cudnn : cpu;
}
