/* What backend/cuda/cudnn_graph.c says to cuDNN when it runs on a device, and what it does when cuDNN fails: against a
 * stand-in for the library that keeps the descriptors it is given, runs nothing, and can fail at any call. The real
 * library judges the same descriptors in cuda_plans.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include <cudnn.h>
#include <cudnn_backend.h>

#include "backend/cuda/cudnn_graph.h"

/* ---- the stand-in ---- */

typedef struct attribute { cudnnBackendAttributeName_t name; int64_t count; char bytes[64]; } attribute;

typedef struct object {
    cudnnBackendDescriptorType_t type;
    int alive, finalized, attributes;
    attribute attribute[12];
    int engine;              /* of a config: which of the library's, */
    struct object *graph;    /* and for what */
} object;

enum { ENGINES = 3 };

static struct {
    int handle, handles;     /* &handle is the handle */
    void *stream;
    int live;                /* descriptors */
    int calls, fail_at;      /* the call that fails, from 1; 0: none */
    cudnnStatus_t failure;
    const char *failed;      /* its name */
    int does_not_run[ENGINES], executed[ENGINES];
    int64_t workspace[ENGINES];
    object *pack, *plan;     /* of the last execution */
} cudnn;

static cudnnStatus_t called(const char *name)
{
    if (++cudnn.calls != cudnn.fail_at) return CUDNN_STATUS_SUCCESS;
    cudnn.failed = name;
    return cudnn.failure;
}

#define MAY_FAIL() \
    do { \
        cudnnStatus_t may_fail_ = called(__func__); \
        if (may_fail_ != CUDNN_STATUS_SUCCESS) return may_fail_; \
    } while (0)

size_t cudnnGetVersion(void) { return CUDNN_VERSION; }
const char *cudnnGetErrorString(cudnnStatus_t status)
{
    return status == CUDNN_STATUS_ALLOC_FAILED ? "CUDNN_STATUS_ALLOC_FAILED" : "CUDNN_STATUS_OF_STAND_IN";
}
#if CUDNN_VERSION >= 90000
void cudnnGetLastErrorString(char *text, size_t size) { snprintf(text, size, "the stand-in\nwas told to"); }
#endif

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    MAY_FAIL();
    cudnn.handles++;
    *handle = (cudnnHandle_t)&cudnn.handle;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    assert_ptr_equal(handle, &cudnn.handle);
    cudnn.handles--;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    MAY_FAIL();
    assert_ptr_equal(handle, &cudnn.handle);
    cudnn.stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out)
{
    MAY_FAIL();
    object *o = calloc(1, sizeof *o);
    assert_non_null(o);
    o->type = type;
    o->alive = 1;
    cudnn.live++;
    *out = o;
    return CUDNN_STATUS_SUCCESS;
}

/* The memory is given back at the end of each test only, so that a descriptor used after its end is seen. */
static object *graveyard[4096];
static int buried;

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d)
{
    object *o = d;
    assert_true(o->alive);
    o->alive = 0;
    cudnn.live--;
    assert_true(buried < 4096);
    graveyard[buried++] = o;
    return CUDNN_STATUS_SUCCESS;
}

static size_t size_of(cudnnBackendAttributeType_t type)
{
    switch ((int)type) {
    case CUDNN_TYPE_INT64: case CUDNN_TYPE_BACKEND_DESCRIPTOR: case CUDNN_TYPE_HANDLE: case CUDNN_TYPE_VOID_PTR: return 8;
    default: return 4;
    }
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    MAY_FAIL();
    object *o = d;
    assert_true(o->alive && !o->finalized && o->attributes < 12);
    attribute *a = &o->attribute[o->attributes++];
    a->name = name;
    a->count = count;
    assert_true(size_of(type) * (size_t)count <= sizeof a->bytes);
    memcpy(a->bytes, values, size_of(type) * (size_t)count);
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
        object *inner;
        memcpy(&inner, values, sizeof inner);
        assert_true(inner->alive && inner->finalized);
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t d)
{
    MAY_FAIL();
    object *o = d;
    assert_true(o->alive && !o->finalized);
    o->finalized = 1;
    return CUDNN_STATUS_SUCCESS;
}

static const void *bytes_of(const object *o, cudnnBackendAttributeName_t name)
{
    for (int i = 0; i < o->attributes; i++)
        if (o->attribute[i].name == name) return o->attribute[i].bytes;
    fail_msg("a descriptor of type %d lacks attribute %d", (int)o->type, (int)name);
    return NULL;
}

