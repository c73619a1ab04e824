/* Turns a CUDA error into one line for the user. */
#include <string.h>

#include "state.h"

/* Errors with a cause outside the backend, and what to do about each. The first three may come from any
 * kernel that was queued earlier. */
static const char earlier[] = ": a kernel that was queued earlier has failed; run again with "
                              "CUDA_LAUNCH_BLOCKING=1 in the environment to see which";
static const struct { cudaError_t error; amp_status status; const char *remedy; } known[] = {
    { cudaErrorIllegalAddress, AMP_BACKEND_FAILED, earlier },
    { cudaErrorMisalignedAddress, AMP_BACKEND_FAILED, earlier },
    { cudaErrorLaunchFailure, AMP_BACKEND_FAILED, earlier },
    { cudaErrorMemoryAllocation, AMP_NO_MEMORY, ": use a smaller batch or more subdivisions" },
    { cudaErrorNoKernelImageForDevice, AMP_UNSUPPORTED, ": this program was built for other GPUs; add this "
                                                        "GPU to CMAKE_CUDA_ARCHITECTURES (ARCH in Darknet's "
                                                        "Makefile) and rebuild" },
    { cudaErrorUnsupportedPtxVersion, AMP_UNSUPPORTED, ": this program was built for older GPUs, and the "
      "driver is older than the CUDA toolkit; add this GPU to CMAKE_CUDA_ARCHITECTURES (ARCH in Darknet's "
      "Makefile) and rebuild, or install a newer driver" },
    { cudaErrorInsufficientDriver, AMP_UNSUPPORTED,
      ": install a newer driver (this machine may have none), or build with an older CUDA toolkit" },
    { cudaErrorDevicesUnavailable, AMP_UNSUPPORTED, ": another program has exclusive use of the GPU; "
                                                    "nvidia-smi shows it and the compute mode" },
    { cudaErrorSystemNotReady, AMP_UNSUPPORTED, ": GPUs connected by NVSwitch (HGX) need a service; start "
                                                "the nvidia-fabricmanager of the driver's version" },
    { cudaErrorInvalidDevice, AMP_UNSUPPORTED, ": -i and -gpus count from 0, without the GPUs that "
                                               "CUDA_VISIBLE_DEVICES hides; nvidia-smi lists all" },
    { cudaErrorNoDevice, AMP_UNSUPPORTED, ": check that nvidia-smi lists a GPU and CUDA_VISIBLE_DEVICES does "
      "not hide it, or build without GPU=1" },
};

amp_status amp_cuda_fail(cudaError_t status, const char *call, const char *file, int line, amp_error *error)
{
    const char *slash = strrchr(file, '/');
    int i = (int)(sizeof known / sizeof *known);
    while (--i >= 0 && known[i].error != status) {}
    amp_cuda_clear_error();
    return amp_fail(error, i < 0 ? AMP_BACKEND_FAILED : known[i].status, "CUDA: %s (%s:%d): %s, %s%s", call,
                    slash ? slash + 1 : file, line, cudaGetErrorName(status), cudaGetErrorString(status),
                    i < 0 ? "" : known[i].remedy);
}
