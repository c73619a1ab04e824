/* Which backend computes a network, and by which rules. Alone in its file, so that a program of a test
 * can have another in its place. */
#include "pjreddie.h"

amp_backend *amp_fork_backend(amp_error *error)
{
#ifdef GPU
    if (gpu_index >= 0) return amp_cuda_backend_create(error);
    /* Darknet compiled with GPU leaves the activations out of yolo, region and iseg on the CPU. */
    amp_fail(error, AMP_UNSUPPORTED, "amp: -nogpu: this build runs AMP on a GPU only; build without GPU=1 to train on the CPU, or run "
             "with -amp off");
    return NULL;
#elif defined(AMP_NO_CPU_BACKEND)
    amp_fail(error, AMP_UNSUPPORTED, "amp: this build has no CPU backend (no oneDNN); train on a GPU, or run with -amp off");
    return NULL;
#else
    return amp_cpu_backend_create(error);
#endif
}

/* So that AMP's fp32 computes what -amp off does, and either trains weights that the other predicts with.
 *
 * CPU: batchnorm_layer.c and blas.c, whose backward adds another number than their forward, and elsewhere.
 * GPU: a build with AMP=1 has CUDNN=1 and trains with cuDNN, which divides by the root of Σ(x-mean)²/N + 1e-5
 * and moves the rolling variance by Σ(x-mean)²/(N-1). For inference normalize_kernel (blas_kernels.cu) adds
 * 1e-5 inside of the root as well. */
amp_batchnorm_rule amp_host_choose_batchnorm_rule(int on_gpu)
{
    static const amp_batchnorm_rule cpu = { .unbiased = 1, .epsilon = .000001f, .backward_epsilon = .00001f,
                                            .rolling_factor = .01f };
    static const amp_batchnorm_rule cudnn = { .epsilon_inside_root = 1, .epsilon = .00001f,
                                              .backward_epsilon = .00001f, .rolling_factor = .01f };
    return on_gpu ? cudnn : cpu;
}
