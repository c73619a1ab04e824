/* What went wrong in CUDA, in one line for the user. */
#include <string.h>

#include "state.h"

/* What to do about it, where that is known. */
static const char *remedy(cudaError_t status)
{
    switch (status) {
    case cudaErrorMemoryAllocation:
        return ": use a smaller batch or more subdivisions";
    case cudaErrorNoKernelImageForDevice:
        return ": this program was built for other GPUs; build it anew, with this one among "
               "CMAKE_CUDA_ARCHITECTURES (ARCH in Darknet's Makefile)";
    case cudaErrorInsufficientDriver:
        return ": install a newer driver, or build with an older CUDA toolkit";
    case cudaErrorNoDevice:
        return ": see that nvidia-smi lists one and CUDA_VISIBLE_DEVICES does not hide it, "
               "or build without GPU=1";
    default:
        return "";
    }
}

static amp_status kind_of(cudaError_t status)
{
    switch (status) {
    case cudaErrorMemoryAllocation:
        return AMP_NO_MEMORY;
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorNoDevice:
        return AMP_UNSUPPORTED;
    default:
        return AMP_BACKEND_FAILED;
    }
}

amp_status amp_cuda_fail(cudaError_t status, const char *call, const char *file, int line, amp_error *error)
{
    const char *slash = strrchr(file, '/');
    cudaGetLastError(); /* clears the error, which the next launch would report as its own */
    return amp_fail(error, kind_of(status), "CUDA: %s (%s:%d): %s, %s%s", call, slash ? slash + 1 : file,
                    line, cudaGetErrorName(status), cudaGetErrorString(status), remedy(status));
}
