/* Convolutions of random shapes in the CPU backend. Each runs in a separate process, which creates one, runs
 * its passes and compares the results with plain sums in double precision. For some shapes the library's
 * kernels may crash, hang, access memory outside their tensors, or be wrong; the rules in
 * backend/cpu/onednn_faults.c avoid what was found so far.
 *
 * Each tensor and each block of scratch memory is between two pages that cannot be accessed: depending on the
 * seed it ends (rounded to 64 bytes) at one, or begins at the other. Uninitialized memory is NaN.
 *
 * AMP_FUZZ_SEED=N begins at shape N, which a failure prints; AMP_FUZZ_RUNS=N sets the number of shapes.
 * DNNL_MAX_CPU_ISA limits the instructions, as for oneDNN; amx_emulator.c adds AMX where there is
 * AVX512_BF16:
 *
 *     export OMP_NUM_THREADS=1 AMP_FUZZ_RUNS=10000
 *     for isa in SSE41 AVX AVX2 AVX512_CORE AVX512_CORE_BF16; do
 *         DNNL_MAX_CPU_ISA=$isa build/cpu/tests/test_conv_fuzz
 *     done
 *     LD_PRELOAD=build/cpu/tests/amx_emulator.so build/cpu/tests/test_conv_fuzz */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "testing.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "backend/check.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/onednn_primitive.h"
#include "conv_sums.h"
#include "random_numbers.h"

enum { HANGS_AFTER = 100 };                       /* seconds of CPU time */
enum { MOST_NUMBERS = 1 << 20, MOST_WORK = 1 << 24 };    /* per tensor; products per pass */

static amp_backend *backend;

static float random_number(void) { return (float)below(4001) / 2000 - 1; }

/* ---- memory between guards ---- */

enum { PAGE = 4096, CANARY = 0xff };

typedef struct guarded { const char *name; unsigned char *data, *slack; size_t bytes, slack_bytes; } guarded;

static guarded regions[64];
static int region_count, at_the_end;

/* may_read_behind: this many unused bytes are between the end and the guard. */
static void *guarded_memory(const char *name, size_t bytes, size_t may_read_behind)
{
    size_t padded = (bytes + 63) / 64 * 64 + may_read_behind, room = (padded + PAGE - 1) / PAGE * PAGE;
    unsigned char *all = mmap(NULL, room + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!bytes) return NULL;
    if (all == MAP_FAILED || mprotect(all + PAGE, room, PROT_READ | PROT_WRITE)
        || region_count == (int)COUNT(regions)) {
        fprintf(stderr, "no memory for %zu bytes between guards\n", bytes);
        _exit(2);
    }
    memset(all + PAGE, CANARY, room);
    guarded *region = &regions[region_count++];
    region->name = name;
    region->bytes = bytes;
    region->data = all + PAGE + (at_the_end ? room - padded : 0);
    region->slack = region->data + bytes;
    region->slack_bytes = (size_t)(all + PAGE + room - region->slack);
    return memset(region->data, 0xff, bytes);
}

/* Detects what the guards do not: writes past a tensor's end, within its last page. */
static int slack_was_written(void)
{
    for (int i = 0; i < region_count; i++)
        for (size_t j = 0; j < regions[i].slack_bytes; j++)
            if (regions[i].slack[j] != CANARY) return 1;
    return 0;
}

/* Prints the tensor whose guard was hit. */
static void name_tensor(int number, siginfo_t *info, void *context)
{
    const unsigned char *at = info->si_addr;
    (void)context;
    for (int i = 0; i < region_count; i++) {
        const guarded *r = &regions[i];
        if (at >= r->data + r->bytes && at < r->slack + r->slack_bytes + PAGE)
            fprintf(stderr, "%zu bytes behind %s (%zu bytes)\n", (size_t)(at - r->data - r->bytes), r->name,
                    r->bytes);
        else if (at < r->data && at >= r->data - 2 * PAGE)
            fprintf(stderr, "%zu bytes in front of %s (%zu bytes)\n", (size_t)(r->data - at), r->name,
                    r->bytes);
    }
    signal(number, SIG_DFL);
    raise(number);
}

