/* See pinned.h. */
#include "pinned.h"

#include <stdatomic.h>

void amp_host_pin_note(amp_host_pinned *p, const network *net)
{
    *p = (amp_host_pinned){ .input = net->input,
                            .bytes = (size_t)net->inputs * (size_t)net->batch * sizeof *net->input };
}

#ifdef GPU
static void warn_once(cudaError_t status)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&said)) return;
    fprintf(stderr, "amp: copying images to the GPU will be slower: the images' memory cannot be page-locked "
            "(cudaHostRegister: %s); check ulimit -l or the container's memlock limit\n",
            cudaGetErrorName(status));
}
#endif

void amp_host_pin(amp_host_pinned *p, const network *net)
{
#ifdef GPU
    if (p->tried || net->gpu_index < 0 || !net->train || !p->input || net->input != p->input) return;
    cudaError_t status = cudaHostRegister(p->input, p->bytes, cudaHostRegisterDefault);
    p->tried = 1;
    p->locked = status == cudaSuccess;
    if (p->locked) return;
    cudaGetLastError(); /* clears the error, which the next launch would return */
    warn_once(status);
#endif
}

int amp_host_image_ahead(amp_host_pinned *p, const network *net)
{
    return p->locked && net->train && net->input == p->input && amp_host_image_turns(p, p->bytes);
}

int amp_host_image_turns(amp_host_pinned *p, size_t bytes)
{
#ifdef GPU
    if (!p->second_tried && cudaMalloc((void **)&p->second, bytes) != cudaSuccess) {
        cudaGetLastError();
        p->second = NULL;
    }
    p->second_tried = 1;
    p->in_second = p->second && !p->in_second;
    return p->second != NULL;
#else
    return 0;
#endif
}

void amp_host_unpin(amp_host_pinned *p)
{
#ifdef GPU
    /* If one of these calls fails, the device is unusable, and a later call will report that. */
    if (p->locked && cudaHostUnregister(p->input) != cudaSuccess) cudaGetLastError();
    if (p->second && cudaFree(p->second) != cudaSuccess) cudaGetLastError();
#endif
    *p = (amp_host_pinned){ 0 };
}
