/* The CUDA backend: its object, the GPU that it runs on, and the table of its operations. README.md says
 * which file defines which operation. */
#include "state.h"

#include <stdlib.h>

#include <nvtx3/nvToolsExt.h>

#include "cudnn_graph.h"
#include "gemm.h"
#include "kernels.h"
#include "memory.h"

/* ---- the environment ---- */

/* Settings from environment variables, because they belong to a machine or an experiment, not to a network:
 *   AMP_CUDA_TUNE           how many of cuDNN's engines to time for each pass of a convolution: 0 to 100;
 *                           default: 8
 *   AMP_CUDA_DETERMINISTIC  1: the same bits in every run; this turns off the timing of engines
 *   AMP_CUDA_RANGES         1: ranges with the layers' names for profilers such as Nsight Systems */
enum { TUNE = 8 };

/* Sets *out to the variable's value, or to `otherwise` if the variable is unset or empty. The value must be a
 * whole number from 0 to `most`. */
static amp_status read_number(const char *name, int most, int otherwise, int *out, amp_error *error)
{
    const char *text = getenv(name);
    char *end;
    *out = otherwise;
    if (!text || !*text) return AMP_OK;
    long value = strtol(text, &end, 10);
    if (*end || value < 0 || value > most)
        return amp_fail(error, AMP_BAD_CONFIG, "environment: %s=%.40s; allowed: 0 to %d", name, text, most);
    *out = (int)value;
    return AMP_OK;
}

static amp_status read_settings(amp_cuda_settings *settings, amp_error *error)
{
    AMP_TRY(read_number("AMP_CUDA_TUNE", 100, TUNE, &settings->tune, error));
    AMP_TRY(read_number("AMP_CUDA_DETERMINISTIC", 1, 0, &settings->deterministic, error));
    AMP_TRY(read_number("AMP_CUDA_RANGES", 1, 0, &settings->ranges, error));
    /* Another run may measure other speeds and choose engines that round differently. */
    if (settings->deterministic) settings->tune = 0;
    return AMP_OK;
}

static void range_push(amp_backend *backend, const char *name)
{
    nvtxRangePushA(name); /* the returned nesting depth is ignored: it is negative without a profiler */
}

static void range_pop(amp_backend *backend) { nvtxRangePop(); }

/* ---- the GPU ---- */

/* Writes "13.0" for CUDA's version number 13000. */
static void version_text(int version, char text[16])
{
    snprintf(text, 16, "%d.%d", version / 1000, version % 1000 / 10);
}

static void describe(amp_cuda_backend *cuda, const struct cudaDeviceProp *gpu, int runtime, int driver)
{
    char runtime_text[16], driver_text[16], cudnn[28], cublas[28];
    version_text(runtime, runtime_text);
    version_text(driver, driver_text);
    amp_cudnn_describe(cudnn, sizeof cudnn);
    amp_cuda_gemm_describe(cublas, sizeof cublas);
    snprintf(cuda->base.description, sizeof cuda->base.description,
             "GPU %d: %.60s (compute capability %d.%d, %zu MiB), " "CUDA %s (driver for %s), %s, %s",
             cuda->device, gpu->name, cuda->major, cuda->minor, gpu->totalGlobalMem >> 20, runtime_text,
             driver_text, cudnn, cublas);
}

/* Opens the current device, chosen by `-i` or Darknet's cuda_set_device. *memory: its memory in bytes. */
static amp_status open_device(amp_cuda_backend *cuda, size_t *memory, amp_error *error)
{
    struct cudaDeviceProp gpu;
    int runtime, driver;
    AMP_CUDA_TRY(cudaGetDevice(&cuda->device));
    AMP_CUDA_TRY(cudaGetDeviceProperties(&gpu, cuda->device));
    AMP_CUDA_TRY(cudaRuntimeGetVersion(&runtime));
    AMP_CUDA_TRY(cudaDriverGetVersion(&driver));
    cuda->major = gpu.major;
    cuda->minor = gpu.minor;
    cuda->multiprocessors = gpu.multiProcessorCount;
    *memory = gpu.totalGlobalMem;
    describe(cuda, &gpu, runtime, driver);
    /* Darknet's GPU layers run on the default stream. A blocking stream, like this one, and the default
     * stream wait for each other. */
    AMP_CUDA_TRY(cudaStreamCreate(&cuda->stream));
    AMP_CUDA_TRY(cudaEventCreateWithFlags(&cuda->uploaded, cudaEventDisableTiming));
    return AMP_OK;
}