/* The backend's copies of weights and its scratch are guarded too. Nothing is freed: each shape has its own
 * process. */
amp_status __wrap_amp_cpu_allocate(amp_backend *, size_t bytes, void **out, amp_error *);
amp_status __wrap_amp_cpu_allocate(amp_backend *self, size_t bytes, void **out, amp_error *error)
{
    (void)self, (void)error;
    *out = guarded_memory("a copy of the weights", bytes, AMP_ONEDNN_READS_BEHIND);
    return AMP_OK;
}

amp_status __wrap_amp_scratch_take(amp_onednn *, const size_t *sizes, void **parts, int count, amp_error *);
amp_status __wrap_amp_scratch_take(amp_onednn *library, const size_t *sizes, void **parts, int count,
                                   amp_error *error)
{
    (void)library, (void)error;
    static const char *const names[AMP_SCRATCH_PARTS] = { "the library's scratch", "scratch 1", "scratch 2",
        "scratch 3", "scratch 4", "scratch 5" };
    for (int i = 0; i < count; i++) parts[i] = guarded_memory(names[i], sizes[i], AMP_ONEDNN_READS_BEHIND);
    return AMP_OK;
}

/* ---- shapes ---- */

/* 1 to most; small ones are as likely as large ones. */
static int any_size(int most)
{
    int bits = 1 + below(32 - __builtin_clz((unsigned)most));
    return 1 + below(1 << bits) % most;
}

static int channels(void)
{
    static const int blocks[] = { 1, 1, 2, 8, 16, 16, 32, 64 };
    int block = blocks[below(COUNT(blocks))], most = 40000 / block;
    return block * any_size(most);
}

static amp_conv_desc random_shape(void)
{
    static const amp_dtype dtypes[] = { AMP_FP32, AMP_FP16, AMP_BF16, AMP_BF16 };
    static const int windows[] = { 1, 1, 1, 3, 3, 3, 3, 2, 4, 5, 7, 11 };
    static const int strides[] = { 1, 1, 1, 2, 2, 3, 4, 5 };
    amp_conv_desc d = { { 1 + below(3), channels(), 1 + below(below(4) ? 31 : 4), 1 + below(31) }, channels(),
        windows[below(COUNT(windows))], 0, strides[below(COUNT(strides))], 0, 1, dtypes[below(COUNT(dtypes))],
        1, 1, 0, 0, 0, 0, 0, 0 };
    d.size_w = below(8) ? d.size_h : windows[below(COUNT(windows))];
    d.pad = below(4) ? d.size_h / 2 : below(d.size_h + 1);
    if (!below(8)) d.stride_x = strides[below(COUNT(strides))];
    if (!below(8)) d.dilation = 2 + below(3), d.pad *= d.dilation;
    if (!below(8)) d.x.w = 1 + below(below(2) ? 640 : 80);
    if (!below(8)) d.size_h = d.x.h, d.size_w = d.x.w, d.pad = 0, d.stride = 1, d.stride_x = d.dilation = 0;
    else if (!below(5)) {
        d.groups = any_size(d.x.c < d.k ? d.x.c : d.k);
        d.x.c = d.x.c / d.groups * d.groups;
        d.k = below(2) ? d.x.c : d.k / d.groups * d.groups;
        if (!below(2)) d.groups = d.k = d.x.c;
    }
    switch (below(8)) {
    case 0: d.training = d.wants_dx = 0; d.leaky = below(2); break;
    case 1: d.wants_dx = 0; break;
    case 2: d.transposed = 1; break;
    }
    return d;
}

static size_t work_of(const amp_conv_desc *d)
{
    amp_shape y = amp_conv_output(d);
    return conv_weights(d) * y.n * y.h * y.w;
}

static int is_small(const amp_conv_desc *d)
{
    return amp_shape_count(d->x) <= MOST_NUMBERS && amp_shape_count(amp_conv_output(d)) <= MOST_NUMBERS
        && conv_weights(d) <= MOST_NUMBERS && work_of(d) <= MOST_WORK;
}

