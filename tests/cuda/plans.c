/* Plans of real convolutions (backend/cuda/cudnn_graph.h) made by the real cuDNN, without a device: every
 * shape of golden/conv_shapes.txt, for six GPUs of four generations, in fp16 and bf16, in all passes. It
 * shows that each has a plan, on Tensor Cores, within the cap on workspace; neither that the numbers are
 * right nor that it is fast.
 *
 * By default the H200 is asked for nearly all shapes and the others for a part of them.
 * DARKNET_AMP_ALL_PLANS=1: for all, a minute or two. */
#include "testing.h"

#include "backend/cuda/cudnn_graph.h"
#include "device_props.h"
#include "no_device.h"

enum { BATCH = 64, SHAPES = 1000, SKIP = 77 };
static const size_t CAP = AMP_CUDNN_WORKSPACE_CAP;

typedef struct conv_shape {
    char network[32]; int c, h, w, k, size, stride, pad, dilation, groups;
} conv_shape;
static conv_shape shapes[SHAPES];
static int shape_count;

static amp_cudnn *library;
static amp_conv_plans *plans;
static amp_conv_plan *plan; /* the one asked for last */
static amp_error error;

static int read_shapes(void **state)
{
    (void)state;
    char line[200];
    FILE *file = fopen(CONV_SHAPES, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        if (*line == '#') continue;
        assert_true(shape_count < SHAPES);
        conv_shape *s = &shapes[shape_count++];
        assert_int_equal(sscanf(line, "%31s %d %d %d %d %d %d %d %d %d", s->network, &s->c, &s->h, &s->w,
                                &s->k, &s->size, &s->stride, &s->pad, &s->dilation, &s->groups), 10);
    }
    fclose(file);
    return 0;
}

static amp_conv_problem problem_of(const conv_shape *s, amp_dtype dtype, amp_conv_pass pass, int accumulate)
{
    return (amp_conv_problem){
        .conv = { .x = { BATCH, s->c, s->h, s->w }, .k = s->k, .size_h = s->size, .size_w = s->size,
                  .stride = s->stride, .stride_x = s->stride, .pad = s->pad, .dilation = s->dilation,
                  .groups = s->groups, .dtype = dtype }, .pass = pass, .accumulate = accumulate };
}

static void open_with(const char *text, size_t workspace_cap)
{
    assert_int_equal(describe_missing_device(text), CUDNN_STATUS_SUCCESS);
    if (amp_cudnn_create(NULL, &(amp_cudnn_settings){ NULL, NULL }, &library, &error) != AMP_OK)
        fail_msg("%s", error.message);
    plans = amp_conv_plans_create(&amp_cudnn_library, library, workspace_cap);
}

static void open_for(const device_props *device, size_t workspace_cap)
{
    char text[DEVICE_PROPS_TEXT];
    device_props_json(device, text);
    open_with(text, workspace_cap);
}

static void close_library(void)
{
    amp_conv_plans_destroy(plans);
    amp_cudnn_destroy(library);
    forget_missing_device();
}

static amp_status get(const amp_conv_problem *problem)
{
    return amp_conv_plans_get(plans, problem, &plan, &error);
}

/* ---- every convolution ---- */

typedef struct tally {
    int problems, without_plan, slow, over_cap, grouped, compiled, reduced, random;
    size_t workspace; /* the largest */
} tally;

/* Deconvolutions, as the convolutions that they run backwards: c filters, h and w out, k channels in. */
static const conv_shape deconvolutions[] = {
    { "from 256 to 128, size 4", 128, 26, 26, 256, 4, 2, 1, 1, 1 },
    { "from 128 to 64, size 2", 64, 52, 52, 128, 2, 2, 0, 1, 1 },
    { "to an image", 3, 208, 208, 64, 4, 2, 1, 1, 1 },
    { "to 21 classes, by 8", 21, 208, 208, 21, 16, 8, 4, 1, 1 },
    { "stride 1", 64, 52, 52, 128, 3, 1, 1, 1, 1 }, { "odd sizes", 40, 25, 19, 72, 3, 2, 1, 1, 1 } };

