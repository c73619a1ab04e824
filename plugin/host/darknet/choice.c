/* Which backend computes a network. Alone in its file, so that a program of a test can have another in its
 * place. */
#include "room.h"

amp_backend *amp_fork_backend(amp_error *error)
{
#ifdef GPU
    if (AMP_OWN_GPU >= 0) return amp_cuda_backend_create(error);
    /* Darknet compiled with GPU leaves the activations out of yolo, region and iseg on the CPU. */
    amp_fail(error, AMP_UNSUPPORTED, "amp: no GPU is chosen (-nogpu, -i -1): this build runs AMP on a GPU "
             "only; build one for the CPU, or run with -amp off");
    return NULL;
#elif defined(AMP_NO_CPU_BACKEND)
    amp_fail(error, AMP_UNSUPPORTED,
             "amp: this build has no CPU backend (no oneDNN); train on a GPU, or run with -amp off");
    return NULL;
#else
    return amp_cpu_backend_create(error);
#endif
}
