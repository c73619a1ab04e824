/* The CPU or the GPUs that networks run on, and their memory: see device.h. */
#include "device.h"

#include <string.h>

#include "room.h"
#ifdef GPU
#include "../../backend/cuda/state.h"
#include "../../comm/comm.h"
#endif

#ifdef GPU
/* Makes a CUDA call, and ends the program if it fails. */
#define MUST(call) do { \
        amp_error error_; \
        cudaError_t status_ = (call); \
        if (status_ == cudaSuccess) break; \
        amp_cuda_fail(status_, #call, __FILE__, __LINE__, &error_); \
        darknet_amp_refuse("%s", error_.message); \
    } while (0)

int amp_host_on_gpu(const network *net) { return net->gpu_index >= 0; }
int amp_fork_device(void) { return AMP_OWN_GPU; }
amp_dtype amp_fork_default_dtype(void) { return AMP_FP16; }
amp_status amp_fork_find_gpu(int number, amp_error *error) { return amp_cuda_find(number, error); }

int amp_fork_choose_gpu(int number)
{
    int count;
    if (cudaGetDeviceCount(&count) != cudaSuccess || number >= count) return 0;
    cuda_set_device(number);
    return 1;
}

/* CUDA numbers the GPUs listed in CUDA_VISIBLE_DEVICES from 0. If the variable lists only one, the launcher
 * (Slurm, for example) has already chosen this rank's GPU. */
int amp_fork_take_gpu(int number)
{
    static const char variable[] = "CUDA_VISIBLE_DEVICES";
    const char *all = getenv(variable);
    char one[64];
    int count = 0;
    if (all && !strchr(all, ',')) return 1;
    for (int i = 0; all && i < number; i++) {
        all = strchr(all, ',');
        if (!all++) return 0;
    }
    if (all) snprintf(one, sizeof one, "%.*s", (int)strcspn(all, ","), all);
    else snprintf(one, sizeof one, "%d", number);
    setenv(variable, one, 1);
    if (cudaGetDeviceCount(&count) != cudaSuccess || count < 1) return 0;
    return count == 1 ? 1 : -1;
}

amp_status amp_fork_sum_on_gpu(amp_backend *backend, amp_comm **comm, amp_error *error)
{
    amp_comm *gpus;
    /* If this fails, *comm is still the CPU's comm, through which the program can end all ranks. */
    AMP_TRY(amp_comm_nccl(*comm, backend, &gpus, error));
    *comm = gpus;
    return AMP_OK;
}

/* Calls cudaSetDevice directly, because Darknet's cuda_set_device writes a global variable, and threads of
 * several networks call this function at the same time. */
void amp_fork_use_device(const network *net)
{
    if (net->gpu_index >= 0) MUST(cudaSetDevice(net->gpu_index));
}

void amp_host_wait(const network *net)
{
    if (net->gpu_index >= 0) MUST(cudaDeviceSynchronize());
}

/* Returns the GPU's free bytes, and sets *all to its total. The GPU becomes the thread's current device. */
static size_t available(int gpu, size_t *all)
{
    size_t bytes = 0;
    MUST(cudaSetDevice(gpu));
    MUST(cudaMemGetInfo(&bytes, all));
    return bytes;
}

size_t amp_fork_free_gpu_memory(size_t *all)
{
    *all = 0;
    return AMP_OWN_GPU >= 0 ? available(AMP_OWN_GPU, all) : 0;
}

double amp_fork_gpu_memory_in_use_mb(const network *net)
{
    size_t all = 0;
    if (net->gpu_index < 0) return -1;
    size_t bytes = available(net->gpu_index, &all);
    return (double)(all - bytes) / (1 << 20);
}

static float *gpu_allocate(size_t count)
{
    void *memory = NULL;
    if (cudaMalloc(&memory, count * sizeof(float)) != cudaSuccess) {
        cudaGetLastError(); /* clears the error, which Darknet's next call would report */
        return NULL;
    }
    MUST(cudaMemset(memory, 0, count * sizeof(float)));
    return memory;
}

static void gpu_free(void *memory) { MUST(cudaFree(memory)); } /* cudaFree waits for queued work */

#else
int amp_host_on_gpu(const network *net) { return 0; }
int amp_fork_device(void) { return -1; }
amp_dtype amp_fork_default_dtype(void) { return AMP_BF16; }
amp_status amp_fork_find_gpu(int number, amp_error *error) { return AMP_OK; }
int amp_fork_choose_gpu(int number) { return 0; }
int amp_fork_take_gpu(int number) { return 1; }
amp_status amp_fork_sum_on_gpu(amp_backend *backend, amp_comm **comm, amp_error *error) { return AMP_OK; }
void amp_fork_use_device(const network *net) {}
void amp_host_wait(const network *net) {}
size_t amp_fork_free_gpu_memory(size_t *all) { return *all = 0; }
double amp_fork_gpu_memory_in_use_mb(const network *net) { return -1; }
#endif

/* ---- memory that Darknet may free or reallocate: from calloc, on a GPU from cudaMalloc ---- */

float *amp_host_allocate_array(size_t count, int on_gpu)
{
    return ON_SIDE(on_gpu, calloc(count, sizeof(float)), gpu_allocate(count));
}

void amp_host_free_array(float **buffer, int on_gpu)
{
    ON_SIDE(on_gpu, free(*buffer), gpu_free(*buffer));
    *buffer = NULL;
}