static void count(tally *t, const conv_shape *s, const amp_conv_problem *p)
{
    t->problems++;
    if (get(p) != AMP_OK) {
        print_message("%s: %s\n", s->network, error.message);
        t->without_plan++;
        return;
    }
    unsigned notes = plan->current.notes;
    size_t workspace = plan->current.workspace;
    int plain = !(notes & AMP_CONV_TENSOR_CORE);
    if (plain && p->conv.groups == 1) {
        char text[AMP_CONV_PROBLEM_TEXT];
        amp_conv_problem_text(p, text);
        print_message("%s: without Tensor Cores: %s\n", s->network, text);
    }
    t->slow += plain && p->conv.groups == 1;
    t->grouped += plain && p->conv.groups > 1;
    t->compiled += (notes & AMP_CONV_RUNTIME_COMPILED) != 0;
    t->reduced += (notes & AMP_CONV_REDUCED_REDUCTION) != 0;
    t->random += (notes & AMP_CONV_NONDETERMINISTIC) != 0;
    t->over_cap += workspace > CAP;
    if (workspace > t->workspace) t->workspace = workspace;
}

/* All passes of every `every`-th shape, and of depthwise ones, which are compiled at run time, half a second
 * each, of the first and every 2*every-th. */
static void check_library(const char *name, amp_dtype dtype, int every)
{
    static const struct { amp_conv_pass pass; int accumulate; } passes[] = {
        { AMP_CONV_FORWARD, 0 }, { AMP_CONV_BACKWARD_FILTER, 0 }, { AMP_CONV_BACKWARD_DATA, 1 },
        { AMP_CONV_BACKWARD_DATA, 0 } };
    const int all = getenv("DARKNET_AMP_ALL_PLANS") != NULL;
    tally t = { 0 };
    int depthwise = 0;
    for (int i = 0; i < shape_count; i++) {
        const conv_shape *s = &shapes[i];
        int left_out = s->groups == s->c ? depthwise++ % (2 * every) : i % every;
        if (!all && left_out) continue;
        for (int j = 0; j < (all ? 4 : 3); j++) {
            amp_conv_problem p = problem_of(s, dtype, passes[j].pass, passes[j].accumulate);
            count(&t, s, &p);
        }
    }
    close_library();
    print_message("%s, %s: %d problems, %d without a plan, %d without Tensor Cores (and %d with groups), %d "
                  "compiled at run time, %d with a reduced reduction, %d not deterministic; largest "
                  "workspace %zu MiB\n", name, amp_dtype_name(dtype), t.problems, t.without_plan, t.slow,
                  t.grouped, t.compiled, t.reduced, t.random, t.workspace >> 20);
    assert_true(t.problems >= 60 && depthwise > 0);
    assert_int_equal(t.without_plan, 0);
    assert_int_equal(t.slow, 0);
    assert_int_equal(t.over_cap, 0);
    assert_int_equal(t.reduced, 0);
}

/* Forward, which is their convolution's backward data, backward by weights and by data. */
static void check_deconvolutions(const device_props *device, amp_dtype dtype)
{
    static const amp_conv_pass passes[] = { AMP_CONV_BACKWARD_DATA, AMP_CONV_BACKWARD_FILTER,
                                            AMP_CONV_FORWARD };
    open_for(device, CAP);
    tally t = { 0 };
    for (size_t i = 0; i < sizeof deconvolutions / sizeof *deconvolutions; i++)
        for (int j = 0; j < 3; j++) {
            amp_conv_problem p = problem_of(&deconvolutions[i], dtype, passes[j], 0);
            count(&t, &deconvolutions[i], &p);
        }
    close_library();
    print_message("%s, %s: %d problems of deconvolutions; largest workspace %zu MiB\n", device->name,
                  amp_dtype_name(dtype), t.problems, t.workspace >> 20);
    assert_int_equal(t.without_plan, 0);
    if (dtype != AMP_FP32) assert_int_equal(t.slow, 0);
    else assert_int_equal(t.slow, t.problems); /* true fp32, no TF32 */
    assert_int_equal(t.over_cap, 0);
    assert_int_equal(t.reduced, 0);
}

