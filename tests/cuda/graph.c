/* What backend/cuda/cudnn_graph.c sets in cuDNN's descriptors when it runs on a device, and what it does when
 * cuDNN fails. It runs on a double of the library, which checks each attribute and can fail at any call. To
 * test the double itself, a mistake is put into each attribute that the backend sets. The real library checks
 * the same descriptors in plans.c; the conformance tests check the numbers. */
#include "testing.h"

#include "backend/cuda/cudnn_graph.h"
#include "doubles/cuda_doubles.h"
#include "doubles/cudnn_double.h"
#include "kernel_numbers.h"

static cudaStream_t stream;
static amp_cudnn *library;
static amp_conv_plans *plans;
static amp_error error;
static amp_conv_buffers buffers; /* of the grouped problem below */
static void *scratch;
static struct { int calls; size_t bytes, most; } reserved;

static amp_status reserve(void *owner, size_t bytes, void **memory, amp_error *error)
{
    assert_ptr_equal(owner, &reserved);
    reserved.calls++;
    reserved.bytes = bytes;
    if (bytes > reserved.most) return amp_fail(error, AMP_NO_MEMORY, "no %zu bytes", bytes);
    *memory = scratch;
    return AMP_OK;
}

static const amp_cudnn_settings settings = { .reserve = reserve, .owner = &reserved };

static const amp_conv_problem grouped = {
    .conv = { { 2, 12, 9, 15 }, 24, 5, 3, 2, 1, 4, AMP_BF16, 0, 0, 0, 2, 1, 0 }, .pass = AMP_CONV_FORWARD };

enum { ENGINES = 3, X_COUNT = 2 * 12 * 9 * 15, W_COUNT = 24 * 3 * 5 * 3, Y_COUNT = 2 * 24 * 4 * 8 };

/* Three engines that are all right. */
static void some_engines(void)
{
    cudnn_double_reset();
    for (cudnn_double.engines = 0; cudnn_double.engines < ENGINES; cudnn_double.engines++)
        cudnn_double.engine[cudnn_double.engines] = (cudnn_double_engine){
            .index = 100 + cudnn_double.engines, .tensor_core = 1 };
}

static int begin(void **state)
{
    (void)state;
    library = NULL;
    plans = NULL;
    some_engines();
    memset(&reserved, 0, sizeof reserved);
    reserved.most = 1000;
    return cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) || cudaMalloc(&buffers.x, X_COUNT * 2) ||
        cudaMalloc(&buffers.w, W_COUNT * 2) || cudaMalloc(&buffers.y, Y_COUNT * 2)
            || cudaMalloc(&scratch, reserved.most);
}

static int end(void **state)
{
    (void)state;
    void *all[] = { buffers.x, buffers.w, buffers.y, scratch };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) cudaFree(all[i]);
    cudaStreamDestroy(stream);
    cudnn_double_leaks();
    if (!amp_cuda_faults()) return 0;
    print_error("%s\n", amp_cuda_fault());
    amp_cuda_forget_faults();
    return -1;
}

static amp_status create(void)
{
    AMP_TRY(amp_cudnn_create(stream, &settings, &library, &error));
    plans = amp_conv_plans_create(&amp_cudnn_library, library, 1000);
    return AMP_OK;
}

static void destroy(void)
{
    amp_conv_plans_destroy(plans);
    amp_cudnn_destroy(library);
}

/* And the library on the stream. */
static int open_library(void **state) { return begin(state) || create() != AMP_OK; }

static int close_library(void **state)
{
    destroy();
    return end(state);
}

#define GRAPH_TEST(name) TEST_WITH(name, open_library, close_library)

static amp_conv_plan *planned(const amp_conv_problem *problem)
{
    amp_conv_plan *plan = NULL;
    if (amp_conv_plans_get(plans, problem, &plan, &error) != AMP_OK) fail_msg("%s", error.message);
    return plan;
}

