/* The CUDA backend around its kernels: what it says of the GPU, memory, the life of convolutions, and what it
 * does when a call to CUDA, cuDNN or cuBLAS fails, all against their doubles. That its numbers are right is
 * seen by the conformance tests. */
#include "testing.h"

#include "backend/cuda/memory.h"
#include "backend/cuda/state.h"
#include "doubles/cublas_double.h"
#include "doubles/cuda_doubles.h"
#include "doubles/cudnn_double.h"
#include "tensor/half.h"

enum { GIB = 1 << 30, ENGINES = 3 };

/* Three engines that all give the same bits, and one that does not in every run. */
static void some_engines(void)
{
    cudnn_double_reset();
    cudnn_double.engines = 0;
    cudnn_double.engine[cudnn_double.engines++] = (cudnn_double_engine){ .index = 9, .tensor_core = 1,
                                                                         .nondeterministic = 1 };
    for (int i = 0; i < ENGINES; i++)
        cudnn_double.engine[cudnn_double.engines++] =
            (cudnn_double_engine){ .index = 10 + i, .tensor_core = 1, .workspace = (int64_t)(3 - i) << 20 };
}

static amp_backend *b; /* what a test opens; it and the convolution are closed behind it */
static amp_conv *conv;
static amp_error error;

static void close_backend(void)
{
    if (!b) return;
    b->conv_destroy(b, conv);
    b->destroy(b);
    b = NULL;
    conv = NULL;
}

static void open_backend(void)
{
    close_backend();
    b = amp_cuda_backend_create(&error);
    if (!b) fail_msg("%s", error.message);
}

static int begin(void **state)
{
    (void)state;
    some_engines();
    error = (amp_error){ 0 };
    cublas_double_reset();
    amp_cuda_device_is(9, 0, 4, (size_t)8 * GIB);
    unsetenv("AMP_CUDA_TUNE");
    unsetenv("AMP_CUDA_DETERMINISTIC");
    return 0;
}

static int end(void **state)
{
    (void)state;
    close_backend();
    amp_cuda_any_stream(0);
    amp_cuda_copies_early(0);
    cudnn_double_leaks();
    cublas_double_leaks();
    amp_cuda_leaks();
    if (amp_cuda_faults()) print_message("%s\n", amp_cuda_fault());
    int faults = amp_cuda_faults();
    amp_cuda_forget_faults();
    return faults;
}

#define BACKEND_TEST(name) TEST_WITH(name, begin, end)
#define OK(call)                                             \
    do {                                                     \
        amp_error *e = &error;                               \
        if ((call) != AMP_OK) fail_msg("%s", error.message); \
    } while (0)

/* ---- the GPU ---- */

BACKEND_TEST(it_says_what_it_runs_on)
{
    open_backend();
    assert_string_equal(b->name, "cuda");
    static const char *const parts[] = { "GPU 0: ", "double of a GPU", "capability 9.0", "8192 MiB", "CUDA 1",
                                         "cuDNN ", "cuBLAS 1" };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strstr(b->description, parts[i])) fail_msg("%s: no %s", b->description, parts[i]);
}

