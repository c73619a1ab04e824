/* Convolutions by cuDNN, and connected layers by cuBLAS.
 *
 * Both libraries read a copy of the weights, in the dtype of the data and in the order that NHWC data needs
 * (KRSC: k, rows, columns, c/groups). They write the gradient of the weights in the same order.
 *
 * cuDNN writes the gradient in the dtype of the data. In fp16, it scales the gradient down to avoid overflow.
 * A kernel of cast.cu undoes the scaling and adds the gradient to dw, the fp32 sum over subdivisions. cuBLAS
 * writes the gradient in fp32, or adds it to dw if KRSC and Darknet's OIHW are the same order in memory. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "conv_plan.h"
#include "cudnn_graph.h"
#include "gemm.h"
#include "kernels.h"
#include "memory.h"

enum { FORWARD, BACKWARD_WEIGHTS, BACKWARD_DATA, BACKWARD_DATA_ADDING, PASSES };

struct amp_conv {
    amp_conv_desc desc;            /* must be first: times.cu reads it */
    amp_shape y;
    int connected;                 /* 1: computed as matrix products by cuBLAS; 0: by cuDNN's plans */
    int inputs;                    /* connected layer: elements of x per image; x is then (n, inputs), w is
                                      (k, inputs), y is (n, k) */
    amp_conv_plan *plans[PASSES];  /* owned by cuda->plans; NULL for a pass that is not needed */
    amp_cudnn_pack packs[PASSES];  /* for each pass: cuDNN's descriptor of the most recent buffers */
    void *weights;                 /* the copy of the weights, KRSC; NULL: not loaded */
};

/* ---- timing engines ---- */

/* Engines are timed on memory of their own: when convolutions are created, the network's memory is not
 * allocated yet, or still has its size from before a resize.
 *
 * A small convolution runs for 5 to 20 µs, and the CPU takes as long to queue it. So a spinning kernel keeps
 * the GPU busy while the CPU queues the run between two events. The shortest of several runs counts, because
 * it was disturbed least. */

/* RUNS: timed runs of each engine. SPIN: cycles of the GPU's clock to spin before each of them (50 to 100
 * µs). WARM: cycles to spin once, to raise the clocks from idle (50 to 100 ms). */
enum { RUNS = 5, SPIN = 100000, WARM = 100000000 };

/* The value of every byte of the memory on which engines are timed. In every dtype, these bytes are a small
 * number. On zeros, engines would need less power and run faster. */
enum { FILL = 0x2b };

typedef struct trial {
    amp_cuda_backend *cuda;
    cudaEvent_t begin, end;
    amp_conv_buffers buffers;
} trial;

static amp_status launch(trial *t, const amp_conv_plan *plan, amp_error *error)
{
    amp_status status = amp_cudnn_launch(t->cuda->cudnn, plan, &t->buffers, error);
    if (status != AMP_OK) amp_cuda_clear_error();
    return status;
}

/* An amp_conv_timer. The first run, which loads code and grows the workspace, is not timed. */
static amp_status measure(void *user, const amp_conv_plan *plan, float *ms, amp_error *error)
{
    trial *t = user;
    AMP_TRY(launch(t, plan, error));
    *ms = INFINITY;
    for (int i = 0; i < RUNS; i++) {
        float one;
        AMP_TRY(amp_cuda_spin(&t->cuda->base, SPIN, error));
        AMP_CUDA_TRY(cudaEventRecord(t->begin, t->cuda->stream));
        AMP_TRY(launch(t, plan, error));
        AMP_CUDA_TRY(cudaEventRecord(t->end, t->cuda->stream));
        AMP_CUDA_TRY(cudaEventSynchronize(t->end));
        AMP_CUDA_TRY(cudaEventElapsedTime(&one, t->begin, t->end));
        *ms = fminf(*ms, one);
    }
    return AMP_OK;
}

typedef struct tensor_bytes { size_t x, w, y; } tensor_bytes;

