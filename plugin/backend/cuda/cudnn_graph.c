/* Convolutions through cuDNN's graph API: the operation graph of each pass, the engines that cuDNN's
 * heuristics list for it, the plans of engines, and running a plan. conv_plan.c chooses the engine.
 *
 * cuDNN's objects are descriptors, set up by many calls, each of which can fail. A `chain` records the first
 * failure and skips all later calls, so that one check at its end is enough. */
#include "cudnn_graph.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cudnn.h>
#include <cudnn_backend.h>

#define CONFIG_KNOWS_WORKSPACE (CUDNN_VERSION >= 90200) /* older versions know the size of the workspace only
                                                           after building the plan */

typedef cudnnBackendDescriptor_t descriptor;

struct amp_cudnn {
    cudnnHandle_t handle;
    amp_cudnn_settings settings;
};

/* ---- calls and failures ---- */

typedef struct chain {
    cudnnStatus_t status;
    const char *call, *subject; /* call: the function that failed; subject: its argument (an attribute or
                                   a kind of descriptor) */
    char text[512];             /* cuDNN's own message */
} chain;

/* Records the outcome of a call. Returns true if neither this call nor an earlier one has failed. */
static int after(chain *chain, cudnnStatus_t status, const char *call, const char *subject)
{
    if (chain->status != CUDNN_STATUS_SUCCESS || status == CUDNN_STATUS_SUCCESS)
        return chain->status == CUDNN_STATUS_SUCCESS;
    chain->status = status;
    chain->call = call;
    chain->subject = subject;
#if CUDNN_VERSION >= 90000
    cudnnGetLastErrorString(chain->text, sizeof chain->text);
    for (char *c = chain->text; *c; c++)
        if (*c == '\n') *c = ' ';
#endif
    return 0;
}

static int ok(const chain *chain) { return chain->status == CUDNN_STATUS_SUCCESS; }

/* Uses only named constants, because their numbers differ between cuDNN 8 and 9. */
static amp_status status_of(cudnnStatus_t status)
{
    if (status == CUDNN_STATUS_SUCCESS) return AMP_OK;
    if (status == CUDNN_STATUS_ALLOC_FAILED) return AMP_NO_MEMORY;
#if CUDNN_VERSION >= 90000
    if (status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED) return AMP_NO_MEMORY;
    if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED) return AMP_UNSUPPORTED;
#endif
    return status == CUDNN_STATUS_NOT_SUPPORTED ? AMP_UNSUPPORTED : AMP_BACKEND_FAILED;
}

/* Returns AMP_OK, or the status of the chain's first failure. about: begins the message; may be "". */
static amp_status outcome(const chain *chain, const char *about, amp_error *error)
{
    if (ok(chain)) return AMP_OK;
    const amp_status status = status_of(chain->status);
    return amp_fail(error, status, "%s%scuDNN: %s(%s): %s%s%s%s", about, *about ? ": " : "", chain->call,
                    chain->subject, cudnnGetErrorString(chain->status), *chain->text ? ": " : "", chain->text,
                    status == AMP_NO_MEMORY ? "; use a smaller batch or more subdivisions" : "");
}

static descriptor create(chain *chain, cudnnBackendDescriptorType_t type, const char *type_name)
{
    descriptor d = NULL;
    if (ok(chain))
        after(chain, cudnnBackendCreateDescriptor(type, &d), "cudnnBackendCreateDescriptor", type_name);
    return d;
}

static void set(chain *chain, descriptor d, cudnnBackendAttributeName_t name, const char *name_text,
                cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    if (ok(chain))
        after(chain, cudnnBackendSetAttribute(d, name, type, count, values), "cudnnBackendSetAttribute",
              name_text);
}

static int64_t get(chain *chain, descriptor d, cudnnBackendAttributeName_t name, const char *name_text,
                   cudnnBackendAttributeType_t type, int64_t room, void *values)
{
    int64_t count = 0;
    if (ok(chain))
        after(chain, cudnnBackendGetAttribute(d, name, type, room, &count, values),
              "cudnnBackendGetAttribute", name_text);
    if (!ok(chain)) return 0;
    return room && count > room ? room : count;
}

static void finalize(chain *chain, descriptor d, const char *what)
{
    if (ok(chain)) after(chain, cudnnBackendFinalize(d), "cudnnBackendFinalize", what);
}

static void destroy(descriptor d)
{
    if (d) cudnnBackendDestroyDescriptor(d); /* fails only if d was never created */
}

