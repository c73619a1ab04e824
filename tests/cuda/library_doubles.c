/* The doubles of cuDNN and cuBLAS: that they compute late, less exactly where they are told so, and that each
 * misuse they are there for is seen. That what they compute is right, the backend's conformance tests show,
 * which run on them (test_cuda_double_conv, test_cuda_double_gemm). */
#include <math.h>
#include "testing.h"

#include "doubles/cublas_double.h"
#include "doubles/cuda_doubles.h"
#include "doubles/cudnn_double.h"
#include "tensor/half.h"

/* ---- numbers ---- */

typedef enum format { FP32, FP16, BF16 } format;

static const cudnnDataType_t cudnn_types[] = { CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16 };
static const cudaDataType_t cublas_types[] = { CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF };
static const size_t sizes[] = { 4, 2, 2 };

static void set(format f, void *data, int64_t i, float v)
{
    if (f == FP32) ((float *)data)[i] = v;
    else ((amp_half_bits *)data)[i] = f == FP16 ? amp_float_to_fp16(v) : amp_float_to_bf16(v);
}

/* Memory of the device that this test may look at. */
static void *device(size_t bytes)
{
    void *p = NULL;
    assert_int_equal(cudaMallocManaged(&p, bytes, cudaMemAttachGlobal), cudaSuccess);
    return p;
}

static void fill(format f, void *data, int64_t count)
{
    for (int64_t i = 0; i < count; i++) set(f, data, i, (float)rand() / (float)RAND_MAX * 2 - 1);
}

/* ---- a convolution, told to cuDNN from the tensors to the variant pack ---- */

enum { X, W, Y };

typedef struct recipe {
    cudnnBackendDescriptorType_t operation;
    int64_t dims[3][4], strides[3][4], ids[3], alignment;
    int64_t pre[2], post[2], stride[2], dilation[2];
    cudnnDataType_t types[3], sums;
    cudnnConvolutionMode_t mode;
    float alpha, beta;
    void *data[3], *workspace;
    int engine;                                /* which of the heuristic's to take */
    cudnnBackendAttributeName_t skip, mistyped; /* attributes to leave out, to set with a wrong type */
    cudnnHandle_t execute_with;
    cudnnBackendHeurMode_t heuristic;
} recipe;

static cudnnHandle_t handle;
static cudaStream_t stream;

typedef struct told {
    cudnnBackendDescriptor_t d[16]; int count; cudnnStatus_t status; const recipe *r;
} told;

static cudnnBackendDescriptor_t new_one(told *t, cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t d = NULL;
    if (t->status == CUDNN_STATUS_SUCCESS) t->status = cudnnBackendCreateDescriptor(type, &d);
    if (d) t->d[t->count++] = d;
    return d;
}

static void tell(told *t, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                 cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    if (name == t->r->skip || t->status != CUDNN_STATUS_SUCCESS) return;
    if (name == t->r->mistyped) type = type == CUDNN_TYPE_INT64 ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_INT64;
    t->status = cudnnBackendSetAttribute(d, name, type, count, values);
}

static void finish(told *t, cudnnBackendDescriptor_t d)
{
    if (t->status == CUDNN_STATUS_SUCCESS) t->status = cudnnBackendFinalize(d);
}

static void forget(told *t)
{
    while (t->count) cudnnBackendDestroyDescriptor(t->d[--t->count]);
}