BACKEND_TEST(capability_decides_what_a_dtype_is_good_for)
{
    static const struct {
        int major, minor; amp_dtype dtype; amp_support support; const char *note;
    } cases[] = {
        { 6, 1, AMP_FP16, AMP_SUPPORT_STORAGE, "6.1 has no Tensor Cores" },
        { 6, 1, AMP_BF16, AMP_SUPPORT_NONE, "dtype=fp16 or dtype=fp32" },
        { 6, 1, AMP_FP32, AMP_SUPPORT_NATIVE, NULL },
        { 7, 0, AMP_FP16, AMP_SUPPORT_NATIVE, NULL },
        { 7, 5, AMP_BF16, AMP_SUPPORT_NONE, "(this one: 7.5): set dtype=fp16" },
        { 8, 0, AMP_BF16, AMP_SUPPORT_NATIVE, NULL },
        { 9, 0, AMP_FP16, AMP_SUPPORT_NATIVE, NULL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char note[256];
        amp_cuda_device_is(cases[i].major, cases[i].minor, 4, GIB);
        open_backend();
        assert_int_equal(b->supports(b, cases[i].dtype, note), cases[i].support);
        if (cases[i].note) assert_non_null(strstr(note, cases[i].note));
        else assert_string_equal(note, "");
    }
}

BACKEND_TEST(settings_of_the_environment_are_checked)
{
    static const char *const bad[] = { "-1", "101", "8x", "fast" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        setenv("AMP_CUDA_TUNE", bad[i], 1);
        assert_null(amp_cuda_backend_create(&error));
        assert_int_equal(error.status, AMP_BAD_CONFIG);
        assert_non_null(strstr(error.message, "AMP_CUDA_TUNE"));
        assert_non_null(strstr(error.message, bad[i]));
        assert_non_null(strstr(error.message, "0 to 100"));
    }
}

BACKEND_TEST(the_line_says_what_to_do_about_the_machine)
{
    static const struct { int error; const char *remedy; } cases[] = {
        { cudaErrorNoDevice, "cudaErrorNoDevice, no CUDA-capable device is detected: check that nvidia-smi" },
        { cudaErrorInsufficientDriver, "install a newer driver" },
        { cudaErrorUnsupportedPtxVersion, "add this GPU to CMAKE_CUDA_ARCHITECTURES" },
        { cudaErrorNoKernelImageForDevice, "built for other GPUs; add this GPU" },
        { cudaErrorDevicesUnavailable, "another program has exclusive use of the GPU" },
        { cudaErrorSystemNotReady, "start the nvidia-fabricmanager" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        amp_cuda_fail_call("cudaGetDevice", 1, cases[i].error);
        assert_null(amp_cuda_backend_create(&error));
        assert_int_equal(error.status, AMP_UNSUPPORTED);
        if (!strstr(error.message, cases[i].remedy)) fail_msg("%s", error.message);
        assert_non_null(strstr(error.message, "cuda.c:"));
        assert_null(strchr(error.message, '\n'));
    }
}

/* ---- memory ---- */

BACKEND_TEST(out_of_memory_says_how_much_and_what_would_fit)
{
    void *held, *p = &error;
    amp_cuda_device_is(9, 0, 4, (size_t)64 << 20);
    open_backend();
    OK(b->allocate(b, (size_t)40 << 20, &held, e));
    assert_int_equal((size_t)held % 256, 0);
    assert_int_equal(b->allocate(b, (size_t)60 << 20, &p, &error), AMP_NO_MEMORY);
    assert_null(p);
    assert_non_null(strstr(error.message, "60 MiB of activations"));
    assert_non_null(strstr(error.message, "24 of 64 MiB of GPU 0 are free"));
    assert_non_null(strstr(error.message, "3 times as many subdivisions"));
    OK(b->zero(b, held, 4096, e));
    OK(b->scale(b, held, 1024, 2, e)); /* whose launch is not blamed for it */
    assert_int_equal(b->allocate(b, (size_t)-1, &p, &error), AMP_NO_MEMORY);
    OK(b->allocate(b, 0, &p, e));
    assert_null(p);
    b->release(b, NULL);
    b->release(b, held);
}

/* Pinned memory is read when the stream gets there, unless somebody waits. */
BACKEND_TEST(what_was_uploaded_may_be_overwritten_at_once)
{
    open_backend();
    void *first, *second, *pinned;
    unsigned char back[64];
    OK(b->allocate(b, 64, &first, e));
    OK(b->allocate(b, 64, &second, e));
    assert_int_equal(cudaMallocHost(&pinned, 64), cudaSuccess);
    memset(pinned, 7, 64);
    OK(b->upload(b, first, pinned, 64, e));
    memset(pinned, 9, 64);
    OK(b->upload(b, second, first, 64, e)); /* from device to device */
    OK(b->zero(b, first, 64, e));
    OK(b->download(b, back, second, 64, e));
    for (int i = 0; i < 64; i++) assert_int_equal(back[i], 7);
    OK(b->download(b, back, first, 64, e));
    for (int i = 0; i < 64; i++) assert_int_equal(back[i], 0);
    OK(b->synchronize(b, e));
    cudaFreeHost(pinned);
    b->release(b, first);
    b->release(b, second);
}

#define WAITS(count, call) do { long before_ = amp_cuda_counted().waits; OK(call); \
        assert_int_equal(amp_cuda_counted().waits - before_, count); } while (0)

/* One wait, for the copies alone: what is queued behind them is not waited for. */
BACKEND_TEST(later_uploads_wait_for_nothing_else)
{
    open_backend();
    void *to, *staged;
    OK(b->allocate(b, 64, &to, e));
    OK(b->synchronize(b, e));
    WAITS(0, b->uploads_done(b, e));
    WAITS(0, b->stage(b, to, 64, &staged, e));
    memset(staged, 5, 64);
    WAITS(0, b->upload_later(b, to, staged, 64, e));
    WAITS(0, b->zero(b, to, 32, e));
    WAITS(1, b->uploads_done(b, e));
    WAITS(0, b->uploads_done(b, e));
    memset(staged, 6, 64);
    WAITS(1, b->synchronize(b, e)); /* the zero was still to be done */
    unsigned char back[64];
    OK(b->download(b, back, to, 64, e));
    for (int i = 0; i < 64; i++) assert_int_equal(back[i], i < 32 ? 0 : 5);
    b->release(b, to);
}

BACKEND_TEST(a_source_written_to_too_early_is_seen)
{
    open_backend();
    void *to, *staged;
    OK(b->allocate(b, 64, &to, e));
    OK(b->stage(b, to, 64, &staged, e));
    memset(staged, 5, 64);
    OK(b->upload_later(b, to, staged, 64, e));
    memset(staged, 6, 64);
    assert_int_not_equal(b->uploads_done(b, &error), AMP_OK);
    assert_non_null(strstr(amp_cuda_fault(), "was written to before it was copied"));
    amp_cuda_forget_faults();
    b->release(b, to);
}

/* Blocks are taken for the most that is staged between two uploads_done, once. */
BACKEND_TEST(staging_takes_no_memory_in_later_steps)
{
    static const size_t sizes[] = { 100, 3 << 20, 1, 700000, 700000 };
    open_backend();
    void *to;
    OK(b->allocate(b, 3 << 20, &to, e));
    amp_cuda_counts steady = { 0 }, first = amp_cuda_counted();
    for (int step = 0; step < 3; step++) {
        char *staged[5];
        for (int i = 0; i < 5; i++) {
            OK(b->stage(b, to, sizes[i], (void **)&staged[i], e));
            memset(staged[i], i, sizes[i]);
            for (int k = 0; k < i; k++)
                assert_true(staged[i] + sizes[i] <= staged[k] || staged[k] + sizes[k] <= staged[i]);
            OK(b->upload_later(b, to, staged[i], sizes[i], e));
        }
        OK(b->uploads_done(b, e));
        if (step) assert_int_equal(amp_cuda_counted().allocations, steady.allocations);
        steady = amp_cuda_counted();
    }
    assert_int_equal(steady.pageable, first.pageable);
    b->release(b, to);
}

static void mark(void *done) { *(int *)done = 1; }

/* Images of passes, in two blocks in turn. Each pass reads its block at its end, and only then does what is
 * marked; nobody waits. late: all work is done as late as can be; else copies come as early as they may. */
static void images_take_turns(int late)
{
    enum { PASSES = 5, BYTES = 64 };
    open_backend();
    unsigned char *from[PASSES], *read, back[PASSES * BYTES];
    void *to[2];
    int done[PASSES] = { 0 };
    amp_cuda_any_stream(1);
    amp_cuda_copies_early(!late);
    OK(b->allocate(b, sizeof back, (void **)&read, e));
    for (int i = 0; i < 2; i++) OK(b->allocate(b, BYTES, &to[i], e));
    for (int i = 0; i < PASSES; i++) {
        assert_int_equal(cudaMallocHost((void **)&from[i], BYTES), cudaSuccess);
        memset(from[i], i + 1, BYTES);
        WAITS(0, b->upload_ahead(b, to[i % 2], from[i], BYTES, e));
        /* the pass before is still to be done, the one before that has used this memory */
        for (int k = 0; k < i; k++) assert_int_equal(done[k], !late && k < i - 1);
        if (!late) memset(from[i], 99, BYTES); /* it was read */
        OK(b->upload(b, read + i * BYTES, to[i % 2], BYTES, e));
        assert_true(amp_cuda_enqueue(((amp_cuda_backend *)b)->stream, "the end of a pass", mark, &done[i]));
        /* what the first copy has made is there */
        amp_cuda_fail_call("cudaStreamCreate", i < PASSES - 1, cudaErrorUnknown);
        amp_cuda_fail_call("cudaEventCreate", i < PASSES - 1, cudaErrorUnknown);
    }
    WAITS(1, b->uploads_done(b, e));
    for (int i = 0; i < PASSES; i++) memset(from[i], 99, BYTES);
    OK(b->download(b, back, read, sizeof back, e));
    for (int i = 0; i < PASSES * BYTES; i++) assert_int_equal(back[i], i / BYTES + 1);
    for (int i = 0; i < PASSES; i++) cudaFreeHost(from[i]);
    for (int i = 0; i < 2; i++) b->release(b, to[i]);
    b->release(b, read);
}

BACKEND_TEST(images_are_copied_while_the_pass_before_is_computed)
{
    images_take_turns(0);
    images_take_turns(1);
}

/* To 128 bytes: half of them later, half ahead. */
static amp_status upload_staged(void *to, amp_error *error)
{
    void *staged;
    AMP_TRY(b->stage(b, to, 64, &staged, error));
    memset(staged, 5, 64);
    AMP_TRY(b->upload_later(b, to, staged, 64, error));
    AMP_TRY(b->upload_ahead(b, (char *)to + 64, staged, 64, error));
    return b->uploads_done(b, error);
}

BACKEND_TEST(any_call_of_a_later_upload_may_fail)
{
    static const struct { const char *name; int times; } calls[] = {
        { "cudaMallocHost", 1 }, { "cudaMemcpyAsync", 2 }, { "cudaEventCreate", 2 },
        { "cudaStreamCreate", 1 }, { "cudaStreamWaitEvent", 2 }, { "cudaEventRecord", 5 },
        { "cudaEventSynchronize", 1 } };
    amp_cuda_any_stream(1);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (int nth = 1; nth <= calls[i].times; nth++) {
            open_backend();
            error = (amp_error){ 0 };
            void *to;
            OK(b->allocate(b, 128, &to, e));
            amp_cuda_fail_call(calls[i].name, nth, cudaErrorUnknown);
            assert_int_not_equal(upload_staged(to, &error), AMP_OK);
            if (!strstr(error.message, calls[i].name))
                fail_msg("%s failed, and the line is: %s", calls[i].name, error.message);
            OK(b->uploads_done(b, e)); /* whose answers may be of copies that were made */
            OK(upload_staged(to, e));
            b->release(b, to);
        }
}

BACKEND_TEST(scratch_grows_and_is_given_back)
{
    open_backend();
    void *first, *second, *third;
    OK(amp_cuda_scratch(b, 1000, &first, e));
    OK(amp_cuda_scratch(b, 500, &second, e));
    assert_ptr_equal(first, second);
    OK(b->zero(b, first, 500, e)); /* queued; growing must wait for it */
    OK(amp_cuda_scratch(b, (size_t)5 << 20, &third, e));
    assert_int_equal((size_t)third % 256, 0);
    assert_true(amp_cuda_bytes() < (size_t)7 << 20);
}

/* A larger one, given away, would not be there for its own copies. */
BACKEND_TEST(spare_memory_goes_to_copies_of_its_size)
{
    static const size_t sizes[] = { 2048, 1024 };
    open_backend();
    void *put[2], *got;
    for (int i = 0; i < 2; i++) OK(amp_cuda_malloc(b, sizes[i], "test", &put[i], e));
    for (int i = 0; i < 2; i++) amp_cuda_spare_put(b, put[i], sizes[i]);
    for (int i = 1; i >= 0; i--) {
        OK(amp_cuda_spare_get(b, sizes[i], "test", &got, e));
        assert_ptr_equal(got, put[i]);
        OK(b->zero(b, got, sizes[i], e));
        b->release(b, got);
    }
}

/* ---- recorded passes ---- */

enum { STATISTICS = 300 };

/* As many statistics, of a list whose every array is its own: *committed becomes *array. */
static amp_status keep(float *memory, int count, amp_error *error)
{
    static amp_statistics list[STATISTICS];
    for (int i = 0; i < count; i++)
        list[i] = (amp_statistics){ .array = memory + 2 * i, .committed = memory + 2 * i + 1, .count = 1 };
    return b->copy_statistics(b, list, count, 0, error);
}

BACKEND_TEST(a_recording_that_could_not_be_made_is_none)
{
    open_backend();
    amp_recorded_pass *pass = NULL;
    void *x;
    int repeated;
    OK(b->allocate(b, 256, &x, e));
    OK(b->pass_begin(b, &pass, &repeated, e));
    OK(b->zero(b, x, 256, e));
    amp_cuda_fail_call("cudaGraphInstantiate", 1, cudaErrorMemoryAllocation);
    assert_int_equal(b->pass_end(b, &pass, 1, &error), AMP_NO_MEMORY);
    OK(b->pass_begin(b, &pass, &repeated, e));
    assert_false(repeated);
    OK(b->zero(b, x, 256, e));
    OK(b->pass_end(b, &pass, 1, e));
    OK(b->pass_begin(b, &pass, &repeated, e));
    assert_true(repeated);
    b->pass_free(b, pass);
    b->release(b, x);
}

/* A list of arrays neither grows while a pass is recorded, nor behind the back of one that was. */
BACKEND_TEST(lists_of_arrays_do_not_move_under_a_recording)
{
    open_backend();
    amp_recorded_pass *pass = NULL;
    float *memory;
    int repeated;
    OK(b->allocate(b, 2 * STATISTICS * sizeof(float), (void **)&memory, e));
    OK(b->zero(b, memory, 2 * STATISTICS * sizeof(float), e));
    OK(b->pass_begin(b, &pass, &repeated, e));
    assert_int_equal(keep(memory, 2, &error), AMP_BACKEND_FAILED);
    assert_string_equal(error.message, "a list of arrays changed while a pass was being captured into a "
                        "CUDA graph");
    OK(b->pass_end(b, &pass, 0, e));
    assert_null(pass);
    OK(keep(memory, 2, e));
    OK(b->pass_begin(b, &pass, &repeated, e));
    OK(keep(memory, 2, e));
    OK(b->pass_end(b, &pass, 1, e));
    OK(b->pass_begin(b, &pass, &repeated, e));
    assert_true(repeated);
    OK(keep(memory, STATISTICS, e));
    OK(b->pass_begin(b, &pass, &repeated, e));
    assert_false(repeated); /* it would read the old list */
    OK(b->pass_end(b, &pass, 0, e));
    b->release(b, memory);
}

BACKEND_TEST(scratch_does_not_grow_under_a_recording)
{
    open_backend();
    amp_recorded_pass *pass = NULL;
    void *scratch, *larger;
    int repeated;
    OK(amp_cuda_scratch(b, 1000, &scratch, e));
    for (int again = 0; again < 2; again++) {
        OK(b->pass_begin(b, &pass, &repeated, e));
        assert_int_equal(repeated, again);
        if (again) break;
        assert_int_equal(amp_cuda_scratch(b, (size_t)5 << 20, &larger, &error), AMP_BACKEND_FAILED);
        assert_non_null(strstr(error.message, "scratch cannot grow while a pass is being captured"));
        OK(b->zero(b, scratch, 1000, e)); /* nothing was lost: the recording continues */
        OK(b->pass_end(b, &pass, 1, e));
    }
    OK(amp_cuda_scratch(b, (size_t)5 << 20, &scratch, e));
    OK(b->pass_begin(b, &pass, &repeated, e));
    assert_false(repeated); /* it would write to what was given back */
    OK(b->pass_end(b, &pass, 0, e));
}

/* ---- convolutions ---- */

static const amp_conv_desc three_by_three =
    { { 2, 16, 6, 5 }, 8, 3, 3, 1, 1, 1, AMP_FP16, 1, 1, 0, 0, 0, 0, 0, 0 };
static const amp_conv_desc connected = { { 3, 4, 2, 2 }, 5, 2, 2, 1, 0, 1, AMP_BF16, 1, 1, 0, 0, 0, 0, 0, 0 };

static amp_status load(amp_backend *b, amp_conv *conv, const float *masters, amp_error *error)
{
    int failed;
    return b->conv_load_weights(b, &(amp_conv_weights){ conv, masters }, 1, &failed, error);
}

/* One forward of conv, which is three_by_three, of zeros. */
static void run_forward(void)
{
    const size_t x_bytes = 2 * 16 * 6 * 5 * 2, y_bytes = 2 * 8 * 6 * 5 * 2, w_bytes = 8 * 16 * 9 * 4;
    void *x, *y, *w;
    OK(b->allocate(b, x_bytes, &x, e));
    OK(b->allocate(b, y_bytes, &y, e));
    OK(b->allocate(b, w_bytes, &w, e));
    OK(b->zero(b, x, x_bytes, e));
    OK(b->zero(b, w, w_bytes, e));
    OK(load(b, conv, w, e));
    OK(b->conv_forward(b, conv, x, NULL, y, e));
    OK(b->synchronize(b, e));
    b->release(b, x), b->release(b, y), b->release(b, w);
}

/* A convolution's workspace may have grown for an engine that is not used any more. The next one that is
 * created gives that back, and with it what a recorded pass reads and writes. */
BACKEND_TEST(a_workspace_does_not_move_under_a_recording)
{
    open_backend();
    amp_recorded_pass *pass = NULL;
    amp_conv *other;
    void *workspace;
    int repeated;
    OK(b->conv_create(b, &three_by_three, &conv, e));
    run_forward();
    OK(amp_cuda_reserve(b, (size_t)16 << 20, &workspace, e));
    OK(b->pass_begin(b, &pass, &repeated, e));
    OK(b->zero(b, workspace, 256, e));
    OK(b->pass_end(b, &pass, 1, e));
    OK(b->synchronize(b, e));
    OK(b->conv_create(b, &three_by_three, &other, e));
    OK(b->pass_begin(b, &pass, &repeated, e));
    assert_false(repeated);
    OK(b->pass_end(b, &pass, 0, e));
    assert_null(pass);
    b->conv_destroy(b, other);
}

static int executed(void)
{
    int sum = 0;
    for (int i = 0; i < cudnn_double.engines; i++) sum += cudnn_double.engine[i].executed;
    return sum;
}

BACKEND_TEST(engines_are_timed_once_per_shape)
{
    open_backend();
    amp_conv *first, *second;
    size_t before = amp_cuda_bytes();
    OK(b->conv_create(b, &three_by_three, &first, e));
    assert_int_equal(executed(), 4 * 6 * (1 + ENGINES)); /* passes × runs × engines */
    assert_true(amp_cuda_bytes() <= before); /* nothing of what it took is left */
    OK(b->conv_create(b, &three_by_three, &second, e));
    assert_int_equal(executed(), 4 * 6 * (1 + ENGINES));
    b->conv_destroy(b, first);
    b->conv_destroy(b, second);
    b->conv_destroy(b, NULL);
}

/* A network goes from one size to another and back: its copies of weights stay where they are. */
BACKEND_TEST(another_size_takes_over_the_copies_of_weights)
{
    enum { CONVOLUTIONS = 3 };
    open_backend();
    amp_conv_desc larger = three_by_three;
    amp_conv_weights sizes[2][CONVOLUTIONS];
    void *masters;
    int failed;
    larger.x.h = larger.x.w = 12;
    OK(b->allocate(b, 8 * 16 * 3 * 3 * sizeof(float), &masters, e));
    for (int i = 0; i < 2 * CONVOLUTIONS; i++) {
        amp_conv_weights *one = &sizes[i / CONVOLUTIONS][i % CONVOLUTIONS];
        one->masters = masters;
        OK(b->conv_create(b, i < CONVOLUTIONS ? &three_by_three : &larger, &one->conv, e));
    }
    OK(b->conv_load_weights(b, sizes[0], CONVOLUTIONS, &failed, e));
    size_t held = amp_cuda_bytes();
    for (int turn = 1; turn < 4; turn++) {
        amp_cuda_counts before = amp_cuda_counted();
        for (int i = 0; i < CONVOLUTIONS; i++) b->conv_drop_weights(b, sizes[!(turn % 2)][i].conv);
        OK(b->conv_load_weights(b, sizes[turn % 2], CONVOLUTIONS, &failed, e));
        amp_cuda_counts after = amp_cuda_counted();
        assert_int_equal(after.allocations - before.allocations, 0);
        assert_int_equal(after.frees - before.frees, 0);
        assert_int_equal(after.waits - before.waits, 0);
        assert_int_equal(amp_cuda_bytes(), held);
    }
    /* What the next ones do not need is the device's again. */
    for (int i = 0; i < CONVOLUTIONS; i++) b->conv_drop_weights(b, sizes[1][i].conv);
    OK(b->conv_load_weights(b, sizes[0], 1, &failed, e));
    assert_true(amp_cuda_bytes() < held);
    for (int i = 0; i < CONVOLUTIONS; i++) b->conv_destroy(b, sizes[0][i].conv);
    for (int i = 0; i < CONVOLUTIONS; i++) b->conv_destroy(b, sizes[1][i].conv);
    b->release(b, masters);
}

/* The double's host takes longer to queue a convolution than its device to run it, and every other run of the
 * fastest engine is disturbed. */
BACKEND_TEST(engines_are_timed_by_what_the_gpu_takes)
{
    static const int takes[] = { 3, 2, 1, 3 };
    enum { FASTEST = 2, RUNS = 5 };
    open_backend();
    for (int i = 0; i <= ENGINES; i++) cudnn_double.engine[i].takes = takes[i];
    cudnn_double.engine[FASTEST].disturbed = 50;
    long launches = amp_cuda_launches();
    OK(b->conv_create(b, &three_by_three, &conv, e));
    /* The GPU is held once for its clocks, and once for each run. */
    assert_int_equal(amp_cuda_launches() - launches, 1 + 4 * RUNS * (1 + ENGINES));
    run_forward();
    assert_int_equal(cudnn_double.last.engine, FASTEST);
}

BACKEND_TEST(tuning_may_be_off_or_short_of_memory)
{
    for (int off = 0; off < 2; off++) {
        amp_conv_desc large = three_by_three;
        large.x.h = large.x.w = 512;
        if (off) setenv("AMP_CUDA_TUNE", "0", 1);
        else amp_cuda_device_is(9, 0, 4, (size_t)20 << 20);
        open_backend();
        OK(b->conv_create(b, &large, &conv, e));
        assert_int_equal(executed(), 0);
    }
}

/* Beside the tensors to time on there is no room for any engine's workspace: none is timed or has failed. */
BACKEND_TEST(an_engine_whose_workspace_does_not_fit_yet_is_kept)
{
    cudnn_double.engine[0].workspace = 1 << 20; /* as the others */
    amp_cuda_device_is(9, 0, 4, (size_t)512 << 10);
    open_backend();
    OK(b->conv_create(b, &three_by_three, &conv, e));
    assert_int_equal(executed(), 0);
    amp_cuda_device_is(9, 0, 4, (size_t)8 * GIB);
    run_forward();
    assert_int_equal(cudnn_double.engine[0].executed, 1); /* the first choice */
}

BACKEND_TEST(deterministic_runs_use_no_clock_and_no_chance)
{
    setenv("AMP_CUDA_DETERMINISTIC", "1", 1);
    open_backend();
    OK(b->conv_create(b, &three_by_three, &conv, e));
    assert_int_equal(executed(), 0);
    run_forward();
    assert_int_equal(cudnn_double.engine[0].executed, 0);
    assert_int_equal(cudnn_double.engine[1].executed, 1);
}

BACKEND_TEST(inference_makes_no_plans_for_backward)
{
    amp_conv_desc inference = three_by_three;
    inference.training = 0;
    open_backend();
    OK(b->conv_create(b, &inference, &conv, e));
    assert_int_equal(executed(), 6 * (1 + ENGINES));
}

BACKEND_TEST(cublas_is_started_by_the_first_connected_layer)
{
    open_backend();
    amp_conv *first, *second;
    OK(b->conv_create(b, &three_by_three, &conv, e));
    assert_int_equal(cublas_double.handles, 0);
    OK(b->conv_create(b, &connected, &first, e));
    OK(b->conv_create(b, &connected, &second, e));
    assert_int_equal(cublas_double.handles, 1);
    b->conv_destroy(b, first);
    b->conv_destroy(b, second);
}

/* ---- failures ---- */

typedef struct life {
    amp_backend *backend;
    amp_conv *conv;
    void *x, *y, *dx, *dy;
    float *w, *dw, *bias;
    float result[5000]; /* y, dx and dw, at the end */
    size_t results;
} life;

static amp_status made(life *l, size_t bytes, void *out, amp_error *error)
{
    float numbers[2048];
    /* Good in fp16, too. */
    for (int i = 0; i < 2048; i++) numbers[i] = amp_bits_float(0x3c003c00u + (uint32_t)(i % 7) * 0x00400040u);
    assert_true(bytes <= sizeof numbers);
    AMP_TRY(l->backend->allocate(l->backend, bytes, (void **)out, error));
    return l->backend->upload(l->backend, *(void **)out, numbers, bytes, error);
}

static amp_status fetch(life *l, const void *from, size_t bytes, amp_error *error)
{
    assert_true(l->results + bytes <= sizeof l->result);
    AMP_TRY(l->backend->download(l->backend, (char *)l->result + l->results, from, bytes, error));
    l->results += bytes;
    return AMP_OK;
}

/* Everything that a layer asks for. */
static amp_status work(life *l, const amp_conv_desc *d, amp_error *error)
{
    amp_backend *b = l->backend;
    const amp_shape y = amp_conv_output(d);
    const size_t x_bytes = amp_shape_count(d->x) * 2, y_bytes = amp_shape_count(y) * 2;
    const size_t w_bytes = (size_t)d->k * d->x.c * d->size_h * d->size_w * 4;
    AMP_TRY(made(l, x_bytes, &l->x, error));
    AMP_TRY(made(l, y_bytes, &l->y, error));
    AMP_TRY(made(l, x_bytes, &l->dx, error));
    AMP_TRY(made(l, y_bytes, &l->dy, error));
    AMP_TRY(made(l, w_bytes, &l->w, error));
    AMP_TRY(made(l, w_bytes, &l->dw, error));
    AMP_TRY(made(l, (size_t)d->k * 4, &l->bias, error));
    AMP_TRY(b->zero(b, l->dw, w_bytes, error));
    AMP_TRY(b->conv_create(b, d, &l->conv, error));
    AMP_TRY(load(b, l->conv, l->w, error));
    AMP_TRY(b->conv_forward(b, l->conv, l->x, l->bias, l->y, error));
    AMP_TRY(b->conv_backward_weights(b, l->conv, l->x, l->dy, l->dw, error));
    AMP_TRY(b->conv_backward_data(b, l->conv, l->dy, l->dx, 0, error));
    AMP_TRY(b->conv_backward_data(b, l->conv, l->dy, l->dx, 1, error));
    AMP_TRY(b->synchronize(b, error));
    AMP_TRY(fetch(l, l->y, y_bytes, error));
    AMP_TRY(fetch(l, l->dx, x_bytes, error));
    return fetch(l, l->dw, w_bytes, error);
}

static amp_status live(life *l, const amp_conv_desc *d, amp_error *error)
{
    memset(l, 0, sizeof *l);
    error->message[0] = 0;
    l->backend = amp_cuda_backend_create(error);
    if (!l->backend) return error->status;
    amp_status status = work(l, d, error);
    void *all[] = { l->x, l->y, l->dx, l->dy, l->w, l->dw, l->bias };
    l->backend->conv_destroy(l->backend, l->conv);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) l->backend->release(l->backend, all[i]);
    l->backend->destroy(l->backend);
    return status;
}