/* As conv.c does: if cuDNN does not run an engine, the next one takes its place. */
static amp_status run_on(amp_conv_plan *plan, const amp_conv_buffers *on)
{
    while (amp_cudnn_launch(library, plan, on, &error) != AMP_OK)
        AMP_TRY(amp_conv_plans_next(plans, plan, &error, &error));
    return AMP_OK;
}

static void run(amp_conv_plan *plan)
{
    if (run_on(plan, &buffers) != AMP_OK) fail_msg("%s", error.message);
}

static void assert_tensor(const cudnn_double_tensor *t, const void *data, const int64_t dimensions[4],
    const int64_t strides[4])
{
    assert_int_equal(t->type, CUDNN_DATA_BFLOAT16);
    assert_int_equal(t->alignment, 16);
    assert_ptr_equal(t->data, data);
    assert_memory_equal(t->dimensions, dimensions, 4 * sizeof *dimensions);
    assert_memory_equal(t->strides, strides, 4 * sizeof *strides);
}

static const cudnnBackendDescriptorType_t operations[] = {
    CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR };

/* The last run: stride 2, padding 1, 4 groups. */
static void assert_run(int pass, double beta)
{
    const cudnn_double_run *r = &cudnn_double.last;
    assert_int_equal(r->operation, operations[pass]);
    assert_float_equal(r->alpha, 1, 0);
    assert_float_equal(r->beta, beta, 0);
    assert_tensor(&r->x, buffers.x, (int64_t[]){ 2, 12, 9, 15 }, (int64_t[]){ 1620, 1, 180, 12 });
    assert_tensor(&r->w, buffers.w, (int64_t[]){ 24, 3, 5, 3 }, (int64_t[]){ 45, 1, 9, 3 });
    assert_tensor(&r->y, buffers.y, (int64_t[]){ 2, 24, 4, 8 }, (int64_t[]){ 768, 1, 192, 24 });
    for (int i = 0; i < 2; i++) {
        assert_int_equal(r->pre_pad[i], 1);
        assert_int_equal(r->post_pad[i], 1);
        assert_int_equal(r->stride[i], 2);
        assert_int_equal(r->dilation[i], 1);
    }
    assert_int_equal(r->groups, 4);
}

GRAPH_TEST(a_run_hands_over_graph_buffers_and_workspace)
{
    cudnn_double.engine[0].workspace = 640;
    for (int pass = 0; pass < 3; pass++)
        for (int accumulate = 0; accumulate <= (pass == AMP_CONV_BACKWARD_DATA); accumulate++) {
            amp_conv_problem p = grouped;
            p.pass = (amp_conv_pass)pass;
            p.accumulate = accumulate;
            amp_conv_plan *plan = planned(&p);
            assert_int_equal(plan->current.engine, 100);
            assert_int_equal(plan->current.workspace, 640);
            assert_int_equal(plan->current.notes, AMP_CONV_TENSOR_CORE);
            run(plan);

            assert_run(pass, accumulate);
            assert_ptr_equal(cudnn_double.last.workspace, scratch);
            assert_int_equal(reserved.bytes, 640);
        }
}

/* 2 images of 4 x 8 pixels: sums of 64 products, an eighth of which is written. */
GRAPH_TEST(only_filter_gradients_in_fp16_are_scaled_down)
{
    for (int pass = 0; pass < 3; pass++) {
        amp_conv_problem p = grouped;
        p.pass = (amp_conv_pass)pass;
        p.conv.dtype = AMP_FP16;
        run(planned(&p));
        assert_float_equal(cudnn_double.last.alpha, pass == AMP_CONV_BACKWARD_FILTER ? .125 : 1, 0);
    }
}