/* Allocates the three tensors in one block of memory, each at a multiple of 256 bytes. */
static amp_status begin_trial(trial *t, amp_backend *backend, const tensor_bytes *bytes, amp_error *error)
{
    size_t w = (bytes->x + 255) / 256 * 256, y = w + (bytes->w + 255) / 256 * 256, all = y + bytes->y;
    AMP_TRY(amp_cuda_malloc(backend, all, "buffers to time convolutions", &t->buffers.x, error));
    t->buffers.w = (char *)t->buffers.x + w;
    t->buffers.y = (char *)t->buffers.x + y;
    AMP_CUDA_TRY(cudaEventCreate(&t->begin));
    AMP_CUDA_TRY(cudaEventCreate(&t->end));
    AMP_CUDA_TRY(cudaMemsetAsync(t->buffers.x, FILL, all, t->cuda->stream));
    if (!t->cuda->timed) AMP_TRY(amp_cuda_spin(backend, WARM, error));
    t->cuda->timed = 1;
    return AMP_OK;
}

static void end_trial(trial *t, amp_backend *backend)
{
    if (t->end) cudaEventDestroy(t->end);
    if (t->begin) cudaEventDestroy(t->begin);
    amp_cuda_release(backend, t->buffers.x);
}

static int is_untimed(const amp_conv_plan *plan) { return plan && !plan->tuned && plan->fit > 1; }

/* Times at most settings.tune engines of each plan, and makes the fastest one current. Skips plans that are
 * NULL, were timed before, or have only one usable engine. Without enough memory for the timing, plans stay
 * as they are. */
static amp_status tune(amp_backend *backend, amp_conv_plan *const *plans, int count,
                       const tensor_bytes *bytes, amp_error *error)
{
    amp_cuda_backend *cuda = amp_cuda_of(backend);
    trial t = { .cuda = cuda };
    int wanted = 0;
    for (int i = 0; i < count; i++) wanted |= is_untimed(plans[i]);
    if (!wanted || !cuda->settings.tune) return AMP_OK;
    amp_status status = begin_trial(&t, backend, bytes, error);
    for (int i = 0; i < count && status == AMP_OK; i++)
        if (is_untimed(plans[i]))
            status = amp_conv_plans_tune(cuda->plans, plans[i], cuda->settings.tune, measure, &t, error);
    int short_of_memory = status == AMP_NO_MEMORY && !t.begin;
    end_trial(&t, backend);
    return short_of_memory ? AMP_OK : status;
}

/* ---- creating ---- */

static amp_conv_problem problem_of(const amp_conv_desc *d, int pass, int deterministic)
{
    static const amp_conv_pass passes[PASSES] = {
        [FORWARD] = AMP_CONV_FORWARD, [BACKWARD_WEIGHTS] = AMP_CONV_BACKWARD_FILTER,
        [BACKWARD_DATA] = AMP_CONV_BACKWARD_DATA, [BACKWARD_DATA_ADDING] = AMP_CONV_BACKWARD_DATA };
    amp_conv_problem p = { *d, passes[pass], pass == BACKWARD_DATA_ADDING, deterministic };
    p.conv.dilation = amp_conv_dilation(d); /* turns 0 into 1, which means the same: equal problems must have
                                               equal bytes, because the problem is a cache key */
    p.conv.stride_x = amp_conv_stride_x(d);
    p.conv.training = p.conv.wants_dx = p.conv.transposed = p.conv.leaky = 0;
    p.conv.direct = p.conv.masters_stay = 0;
    return p;
}

static amp_status conv_fail(const amp_conv *conv, int pass, const char *why, amp_error *error)
{
    char text[AMP_CONV_PROBLEM_TEXT];
    amp_conv_problem problem = problem_of(&conv->desc, pass, 0);
    amp_conv_problem_text(&problem, text);
    return amp_fail(error, AMP_BACKEND_FAILED, "%s: %s", text, why);
}