/* One life in which `call` failed: it ended well, with the same numbers, or with one line
 * that names the call. */
static int judge(const life *l, const life *good, amp_status status, const amp_error *error, const char *call)
{
    if (amp_cuda_faults()) fail_msg("%s failed: %s", call, amp_cuda_fault());
    if (amp_cuda_allocations() || cudnn_double.descriptors || cudnn_double.handles || cublas_double.handles)
        fail_msg("%s failed: %d allocations, %d descriptors, %d and %d handles are left", call,
                 amp_cuda_allocations(), cudnn_double.descriptors, cudnn_double.handles,
                 cublas_double.handles);
    if (status == AMP_OK) {
        assert_int_equal(l->results, good->results);
        assert_memory_equal(l->result, good->result, good->results);
        return 0;
    }
    assert_int_equal(status, error->status);
    assert_null(strchr(error->message, '\n'));
    if (!strstr(error->message, call)) fail_msg("%s failed, and the line is: %s", call, error->message);
    return 1;
}

static life good, bad;

/* After a kernel has read where it may not, nothing runs any more: that kernel is to blame, not cuDNN. */
BACKEND_TEST(a_kernel_that_failed_before_is_blamed_for_it)
{
    /* A clock's choice of engine would decide whether workspace must grow, and wait. */
    setenv("AMP_CUDA_TUNE", "0", 1);
    open_backend();
    void *x, *y;
    float *w;
    assert_int_equal(b->conv_create(b, &three_by_three, &conv, &error), AMP_OK);
    assert_int_equal(b->allocate(b, 1 << 16, &x, &error), AMP_OK);
    assert_int_equal(b->allocate(b, 1 << 16, &y, &error), AMP_OK);
    assert_int_equal(b->allocate(b, 1 << 16, (void **)&w, &error), AMP_OK);
    assert_int_equal(b->zero(b, w, 1 << 16, &error), AMP_OK);
    assert_int_equal(load(b, conv, w, &error), AMP_OK);
    for (int i = 0; i < cudnn_double.engines; i++) cudnn_double.engine[i].does_not_run = 1;
    amp_cuda_fail_call("cudaStreamSynchronize", 1, cudaErrorIllegalAddress);
    assert_int_equal(b->conv_forward(b, conv, x, NULL, y, &error), AMP_BACKEND_FAILED);
    amp_cuda_fail_call("cudaStreamSynchronize", 0, cudaSuccess);
    if (!strstr(error.message, "cudaErrorIllegalAddress")) fail_msg("said %s", error.message);
    assert_non_null(strstr(error.message, "queued earlier has failed; run again with "
                                          "CUDA_LAUNCH_BLOCKING=1"));
    b->release(b, x), b->release(b, y), b->release(b, w);
}