TEST(downscaling_is_the_root_of_the_sums_length)
{
    static const struct { int n, h, w, expected; } cases[] = {
        { 1, 1, 1, 0 }, { 1, 2, 1, 1 }, { 1, 2, 2, 1 }, { 2, 2, 2, 2 }, { 1, 5, 7, 3 }, { 64, 13, 13, 7 },
        { 64, 416, 416, 12 } };
    amp_conv_problem p = {
        .conv = { .x = { 2, 8, 5, 7 }, .k = 16, .size_h = 3, .size_w = 3, .stride = 1, .pad = 1, .groups = 1,
                  .dtype = AMP_FP16 }, .pass = AMP_CONV_BACKWARD_FILTER };
    for (int i = 0; i < (int)COUNT(cases); i++) {
        p.conv.x.n = cases[i].n, p.conv.x.h = cases[i].h, p.conv.x.w = cases[i].w;
        assert_int_equal(amp_cudnn_downscale(&p), cases[i].expected);
    }
    p.conv.stride = 2; /* the output's size counts: 208 x 208 */
    assert_int_equal(amp_cudnn_downscale(&p), 11);
    p.conv.dtype = AMP_BF16;
    assert_int_equal(amp_cudnn_downscale(&p), 0);
    p.conv.dtype = AMP_FP16, p.pass = AMP_CONV_BACKWARD_DATA;
    assert_int_equal(amp_cudnn_downscale(&p), 0);
}

/* Calls of cuDNN's that a run takes: to say where the data lies, five, and to run. */
enum { RUN = 1, TELL = 5 };

GRAPH_TEST(cudnn_is_told_of_buffers_once)
{
    amp_cudnn_pack pack = { 0 };
    amp_conv_buffers kept = buffers, once = buffers;
    void *other, *first = scratch, *moved; /* a larger convolution can move the workspace */
    assert_int_equal(cudaMalloc(&other, X_COUNT * 2), cudaSuccess);
    assert_int_equal(cudaMalloc(&moved, Y_COUNT * 2), cudaSuccess);
    kept.pack = &pack;
    cudnn_double.engine[0].workspace = 640;
    amp_conv_plan *plan = planned(&grouped);
    const struct { amp_conv_buffers *buffers; void *x, *workspace; int calls; } runs[] = {
        { &kept, buffers.x, first, TELL + RUN }, { &kept, buffers.x, first, RUN },
        { &kept, other, first, TELL + RUN }, { &kept, buffers.x, first, TELL + RUN },
        { &kept, buffers.x, moved, TELL + RUN }, { &kept, buffers.x, moved, RUN },
        { &once, buffers.x, moved, TELL + RUN }, { &once, buffers.x, first, TELL + RUN },
        { &kept, buffers.x, first, TELL + RUN }, { &kept, buffers.x, first, RUN } };
    int alive = cudnn_double.descriptors;
    for (size_t i = 0; i < COUNT(runs); i++) {
        int before = cudnn_double.calls;
        runs[i].buffers->x = runs[i].x;
        scratch = runs[i].workspace;
        assert_int_equal(run_on(plan, runs[i].buffers), AMP_OK);
        assert_int_equal(cudnn_double.calls - before, runs[i].calls);
        assert_ptr_equal(cudnn_double.last.x.data, runs[i].x);
        assert_ptr_equal(cudnn_double.last.workspace, scratch);
        assert_int_equal(cudnn_double.descriptors - alive, 1);
    }
    for (int call = 1; call <= TELL; call++) { /* each fails once */
        kept.x = call % 2 ? other : buffers.x;
        cudnn_double.fail_at = cudnn_double.calls + call;
        cudnn_double.failure = CUDNN_STATUS_ALLOC_FAILED;
        assert_int_not_equal(amp_cudnn_launch(library, plan, &kept, &error), AMP_OK);
        assert_int_equal(cudnn_double.descriptors, alive);
        assert_int_equal(amp_cudnn_launch(library, plan, &kept, &error), AMP_OK);
        assert_ptr_equal(cudnn_double.last.x.data, kept.x);
    }
    kept.w = other;
    assert_int_equal(run_on(plan, &kept), AMP_OK);
    assert_ptr_equal(cudnn_double.last.w.data, other);
    kept.y = moved;
    assert_int_equal(run_on(plan, &kept), AMP_OK);
    assert_ptr_equal(cudnn_double.last.y.data, moved);
    amp_cudnn_pack_free(&pack);
    assert_int_equal(cudnn_double.descriptors, alive);
    cudaFree(other);
    cudaFree(moved);
}

