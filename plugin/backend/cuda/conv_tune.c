/* Times engines, on memory allocated for this purpose: when convolutions are created, the network's own
 * memory is not allocated yet, or has the size from before a resize.
 *
 * A small convolution takes 5 to 20 µs, which is as long as the CPU takes to queue it. So a kernel that
 * spins first keeps the GPU busy until the run and two events around it are queued: the time between the
 * events is then the GPU's alone. The shortest of several runs is the one that was disturbed least. */
#include "conv_tune.h"

#include <math.h>

#include "cudnn_graph.h"
#include "kernels.h"

/* Cycles of the GPU's clock, which runs at 1 to 2 GHz. SPIN: 50 to 100 µs, before each run. WARM: 50 to 100
 * ms, once, so that the clocks rise from idle. */
enum { RUNS = 5, SPIN = 100000, WARM = 100000000 };

/* Fills the memory that engines are timed on: a small number in every dtype. (Zeros would need less power,
 * and run faster.) */
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

/* An amp_conv_timer; user: the trial. The first run, which loads code and grows the workspace, is not
 * timed. */
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

/* The three tensors are in one block of memory, each at a multiple of 256 bytes. */
static amp_status begin_trial(trial *t, amp_backend *backend, const amp_cuda_conv_bytes *bytes,
                              amp_error *error)
{
    size_t w = (bytes->x + 255) / 256 * 256, y = w + (bytes->w + 255) / 256 * 256, all = y + bytes->y;
    AMP_TRY(amp_cuda_malloc(backend, all, "tensors to time on", &t->buffers.x, error));
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

amp_status amp_cuda_conv_tune(amp_backend *backend, amp_conv_plan *const *plans, int count,
                              const amp_cuda_conv_bytes *bytes, amp_error *error)
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