BACKEND_TEST(any_call_of_cuda_may_fail)
{
    static const struct { const char *function, *named; int status, calls, seen; } cases[] = {
        { "cudaGetDevice", "cudaGetDevice", cudaErrorUnknown, 1, 1 },
        { "cudaGetDeviceProperties", "cudaGetDeviceProperties", cudaErrorUnknown, 1, 1 },
        { "cudaStreamCreate", "cudaStreamCreate", cudaErrorUnknown, 1, 1 },
        { "cudaMalloc", "cudaMalloc", cudaErrorUnknown, 14, 9 },
        { "cudaMalloc", "no memory for 1 MiB of ", cudaErrorMemoryAllocation, 14, 9 },
        { "cudaPointerGetAttributes", "cudaPointerGetAttributes", cudaErrorUnknown, 7, 7 },
        { "cudaMemcpyAsync", "cudaMemcpyAsync", cudaErrorUnknown, 11, 11 },
        { "cudaMemsetAsync", "cudaMemsetAsync", cudaErrorUnknown, 4, 1 },
        { "cudaStreamSynchronize", "cudaStreamSynchronize", cudaErrorUnknown, 12, 8 },
        { "cudaEventCreate", "cudaEventCreate", cudaErrorUnknown, 3, 3 },
        { "cudaEventRecord", "cudaEventRecord", cudaErrorUnknown, 12, 0 },
        { "cudaEventSynchronize", "cudaEventSynchronize", cudaErrorUnknown, 12, 0 },
        { "cudaEventElapsedTime", "cudaEventElapsedTime", cudaErrorUnknown, 12, 0 },
        { "launch", "cudaGetLastError", cudaErrorInvalidConfiguration, 44, 4 }, /* of a timing: not told */
    };
    setenv("AMP_CUDA_TUNE", "2", 1);
    assert_int_equal(live(&good, &three_by_three, &error), AMP_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int seen = 0;
        for (int call = 1; call <= cases[i].calls; call++) {
            some_engines();
            amp_cuda_fail_call(cases[i].function, call, cases[i].status);
            amp_status status = live(&bad, &three_by_three, &error);
            amp_cuda_fail_call(cases[i].function, 0, cudaSuccess);
            seen += judge(&bad, &good, status, &error, cases[i].named);
        }
        if (seen < cases[i].seen)
            fail_msg("%s failed %d times, and %d were told", cases[i].function, cases[i].calls, seen);
    }
}