GRAPH_TEST(without_workspace_none_is_reserved)
{
    run(planned(&grouped));
    assert_int_equal(reserved.calls, 0);
    assert_null(cudnn_double.last.workspace);
}

GRAPH_TEST(an_engine_that_does_not_run_is_replaced_for_good)
{
    amp_conv_plan *plan = planned(&grouped);
    cudnn_double.engine[0].does_not_run = 1;
    for (int i = 0; i < 3; i++) run(plan);
    assert_int_equal(plan->current.engine, 101);
    assert_int_equal(cudnn_double.engine[0].executed, 1);
    assert_int_equal(cudnn_double.engine[1].executed, 3);
}

GRAPH_TEST(too_little_memory_for_one_engine_leaves_the_next)
{
    cudnn_double.engine[0].workspace = 900;
    cudnn_double.engine[1].workspace = 300;
    reserved.most = 500;
    amp_conv_plan *plan = planned(&grouped);
    run(plan);
    assert_int_equal(plan->current.engine, 101);
    assert_int_equal(cudnn_double.engine[0].executed, 0);
}

GRAPH_TEST(when_no_engine_runs_the_message_says_all)
{
    amp_conv_plan *plan = planned(&grouped);
    for (int i = 0; i < ENGINES; i++) cudnn_double.engine[i].does_not_run = 1;
    assert_int_equal(run_on(plan, &buffers), AMP_BACKEND_FAILED);
    assert_non_null(strstr(error.message,
                           "convolution forward of 2x12x9x15 (n,c,h,w) to 24 filters of 5x3, stride 2"));
    assert_non_null(strstr(error.message, "the 3 candidates"));
    assert_non_null(strstr(error.message, "engine 102: cuDNN: cudnnBackendExecute"));
    assert_non_null(strstr(error.message, "CUDNN_STATUS_EXECUTION_FAILED"));
#if CUDNN_VERSION >= 90000
    assert_non_null(strstr(error.message, "the engine was told not to run")); /* on one line */
#endif
    assert_int_equal(run_on(plan, &buffers), AMP_UNSUPPORTED);
    assert_int_equal(cudnn_double.engine[0].executed + cudnn_double.engine[1].executed +
                     cudnn_double.engine[2].executed, 3);
}

TEST_WITH(a_library_older_than_its_headers_is_refused, begin, end)
{
    cudnn_double.version = CUDNN_VERSION - 100; /* a minor version */
    assert_int_equal(amp_cudnn_create(stream, &settings, &library, &error), AMP_UNSUPPORTED);
    assert_non_null(strstr(error.message, "LD_LIBRARY_PATH"));
    assert_null(library);
    cudnn_double.version = CUDNN_VERSION + 100;
    assert_int_equal(amp_cudnn_create(stream, &settings, &library, &error), AMP_OK);
    amp_cudnn_destroy(library);
}

/* All of a convolution's life; the status that came of it. */
static amp_status live(const amp_conv_problem *problem)
{
    amp_conv_plan *plan;
    library = NULL;
    plans = NULL;
    amp_status status = create();
    if (status == AMP_OK) status = amp_conv_plans_get(plans, problem, &plan, &error);
    if (status == AMP_OK) status = run_on(plan, &buffers);
    cudaStreamSynchronize(stream); /* the double is about to forget all */
    destroy();
    return status;
}

static amp_status live_with_failure(int call)
{
    some_engines();
    cudnn_double.fail_at = call;
    cudnn_double.failure = CUDNN_STATUS_ALLOC_FAILED;
    amp_status status = live(&grouped);
    if (status == AMP_OK)
        assert_int_equal(cudnn_double.engine[0].executed + cudnn_double.engine[1].executed, 1);
    return status;
}