/* The shape with this number. */
static amp_conv_desc shape_of(uint64_t number)
{
    amp_error error;
    amp_conv_desc d;
    random_state = number * 0x9e3779b97f4a7c15u;
    at_the_end = below(4) > 0;
    do d = random_shape(); while (amp_check_conv(&d, "", &error) != AMP_OK || !is_small(&d));
    return d;
}

/* ---- one convolution ---- */

enum { CREATE = BACKWARD_WEIGHTS + 1, LOAD, COMPARE };

static const char *const stage_names[] = { "forward", "backward by data", "backward by weights",
    "creating it", "loading its weights", "comparing" };

/* How far a shape's process has come, for the parent. */
static volatile struct { int stage; char kernel[64]; } *progress;

typedef struct tensors { void *x, *y, *dx, *dy; float *w, *dw, *bias, *dw_before; void *dx_before; } tensors;

static void fill(amp_dtype dtype, void *data, size_t count)
{
    for (size_t i = 0; i < count; i++) set_number(dtype, data, i, random_number());
}

/* Ends the process with an error message if they differ. */
static void compare(const amp_conv_desc *d, const tensors *t, pass which, const void *got,
                    const float *bias, const void *before)
{
    amp_dtype dtype = which == BACKWARD_WEIGHTS ? AMP_FP32 : d->dtype;
    size_t count = conv_results(d, which);
    double *sums = malloc(count * sizeof *sums), *sizes = malloc(count * sizeof *sizes);
    if (!sums || !sizes) _exit(2);
    conv_sums(d, which, t->x, t->dy, t->w, sums, sizes);
    for (size_t i = 0; i < count; i++) {
        double more = before ? (double)number_of(dtype, before, i)
            : bias ? (double)bias[i % (size_t)d->k] : 0;
        double want = sums[i] + more, value = (double)number_of(dtype, got, i);
        if (d->leaky && which == FORWARD && want < 0) want *= .1;
        double bound = unit_roundoff(dtype) * fabs(want) + 1e-5 * (sizes[i] + fabs(more))
            + (dtype == AMP_FP16 ? 0x1p-25 : 0);
        if (fabs(value - want) <= bound) continue; /* false for NaN */
        fprintf(stderr, "%s: element %zu of %zu is %.9g, not %.9g within %.3g\n", stage_names[which], i,
                count, value, want, bound);
        _exit(1);
    }
    free(sums);
    free(sizes);
}

static void check(amp_status status, const amp_error *error)
{
    if (status == AMP_OK) return;
    fprintf(stderr, "%s\n", error->message);
    _exit(1);
}

static void *copy_of(const void *data, size_t bytes)
{
    void *copy = malloc(bytes);
    if (!copy) _exit(2);
    return memcpy(copy, data, bytes);
}

static void note_kernel(const amp_conv *conv)
{
    amp_conv_facts facts;
    backend->conv_facts(backend, conv, &facts);
    memcpy((char *)progress->kernel, facts.kernel, sizeof progress->kernel - 1);
}

