/* Lets the real cuDNN make plans for a GPU that is not there: stands between cudnn_graph.c and cuDNN
 * (--wrap), and adds the GPU's properties where cuDNN would ask a handle. Nothing can run.
 *
 * A plan that is compiled at run time fails only in its last step, which loads the code: it counts as built,
 * with the workspace that its config says. */
#include <cudnn.h>
#include <cudnn_backend.h>

#if CUDNN_VERSION < 90000
#define cudnnGetLastErrorString(text, size) (void)(text)
#endif
#if CUDNN_VERSION < 90800 /* cuDNN knows no such attributes: describe_missing_device fails */
#define CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR ((cudnnBackendDescriptorType_t)-1)
#define CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION ((cudnnBackendAttributeName_t)-1)
#define CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP ((cudnnBackendAttributeName_t)-1)
#define CUDNN_ATTR_ENGINEHEUR_DEVICEPROP ((cudnnBackendAttributeName_t)-1)
#endif

static cudnnBackendDescriptor_t properties; /* of the missing GPU; NULL: every call is cuDNN's own */
static cudnnBackendDescriptor_t planned, unloaded; /* the last plan's config; the last plan not loaded */

/* text: cuDNN's device properties, as JSON. */
static cudnnStatus_t describe_missing_device(const char *text)
{
    cudnnStatus_t status = cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &properties);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnnBackendSetAttribute(properties, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                          CUDNN_TYPE_CHAR, (int64_t)strlen(text) + 1, text);
    return status == CUDNN_STATUS_SUCCESS ? cudnnBackendFinalize(properties) : status;
}

static void forget_missing_device(void)
{
    cudnnBackendDestroyDescriptor(properties);
    properties = NULL;
}

cudnnStatus_t __real_cudnnCreate(cudnnHandle_t *);
cudnnStatus_t __wrap_cudnnCreate(cudnnHandle_t *handle)
{
    if (!properties) return __real_cudnnCreate(handle);
    *handle = (cudnnHandle_t)(void *)&properties;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t __real_cudnnSetStream(cudnnHandle_t, cudaStream_t);
cudnnStatus_t __wrap_cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    return properties ? CUDNN_STATUS_SUCCESS : __real_cudnnSetStream(handle, stream);
}

cudnnStatus_t __real_cudnnDestroy(cudnnHandle_t);
cudnnStatus_t __wrap_cudnnDestroy(cudnnHandle_t handle)
{
    return properties ? CUDNN_STATUS_SUCCESS : __real_cudnnDestroy(handle);
}

cudnnStatus_t __real_cudnnBackendSetAttribute(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t,
                                              cudnnBackendAttributeType_t, int64_t, const void *);
cudnnStatus_t __wrap_cudnnBackendSetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t count,
                                              const void *values)
{
    cudnnBackendAttributeName_t as = name;
    if (properties && name == CUDNN_ATTR_OPERATIONGRAPH_HANDLE) return CUDNN_STATUS_SUCCESS;
    if (properties && name == CUDNN_ATTR_EXECUTION_PLAN_HANDLE) as = CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP;
    if (name == CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)
        planned = *(const cudnnBackendDescriptor_t *)values;
    if (properties && name == CUDNN_ATTR_ENGINEHEUR_MODE) {
        cudnnStatus_t status = __real_cudnnBackendSetAttribute(d, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP,
                                                               CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &properties);
        if (status != CUDNN_STATUS_SUCCESS) return status;
    }
    if (as == name) return __real_cudnnBackendSetAttribute(d, name, type, count, values);
    return __real_cudnnBackendSetAttribute(d, as, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &properties);
}

cudnnStatus_t __real_cudnnBackendFinalize(cudnnBackendDescriptor_t);
cudnnStatus_t __wrap_cudnnBackendFinalize(cudnnBackendDescriptor_t d)
{
    char text[512] = "";
    cudnnStatus_t status = __real_cudnnBackendFinalize(d);
    if (!properties || status == CUDNN_STATUS_SUCCESS) return status;
    cudnnGetLastErrorString(text, sizeof text);
    if (!strstr(text, "cuLibraryLoadData")) return status;
    unloaded = d;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t __real_cudnnBackendGetAttribute(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t,
                                              cudnnBackendAttributeType_t, int64_t, int64_t *, void *);
cudnnStatus_t __wrap_cudnnBackendGetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t room, int64_t *count,
                                              void *values)
{
    if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE && d == unloaded) {
        unloaded = NULL;
        d = planned, name = CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE;
    }
    return __real_cudnnBackendGetAttribute(d, name, type, room, count, values);
}