BACKEND_TEST(any_call_of_cudnn_may_fail)
{
    setenv("AMP_CUDA_TUNE", "2", 1);
    some_engines();
    assert_int_equal(live(&good, &three_by_three, &error), AMP_OK);
    /* cuda_graph.c lets each call fail in turn; here, all the way up, some. */
    const int calls = cudnn_double.calls, step = calls / 60 + 1;
    int seen = 0;
    for (int call = 1; call <= calls; call += call < 10 ? 1 : step) {
        some_engines();
        cudnn_double.fail_at = call;
        cudnn_double.failure = CUDNN_STATUS_EXECUTION_FAILED;
        amp_status status = live(&bad, &three_by_three, &error);
        assert_non_null(cudnn_double.failed);
        seen += judge(&bad, &good, status, &error, cudnn_double.failed);
    }
    assert_true(seen > 20);
}

BACKEND_TEST(any_call_of_cublas_may_fail)
{
    cublas_double_reset();
    assert_int_equal(live(&good, &connected, &error), AMP_OK);
    const int calls = cublas_double.calls;
    int seen = 0;
    for (int call = 1; call <= calls; call++) {
        cublas_double_reset();
        cublas_double.fail_at = call;
        cublas_double.failure = CUBLAS_STATUS_EXECUTION_FAILED;
        amp_status status = live(&bad, &connected, &error);
        assert_non_null(cublas_double.failed);
        /* It is for a text only. */
        if (strstr(cublas_double.failed, "GetProperty")) assert_int_equal(status, AMP_OK);
        else assert_int_equal(status, AMP_BACKEND_FAILED);
        seen += judge(&bad, &good, status, &error, cublas_double.failed);
        if (status != AMP_OK) assert_non_null(strstr(error.message, "gemm.c:"));
    }
    assert_true(seen >= 7); /* a handle, its stream, its math, four products */
}