static int wanted(const amp_conv_desc *d, int pass)
{
    switch (pass) {
    case FORWARD: return amp_conv_wants_forward(d);
    case BACKWARD_WEIGHTS: return d->training;
    case BACKWARD_DATA: return amp_conv_wants_backward_data(d);
    default: return amp_conv_wants_backward_data(d) && !d->transposed;
    }
}

static size_t weight_bytes(const amp_conv_desc *d)
{
    return amp_conv_weight_count(d) * amp_dtype_size(d->dtype);
}

/* Whether the window covers the whole input: then the convolution is a connected layer. */
static int is_connected(const amp_conv_desc *d)
{
    return d->size_h == d->x.h && d->size_w == d->x.w && !d->pad && d->groups == 1
        && amp_shape_image(d->x) <= INT_MAX;
}

/* The largest workspace of all passes, in bytes; 0 for a connected layer, which has no plans. */
static size_t largest_workspace(const amp_conv *conv)
{
    size_t largest = 0;
    for (int i = 0; i < PASSES; i++)
        if (conv->plans[i] && conv->plans[i]->current.workspace > largest)
            largest = conv->plans[i]->current.workspace;
    return largest;
}

static amp_status make_plans(amp_backend *backend, amp_conv *conv, amp_error *error)
{
    amp_cuda_backend *cuda = amp_cuda_of(backend);
    const size_t element = amp_dtype_size(conv->desc.dtype);
    const tensor_bytes bytes = { amp_shape_count(conv->desc.x) * element, weight_bytes(&conv->desc),
                                 amp_shape_count(conv->y) * element };
    for (int pass = 0; pass < PASSES; pass++) {
        if (!wanted(&conv->desc, pass)) continue;
        amp_conv_problem problem = problem_of(&conv->desc, pass, cuda->settings.deterministic);
        AMP_TRY(amp_conv_plans_get(cuda->plans, &problem, &conv->plans[pass], error));
    }
    amp_status status = tune(backend, conv->plans, PASSES, &bytes, error);
    if (largest_workspace(conv) > cuda->workspace_needed) cuda->workspace_needed = largest_workspace(conv);
    amp_cuda_trim(backend); /* frees workspace that only the timing needed */
    amp_cuda_clear_error();
    return status;
}

amp_status amp_cuda_conv_create(amp_backend *backend, const amp_conv_desc *desc, amp_conv **out,
                                amp_error *error)
{
    AMP_TRY(amp_check_conv(desc, "forward", error));
    amp_conv *conv = amp_allocated(calloc(1, sizeof *conv));
    conv->desc = *desc;
    conv->y = amp_conv_output(desc);
    conv->connected = is_connected(desc);
    if (conv->connected) conv->inputs = (int)amp_shape_image(desc->x);
    amp_status status = conv->connected ? amp_cuda_gemm_start(backend, error) : make_plans(backend, conv,
            error);
    if (status == AMP_OK) *out = conv;
    else amp_cuda_conv_destroy(backend, conv);
    return status;
}

void amp_cuda_conv_destroy(amp_backend *backend, amp_conv *conv)
{
    if (!conv) return;
    amp_cuda_release(backend, conv->weights);
    for (int i = 0; i < PASSES; i++) amp_cudnn_pack_free(&conv->packs[i]);
    free(conv);
}

/* ---- weights ---- */

/* Sets *out to the kernel's arguments for one convolution. Allocates the copy if it does not exist. */
static amp_status prepare_copy(amp_backend *backend, const amp_conv_weights *one, amp_cuda_weights *out,
                        amp_error *error)
{
    amp_conv *conv = one->conv;
    const amp_conv_desc *d = &conv->desc;
    if (!conv->weights)
        AMP_TRY(amp_cuda_spare_get(backend, weight_bytes(d), "copies of weights", &conv->weights, error));
    *out = (amp_cuda_weights){ one->masters, conv->weights, d->dtype, d->k, d->x.c / d->groups, d->size_h,
                               d->size_w };
    return AMP_OK;
}