#define CREATE(chain, type) create(chain, CUDNN_BACKEND_##type, #type)
#define SET(chain, d, name, type, count, values) \
    set(chain, d, CUDNN_ATTR_##name, #name, CUDNN_TYPE_##type, count, values)
#define GET(chain, d, name, type, room, values) \
    get(chain, d, CUDNN_ATTR_##name, #name, CUDNN_TYPE_##type, room, values)

/* ---- operation graph ---- */

enum { X = 'x', W = 'w', Y = 'y' }; /* the ids of the tensors in a variant pack */

typedef struct conv_graph { descriptor x, w, y, convolution, operation, graph; } conv_graph;

static void conv_graph_free(conv_graph *g)
{
    if (!g) return;
    destroy(g->graph);
    destroy(g->operation);
    destroy(g->convolution);
    destroy(g->y);
    destroy(g->w);
    destroy(g->x);
    free(g);
}

/* Describes a densely packed tensor, with dimensions n,c,h,w, stored as n,h,w,c. A filter has dimensions
 * k,c,r,s and is stored as k,r,s,c. */
static descriptor tensor(chain *chain, int64_t id, amp_dtype dtype, amp_shape shape)
{
    static const cudnnDataType_t types[] = {
        [AMP_FP32] = CUDNN_DATA_FLOAT, [AMP_FP16] = CUDNN_DATA_HALF, [AMP_BF16] = CUDNN_DATA_BFLOAT16 };
    const int64_t n = shape.n, c = shape.c, h = shape.h, w = shape.w, alignment = 16;
    const int64_t dimensions[4] = { n, c, h, w }, strides[4] = { c * h * w, 1, w * c, c };
    descriptor d = CREATE(chain, TENSOR_DESCRIPTOR);
    SET(chain, d, TENSOR_DATA_TYPE, DATA_TYPE, 1, &types[dtype]);
    SET(chain, d, TENSOR_DIMENSIONS, INT64, 4, dimensions);
    SET(chain, d, TENSOR_STRIDES, INT64, 4, strides);
    SET(chain, d, TENSOR_UNIQUE_ID, INT64, 1, &id);
    SET(chain, d, TENSOR_BYTE_ALIGNMENT, INT64, 1, &alignment);
    finalize(chain, d, id == X ? "tensor x" : id == W ? "tensor w" : "tensor y");
    return d;
}

static descriptor convolution(chain *chain, const amp_conv_desc *p)
{
    const cudnnDataType_t sums = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const int64_t dimensions = 2, pads[2] = { p->pad, p->pad };
    const int64_t strides[2] = { p->stride, amp_conv_stride_x(p) };
    const int64_t dilations[2] = { amp_conv_dilation(p), amp_conv_dilation(p) };
    descriptor d = CREATE(chain, CONVOLUTION_DESCRIPTOR);
    SET(chain, d, CONVOLUTION_COMP_TYPE, DATA_TYPE, 1, &sums);
    SET(chain, d, CONVOLUTION_CONV_MODE, CONVOLUTION_MODE, 1, &mode);
    SET(chain, d, CONVOLUTION_SPATIAL_DIMS, INT64, 1, &dimensions);
    SET(chain, d, CONVOLUTION_PRE_PADDINGS, INT64, 2, pads);
    SET(chain, d, CONVOLUTION_POST_PADDINGS, INT64, 2, pads);
    SET(chain, d, CONVOLUTION_FILTER_STRIDES, INT64, 2, strides);
    SET(chain, d, CONVOLUTION_DILATIONS, INT64, 2, dilations);
    finalize(chain, d, "convolution");
    return d;
}

/* Sets the attributes of a pass's operation, which have different names in the three passes. */
#define SET_OPERATION(chain, d, pass, x_name, w_name, y_name, g, alpha, beta) \
    do { \
        SET(chain, d, OPERATION_CONVOLUTION_##pass##_ALPHA, FLOAT, 1, alpha); \
        SET(chain, d, OPERATION_CONVOLUTION_##pass##_BETA, FLOAT, 1, beta); \
        SET(chain, d, OPERATION_CONVOLUTION_##pass##_CONV_DESC, BACKEND_DESCRIPTOR, 1, &(g)->convolution); \
        SET(chain, d, OPERATION_CONVOLUTION_##pass##_##x_name, BACKEND_DESCRIPTOR, 1, &(g)->x); \
        SET(chain, d, OPERATION_CONVOLUTION_##pass##_##w_name, BACKEND_DESCRIPTOR, 1, &(g)->w); \
        SET(chain, d, OPERATION_CONVOLUTION_##pass##_##y_name, BACKEND_DESCRIPTOR, 1, &(g)->y); \
    } while (0)

/* A filter gradient sums N products, one for each image and output pixel. In fp16 the sum could exceed 65504.
 * So cuDNN writes 2^-s times the sum, and conv.c multiplies it by 2^s. s is log2(√N), rounded: products with
 * random signs add up to about √N times one product. */
int amp_cudnn_downscale(const amp_conv_problem *p)
{
    const amp_shape y = amp_conv_output(&p->conv);
    int twice = 0; /* 2·log2(√N), rounded down */
    if (p->pass != AMP_CONV_BACKWARD_FILTER || p->conv.dtype != AMP_FP16) return 0;
    for (double products = (double)y.n * y.h * y.w; products >= 2; products /= 2) twice++;
    return (twice + 1) / 2;
}

static descriptor operation(chain *chain, const amp_conv_problem *p, const conv_graph *g)
{
    const float one = 1.0f, down = ldexpf(1.0f, -amp_cudnn_downscale(p)), beta = p->accumulate ? 1.0f : 0.0f;
    descriptor d = NULL;
    switch (p->pass) {
    case AMP_CONV_FORWARD:
        d = CREATE(chain, OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
        SET_OPERATION(chain, d, FORWARD, X, W, Y, g, &one, &beta);
        break;
    case AMP_CONV_BACKWARD_DATA:
        d = CREATE(chain, OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
        SET_OPERATION(chain, d, BWD_DATA, DX, W, DY, g, &one, &beta);
        break;
    case AMP_CONV_BACKWARD_FILTER:
        d = CREATE(chain, OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
        SET_OPERATION(chain, d, BWD_FILTER, X, DW, DY, g, &down, &beta);
        break;
    }
    finalize(chain, d, "operation");
    return d;
}

static void conv_graph_fill(chain *chain, const amp_cudnn *library, const amp_conv_problem *p, conv_graph *g)
{
    const amp_conv_desc *d = &p->conv;
    g->x = tensor(chain, X, d->dtype, d->x);
    g->w = tensor(chain, W, d->dtype, (amp_shape){ d->k, d->x.c / d->groups, d->size_h, d->size_w });
    g->y = tensor(chain, Y, d->dtype, amp_conv_output(d));
    g->convolution = convolution(chain, d);
    g->operation = operation(chain, p, g);
    g->graph = CREATE(chain, OPERATIONGRAPH_DESCRIPTOR);
    SET(chain, g->graph, OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, 1, &g->operation);
    SET(chain, g->graph, OPERATIONGRAPH_HANDLE, HANDLE, 1, &library->handle);
    finalize(chain, g->graph, "operation graph");
}

/* ---- candidates ---- */

/* Reads the properties of c's engine from c's config. */
static void describe_config(chain *chain, amp_conv_candidate *c)
{
    descriptor engine = CREATE(chain, ENGINE_DESCRIPTOR);
    cudnnBackendNumericalNote_t numerical[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    cudnnBackendBehaviorNote_t behavior[CUDNN_BEHAVIOR_NOTE_TYPE_COUNT];
    GET(chain, c->config, ENGINECFG_ENGINE, BACKEND_DESCRIPTOR, 1, &engine);
    GET(chain, engine, ENGINE_GLOBAL_INDEX, INT64, 1, &c->engine);
#if CONFIG_KNOWS_WORKSPACE
    int64_t workspace = 0;
    GET(chain, c->config, ENGINECFG_WORKSPACE_SIZE, INT64, 1, &workspace);
    c->workspace = workspace > 0 ? (size_t)workspace : 0;
#endif
    int64_t count = GET(chain, engine, ENGINE_NUMERICAL_NOTE, NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT,
                        numerical);
    for (int64_t i = 0; i < count; i++) {
        if (numerical[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE) c->notes |= AMP_CONV_TENSOR_CORE;
        if (numerical[i] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) c->notes |= AMP_CONV_DOWN_CONVERTS;
        if (numerical[i] == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)
            c->notes |= AMP_CONV_REDUCED_REDUCTION;
        if (numerical[i] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) c->notes |= AMP_CONV_NONDETERMINISTIC;
    }
    count = GET(chain, engine, ENGINE_BEHAVIOR_NOTE, BEHAVIOR_NOTE, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, behavior);
    for (int64_t i = 0; i < count; i++)
        if (behavior[i] == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) c->notes |= AMP_CONV_RUNTIME_COMPILED;
    destroy(engine);
}

/* Appends the engines that one heuristic lists for the graph. An empty list and NOT_SUPPORTED are not
 * errors here: conv_plan.c reports it if all lists are empty. */
static void append_candidates(chain *outer, descriptor graph, cudnnBackendHeurMode_t mode,
                              amp_conv_candidates *out)
{
    if (!ok(outer)) return;
    chain inner = { CUDNN_STATUS_SUCCESS };
    descriptor configs[AMP_CONV_CANDIDATES] = { NULL };
    const int room = AMP_CONV_CANDIDATES - out->count;
    descriptor heuristic = CREATE(&inner, ENGINEHEUR_DESCRIPTOR);
    SET(&inner, heuristic, ENGINEHEUR_OPERATION_GRAPH, BACKEND_DESCRIPTOR, 1, &graph);
    SET(&inner, heuristic, ENGINEHEUR_MODE, HEUR_MODE, 1, &mode);
    finalize(&inner, heuristic, "engine heuristics");
    int64_t count = GET(&inner, heuristic, ENGINEHEUR_RESULTS, BACKEND_DESCRIPTOR, 0, NULL);
    if (count > room) count = room;
    for (int i = 0; i < count; i++) configs[i] = CREATE(&inner, ENGINECFG_DESCRIPTOR);
    int64_t filled = count ? GET(&inner, heuristic, ENGINEHEUR_RESULTS, BACKEND_DESCRIPTOR, count, configs)
        : 0;
    for (int i = 0; i < count; i++) {
        if (i >= filled) {
            destroy(configs[i]);
            continue;
        }
        out->list[out->count] = (amp_conv_candidate){ .rank = out->count, .config = configs[i] };
        out->count++;
    }
    destroy(heuristic);
    if (status_of(inner.status) != AMP_UNSUPPORTED) *outer = inner;
}

static void release_candidate(void *self, amp_conv_candidate *c)
{
    destroy(c->plan);
    destroy(c->config);
    c->plan = c->config = NULL;
}

static void drop_candidates(void *self, amp_conv_candidates *candidates)
{
    for (int i = 0; i < candidates->count; i++) release_candidate(self, &candidates->list[i]);
    free(candidates->list);
    conv_graph_free(candidates->graph);
    *candidates = (amp_conv_candidates){ 0 };
}

/* Lists the engines that cuDNN's heuristic expects to be fastest, then cuDNN's fallback engines. */
static amp_status list_candidates(void *self, const amp_conv_problem *problem, amp_conv_candidates *out,
                                  amp_error *error)
{
    chain chain = { CUDNN_STATUS_SUCCESS };
    conv_graph *g = out->graph = amp_allocated(calloc(1, sizeof *g));
    out->list = amp_allocated(calloc(AMP_CONV_CANDIDATES, sizeof *out->list));
    conv_graph_fill(&chain, self, problem, g);
    append_candidates(&chain, g->graph, CUDNN_HEUR_MODE_A, out);
    append_candidates(&chain, g->graph, CUDNN_HEUR_MODE_FALLBACK, out);
    for (int i = 0; i < out->count; i++) describe_config(&chain, &out->list[i]);
    if (ok(&chain)) return AMP_OK;
    drop_candidates(self, out);
    return outcome(&chain, "", error);
}

/* ---- plans ---- */

static amp_status engine_outcome(const chain *chain, const amp_conv_candidate *c, amp_error *error)
{
    char engine[32];
    snprintf(engine, sizeof engine, "engine %lld", (long long)c->engine);
    return outcome(chain, engine, error);
}

static amp_status build_plan(void *self, amp_conv_candidate *c, amp_error *error)
{
    amp_cudnn *library = self;
    chain chain = { CUDNN_STATUS_SUCCESS };
    int64_t workspace = 0;
    descriptor plan = CREATE(&chain, EXECUTION_PLAN_DESCRIPTOR), config = c->config;
    SET(&chain, plan, EXECUTION_PLAN_ENGINE_CONFIG, BACKEND_DESCRIPTOR, 1, &config);
    SET(&chain, plan, EXECUTION_PLAN_HANDLE, HANDLE, 1, &library->handle);
    finalize(&chain, plan, "execution plan");
    GET(&chain, plan, EXECUTION_PLAN_WORKSPACE_SIZE, INT64, 1, &workspace);
    if (ok(&chain)) {
        c->plan = plan;
        c->workspace = workspace > 0 ? (size_t)workspace : 0;
        return AMP_OK;
    }
    destroy(plan);
    return engine_outcome(&chain, c, error);
}

const amp_conv_library amp_cudnn_library = { list_candidates, build_plan, release_candidate,
                                             drop_candidates };

/* ---- running ---- */

void amp_cudnn_pack_free(amp_cudnn_pack *pack)
{
    destroy(pack->descriptor);
    *pack = (amp_cudnn_pack){ 0 };
}

/* Returns the pack's descriptor. Creates it again (five calls of cuDNN) only if the buffers have changed. */
static descriptor describe_buffers(chain *chain, amp_cudnn_pack *pack, const amp_conv_buffers *b,
                                   void *workspace)
{
    static const int64_t ids[3] = { X, W, Y };
    void *const pointers[3] = { b->x, b->w, b->y };
    if (pack->descriptor && pack->x == b->x && pack->w == b->w && pack->y == b->y
        && pack->workspace == workspace) return pack->descriptor;
    amp_cudnn_pack_free(pack);
    *pack = (amp_cudnn_pack){ CREATE(chain, VARIANT_PACK_DESCRIPTOR), b->x, b->w, b->y, workspace };
    SET(chain, pack->descriptor, VARIANT_PACK_UNIQUE_IDS, INT64, 3, ids);
    SET(chain, pack->descriptor, VARIANT_PACK_DATA_POINTERS, VOID_PTR, 3, pointers);
    SET(chain, pack->descriptor, VARIANT_PACK_WORKSPACE, VOID_PTR, 1, &workspace);
    finalize(chain, pack->descriptor, "variant pack");
    if (!ok(chain)) amp_cudnn_pack_free(pack);
    return pack->descriptor;
}

amp_status amp_cudnn_launch(amp_cudnn *library, const amp_conv_plan *plan, const amp_conv_buffers *buffers,
                            amp_error *error)
{
    if (!plan->current.plan)
        return amp_fail(error, AMP_UNSUPPORTED, "cuDNN: all plans of this convolution have failed");
    void *workspace = NULL;
    if (plan->current.workspace)
        AMP_TRY(library->settings.reserve(library->settings.owner, plan->current.workspace, &workspace,
                                          error));

    chain chain = { CUDNN_STATUS_SUCCESS };
    amp_cudnn_pack once = { 0 };
    descriptor pack = describe_buffers(&chain, buffers->pack ? buffers->pack : &once, buffers, workspace);
    if (ok(&chain))
        after(&chain, cudnnBackendExecute(library->handle, plan->current.plan, pack), "cudnnBackendExecute",
              "convolution");
    amp_cudnn_pack_free(&once);
    return engine_outcome(&chain, &plan->current, error);
}

/* ---- library ---- */

/* cuDNN numbers version 9.19.0 as 91900, but 8.9.7 as 8907. */
static void version_text(int version, char *text, size_t size)
{
    int unit = version >= 90000 ? 10000 : 1000;
    snprintf(text, size, "cuDNN %d.%d.%d", version / unit, version % unit / 100, version % 100);
}

void amp_cudnn_describe(char *text, size_t size) { version_text((int)cudnnGetVersion(), text, size); }

/* Fails if cuDNN is older than the headers of this build: it would lack attributes that this file reads. */
static amp_status check_version(amp_error *error)
{
    char built[32], found[32];
    if (cudnnGetVersion() / 100 >= CUDNN_VERSION / 100) return AMP_OK;
    version_text(CUDNN_VERSION, built, sizeof built);
    amp_cudnn_describe(found, sizeof found);
    return amp_fail(error, AMP_UNSUPPORTED,
                    "this program was built with %s but finds %s: check which libcudnn LD_LIBRARY_PATH leads "
                    "to, install the newer one, or rebuild", built, found);
}

/* Keeps CUDA's run-time compiler (NVRTC) loaded. Otherwise cuDNN would load and unload it for each list of
 * engines. This takes most of the time that a list needs, and leaks 70 kB. If the compiler's library has
 * another file name than here, lists stay slow. */
static void keep_compiler_loaded(void)
{
    char name[32];
    snprintf(name, sizeof name, "libnvrtc.so.%d", CUDART_VERSION / 1000);
    dlopen(name, RTLD_LAZY | RTLD_NODELETE);
}

amp_status amp_cudnn_create(void *stream, const amp_cudnn_settings *settings, amp_cudnn **out,
                            amp_error *error)
{
    chain chain = { CUDNN_STATUS_SUCCESS };
    AMP_TRY(check_version(error));
    amp_cudnn *library = amp_allocated(calloc(1, sizeof *library));
    library->settings = *settings;
    keep_compiler_loaded();
    if (after(&chain, cudnnCreate(&library->handle), "cudnnCreate", ""))
        after(&chain, cudnnSetStream(library->handle, stream), "cudnnSetStream", "");
    amp_status status = outcome(&chain, "", error);
    if (status == AMP_OK) *out = library;
    else amp_cudnn_destroy(library);
    return status;
}

void amp_cudnn_destroy(amp_cudnn *library)
{
    if (!library) return;
    if (library->handle) cudnnDestroy(library->handle); /* errors are ignored */
    free(library);
}