static cudnnBackendDescriptor_t tell_tensor(told *t, int which)
{
    const recipe *r = t->r;
    cudnnBackendDescriptor_t d = new_one(t, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    tell(t, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &r->types[which]);
    tell(t, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, r->dims[which]);
    tell(t, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, r->strides[which]);
    tell(t, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &r->ids[which]);
    tell(t, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &r->alignment);
    finish(t, d);
    return d;
}

static cudnnBackendDescriptor_t tell_convolution(told *t)
{
    const recipe *r = t->r;
    const int64_t dimensions = 2;
    cudnnBackendDescriptor_t d = new_one(t, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    tell(t, d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &r->sums);
    tell(t, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &r->mode);
    tell(t, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dimensions);
    tell(t, d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, r->pre);
    tell(t, d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, r->post);
    tell(t, d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, r->stride);
    tell(t, d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, r->dilation);
    finish(t, d);
    return d;
}

typedef struct names { cudnnBackendDescriptorType_t type; cudnnBackendAttributeName_t name[6]; } names;

#define NAMES(descriptor, pass, x, w, y)                                                                   \
    { CUDNN_BACKEND_OPERATION_CONVOLUTION_##descriptor##_DESCRIPTOR,                                       \
      { CUDNN_ATTR_OPERATION_CONVOLUTION_##pass##_ALPHA,                                                   \
      CUDNN_ATTR_OPERATION_CONVOLUTION_##pass##_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_##pass##_CONV_DESC, \
      CUDNN_ATTR_OPERATION_CONVOLUTION_##pass##_##x, CUDNN_ATTR_OPERATION_CONVOLUTION_##pass##_##w,        \
      CUDNN_ATTR_OPERATION_CONVOLUTION_##pass##_##y } }

static const names passes[] = { NAMES(FORWARD, FORWARD, X, W, Y), NAMES(BACKWARD_DATA, BWD_DATA, DX, W, DY),
                                NAMES(BACKWARD_FILTER, BWD_FILTER, X, DW, DY) };
static const int outputs[] = { Y, X, W };

static int pass_of(const recipe *r)
{
    for (int i = 0; i < 2; i++)
        if (passes[i].type == r->operation) return i;
    return 2;
}

static cudnnBackendDescriptor_t tell_graph(told *t)
{
    const recipe *r = t->r;
    const names *n = &passes[pass_of(r)];
    cudnnBackendDescriptor_t tensors[] = { tell_tensor(t, X), tell_tensor(t, W), tell_tensor(t, Y) };
    cudnnBackendDescriptor_t convolution = tell_convolution(t), operation = new_one(t, r->operation);
    tell(t, operation, n->name[0], CUDNN_TYPE_FLOAT, 1, &r->alpha);
    tell(t, operation, n->name[1], CUDNN_TYPE_FLOAT, 1, &r->beta);
    tell(t, operation, n->name[2], CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &convolution);
    for (int i = 0; i < 3; i++)
        tell(t, operation, n->name[3 + i], CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &tensors[i]);
    finish(t, operation);
    cudnnBackendDescriptor_t graph = new_one(t, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    tell(t, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &operation);
    tell(t, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    finish(t, graph);
    return graph;
}

static cudnnBackendDescriptor_t ask_for_config(told *t, cudnnBackendDescriptor_t graph)
{
    const recipe *r = t->r;
    cudnnBackendDescriptor_t heuristics = new_one(t, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR),
        configs[CUDNN_DOUBLE_ENGINES];
    int64_t count = 0;
    tell(t, heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
    tell(t, heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &r->heuristic);
    finish(t, heuristics);
    for (int i = 0; i <= r->engine; i++) configs[i] = new_one(t, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (t->status == CUDNN_STATUS_SUCCESS)
        t->status = cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                             CUDNN_TYPE_BACKEND_DESCRIPTOR, r->engine + 1, &count, configs);
    return configs[r->engine];
}

/* Does all that the recipe says; the first status that is no success. */
static cudnnStatus_t run(const recipe *r)
{
    told t = { .r = r, .status = CUDNN_STATUS_SUCCESS };
    cudnnBackendDescriptor_t config = ask_for_config(&t, tell_graph(&t));
    cudnnBackendDescriptor_t plan = new_one(&t, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    tell(&t, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config);
    tell(&t, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    finish(&t, plan);
    cudnnBackendDescriptor_t pack = new_one(&t, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    tell(&t, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, r->ids);
    tell(&t, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, r->data);
    tell(&t, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &r->workspace);
    finish(&t, pack);
    if (t.status == CUDNN_STATUS_SUCCESS) t.status = cudnnBackendExecute(r->execute_with, plan, pack);
    forget(&t);
    return t.status;
}

/* ---- the fixture ---- */

static int begin(void **state)
{
    (void)state;
    srand(1);
    cudnn_double_reset();
    cublas_double_reset();
    for (cudnn_double.engines = 0; cudnn_double.engines < 2; cudnn_double.engines++)
        cudnn_double.engine[cudnn_double.engines] = (cudnn_double_engine){ .index = cudnn_double.engines };
    cudnn_double.engine[1].workspace = 1000;
    return cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) || cudnnCreate(&handle) ||
        cudnnSetStream(handle, stream);
}

static int end(void **state)
{
    (void)state;
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
    if (cudnn_double.handles) cudnnDestroy(handle);
    if (cudnn_double_leaks() || cublas_double_leaks() || amp_cuda_faults())
        print_error("%s\n", amp_cuda_fault());
    int faults = amp_cuda_faults();
    amp_cuda_forget_faults();
    return faults;
}

static void strides_of(const int64_t d[4], int channels_last, int64_t out[4])
{
    const int64_t last[4] = { d[1] * d[2] * d[3], 1, d[3] * d[1], d[1] };
    const int64_t first[4] = { d[1] * d[2] * d[3], d[2] * d[3], d[3], 1 };
    memcpy(out, channels_last ? last : first, 4 * sizeof *out);
}

static int64_t elements(const int64_t d[4]) { return d[0] * d[1] * d[2] * d[3]; }

static int64_t out_size(const recipe *r, int i)
{
    return (r->dims[X][2 + i] + r->pre[i] + r->post[i] - (r->dims[W][2 + i] - 1) * r->dilation[i] -
            1) / r->stride[i] + 1;
}

typedef struct shape { int64_t n, c, h, w, k, r, s, pre[2], post[2], stride[2], dilation[2], groups; } shape;

static const shape a_shape = { 2, 8, 7, 5, 16, 3, 3, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, 1 };

static recipe recipe_for(const shape *s, format f, int pass, int channels_last)
{
    recipe r = { .operation = passes[pass].type, .ids = { 'x', 'w', 'y' }, .alignment = 16,
        .sums = CUDNN_DATA_FLOAT,
        .mode = CUDNN_CROSS_CORRELATION, .alpha = 1, .execute_with = handle, .heuristic = CUDNN_HEUR_MODE_A,
        .skip = (cudnnBackendAttributeName_t)-1, .mistyped = (cudnnBackendAttributeName_t)-1 };
    memcpy(r.pre, s->pre, sizeof r.pre), memcpy(r.post, s->post, sizeof r.post);
    memcpy(r.stride, s->stride, sizeof r.stride), memcpy(r.dilation, s->dilation, sizeof r.dilation);
    memcpy(r.dims[X], (int64_t[]){ s->n, s->c, s->h, s->w }, sizeof r.dims[X]);
    memcpy(r.dims[W], (int64_t[]){ s->k, s->c / s->groups, s->r, s->s }, sizeof r.dims[W]);
    memcpy(r.dims[Y], (int64_t[]){ s->n, s->k, out_size(&r, 0), out_size(&r, 1) }, sizeof r.dims[Y]);
    for (int i = 0; i < 3; i++) {
        r.types[i] = cudnn_types[f];
        strides_of(r.dims[i], channels_last, r.strides[i]);
        r.data[i] = device((size_t)elements(r.dims[i]) * sizes[f]);
        fill(f, r.data[i], elements(r.dims[i]));
    }
    r.workspace = device(1000);
    return r;
}

static void release(recipe *r)
{
    for (int i = 0; i < 3; i++) cudaFree(r->data[i]);
    cudaFree(r->workspace);
}

/* Each way in which an engine computes less exactly is one that shows. */
TEST_WITH(poor_engines_are_poor, begin, end)
{
    static const struct { format f; cudnn_double_engine engine; } poor[] = {
        { FP32, { .tensor_core = 1 } }, { FP16, { .down_converts = 1 } },
        { BF16, { .reduced_reduction = 1 } } };
    for (size_t i = 0; i < COUNT(poor); i++)
        for (int pass = 0; pass < 3; pass++) {
            recipe good = recipe_for(&a_shape, poor[i].f, pass, 1), bad = good;
            size_t bytes = (size_t)elements(good.dims[outputs[pass]]) * sizes[poor[i].f];
            cudnn_double.engine[1] = poor[i].engine;
            bad.data[outputs[pass]] = device(bytes);
            bad.engine = 1;
            assert_int_equal(run(&good), CUDNN_STATUS_SUCCESS);
            assert_int_equal(run(&bad), CUDNN_STATUS_SUCCESS);
            cudaStreamSynchronize(stream);
            assert_memory_not_equal(good.data[outputs[pass]], bad.data[outputs[pass]], bytes);
            cudaFree(bad.data[outputs[pass]]);
            release(&good);
        }
}

TEST_WITH(convolutions_run_late, begin, end)
{
    recipe r = recipe_for(&a_shape, FP32, 0, 1);
    r.engine = 1;
    memset(r.data[Y], 0xff, 4);
    memset(r.workspace, 0, 1000);
    assert_int_equal(run(&r), CUDNN_STATUS_SUCCESS);
    assert_true(isnan(*(float *)r.data[Y]));
    assert_int_equal(*(unsigned char *)r.workspace, 0);
    cudaStreamSynchronize(stream);
    assert_false(isnan(*(float *)r.data[Y]));
    assert_int_equal(*(unsigned char *)r.workspace, 0xff); /* it is used */
    assert_int_equal(cudnn_double.executions, 1);
    release(&r);
}

TEST_WITH(engines_fail_when_told, begin, end)
{
    recipe r = recipe_for(&a_shape, FP32, 0, 1);
    cudnn_double.engine[0].no_plan = 1;
    assert_int_equal(run(&r), CUDNN_STATUS_NOT_SUPPORTED);
    cudnn_double.engine[0].no_plan = 0, cudnn_double.engine[0].does_not_run = 1;
    assert_int_equal(run(&r), CUDNN_STATUS_EXECUTION_FAILED);
    assert_int_equal(cudnn_double.rejected, 0);
    release(&r);
}

/* ---- misuse of cuDNN ---- */

static char host_memory[1 << 16];

/* A mistake, and what must be said of it: in the list of a function that makes the one of the number `which`,
 * counted from 0, and returns NULL where there are no more. */
#define MISTAKE(text, ...) do { if (which-- == 0) { __VA_ARGS__; return text; } } while (0)

enum { CUDNN_MISTAKES = 44, CUBLAS_MISTAKES = 16 };

static const char *spoil(recipe *r, int which)
{
    MISTAKE("TENSOR_DATA_TYPE is not set", r->skip = CUDNN_ATTR_TENSOR_DATA_TYPE);
    MISTAKE("TENSOR_STRIDES is not set", r->skip = CUDNN_ATTR_TENSOR_STRIDES);
    MISTAKE("CONVOLUTION_DILATIONS is not set", r->skip = CUDNN_ATTR_CONVOLUTION_DILATIONS);
    MISTAKE("FORWARD_BETA is not set", r->skip = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA);
    MISTAKE("FORWARD_W is not set", r->skip = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
    MISTAKE("OPERATIONGRAPH_OPS is not set", r->skip = CUDNN_ATTR_OPERATIONGRAPH_OPS);
    MISTAKE("OPERATIONGRAPH_HANDLE is not set", r->skip = CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
    MISTAKE("ENGINEHEUR_MODE is not set", r->skip = CUDNN_ATTR_ENGINEHEUR_MODE);
    MISTAKE("ENGINE_CONFIG is not set", r->skip = CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    MISTAKE("PLAN_HANDLE is not set", r->skip = CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
    MISTAKE("DATA_POINTERS is not set", r->skip = CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    MISTAKE("TENSOR_DIMENSIONS: type", r->mistyped = CUDNN_ATTR_TENSOR_DIMENSIONS);
    MISTAKE("FORWARD_ALPHA: type", r->mistyped = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA);
    MISTAKE("DATA_POINTERS: type", r->mistyped = CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    MISTAKE("data type", r->types[X] = CUDNN_DATA_INT8);
    MISTAKE("more than one type", r->types[W] = CUDNN_DATA_HALF);
    MISTAKE("dimension 0 is 0", r->dims[X][0] = 0);
    MISTAKE("its stride -", r->strides[Y][2] = -r->strides[Y][2]);
    MISTAKE("overlap", r->strides[X][2] -= r->dims[X][1]);
    MISTAKE("alignment 24", r->alignment = 24);
    MISTAKE("3 of y", r->dims[Y][0] = 3);
    MISTAKE("15 filters", r->dims[W][0] = 15);
    MISTAKE("of 3 channels", r->dims[W][1] = 3);
    MISTAKE("y is of size 8 where the convolution gives 7", r->dims[Y][2] += 1, r->strides[Y][0] *= 2);
    MISTAKE("y is of size 5 where the convolution gives 3", r->stride[1] = 2);
    MISTAKE("y is of size 7 where the convolution gives 6", r->post[0] = 0);
    MISTAKE("a stride below 1", r->stride[0] = 0);
    MISTAKE("a dilation below 1", r->dilation[0] = 0);
    MISTAKE("negative padding", r->pre[0] = -1);
    MISTAKE("not computed in fp32", r->sums = CUDNN_DATA_HALF);
    MISTAKE("not a cross-correlation", r->mode = CUDNN_CONVOLUTION);
    MISTAKE("same id", r->ids[W] = 'x');
    MISTAKE("heuristics: mode", r->heuristic = CUDNN_HEUR_MODE_B);
    MISTAKE("cudnnBackendExecute: no handle", r->execute_with = NULL);
    MISTAKE("has no memory", r->data[Y] = NULL);
    MISTAKE("not aligned", r->data[X] = (char *)r->data[X] + 4);
    MISTAKE("not in device memory", r->data[W] = host_memory);
    MISTAKE("not in device memory", r->data[Y] = (char *)r->data[Y] + 16);
    MISTAKE("output overlaps", r->data[X] = r->data[Y]);
    MISTAKE("needs 1000 bytes", r->engine = 1, r->workspace = NULL);
    MISTAKE("not 1000 bytes of device memory", r->engine = 1, r->workspace = host_memory);
    MISTAKE("not 1000 bytes of device memory", r->engine = 1, r->workspace = (char *)r->workspace + 16);
    MISTAKE("workspace at", r->engine = 1, cudnn_double.engine[1].workspace = 900,
            r->workspace = (char *)r->workspace + 8);
    MISTAKE("overlaps tensor", r->engine = 1, r->workspace = r->data[X]);
    return NULL;
}

static void assert_seen(int count, const char *text, const char *first, int number)
{
    if (count != 1 || !strstr(first, text))
        fail_msg("misuse %d: %d seen, \"%s\", not \"%s\"", number, count, first, text);
    assert_true(amp_cuda_faults() > 0);
    amp_cuda_forget_faults();
}

TEST_WITH(misuse_is_seen, begin, end)
{
    assert_null(spoil(NULL, CUDNN_MISTAKES));
    for (int i = 0; i < CUDNN_MISTAKES; i++) {
        recipe r = recipe_for(&a_shape, FP32, 0, 1), all_right = r;
        const char *text = spoil(&r, i);
        assert_int_equal(run(&r), CUDNN_STATUS_BAD_PARAM);
        assert_seen(cudnn_double.rejected, text, cudnn_double.rejection, i);
        cudnn_double.rejected = 0;
        assert_int_equal(cudnn_double.executions, 0);
        release(&all_right);
    }
}

#define REJECTED(call, words) do { \
        assert_int_equal(call, CUDNN_STATUS_BAD_PARAM); \
        assert_seen(cudnn_double.rejected, words, cudnn_double.rejection, 0); \
        cudnn_double.rejected = 0; \
    } while (0)

TEST_WITH(descriptors_live_as_they_should, begin, end)
{
    recipe r = recipe_for(&a_shape, FP32, 0, 1);
    told t = { .r = &r, .status = CUDNN_STATUS_SUCCESS };
    cudnnBackendDescriptor_t tensor = tell_tensor(&t, X),
        blank = new_one(&t, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    cudnnBackendDescriptor_t operation = new_one(&t, r.operation),
        config = new_one(&t, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    cudnnBackendDescriptor_t none = NULL;
    assert_int_equal(t.status, CUDNN_STATUS_SUCCESS);
    const cudnnBackendAttributeName_t x = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X;
    const cudnnBackendAttributeName_t conv = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC;
    const cudnnBackendAttributeType_t reference_type = CUDNN_TYPE_BACKEND_DESCRIPTOR;

    REJECTED(cudnnBackendSetAttribute(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, r.ids),
        "of a finalized descriptor");
    REJECTED(cudnnBackendFinalize(tensor), "again");
    REJECTED(cudnnBackendSetAttribute(operation, x, reference_type, 1, &blank), "not finalized");
    REJECTED(cudnnBackendSetAttribute(operation, conv, reference_type, 1, &tensor), "a descriptor of type");
    REJECTED(cudnnBackendSetAttribute(operation, x, reference_type, 2, &tensor), "2 values");
    REJECTED(cudnnBackendSetAttribute(operation, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, r.ids),
        "knows no attribute");
    REJECTED(cudnnBackendFinalize(config), "not finalized by its user");
    REJECTED(cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, reference_type, 1,
                                      r.dims[X], &none),
        "no finalized");
    cudnnBackendDestroyDescriptor(blank);
    t.d[1] = t.d[--t.count];
    REJECTED(cudnnBackendFinalize(blank), "no descriptor, or no more");
    REJECTED(cudnnBackendDestroyDescriptor(blank), "is none, or no more");
    REJECTED(cudnnBackendSetAttribute(operation, x, reference_type, 1, &blank), "no more");
    forget(&t);
    REJECTED(cudnnBackendFinalize(tensor), "no descriptor, or no more");

    assert_int_equal(cudnnBackendCreateDescriptor(CUDNN_BACKEND_RNG_DESCRIPTOR, &none),
                     CUDNN_STATUS_NOT_SUPPORTED);
    assert_seen(cudnn_double.rejected, "has no type", cudnn_double.rejection, 0);
    release(&r);
}

TEST_WITH(what_is_left_is_told, begin, end)
{
    cudnnBackendDescriptor_t d;
    assert_int_equal(cudnn_double_leaks(), 1); /* the handle */
    assert_int_equal(cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, &d), CUDNN_STATUS_SUCCESS);
    amp_cuda_forget_faults();
    assert_int_equal(cudnn_double_leaks(), 2);
    assert_string_equal(amp_cuda_fault(), "cuDNN: 1 descriptors were not destroyed");
    amp_cuda_forget_faults();
    cudnnBackendDestroyDescriptor(d);
}

TEST_WITH(the_handle_s_stream_is_the_one, begin, end)
{
    recipe r = recipe_for(&a_shape, FP32, 0, 1);
    assert_int_equal(run(&r), CUDNN_STATUS_SUCCESS);
    cudnnSetStream(handle, NULL);
    assert_int_equal(run(&r), CUDNN_STATUS_SUCCESS);
    assert_non_null(strstr(amp_cuda_fault(), "stream"));
    amp_cuda_forget_faults();
    cudaDeviceSynchronize();
    release(&r);
}

/* ---- cuBLAS ---- */

typedef struct product {
    cublasHandle_t handle;
    cublasOperation_t a_op, b_op;
    int m, n, k, lda, ldb, ldc;
    format in, out;
    float alpha_beta[2];
    const void *alpha, *beta;
    cudaDataType_t a_type, b_type, c_type;
    void *a, *b, *c;
    int64_t a_count, b_count, c_count;
    cublasComputeType_t compute;
    cublasGemmAlgo_t algorithm;
} product;

static cublasHandle_t blas;

static product product_of(int transpose_a, int transpose_b, int m, int n, int k, format in, format out)
{
    product p = { blas, transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
        m, n, k, (transpose_a ? k : m) + 3, (transpose_b ? n : k) + 1, m + 2, in, out, { 1, 0 }, NULL, NULL,
        cublas_types[in], cublas_types[in], cublas_types[out], NULL, NULL, NULL, 0, 0, 0, CUBLAS_COMPUTE_32F,
        CUBLAS_GEMM_DEFAULT };
    p.a_count = (int64_t)p.lda * (transpose_a ? m : k), p.b_count = (int64_t)p.ldb * (transpose_b ? k : n);
    p.c_count = (int64_t)p.ldc * n;
    p.a = device((size_t)p.a_count * sizes[in]), p.b = device((size_t)p.b_count * sizes[in]);
    p.c = device((size_t)p.c_count * sizes[out]);
    fill(in, p.a, p.a_count), fill(in, p.b, p.b_count), fill(out, p.c, p.c_count);
    return p;
}

static cublasStatus_t multiply(const product *p)
{
    const void *alpha = p->alpha ? p->alpha : &p->alpha_beta[0],
        *beta = p->beta ? p->beta : &p->alpha_beta[1];
    return cublasGemmEx(p->handle, p->a_op, p->b_op, p->m, p->n, p->k, alpha, p->a, p->a_type, p->lda, p->b,
        p->b_type, p->ldb, beta, p->c, p->c_type, p->ldc, p->compute, p->algorithm);
}

static void release_product(product *p) { cudaFree(p->a), cudaFree(p->b), cudaFree(p->c); }

static int begin_blas(void **state)
{
    return begin(state) || cublasCreate(&blas) || cublasSetStream(blas, stream) ||
        cublasSetMathMode(blas, (cublasMath_t)(CUBLAS_DEFAULT_MATH |
                                               CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION));
}

static int end_blas(void **state)
{
    cublasDestroy(blas);
    return end(state);
}

/* A math mode that allows less exact sums gives less exact sums, and TF32 less exact inputs. */
TEST_WITH(math_modes_show, begin_blas, end_blas)
{
    static const struct { cublasMath_t mode; format f; } modes[] = { { CUBLAS_DEFAULT_MATH, FP16 },
        { CUBLAS_TF32_TENSOR_OP_MATH, FP32 } };
    for (size_t i = 0; i < COUNT(modes); i++) {
        product good = product_of(0, 0, 20, 20, 300, modes[i].f, modes[i].f), bad = good;
        bad.c = device((size_t)bad.c_count * sizes[bad.out]);
        memcpy(bad.c, good.c, (size_t)bad.c_count * sizes[bad.out]);
        assert_int_equal(cublasSetMathMode(blas,
                                           (cublasMath_t)CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION),
            CUBLAS_STATUS_SUCCESS);
        assert_int_equal(multiply(&good), CUBLAS_STATUS_SUCCESS);
        assert_int_equal(cublasSetMathMode(blas, modes[i].mode), CUBLAS_STATUS_SUCCESS);
        assert_int_equal(multiply(&bad), CUBLAS_STATUS_SUCCESS);
        cudaStreamSynchronize(stream);
        assert_memory_not_equal(good.c, bad.c, (size_t)bad.c_count * sizes[bad.out]);
        cudaFree(bad.c);
        release_product(&good);
    }
}

TEST_WITH(products_run_late, begin_blas, end_blas)
{
    product p = product_of(0, 0, 4, 4, 4, FP32, FP32);
    float before = *(float *)p.c;
    assert_int_equal(multiply(&p), CUBLAS_STATUS_SUCCESS);
    assert_float_equal(*(float *)p.c, before, 0);
    cudaStreamSynchronize(stream);
    assert_true(*(float *)p.c != before);
    release_product(&p);
}

static const char *spoil_product(product *p, int which)
{
    MISTAKE("operation 2 on A", p->a_op = CUBLAS_OP_C);
    MISTAKE("sizes 4, 4, 0", p->k = 0);
    MISTAKE("A: leading dimension", p->lda = p->m - 1);
    MISTAKE("B: leading dimension", p->ldb = p->k - 1);
    MISTAKE("C: leading dimension", p->ldc = p->m - 1);
    MISTAKE("C is not", p->ldc += 1);
    MISTAKE("types", p->b_type = CUDA_R_16BF);
    MISTAKE("types", p->c_type = CUDA_R_16BF);
    MISTAKE("not computed in fp32", p->compute = CUBLAS_COMPUTE_16F);
    MISTAKE("algorithm", p->algorithm = CUBLAS_GEMM_ALGO3);
    MISTAKE("to be the host's", cudaMalloc((void **)&p->alpha, 4));
    MISTAKE("A is not", p->a = host_memory);
    MISTAKE("B: 0x", p->b = (char *)p->b + 1);
    MISTAKE("C is not", p->c = NULL);
    MISTAKE("C overlaps A", p->c = p->a);
    MISTAKE("no handle", p->handle = NULL);
    return NULL;
}

TEST_WITH(misuse_of_products_is_seen, begin_blas, end_blas)
{
    assert_null(spoil_product(NULL, CUBLAS_MISTAKES));
    for (int i = 0; i < CUBLAS_MISTAKES; i++) {
        product p = product_of(0, 0, 4, 4, 4, FP16, FP16), all_right = p;
        const char *text = spoil_product(&p, i);
        assert_int_not_equal(multiply(&p), CUBLAS_STATUS_SUCCESS);
        assert_seen(cublas_double.rejected, text, cublas_double.rejection, i);
        cublas_double.rejected = 0;
        if (p.alpha) cudaFree((void *)p.alpha);
        release_product(&all_right);
    }
    assert_int_equal(cublas_double.products, 0);
    assert_int_equal(cublas_double_leaks(), 1);
    amp_cuda_forget_faults();
}

int main(void) { return run_listed_tests("tests", NULL, NULL); }