/* Runs the passes that the shape needs, once. */
static void run_shape(const amp_conv_desc *d)
{
    size_t x_count = amp_shape_count(d->x), y_count = amp_shape_count(amp_conv_output(d)),
        w_count = conv_weights(d), size = amp_dtype_size(d->dtype);
    int accumulate = !d->transposed && below(3) == 0, failed;
    amp_error error = { 0 };
    amp_conv *conv;
    const size_t behind = AMP_ONEDNN_READS_BEHIND; /* the backend's memory; the other tensors are Darknet's */
    tensors t = { guarded_memory("x", x_count * size, behind), guarded_memory("y", y_count * size, behind),
        guarded_memory("dx", x_count * size, behind), guarded_memory("dy", y_count * size, behind),
        guarded_memory("w", w_count * 4, 0), guarded_memory("dw", w_count * 4, behind),
        guarded_memory("the bias", (size_t)d->k * 4, 0), NULL, NULL };
    fill(d->dtype, t.x, x_count);
    fill(d->dtype, t.dy, y_count);
    fill(AMP_FP32, t.bias, (size_t)d->k);
    fill(AMP_FP32, t.dw, w_count);
    if (accumulate) fill(d->dtype, t.dx, x_count);
    for (size_t i = 0; i < w_count; i++) t.w[i] = (float)rounded(d->dtype, random_number());
    t.dw_before = copy_of(t.dw, w_count * 4);
    t.dx_before = copy_of(t.dx, x_count * size);
    const float *bias = below(2) && !d->transposed ? t.bias : NULL;
    progress->stage = CREATE;
    check(backend->conv_create(backend, d, &conv, &error), &error);
    note_kernel(conv);
    progress->stage = LOAD;
    check(backend->conv_load_weights(backend, &(amp_conv_weights){ conv, t.w }, 1, &failed, &error), &error);
    if (amp_conv_wants_forward(d)) {
        progress->stage = FORWARD;
        check(backend->conv_forward(backend, conv, t.x, bias, t.y, &error), &error);
    }
    if (amp_conv_wants_backward_data(d)) {
        progress->stage = BACKWARD_DATA;
        check(backend->conv_backward_data(backend, conv, t.dy, t.dx, accumulate, &error), &error);
    }
    if (d->training) {
        progress->stage = BACKWARD_WEIGHTS;
        check(backend->conv_backward_weights(backend, conv, t.x, t.dy, t.dw, &error), &error);
    }
    progress->stage = COMPARE;
    if (amp_conv_wants_forward(d)) compare(d, &t, FORWARD, t.y, bias, NULL);
    if (amp_conv_wants_backward_data(d))
        compare(d, &t, BACKWARD_DATA, t.dx, NULL, accumulate ? t.dx_before : NULL);
    if (d->training) compare(d, &t, BACKWARD_WEIGHTS, t.dw, NULL, t.dw_before);
    if (slack_was_written()) {
        fprintf(stderr, "something was written behind a tensor\n");
        _exit(1);
    }
}

/* ---- all of them ---- */

/* Returns 0 if the shape fails; the failure was printed. */
static int holds(amp_conv_desc d, const char *name)
{
    memset((void *)progress, 0, sizeof *progress);
    pid_t child = fork();
    if (!child) {
        setrlimit(RLIMIT_CPU, &(struct rlimit){ HANGS_AFTER, HANGS_AFTER });
        setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
        for (int signal_number = 1; signal_number < 32; signal_number++) signal(signal_number, SIG_DFL);
        sigaction(SIGSEGV, &(struct sigaction){ .sa_sigaction = name_tensor, .sa_flags = SA_SIGINFO }, NULL);
        run_shape(&d);
        _exit(0);
    }
    int status = 0;
    assert_true(child > 0);
    while (waitpid(child, &status, 0) < 0) assert_int_equal(errno, EINTR);
    if (!status) return 1;
    char text[AMP_CONV_TEXT], how[64];
    amp_conv_text(&d, "", text);
    if (WIFSIGNALED(status)) snprintf(how, sizeof how, "signal %d", WTERMSIG(status));
    else snprintf(how, sizeof how, "status %d", WEXITSTATUS(status));
    print_error("%s: %s while %s (%s): %s, %s, %s%s%s\n", name, how, stage_names[progress->stage],
                (char *)progress->kernel, text, amp_dtype_name(d.dtype),
                d.transposed ? "transposed" : d.training ? "training" : "inference",
                d.leaky ? ", leaky" : "", at_the_end ? "" : ", tensors at the beginning of a page");
    return 0;
}

