/* Which backend computes a network. Alone in its file, so that a program of a test can have another in its place. */
#include "device.h"
#include "../common/host.h"

amp_backend *amp_host_choose_backend(const network *net, amp_error *error)
{
#ifdef GPU
    if (amp_host_on_gpu(net)) return amp_cuda_backend_create(error);
#else
    (void)net;
#endif
#ifdef AMP_NO_CPU_BACKEND
    amp_fail(error, AMP_UNSUPPORTED, "amp: this build has no CPU backend (no oneDNN); train on a GPU, or run with -amp off");
    return NULL;
#else
    return amp_cpu_backend_create(error);
#endif
}