TEST_WITH(any_call_may_fail, begin, end)
{
    assert_int_equal(live_with_failure(0), AMP_OK);
    int calls = cudnn_double.calls, survived = 0;
    assert_true(calls > 60);
    for (int call = 1; call <= calls; call++) {
        amp_status status = live_with_failure(call);
        assert_non_null(cudnn_double.failed);
        assert_int_equal(cudnn_double_leaks(), 0);
        if (status == AMP_OK) {
            survived++; /* another engine did it */
            continue;
        }
        assert_int_equal(status, AMP_NO_MEMORY);
        assert_non_null(strstr(error.message, cudnn_double.failed));
        assert_non_null(strstr(error.message, "CUDNN_STATUS_ALLOC_FAILED"));
        assert_non_null(strstr(error.message, "use a smaller batch"));
    }
    assert_true(survived >= 10); /* building a plan and running it takes that many calls */
}

/* ---- the double ---- */

/* A mistake in an attribute: in one of its values, or in all of them. */
typedef enum mistake {
    LEFT_OUT, OTHER_TYPE, ONE_MORE,
    LESS_BY_1,                           /* of whole numbers */
    NO_MEMORY, NOT_ALIGNED, OF_THE_HOST, /* of addresses */
    NOT_FINALIZED, DESTROYED, MISTAKES   /* of descriptors */
} mistake;

static struct { int calls, at, value, made; mistake what; cudnnBackendAttributeName_t name; } spoilt;
static char host_memory[1 << 16];

cudnnStatus_t __real_cudnnBackendSetAttribute(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t,
                                              cudnnBackendAttributeType_t, int64_t count, const void *values);

/* A descriptor that nobody may refer to. */
static cudnnBackendDescriptor_t bad_descriptor(void)
{
    cudnnBackendDescriptor_t d = NULL;
    cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, &d);
    if (spoilt.what == DESTROYED) cudnnBackendDestroyDescriptor(d);
    return d;
}

/* Puts the mistake into one of these values, which have eight bytes each. Returns 0 if values of this type
 * cannot have it. */
static int spoil(cudnnBackendAttributeType_t type, int64_t count, int64_t values[8])
{
    if (spoilt.what < LESS_BY_1) return spoilt.value == 0;
    if (spoilt.value >= count) return 0;
    int64_t *value = &values[spoilt.value];
    if (type == CUDNN_TYPE_INT64 && spoilt.what == LESS_BY_1) *value -= 1;
    else if (type == CUDNN_TYPE_VOID_PTR && spoilt.what == NO_MEMORY) *value = 0;
    else if (type == CUDNN_TYPE_VOID_PTR && spoilt.what == NOT_ALIGNED) *value += 4;
    else if (type == CUDNN_TYPE_VOID_PTR && spoilt.what == OF_THE_HOST)
        *value = (int64_t)(intptr_t)host_memory;
    else if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR && spoilt.what >= NOT_FINALIZED)
        *value = (int64_t)(intptr_t)bad_descriptor();
    else return 0;
    return 1;
}

cudnnStatus_t __wrap_cudnnBackendSetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t count,
                                              const void *values)
{
    int64_t copy[8];
    if (++spoilt.calls != spoilt.at) return __real_cudnnBackendSetAttribute(d, name, type, count, values);
    size_t size = type == CUDNN_TYPE_INT64 || type == CUDNN_TYPE_VOID_PTR ||
        type == CUDNN_TYPE_BACKEND_DESCRIPTOR || type == CUDNN_TYPE_HANDLE ? 8 : 4;
    assert_true(count < 8);
    memcpy(copy, values, (size_t)count * size);
    spoilt.name = name;
    spoilt.made = spoil(type, count, copy);
    if (spoilt.made && spoilt.what == LEFT_OUT) return CUDNN_STATUS_SUCCESS;
    if (spoilt.made && spoilt.what == OTHER_TYPE) type = type == CUDNN_TYPE_INT64 ? CUDNN_TYPE_DOUBLE
        : CUDNN_TYPE_INT64;
    return __real_cudnnBackendSetAttribute(d, name, type, count + (spoilt.made && spoilt.what == ONE_MORE),
                                           copy);
}

