/* Writes the current GPU's properties as cuDNN describes them (JSON): with them, plans for it can
 * be made where it is not.
 *
 * usage: gpu_properties <file> */
#include <stdio.h>
#include <stdlib.h>

#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <cudnn_backend.h>

enum { SKIP = 77 };

#if CUDNN_VERSION >= 90800
#define TRY(call) do { cudnnStatus_t status_ = (call); \
        if (status_ != CUDNN_STATUS_SUCCESS) { \
            fprintf(stderr, "gpu_properties: %s: %s\n", #call, cudnnGetErrorString(status_)); \
            return 1; \
        } \
    } while (0)

static int write_properties(const char *path)
{
    cudnnHandle_t handle;
    cudnnBackendDescriptor_t properties;
    int64_t size = 0;
    static char text[1 << 16];
    TRY(cudnnCreate(&handle));
    TRY(cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &properties));
    TRY(cudnnBackendSetAttribute(properties, CUDNN_ATTR_DEVICEPROP_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle));
    TRY(cudnnBackendFinalize(properties));
    TRY(cudnnBackendGetAttribute(properties, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                                 sizeof text - 1, &size, text));
    cudnnBackendDestroyDescriptor(properties);
    cudnnDestroy(handle);
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file)) {
        fprintf(stderr, "gpu_properties: cannot write %s\n", path);
        return 1;
    }
    return 0;
}
#endif

int main(int argc, char **argv)
{
    int runtime = 0, driver = 0;
    if (argc != 2) {
        fprintf(stderr, "usage: gpu_properties <file>\n");
        return 2;
    }
    cudaRuntimeGetVersion(&runtime);
    cudaDriverGetVersion(&driver);
    printf("cuDNN %zu, CUDA runtime %d, driver's CUDA %d\n", cudnnGetVersion(), runtime, driver);
#if CUDNN_VERSION >= 90800
    return write_properties(argv[1]);
#else
    (void)argv;
    printf("skipped: cuDNN describes devices from 9.8 on\n");
    return SKIP;
#endif
}