/* ---- times ---- */

static const amp_operation_time *row_of(const amp_operation_times *t, const char *layer,
                                        const char *operation)
{
    for (int i = 0; i < t->count; i++)
        if (!strcmp(t->rows[i].layer, layer) && !strcmp(t->rows[i].operation, operation)) return &t->rows[i];
    fail_msg("no row for %s of \"%s\"", operation, layer);
    return NULL;
}

/* Everything that is queued takes 100 microseconds here, behind at most one call of the host's, of 4. */
static int took(const amp_operation_time *row, int calls)
{
    return row->calls == calls && row->ms > .0999 * calls && row->ms < .105 * calls;
}

BACKEND_TEST(operations_are_timed_by_kind_of_layer)
{
    enum { X = 2 * 16 * 6 * 5, Y = 2 * 8 * 6 * 5, W = 8 * 16 * 9 };
    open_backend();
    amp_operation_times times;
    void *x, *y;
    OK(b->conv_create(b, &three_by_three, &conv, e));
    run_forward();
    OK(b->allocate(b, X * 2, &x, e));
    OK(b->allocate(b, X * 2, &y, e));
    OK(b->zero(b, x, X * 2, e));
    OK(b->operation_times(b, &times, e)); /* from now on */
    assert_int_equal(times.count, 0);
    assert_null(b->pass_begin);
    amp_cuda_each_takes(100);
    const amp_tensor half = { x, AMP_FP16, AMP_NHWC, { 2, 16, 6, 5 } },
        out = { y, AMP_FP16, AMP_NHWC, { 2, 16, 6, 5 } };
    for (int i = 0; i < 3; i++) {
        b->range_push(b, "layer 7 convolutional forward");
        OK(b->conv_forward(b, conv, x, NULL, y, e));
        OK(b->activation_forward(b, &half, &out, AMP_LEAKY, e));
        b->range_pop(b);
    }
    b->range_push(b, "layer 8 shortcut forward");
    OK(b->activation_forward(b, &half, &out, AMP_LEAKY, e));
    b->range_pop(b);
    OK(b->zero(b, x, 64, e));
    OK(b->operation_times(b, &times, e));
    amp_cuda_each_takes(0);
    assert_int_equal(times.count, 4);
    const amp_operation_time *row = row_of(&times, "convolutional", "conv_forward");
    assert_true(took(row, 3));
    assert_true(row->bytes == 3. * 2 * (X + Y + W) && row->products == 3 * 2. * W * 2 * 6 * 5 && row->half);
    row = row_of(&times, "convolutional", "activation_forward");
    assert_true(took(row, 3) && row->bytes == 3. * 2 * X * 2);
    row = row_of(&times, "shortcut", "activation_forward");
    assert_true(took(row, 1) && row->products == 0);
    assert_true(row_of(&times, "", "zero")->bytes == 64 && !row_of(&times, "", "zero")->half);
    for (int i = 1; i < times.count; i++) assert_true(times.rows[i - 1].ms >= times.rows[i].ms);
    /* The double: 1 GHz both, 4 multiprocessors, 8000 bits, 9.0. */
    assert_true(times.bytes_per_ms == 2e9);
    assert_true(times.half_per_ms == 4e6 * 4096 && times.fp32_per_ms == 4e6 * 256);
    free(times.rows);
    OK(b->operation_times(b, &times, e)); /* nothing since */
    assert_int_equal(times.count, 0);
    free(times.rows);
    amp_cuda_fail_call("cudaEventCreate", 1, cudaErrorMemoryAllocation);
    for (int i = 0; i < 9; i++)
        if (b->zero(b, x, 64, &error) != AMP_OK) break;
    assert_int_equal(error.status, AMP_NO_MEMORY);
    OK(b->zero(b, x, 64, e));
    b->release(b, x), b->release(b, y);
}