TEST(every_device_has_plans_for_deconvolutions)
{
    static const device_props *const devices[] = { &H200, &A100, &RTX4090, &T4 };
    for (int i = 0; i < 4; i++) {
        check_deconvolutions(devices[i], AMP_FP16);
        if (devices[i] != &T4) check_deconvolutions(devices[i], AMP_BF16);
    }
    check_deconvolutions(&H200, AMP_FP32);
}

TEST(every_device_has_a_plan_for_every_convolution)
{
    static const struct {
        const device_props *device; int every_in_fp16, every_in_bf16; /* 0: there is no bf16 */
    } all[] = {
        { &H200, 1, 1 }, { &H100, 3, 4 }, { &H100_PCIE, 4, 3 }, { &A100, 3, 4 }, { &RTX4090, 3, 4 },
        { &T4, 3, 0 } };
    for (size_t i = 0; i < COUNT(all); i++) {
        const device_props *device = all[i].device;
        open_for(device, CAP);
        check_library(device->name, AMP_FP16, all[i].every_in_fp16);
        if (!all[i].every_in_bf16) continue;
        open_for(device, CAP);
        check_library(device->name, AMP_BF16, all[i].every_in_bf16);
    }
}

/* A GPU as cuDNN describes it itself (gpu/device_properties.c): in fp16, and in bf16 if the
 * environment says so. */
TEST(the_described_device_has_a_plan_for_every_convolution)
{
    static char text[1 << 16];
    if (!getenv("DARKNET_AMP_DEVICE_PROPERTIES")) skip();
    FILE *file = fopen(getenv("DARKNET_AMP_DEVICE_PROPERTIES"), "r");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    open_with(text, CAP);
    check_library("the described device", AMP_FP16, 3);
    if (!getenv("DARKNET_AMP_DEVICE_BF16")) return;
    open_with(text, CAP);
    check_library("the described device", AMP_BF16, 3);
}

/* ---- what a plan promises ---- */

static const conv_shape middle = { "middle", 256, 26, 26, 512, 3, 1, 1, 1, 1 };
static const conv_shape dilated = { "dilated", 64, 52, 52, 64, 3, 1, 2, 2, 1 };
static const conv_shape oblong = { "oblong", 64, 12, 40, 96, 5, 2, 2, 1, 4 };
static const conv_shape first = { "first", 3, 416, 416, 32, 3, 1, 1, 1, 1 };
static const conv_shape head = { "head", 1024, 13, 13, 255, 1, 1, 0, 1, 1 };
static const conv_shape *const samples[] = { &middle, &dilated, &oblong, &first, &head };
enum { SAMPLES = sizeof samples / sizeof *samples };

TEST(t4_refuses_bf16)
{
    open_for(&T4, CAP);
    const amp_conv_problem p = problem_of(&middle, AMP_BF16, AMP_CONV_FORWARD, 0);
    assert_int_equal(get(&p), AMP_UNSUPPORTED);
    assert_non_null(strstr(error.message, "64x256x26x26 (n,c,h,w) to 512 filters of 3x3"));
    assert_non_null(strstr(error.message, "no engine for it on this device"));
    close_library();
}

TEST(a_deterministic_problem_gets_a_deterministic_engine)
{
    open_for(&A100, CAP);
    int other_choice = 0;
    for (int i = 0; i < SAMPLES; i++)
        for (int pass = 0; pass < 3; pass++) {
            amp_conv_problem p = problem_of(samples[i], AMP_FP16, (amp_conv_pass)pass, 0);
            assert_int_equal(get(&p), AMP_OK);
            int fit = plan->fit;
            p.deterministic = 1;
            assert_int_equal(get(&p), AMP_OK);
            assert_false(plan->current.notes & AMP_CONV_NONDETERMINISTIC);
            other_choice |= plan->fit < fit;
        }
    assert_true(other_choice); /* else this has shown nothing */
    close_library();
}

TEST(fp32_stays_off_tensor_cores)
{
    open_for(&H200, CAP);
    for (int i = 0; i < SAMPLES; i++)
        for (int pass = 0; pass < 3; pass++) {
            amp_conv_problem p = problem_of(samples[i], AMP_FP32, (amp_conv_pass)pass, 0);
            if (get(&p) != AMP_OK) fail_msg("%s", error.message);
            assert_false(plan->current.notes & AMP_CONV_TENSOR_CORE);
        }
    close_library();
}