amp_support amp_cuda_supports(const amp_backend *backend, amp_dtype dtype, char note[256])
{
    const amp_cuda_backend *cuda = amp_cuda_of(backend);
    note[0] = '\0';
    if (dtype == AMP_BF16 && cuda->major < 8) {
        snprintf(note, 256, "bf16 needs a GPU of compute capability 8.0 (Ampere) or later (this one: %d.%d): "
                 "set dtype=fp16%s", cuda->major, cuda->minor, cuda->major < 7 ? " or dtype=fp32" : "");
        return AMP_SUPPORT_NONE;
    }
    if (dtype == AMP_FP16 && cuda->major < 7) {
        snprintf(note, 256, "fp16 saves memory but hardly any time here: a GPU of compute capability %d.%d "
                 "has no Tensor Cores and computes it in fp32", cuda->major, cuda->minor);
        return AMP_SUPPORT_STORAGE;
    }
    return AMP_SUPPORT_NATIVE;
}

/* ---- life ---- */

/* Destroys the backend, even if it was created only partly. Ignores errors. */
void amp_cuda_destroy(amp_backend *backend)
{
    if (!backend) return;
    amp_cuda_backend *cuda = amp_cuda_of(backend);
    if (cuda->ahead) cudaStreamSynchronize(cuda->ahead);
    if (cuda->stream) cudaStreamSynchronize(cuda->stream);
    amp_conv_plans_destroy(cuda->plans);
    amp_cudnn_destroy(cuda->cudnn);
    amp_cuda_gemm_stop(backend);
    amp_cuda_tables_destroy(cuda);
    amp_cuda_uploads_free(backend);
    amp_cuda_spares_free(backend);
    amp_cuda_times_free(cuda);
    amp_cuda_release(backend, cuda->workspace);
    amp_cuda_release(backend, cuda->scratch);
    if (cuda->uploaded) cudaEventDestroy(cuda->uploaded);
    if (cuda->stream) cudaStreamDestroy(cuda->stream);
    free(cuda);
}

static amp_status open_libraries(amp_cuda_backend *cuda, amp_error *error)
{
    size_t memory;
    AMP_TRY(read_settings(&cuda->settings, error));
    AMP_TRY(open_device(cuda, &memory, error));
    const amp_cudnn_settings settings = { .reserve = amp_cuda_reserve, .owner = &cuda->base };
    if (cuda->settings.ranges) {
        cuda->base.range_push = range_push;
        cuda->base.range_pop = range_pop;
    } else { /* with ranges, no pass is recorded: a profiler would show it as one operation */
        cuda->base.pass_begin = amp_cuda_pass_begin;
        cuda->base.pass_end = amp_cuda_pass_end;
        cuda->base.pass_free = amp_cuda_pass_free;
    }
    AMP_TRY(amp_cudnn_create(cuda->stream, &settings, &cuda->cudnn, error));
    cuda->plans = amp_conv_plans_create(&amp_cudnn_library, cuda->cudnn, amp_cudnn_workspace_cap(memory));
    return AMP_OK;
}

amp_backend *amp_cuda_backend_create(amp_error *error)
{
    amp_cuda_backend *cuda = amp_allocated(calloc(1, sizeof *cuda));
#define ENTRY(operation) .operation = amp_cuda_##operation,
    cuda->base = (amp_backend){ .name = "cuda", .adds_to_batchnorm = 1, AMP_BACKEND_OPERATIONS(ENTRY)
                                .operation_times = amp_cuda_operation_times };
    if (open_libraries(cuda, error) == AMP_OK) return &cuda->base;
    amp_cuda_destroy(&cuda->base);
    return NULL;
}