/* ---- matrix products ---- */

enum { M = 3, N = 40, K = 50 };

typedef struct gemm_life { amp_gemm_desc d; float a[M * K], w[N * K], c[M * N]; } gemm_life;

/* Numbers that every dtype holds, so that all agree. */
static void renew(gemm_life *g, int seed)
{
    for (int i = 0; i < N * K; i++) g->w[i] = (float)((i * 7 + seed) % 9 - 4);
    OK(b->upload(b, (void *)g->d.b.data, g->w, sizeof g->w, e));
}

static void begin_gemm(gemm_life *g, amp_dtype dtype)
{
    void *a, *w, *c;
    memset(g, 0, sizeof *g);
    open_backend();
    OK(b->allocate(b, sizeof g->a, &a, e));
    OK(b->allocate(b, sizeof g->w, &w, e));
    OK(b->allocate(b, sizeof g->c, &c, e));
    g->d = (amp_gemm_desc){ .m = M, .n = N, .k = K, .alpha = 1, .a = { a, K, 0, 0 }, .b = { w, K, 1, 1 },
                            .c = c, .ldc = N, .dtype = dtype };
    for (int i = 0; i < M * K; i++) g->a[i] = (float)(i % 5 - 2);
    OK(b->upload(b, a, g->a, sizeof g->a, e));
    renew(g, 1);
}