amp_status amp_cuda_conv_load_weights(amp_backend *backend, const amp_conv_weights *all, int count,
                                      int *failed, amp_error *error)
{
    amp_status status = AMP_OK;
    amp_cuda_weights *list = amp_allocated(malloc(((size_t)count + 1) * sizeof *list));
    *failed = -1;
    for (int i = 0; i < count && status == AMP_OK; i++)
        if ((status = prepare_copy(backend, &all[i], &list[i], error)) != AMP_OK) *failed = i;
    if (status == AMP_OK)
        status = amp_cuda_weights_to_krsc(backend, &amp_cuda_of(backend)->weights, list, count, error);
    free(list);
    amp_cuda_spares_free(backend);
    return status;
}

void amp_cuda_conv_drop_weights(amp_backend *backend, amp_conv *conv)
{
    amp_cuda_spare_put(backend, conv->weights, weight_bytes(&conv->desc));
    conv->weights = NULL;
}

/* ---- running ---- */

static amp_status check(const amp_conv *conv, int pass, amp_error *error)
{
    if (pass == BACKWARD_DATA_ADDING && conv->desc.transposed)
        return conv_fail(conv, pass, "a deconvolution does not add to its output", error);
    if (!wanted(&conv->desc, pass))
        return conv_fail(conv, pass, conv->desc.training ? "it was created without wants_dx"
                         : "it was created without training", error);
    if (pass != BACKWARD_WEIGHTS && !conv->weights)
        return conv_fail(conv, pass, "its weights were not loaded", error);
    return AMP_OK;
}

static amp_status run(amp_backend *backend, amp_conv *conv, int pass, const void *x, void *w, const void *y,
                      amp_error *error)
{
    /* The pass decides which of x, w and y is written: see conv_plan.h. */
    const amp_conv_buffers buffers = { (void *)x, w, (void *)y, &conv->packs[pass] };
    amp_cuda_backend *cuda = amp_cuda_of(backend);
    amp_conv_plan *plan = conv->plans[pass];
    if (cuda->recording) return amp_cudnn_launch(cuda->cudnn, plan, &buffers, error);
    amp_status status = AMP_OK;
    amp_error why;
    while (status == AMP_OK && amp_cudnn_launch(cuda->cudnn, plan, &buffers, &why) != AMP_OK)
        status = amp_conv_plans_next(cuda->plans, plan, &why, error);
    /* If an earlier kernel has failed, every engine fails. Reports that kernel's error instead of cuDNN's. */
    if (status != AMP_OK) AMP_CUDA_TRY(cudaStreamSynchronize(cuda->stream));
    amp_cuda_clear_error();
    return status;
}

amp_status amp_cuda_conv_forward(amp_backend *backend, amp_conv *conv, const void *x, const float *bias,
                                 void *y, amp_error *error)
{
    const amp_conv_desc *d = &conv->desc;
    AMP_TRY(check(conv, FORWARD, error));
    if (conv->connected) /* y = x·wᵀ */
        AMP_TRY(amp_cuda_product(backend, d->x.n, d->k, conv->inputs, 1,
                                 (amp_cuda_matrix){ x, d->dtype, conv->inputs, 0 },
                                 (amp_cuda_matrix){ conv->weights, d->dtype, conv->inputs, 1 }, 0,
                                 (amp_cuda_matrix){ y, d->dtype, d->k, 0 }, error));
    else AMP_TRY(run(backend, conv, FORWARD, x, conv->weights, y, error));
    const amp_tensor output = { .data = y, .dtype = d->dtype, .layout = AMP_NHWC, .shape = conv->y };
    if (bias) AMP_TRY(amp_cuda_add_bias(backend, &output, bias, error));
    return d->leaky ? amp_cuda_activation_forward(backend, &output, &output, AMP_LEAKY, error) : AMP_OK;
}