/* yolov3's first layers at 608x608, of as many images as an H200 takes. */
TEST(a_large_device_has_tensor_cores_for_large_batches)
{
    static const conv_shape first[] = { { "yolov3, 0", 3, 608, 608, 32, 3, 1, 1, 1, 1 },
                                        { "yolov3, 1", 32, 608, 608, 64, 3, 2, 1, 1, 1 } };
    static const amp_conv_pass passes[] = {
        AMP_CONV_FORWARD, AMP_CONV_BACKWARD_FILTER, AMP_CONV_BACKWARD_DATA };
    const size_t gib = (size_t)1 << 30;
    const size_t caps[] = { amp_cudnn_workspace_cap(24 * gib), amp_cudnn_workspace_cap(139 * gib) };
    int slow[2] = { 0, 0 };
    assert_int_equal(caps[0], CAP);
    for (int i = 0; i < 2; i++) {
        open_for(&H200, caps[i]);
        for (int k = 0; k < 6; k++) {
            amp_conv_problem p = problem_of(&first[k / 3], AMP_BF16, passes[k % 3], 0);
            p.conv.x.n = 96;
            slow[i] += get(&p) != AMP_OK || !(plan->current.notes & AMP_CONV_TENSOR_CORE);
        }
        close_library();
    }
    print_message("without Tensor Cores: %d of 6 with the least cap, %d with an H200's\n", slow[0], slow[1]);
    assert_true(slow[0] > 0);
    assert_int_equal(slow[1], 0);
}

TEST(a_cap_that_nothing_meets_is_told)
{
    open_for(&H200, CAP);
    amp_conv_plans *tight = amp_conv_plans_create(&amp_cudnn_library, library, 1 << 20);
    int larger = 0, refused = 0;
    for (int i = 0; i < SAMPLES; i++) {
        amp_conv_problem p = problem_of(samples[i], AMP_BF16, AMP_CONV_BACKWARD_FILTER, 0);
        p.deterministic = 1;
        assert_int_equal(get(&p), AMP_OK);
        larger += plan->current.workspace > 1 << 20;
        if (amp_conv_plans_get(tight, &p, &plan, &error) == AMP_OK) {
            assert_true(plan->current.workspace <= 1 << 20);
        } else {
            refused++;
            assert_non_null(strstr(error.message, "need more workspace than 1 MiB"));
        }
    }
    assert_true(larger > refused); /* some shape met the tight cap with another engine */
    amp_conv_plans_destroy(tight);
    close_library();
}

/* ---- failures ---- */

TEST(failures_name_the_call)
{
    library = NULL;
    /* CTest hides a driver from this test: cuDNN finds no device. */
    if (amp_cudnn_create(NULL, &(amp_cudnn_settings){ NULL, NULL }, &library, &error) == AMP_OK) {
        amp_cudnn_destroy(library);
        return;
    }
    assert_null(library);
    assert_non_null(strstr(error.message, "cudnnCreate"));
    assert_non_null(strstr(error.message, "CUDNN_STATUS_"));
    assert_null(strchr(error.message, '\n'));
}

int main(void)
{
    char text[DEVICE_PROPS_TEXT];
    device_props_json(&H200, text);
    if (describe_missing_device(text) != CUDNN_STATUS_SUCCESS
        || amp_cudnn_create(NULL, &(amp_cudnn_settings){ NULL, NULL }, &library, &error) == AMP_UNSUPPORTED) {
        printf("skipped: %s\n", *error.message ? error.message
               : "cuDNN before 9.8 makes no plans without a device");
        return SKIP;
    }
    amp_cudnn_destroy(library);
    forget_missing_device();
    amp_cudnn_describe(text, sizeof text);
    print_message("%s\n", text);
    if (getenv("DARKNET_AMP_DEVICE_PROPERTIES")) cmocka_set_test_filter("the_described_device_*");
    return run_listed_tests("tests", read_shapes, NULL);
}