static void end_gemm(gemm_life *g)
{
    void *all[] = { (void *)g->d.a.data, (void *)g->d.b.data, g->d.c };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) b->release(b, all[i]);
}

static void assert_product(gemm_life *g)
{
    OK(b->download(b, g->c, g->d.c, sizeof g->c, e));
    for (int i = 0; i < M * N; i++) {
        float sum = 0;
        for (int l = 0; l < K; l++) sum += g->a[i / N * K + l] * g->w[i % N * K + l];
        assert_true(g->c[i] == sum);
    }
}

BACKEND_TEST(gemm_multiplies_in_the_dtype_and_sums_in_fp32)
{
    static const struct { amp_dtype dtype; cudaDataType_t factors; } cases[] = {
        { AMP_FP32, CUDA_R_32F }, { AMP_FP16, CUDA_R_16F }, { AMP_BF16, CUDA_R_16BF } };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        gemm_life g;
        begin_gemm(&g, cases[i / 2].dtype);
        g.d.b.version = i % 2; /* 0: both rounded factors share one block */
        int before = cublas_double.products;
        OK(b->gemm(b, &g.d, e));
        assert_product(&g);
        assert_int_equal(cublas_double.products, before + 1);
        assert_int_equal(cublas_double.factors, cases[i / 2].factors);
        assert_int_equal(cublas_double.result, CUDA_R_32F);
        assert_int_equal(cublas_double.computes, CUBLAS_COMPUTE_32F);
        assert_int_equal(cublas_double.unaligned, 0);
        end_gemm(&g);
    }
}

/* One kernel rounds a factor; weights have none until their version is another. */
BACKEND_TEST(gemm_rounds_weights_once_for_each_version)
{
    static const struct { unsigned long version; long kernels; } steps[] =
        { { 1, 2 }, { 1, 1 }, { 1, 1 }, { 2, 2 }, { 2, 1 }, { 0, 2 }, { 2, 1 } };
    gemm_life g;
    begin_gemm(&g, AMP_FP16);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        long before = amp_cuda_launches();
        g.d.b.version = steps[i].version;
        OK(b->gemm(b, &g.d, e));
        assert_product(&g);
        assert_int_equal(amp_cuda_launches() - before, steps[i].kernels);
    }
    int allocations = amp_cuda_allocations();
    b->gemm_drop_copies(b);
    assert_int_equal(amp_cuda_allocations(), allocations - 1);
    end_gemm(&g);
}

/* Whatever fails while new weights are rounded and multiplied, the line names it, and
 * the next try is right. */
BACKEND_TEST(a_gemm_that_failed_is_made_anew)
{
    static const struct { const char *function; int status; } cases[] = {
        { "launch", cudaErrorInvalidConfiguration }, { "cudaMalloc", cudaErrorMemoryAllocation },
        { "cublas", 0 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int first = 0; first < 2; first++) {
            int seen = 0;
            for (int call = 1; call <= 6; call++) {
                gemm_life g;
                error = (amp_error){ 0 };
                begin_gemm(&g, AMP_BF16);
                if (!first) OK(b->gemm(b, &g.d, e));
                renew(&g, 3);
                g.d.b.version = 2;
                if (cases[i].status) amp_cuda_fail_call(cases[i].function, call, cases[i].status);
                else cublas_double.fail_at = cublas_double.calls + call,
                    cublas_double.failure = CUBLAS_STATUS_EXECUTION_FAILED;
                amp_status status = b->gemm(b, &g.d, &error);
                amp_cuda_fail_call(cases[i].function, 0, cudaSuccess);
                cublas_double.fail_at = 0;
                assert_int_equal(error.status, status);
                assert_null(strchr(error.message, '\n'));
                seen += status != AMP_OK;
                OK(b->gemm(b, &g.d, e));
                assert_product(&g);
                end_gemm(&g);
            }
            assert_true(seen || !first);
        }
}

int main(void) { return run_listed_tests("tests", NULL, NULL); }