/* Each of these failed in oneDNN 2.6.3 or 3.7.2 before there was a rule. */
TEST(the_library_is_kept_from_what_it_gets_wrong)
{
    static const struct {
        const char *what;
        int n, c, h, w, k, size_h, size_w, stride, pad, groups, dilation;
    } known[] = {
        { "AMX: channels in blocks, the last not full",     1, 5136, 5, 5, 2, 3, 3, 1, 1, 1, 1 },
        { "AMX: stride 3",                                  1, 136, 37, 7, 25, 2, 2, 3, 0, 1, 1 },
        { "AMX: rows of no multiple of the stride",         1, 304, 13, 19, 8, 1, 3, 2, 0, 1, 1 },
        { "AMX: reads behind its scratchpad",               1, 2560, 32, 14, 2, 2, 2, 1, 0, 1, 1 },
        { "AMX: rows over 224 pixels",                      1, 17, 12, 225, 16, 3, 3, 1, 1, 1, 1 },
        { "AMX: 1x1, dilated",                              2, 122, 2, 2, 56, 1, 1, 1, 0, 1, 3 },
        { "AMX: 3x3, dilated",                              1, 126, 28, 14, 4, 3, 3, 1, 2, 1, 2 },
        { "bf16: an odd number of filters, 30 pixels",      1, 42, 30, 30, 1, 1, 1, 1, 0, 1, 1 },
        { "bf16: an odd number of channels in blocks",      1, 513, 12, 12, 64, 3, 3, 1, 1, 1, 1 },
        { "bf16: the same with stride 4",                   1, 1439, 3, 12, 1, 7, 7, 4, 3, 1, 1 },
        { "bf16: more rows above the image than in it",     1, 512, 1, 25, 3, 7, 7, 1, 3, 1, 1 },
        { "bf16: dilated, rows cut, channels left over",    1, 20, 12, 30, 20, 3, 3, 1, 2, 1, 2 },
        { "bf16: the same by channel",                      1, 16, 12, 29, 16, 3, 3, 1, 2, 16, 2 },
        { "bf16: narrower than the stride",                 1, 16, 5, 1, 16, 3, 3, 2, 1, 1, 1 },
        { "bf16: few channels by 1x1 with a stride",        2, 4, 32, 32, 8, 1, 1, 2, 0, 1, 1 },
        { "fp32: fewer channels than a vector has",         1, 12, 28, 2, 976, 3, 3, 2, 1, 1, 1 },
        { "3.7: very many filters with a stride",           1, 1, 11, 9, 14816, 3, 3, 4, 1, 1, 1 },
        { "3.7, bf16: an odd number of filters in blocks",  1, 16, 7, 5, 3007, 2, 3, 1, 1, 1, 1 },
        { "3.7: an image of one column, padded",            3, 2, 2, 1, 4, 7, 1, 2, 9, 1, 3 },
    };
    int failures = 0;
    for (size_t i = 0; i < COUNT(known); i++)
        for (amp_dtype dtype = AMP_FP32; dtype <= AMP_BF16; dtype++) {
            amp_conv_desc d = { .x = { known[i].n, known[i].c, known[i].h, known[i].w }, .k = known[i].k,
                .size_h = known[i].size_h, .size_w = known[i].size_w, .stride = known[i].stride,
                .pad = known[i].pad, .groups = known[i].groups, .dilation = known[i].dilation, .dtype = dtype,
                .training = 1, .wants_dx = 1 };
            random_state = 1, at_the_end = 1;
            failures += !holds(d, known[i].what);
        }
    assert_int_equal(failures, 0);
}

TEST(any_shape_is_computed_right)
{
    const char *seed = getenv("AMP_FUZZ_SEED"), *runs = getenv("AMP_FUZZ_RUNS");
    uint64_t first = seed ? strtoull(seed, NULL, 10) : 1, count = runs ? strtoull(runs, NULL, 10) : 100;
    unsigned long failures = 0;
    for (uint64_t number = first; number < first + count; number++) {
        char name[64];
        snprintf(name, sizeof name, "AMP_FUZZ_SEED=%llu", (unsigned long long)number);
        failures += !holds(shape_of(number), name);
    }
    print_message("%s: %llu shapes, %lu failed\n", backend->description, (unsigned long long)count, failures);
    assert_int_equal(failures, 0);
}

int main(void)
{
    amp_error error;
    progress = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    backend = amp_cpu_backend_create(&error);
    if (progress == MAP_FAILED || !backend) return 1;
    const char *preloaded = getenv("LD_PRELOAD");
    if (preloaded && strstr(preloaded, "amx_emulator") && !strstr(backend->description, "amx")) {
        printf("skipped: AMX is emulated for oneDNN 2.6 where there is AVX512_BF16: %s\n",
               backend->description);
        return 77;
    }
    int failed = run_listed_tests("convolutions of random shapes", NULL, NULL);
    backend->destroy(backend);
    return failed;
}