amp_status amp_cuda_conv_backward_data(amp_backend *backend, amp_conv *conv, const void *dy, void *dx,
                                       int accumulate, amp_error *error)
{
    const amp_conv_desc *d = &conv->desc;
    const int pass = accumulate ? BACKWARD_DATA_ADDING : BACKWARD_DATA;
    AMP_TRY(check(conv, pass, error));
    if (conv->connected) /* dx (+)= dy·w */
        return amp_cuda_product(backend, d->x.n, conv->inputs, d->k, 1,
                                (amp_cuda_matrix){ dy, d->dtype, d->k, 0 },
                                (amp_cuda_matrix){ conv->weights, d->dtype, conv->inputs, 0 },
                                accumulate ? 1 : 0,
                                (amp_cuda_matrix){ dx, d->dtype, conv->inputs, 0 }, error);
    return run(backend, conv, pass, dx, conv->weights, dy, error);
}

amp_status amp_cuda_conv_backward_weights(amp_backend *backend, amp_conv *conv, const void *x, const void *dy,
                                          float *dw, amp_error *error)
{
    const amp_conv_desc *d = &conv->desc;
    /* Whether (k, c, rows, columns) and (k, rows, columns, c) are the same order in memory. */
    const int same_order = d->x.c / d->groups == 1 || (d->size_h == 1 && d->size_w == 1);
    const amp_dtype dtype = conv->connected ? AMP_FP32 : d->dtype; /* dtype of the library's gradient */
    const int direct = conv->connected && same_order; /* 1: cuBLAS adds to dw itself */
    void *krsc = dw;
    AMP_TRY(check(conv, BACKWARD_WEIGHTS, error));
    if (!direct)
        AMP_TRY(amp_cuda_scratch(backend, amp_conv_weight_count(d) * amp_dtype_size(dtype), &krsc, error));
    if (conv->connected) /* dw (+)= dyᵀ·x, in fp32 for every dtype */
        AMP_TRY(amp_cuda_product(backend, d->k, conv->inputs, d->x.n, 1,
                                 (amp_cuda_matrix){ dy, d->dtype, d->k, 1 },
                                 (amp_cuda_matrix){ x, d->dtype, conv->inputs, 0 }, direct ? 1 : 0,
                                 (amp_cuda_matrix){ krsc, AMP_FP32, conv->inputs, 0 }, error));
    else AMP_TRY(run(backend, conv, BACKWARD_WEIGHTS, x, krsc, dy, error));
    if (direct) return AMP_OK;
    const float factor = conv->connected ? 1
        : ldexpf(1, amp_cudnn_downscale(&conv->plans[BACKWARD_WEIGHTS]->problem));
    return amp_cuda_gradient_from_krsc(backend, krsc, dtype, factor, dw, d->k, d->x.c / d->groups, d->size_h,
                                       d->size_w, error);
}

/* ---- facts ---- */

/* The copies of the weights have no padding: cuDNN pads channels in its workspace. */
void amp_cuda_conv_facts(const amp_backend *backend, const amp_conv *conv, amp_conv_facts *out)
{
    const amp_conv_desc *d = &conv->desc;
    *out = (amp_conv_facts){ .computes = d->dtype, .padded_in = d->x.c / d->groups,
                             .padded_out = d->k / d->groups, .weight_bytes = weight_bytes(d),
                             .fp32_weight_bytes = amp_conv_weight_count(d) * sizeof(float),
                             .workspace_bytes = largest_workspace(conv) };
    const amp_conv_plan *forward = conv->plans[d->transposed ? BACKWARD_DATA : FORWARD];
    if (conv->connected) {
        snprintf(out->kernel, sizeof out->kernel, "cuBLAS");
    } else if (forward) {
        const amp_conv_candidate *engine = &forward->current;
        snprintf(out->kernel, sizeof out->kernel, "cuDNN engine %lld%s", (long long)engine->engine,
                 engine->notes & AMP_CONV_TENSOR_CORE ? ", Tensor Cores" : "");
    }
}
