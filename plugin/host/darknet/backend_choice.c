/* Chooses the backend that computes a network. In its own file, so that a test program can replace it. */
#include "room.h"

amp_backend *amp_fork_backend(amp_error *error)
{
#ifdef GPU
    if (AMP_OWN_GPU >= 0) return amp_cuda_backend_create(error);
    /* In a build with GPU=1, Darknet's CPU code of yolo, region and iseg skips the activations. */
    amp_fail(error, AMP_UNSUPPORTED, "amp: -nogpu or -i -1 selects the CPU, but this build supports AMP only "
             "on a GPU; rebuild for the CPU, or run with -amp off");
    return NULL;
#elif defined(AMP_NO_CPU_BACKEND)
    amp_fail(error, AMP_UNSUPPORTED,
             "amp: this build has no CPU backend (no oneDNN); train on a GPU, or run with -amp off");
    return NULL;
#else
    return amp_cpu_backend_create(error);
#endif
}