static object *object_of(const object *o, cudnnBackendAttributeName_t name)
{
    object *inner;
    memcpy(&inner, bytes_of(o, name), sizeof inner);
    return inner;
}

/* Engines 0, 1, 2 from the heuristic for speed, and none to fall back on. */
static int64_t results(const object *heuristic, int64_t room, void *values)
{
    cudnnBackendHeurMode_t mode;
    memcpy(&mode, bytes_of(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE), sizeof mode);
    int64_t count = mode == CUDNN_HEUR_MODE_A ? ENGINES : 0;
    for (int64_t i = 0; i < room && i < count; i++) {
        object *config = ((object **)values)[i];
        assert_int_equal(config->type, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
        config->finalized = 1;
        config->engine = (int)i;
        config->graph = object_of(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    }
    return count;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t room, int64_t *count, void *values)
{
    MAY_FAIL();
    (void)type;
    object *o = d;
    assert_true(o->alive && o->finalized);
    *count = 1;
    switch ((int)name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
        *count = results(o, room, values);
        break;
    case CUDNN_ATTR_ENGINECFG_ENGINE:
        (*(object **)values)->engine = o->engine;
        (*(object **)values)->finalized = 1;
        break;
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
        *(int64_t *)values = 100 + o->engine;
        break;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
        *(cudnnBackendNumericalNote_t *)values = CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
        break;
    case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
        *count = 0;
        break;
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
        *(int64_t *)values = cudnn.workspace[object_of(o, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)->engine];
        break;
    default: /* a config's workspace, where cuDNN knows it before the plan is built */
        *(int64_t *)values = cudnn.workspace[o->engine];
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack)
{
    MAY_FAIL();
    assert_ptr_equal(handle, &cudnn.handle);
    cudnn.plan = plan;
    cudnn.pack = pack;
    assert_true(cudnn.plan->alive && cudnn.plan->finalized && cudnn.pack->alive && cudnn.pack->finalized);
    int engine = object_of(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)->engine;
    cudnn.executed[engine]++;
    return cudnn.does_not_run[engine] ? CUDNN_STATUS_EXECUTION_FAILED : CUDNN_STATUS_SUCCESS;
}

/* ---- the tests ---- */

static char x, w, y, scratch; /* their addresses stand for device memory */
static const amp_conv_buffers buffers = { &x, &w, &y };
static struct { int calls; size_t bytes, most; } reserved;

static amp_status reserve(void *owner, size_t bytes, void **memory, amp_error *error)
{
    assert_ptr_equal(owner, &reserved);
    reserved.calls++;
    reserved.bytes = bytes;
    if (bytes > reserved.most) return amp_fail(error, AMP_NO_MEMORY, "no %zu bytes", bytes);
    *memory = &scratch;
    return AMP_OK;
}

static const amp_cudnn_settings settings = { .workspace_cap = 1000, .reserve = reserve, .owner = &reserved };

static const amp_conv_problem grouped = { 2, 12, 9, 15, 24, 5, 3, 2, 1, 1, 4, AMP_BF16, AMP_CONV_FORWARD, 0, 0 };

static int begin(void **state)
{
    (void)state;
    memset(&cudnn, 0, sizeof cudnn);
    memset(&reserved, 0, sizeof reserved);
    reserved.most = 1000;
    return 0;
}

static int end(void **state)
{
    (void)state;
    while (buried) free(graveyard[--buried]);
    return cudnn.live || cudnn.handles;
}

static amp_cudnn *opened(void)
{
    amp_cudnn *library = NULL;
    amp_error error;
    assert_int_equal(amp_cudnn_create(&y, &settings, &library, &error), AMP_OK);
    assert_ptr_equal(cudnn.stream, &y);
    return library;
}

static amp_conv_plan *planned(amp_cudnn *library, const amp_conv_problem *problem)
{
    amp_conv_plan *plan = NULL;
    amp_error error;
    if (amp_cudnn_plan(library, problem, &plan, &error) != AMP_OK) fail_msg("%s", error.message);
    return plan;
}

static void assert_tensor(const object *t, int64_t id, const int64_t dimensions[4], const int64_t strides[4])
{
    cudnnDataType_t type;
    memcpy(&type, bytes_of(t, CUDNN_ATTR_TENSOR_DATA_TYPE), sizeof type);
    assert_int_equal(type, CUDNN_DATA_BFLOAT16);
    assert_memory_equal(bytes_of(t, CUDNN_ATTR_TENSOR_UNIQUE_ID), &id, sizeof id);
    assert_memory_equal(bytes_of(t, CUDNN_ATTR_TENSOR_DIMENSIONS), dimensions, 4 * sizeof *dimensions);
    assert_memory_equal(bytes_of(t, CUDNN_ATTR_TENSOR_STRIDES), strides, 4 * sizeof *strides);
}

typedef struct names { cudnnBackendDescriptorType_t type; cudnnBackendAttributeName_t alpha, beta, x, w, y; } names;

#define NAMES(descriptor, pass, x, w, y) \
    { CUDNN_BACKEND_OPERATION_CONVOLUTION_##descriptor##_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_##pass##_ALPHA, \
      CUDNN_ATTR_OPERATION_CONVOLUTION_##pass##_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_##pass##_##x, \
      CUDNN_ATTR_OPERATION_CONVOLUTION_##pass##_##w, CUDNN_ATTR_OPERATION_CONVOLUTION_##pass##_##y }

static const names passes[] = { NAMES(FORWARD, FORWARD, X, W, Y), NAMES(BACKWARD_DATA, BWD_DATA, DX, W, DY),
                                NAMES(BACKWARD_FILTER, BWD_FILTER, X, DW, DY) };

/* The tensors may be gone when the plan runs: this looks at them in their grave. */
static void assert_operation(const object *operation, const names *n, float expected_beta)
{
    float alpha, beta;
    assert_int_equal(operation->type, n->type);
    memcpy(&alpha, bytes_of(operation, n->alpha), sizeof alpha);
    memcpy(&beta, bytes_of(operation, n->beta), sizeof beta);
    assert_float_equal(alpha, 1, 0);
    assert_float_equal(beta, expected_beta, 0);
    assert_tensor(object_of(operation, n->x), 'x', (int64_t[]){ 2, 12, 9, 15 }, (int64_t[]){ 1620, 1, 180, 12 });
    assert_tensor(object_of(operation, n->w), 'w', (int64_t[]){ 24, 3, 5, 3 }, (int64_t[]){ 45, 1, 9, 3 });
    assert_tensor(object_of(operation, n->y), 'y', (int64_t[]){ 2, 24, 4, 8 }, (int64_t[]){ 768, 1, 192, 24 });
}

static void a_run_hands_over_graph_buffers_and_workspace(void **state)
{
    (void)state;
    amp_cudnn *library = opened();
    amp_error error;
    cudnn.workspace[0] = 640;
    for (int pass = 0; pass < 3; pass++)
        for (int accumulate = 0; accumulate <= (pass == AMP_CONV_BACKWARD_DATA); accumulate++) {
            amp_conv_problem p = grouped;
            p.pass = (amp_conv_pass)pass;
            p.accumulate = accumulate;
            amp_conv_plan *plan = planned(library, &p);
            assert_int_equal(plan->current.engine, 100);
            assert_int_equal(plan->current.workspace, 640);
            assert_int_equal(plan->current.notes, AMP_CONV_TENSOR_CORE);
            assert_int_equal(amp_cudnn_run(library, plan, &buffers, &error), AMP_OK);

            const object *graph = object_of(cudnn.plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)->graph;
            assert_ptr_equal(object_of(cudnn.plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE), &cudnn.handle);
            assert_ptr_equal(object_of(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE), &cudnn.handle);
            assert_operation(object_of(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS), &passes[pass], (float)accumulate);
            assert_memory_equal(bytes_of(cudnn.pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS), ((int64_t[]){ 'x', 'w', 'y' }), 24);
            assert_memory_equal(bytes_of(cudnn.pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS), ((void *[]){ &x, &w, &y }), 24);
            assert_ptr_equal(object_of(cudnn.pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE), &scratch);
            assert_int_equal(reserved.bytes, 640);
        }
    amp_cudnn_destroy(library);
}

static void without_workspace_none_is_reserved(void **state)
{
    (void)state;
    amp_cudnn *library = opened();
    amp_error error;
    assert_int_equal(amp_cudnn_run(library, planned(library, &grouped), &buffers, &error), AMP_OK);
    assert_int_equal(reserved.calls, 0);
    assert_null(object_of(cudnn.pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE));
    amp_cudnn_destroy(library);
}

static void an_engine_that_does_not_run_is_replaced_for_good(void **state)
{
    (void)state;
    amp_cudnn *library = opened();
    amp_conv_plan *plan = planned(library, &grouped);
    amp_error error;
    cudnn.does_not_run[0] = 1;
    for (int i = 0; i < 3; i++) assert_int_equal(amp_cudnn_run(library, plan, &buffers, &error), AMP_OK);
    assert_int_equal(plan->current.engine, 101);
    assert_int_equal(cudnn.executed[0], 1);
    assert_int_equal(cudnn.executed[1], 3);
    amp_cudnn_destroy(library);
}

static void too_little_memory_for_one_engine_leaves_the_next(void **state)
{
    (void)state;
    amp_cudnn *library = opened();
    amp_error error;
    cudnn.workspace[0] = 900;
    cudnn.workspace[1] = 300;
    reserved.most = 500;
    amp_conv_plan *plan = planned(library, &grouped);
    assert_int_equal(amp_cudnn_run(library, plan, &buffers, &error), AMP_OK);
    assert_int_equal(plan->current.engine, 101);
    assert_int_equal(cudnn.executed[0], 0);
    amp_cudnn_destroy(library);
}

static void when_no_engine_runs_the_message_says_all(void **state)
{
    (void)state;
    amp_cudnn *library = opened();
    amp_conv_plan *plan = planned(library, &grouped);
    amp_error error;
    for (int i = 0; i < ENGINES; i++) cudnn.does_not_run[i] = 1;
    assert_int_equal(amp_cudnn_run(library, plan, &buffers, &error), AMP_BACKEND_FAILED);
    assert_non_null(strstr(error.message, "convolution forward of 2x12x9x15 (n,c,h,w) to 24 filters of 5x3, stride 2"));
    assert_non_null(strstr(error.message, "of 3 candidates"));
    assert_non_null(strstr(error.message, "engine 102: cuDNN: cudnnBackendExecute"));
    assert_non_null(strstr(error.message, "CUDNN_STATUS_OF_STAND_IN"));
#if CUDNN_VERSION >= 90000
    assert_non_null(strstr(error.message, "the stand-in was told to")); /* on one line */
#endif
    assert_int_equal(amp_cudnn_run(library, plan, &buffers, &error), AMP_UNSUPPORTED);
    assert_int_equal(cudnn.executed[0] + cudnn.executed[1] + cudnn.executed[2], 3);
    amp_cudnn_destroy(library);
}

/* All of a convolution's life, with one call of cuDNN's failing; the status that came of it. */
static amp_status live_with_failure(int call, amp_error *error)
{
    amp_cudnn *library = NULL;
    amp_conv_plan *plan;
    memset(&cudnn, 0, sizeof cudnn);
    cudnn.fail_at = call;
    cudnn.failure = CUDNN_STATUS_ALLOC_FAILED;
    amp_status status = amp_cudnn_create(&y, &settings, &library, error);
    if (status == AMP_OK) status = amp_cudnn_plan(library, &grouped, &plan, error);
    if (status == AMP_OK) status = amp_cudnn_run(library, plan, &buffers, error);
    if (status == AMP_OK) assert_int_equal(cudnn.executed[0] + cudnn.executed[1], 1);
    amp_cudnn_destroy(library);
    return status;
}

static void any_call_may_fail(void **state)
{
    (void)state;
    amp_error error;
    assert_int_equal(live_with_failure(0, &error), AMP_OK);
    int calls = cudnn.calls, survived = 0;
    assert_true(calls > 60);
    for (int call = 1; call <= calls; call++) {
        amp_status status = live_with_failure(call, &error);
        assert_non_null(cudnn.failed);
        assert_int_equal(cudnn.live, 0);
        assert_int_equal(cudnn.handles, 0);
        if (status == AMP_OK) {
            survived++; /* another engine did it */
            continue;
        }
        assert_int_equal(status, AMP_NO_MEMORY);
        assert_non_null(strstr(error.message, cudnn.failed));
        assert_non_null(strstr(error.message, "CUDNN_STATUS_ALLOC_FAILED"));
    }
    assert_true(survived >= 10); /* building a plan and running it takes that many calls */
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_run_hands_over_graph_buffers_and_workspace), TEST(without_workspace_none_is_reserved),
        TEST(an_engine_that_does_not_run_is_replaced_for_good), TEST(too_little_memory_for_one_engine_leaves_the_next),
        TEST(when_no_engine_runs_the_message_says_all), TEST(any_call_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