TEST_WITH(a_mistake_in_any_attribute_is_seen, begin, end)
{
    int made = 0;
    amp_conv_problem problem = grouped; /* whatever is less by 1 fits nothing else */
    problem.conv.x.c = 10, problem.conv.groups = 2, problem.conv.k = 6;
    problem.conv.stride = problem.conv.stride_x = 1;
    memset(&spoilt, 0, sizeof spoilt);
    assert_int_equal(live(&problem), AMP_OK);
    for (int calls = spoilt.calls, at = 1; at <= calls; at++)
        for (int what = 0; what < MISTAKES; what++)
            for (int value = 0; value == 0 || spoilt.made; value++) {
                some_engines();
                cudnn_double.engine[0].workspace = 640;
                memset(&spoilt, 0, sizeof spoilt);
                spoilt.at = at, spoilt.what = (mistake)what, spoilt.value = value;
                live(&problem);
                if (spoilt.made && !cudnn_double.rejected)
                    fail_msg("mistake %d in value %d of attribute %d is not seen", what, value,
                             (int)spoilt.name);
                made += spoilt.made;
                amp_cuda_forget_faults();
            }
    memset(&spoilt, 0, sizeof spoilt);
    print_message("%d mistakes\n", made);
    assert_true(made > 150);
}

/* Each way in which an engine computes less exactly is one that shows. */
GRAPH_TEST(a_run_is_late_and_as_exact_as_its_engine)
{
    static const struct { amp_dtype dtype; cudnn_double_engine poor; } cases[] = {
        { AMP_FP32, { .tensor_core = 1 } }, { AMP_FP16, { .down_converts = 1 } },
        { AMP_BF16, { .reduced_reduction = 1 } } };
    static const size_t counts[] = { X_COUNT, W_COUNT, Y_COUNT };
    enum { MOST = (X_COUNT > Y_COUNT ? X_COUNT : Y_COUNT) * 4 };
    static char before[MOST], exact[MOST];
    assert_true(W_COUNT * 4 <= MOST);
    for (int i = 0; i < 3 * (int)COUNT(cases); i++) {
        amp_conv_problem p = grouped;
        void *data[3];
        int pass = i % 3, out = pass == AMP_CONV_FORWARD ? 2 : pass == AMP_CONV_BACKWARD_DATA ? 0 : 1;
        p.conv.dtype = cases[i / 3].dtype;
        p.pass = (amp_conv_pass)pass;
        size_t bytes = counts[out] * amp_dtype_size(p.conv.dtype);
        for (int k = 0; k < 3; k++) {
            assert_int_equal(cudaMallocManaged(&data[k], counts[k] * 4, cudaMemAttachGlobal), cudaSuccess);
            for (size_t e = 0; e < counts[k]; e++)
                set_number(p.conv.dtype, data[k], e, (float)rand() / (float)RAND_MAX * 2 - 1);
        }
        amp_conv_buffers on = { .x = data[0], .w = data[1], .y = data[2] };
        memcpy(before, data[out], bytes);
        cudnn_double.engine[0] = (cudnn_double_engine){ .index = 100 };
        amp_conv_plan *plan = planned(&p);
        assert_int_equal(run_on(plan, &on), AMP_OK);
        assert_memory_equal(data[out], before, bytes);
        cudaStreamSynchronize(stream);
        memcpy(exact, data[out], bytes);
        cudnn_double.engine[0] = cases[i / 3].poor;
        assert_int_equal(run_on(plan, &on), AMP_OK);
        cudaStreamSynchronize(stream);
        assert_memory_not_equal(data[out], exact, bytes);
        for (int k = 0; k < 3; k++) cudaFree(data[k]);
    }
}

GRAPH_TEST(what_is_left_is_told)
{
    assert_int_equal(cudnn_double_leaks(), 1); /* the handle */
    amp_cuda_forget_faults();
}

int main(void) { return run_listed_tests("tests", NULL, NULL); }
