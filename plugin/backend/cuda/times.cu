/* Measures how long each operation takes on the GPU (operation_times of backend.h). Each operation of the
 * backend's table runs between two events. Its time is added to a row for this operation and the kind of
 * layer that called it. The row also counts the bytes that the operation must read and write, and the
 * arithmetic of its matrix products. This shows how far the operation is from the GPU's limits.
 *
 * Operations that only wait, or that no step calls, are left out. If an operation launches several kernels,
 * its time includes the gaps between them. */
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

typedef struct amp_cuda_work {
    double bytes, products;
    bool half;
} amp_cuda_work;

typedef struct amp_cuda_call {
    int row;
    cudaEvent_t begin, end;
} amp_cuda_call;

struct amp_cuda_times {
    amp_backend real;      /* the backend's table before timing began */
    char layer[32];        /* the kind of layer that is running; empty between layers */
    int nested;            /* 1: an operation is running; those that it calls are not timed */
    amp_operation_time *rows;
    int row_count;
    amp_cuda_call *calls;  /* `room` entries, whose events are reused; the first call_count are the calls
                              since the previous query */
    int call_count, room;
};

namespace {

enum {
#define NAMED(operation) OF_##operation,
    AMP_BACKEND_OPERATIONS(NAMED)
    OPERATIONS
};
const char *const names[OPERATIONS] = {
#undef NAMED
#define NAMED(operation) #operation,
    AMP_BACKEND_OPERATIONS(NAMED)
};

bool is_left_out(int operation)
{
    switch (operation) {
    case OF_allocate: case OF_upload: case OF_stage: case OF_uploads_done: case OF_synchronize:
    case OF_conv_create: return true;
    default: return false;
    }
}

/* ---- what an operation does ---- */

template <int N> struct of {};

/* add() adds the memory traffic and the arithmetic that one argument causes; by default none. */
template <class T> void add(amp_cuda_work *, const T &) {}

/* A tensor is read or written once. */
void add(amp_cuda_work *w, const amp_tensor *t)
{
    if (t && t->data) w->bytes += (double)amp_tensor_bytes(t);
    if (t) w->half |= t->dtype != AMP_FP32;
}

/* A size_t argument is the size of a copy. */
void add(amp_cuda_work *w, size_t bytes) { w->bytes += (double)bytes; }

/* Every amp_conv begins with its amp_conv_desc (conv.c). */
const amp_conv_desc *desc_of(const amp_conv *conv) { return (const amp_conv_desc *)conv; }

void add_conv(amp_cuda_work *w, const amp_conv_desc *d, size_t bytes_of_weight)
{
    const amp_shape y = amp_conv_output(d);
    const size_t weights = amp_conv_weight_count(d);
    w->half = d->dtype != AMP_FP32;
    add(w, (amp_shape_count(d->x) + amp_shape_count(y)) * amp_dtype_size(d->dtype)
        + weights * bytes_of_weight);
    w->products += 2 * (double)weights * y.n * y.h * y.w;
}

/* conv_forward and conv_backward_data read copies of the weights, which have the dtype of the data. */
void add(amp_cuda_work *w, amp_conv *conv)
{
    add_conv(w, desc_of(conv), amp_dtype_size(desc_of(conv)->dtype));
}

void add(amp_cuda_work *w, const amp_gemm_desc *d)
{
    w->half = d->dtype != AMP_FP32;
    w->products += 2. * d->m * d->n * d->k;
    w->bytes += sizeof(float) * ((double)d->m * d->k + (double)d->k * d->n + (double)d->m * d->n);
}

/* Accesses per parameter: 3 to the gradient (check, update, clear), 2 to the master, and 2 to the momentum or
 * 4 to Adam's two moments. */
void add(amp_cuda_work *w, const amp_step_end *end)
{
    for (int i = 0; i < end->param_count; i++)
        add(w, end->params[i].count * sizeof(float) * (end->update.adam ? 9 : 7));
}

template <int N, class... A> void measure(of<N>, amp_cuda_work *w, A... a)
{
    int each[] = { (add(w, a), 0)... };
    (void)each;
}

/* x is read twice: for the statistics and to be normalized. */
void measure(of<OF_batchnorm_forward_train>, amp_cuda_work *w, const amp_tensor *x, const amp_tensor *y,
             const amp_batchnorm *norm, amp_error *)
{
    add(w, x), add(w, x), add(w, y);
    if (norm->add) add(w, x);
}

/* x and dy are read twice: for the sums and for dx. (y is not counted, even if it is read.) */
void measure(of<OF_batchnorm_backward>, amp_cuda_work *w, const amp_tensor *x, const amp_tensor *,
             const amp_tensor *dy, const amp_tensor *dx, const amp_batchnorm *, amp_error *)
{
    add(w, x), add(w, x), add(w, dy), add(w, dy), add(w, dx);
}

/* The gradient sum is fp32, and is both read and written. */
void measure(of<OF_conv_backward_weights>, amp_cuda_work *w, amp_conv *conv, const void *, const void *,
             float *, amp_error *)
{
    add_conv(w, desc_of(conv), 2 * sizeof(float));
}

void measure(of<OF_conv_load_weights>, amp_cuda_work *w, const amp_conv_weights *all, int count, int *,
             amp_error *)
{
    for (int i = 0; i < count; i++) {
        const amp_conv_desc *d = desc_of(all[i].conv);
        w->half |= d->dtype != AMP_FP32;
        add(w, amp_conv_weight_count(d) * (sizeof(float) + amp_dtype_size(d->dtype)));
    }
}

void measure(of<OF_scale>, amp_cuda_work *w, float *, size_t n, float, amp_error *)
{
    add(w, 2 * n * sizeof(float));
}

void measure(of<OF_check_gradients>, amp_cuda_work *w, const amp_param *params, int count, float, int *,
             double *, amp_error *)
{
    for (int i = 0; i < count; i++) add(w, params[i].count * sizeof(float));
}

/* ---- events ---- */

/* Returns the index of the row for an operation and the running kind of layer. Adds the row if necessary. */
int row_of(amp_cuda_times *t, int operation)
{
    for (int i = 0; i < t->row_count; i++)
        if (!strcmp(t->rows[i].layer, t->layer) && !strcmp(t->rows[i].operation, names[operation])) return i;
    t->rows = (amp_operation_time *)amp_allocated(realloc(t->rows,
        ((size_t)t->row_count + 1) * sizeof *t->rows));
    amp_operation_time *row = &t->rows[t->row_count];
    memset(row, 0, sizeof *row);
    snprintf(row->layer, sizeof row->layer, "%s", t->layer);
    snprintf(row->operation, sizeof row->operation, "%s", names[operation]);
    return t->row_count++;
}

amp_status begin_call(amp_backend *b, int operation, const amp_cuda_work *work, amp_error *error)
{
    amp_cuda_times *t = amp_cuda_of(b)->times;
    if (t->call_count == t->room) {
        t->calls = (amp_cuda_call *)amp_allocated(realloc(t->calls,
            ((size_t)t->room + 1) * sizeof *t->calls));
        amp_cuda_call made = {};
        AMP_CUDA_TRY(cudaEventCreate(&made.begin));
        cudaError_t status = cudaEventCreate(&made.end);
        if (status != cudaSuccess) cudaEventDestroy(made.begin);
        AMP_CUDA_TRY(status);
        t->calls[t->room++] = made;
    }
    amp_cuda_call *call = &t->calls[t->call_count];
    call->row = row_of(t, operation);
    AMP_CUDA_TRY(cudaEventRecord(call->begin, amp_cuda_of(b)->stream));
    amp_operation_time *row = &t->rows[call->row];
    row->calls++;
    row->bytes += work->bytes;
    row->products += work->products;
    row->half |= work->half;
    return AMP_OK;
}

amp_status end_call(amp_backend *b, amp_error *error)
{
    amp_cuda_times *t = amp_cuda_of(b)->times;
    AMP_CUDA_TRY(cudaEventRecord(t->calls[t->call_count].end, amp_cuda_of(b)->stream));
    t->call_count++;
    return AMP_OK;
}

/* Returns the last of its arguments. In every operation the last argument is the amp_error. */
amp_error *error_of(amp_error *error) { return error; }
template <class T, class U, class... A> amp_error *error_of(T, U u, A... a) { return error_of(u, a...); }

/* put replaces one entry of the backend's table by `call`, which times the original function. */
template <class F, F amp_backend::*M, int N> struct timed {
    static void put(amp_backend *) {}
};

template <class... A, amp_status (*amp_backend::*M)(amp_backend *, A...), int N>
struct timed<amp_status (*)(amp_backend *, A...), M, N> {
    static amp_status call(amp_backend *b, A... a)
    {
        amp_cuda_times *t = amp_cuda_of(b)->times;
        if (t->nested) return (t->real.*M)(b, a...);
        amp_cuda_work work = {};
        measure(of<N>(), &work, a...);
        t->nested = 1;
        amp_status status = begin_call(b, N, &work, error_of(a...));
        if (status == AMP_OK) status = (t->real.*M)(b, a...);
        if (status == AMP_OK) status = end_call(b, error_of(a...));
        t->nested = 0;
        return status;
    }
    static void put(amp_backend *b)
    {
        if (!is_left_out(N)) b->*M = call;
    }
};

/* name: e.g. "layer 3 convolutional forward". */
void push(amp_backend *b, const char *name)
{
    amp_cuda_times *t = amp_cuda_of(b)->times;
    if (sscanf(name, "layer %*d %31s", t->layer) != 1) snprintf(t->layer, sizeof t->layer, "%s", name);
    if (t->real.range_push) t->real.range_push(b, name);
}

void pop(amp_backend *b)
{
    amp_cuda_times *t = amp_cuda_of(b)->times;
    t->layer[0] = '\0';
    if (t->real.range_pop) t->real.range_pop(b);
}

void begin(amp_backend *b)
{
    amp_cuda_times *t = (amp_cuda_times *)amp_allocated(calloc(1, sizeof *t));
    t->real = *b;
    amp_cuda_of(b)->times = t;
#define PUT(operation) \
    timed<decltype(amp_backend::operation), &amp_backend::operation, OF_##operation>::put(b);
    AMP_BACKEND_OPERATIONS(PUT)
    b->range_push = push;
    b->range_pop = pop;
    b->pass_begin = NULL; /* record no passes: a recorded pass runs as one operation */
}

amp_status read_events(amp_cuda_backend *cuda, amp_error *error)
{
    amp_cuda_times *t = cuda->times;
    AMP_CUDA_TRY(cudaStreamSynchronize(cuda->stream));
    for (int i = 0; i < t->call_count; i++) {
        float ms;
        AMP_CUDA_TRY(cudaEventElapsedTime(&ms, t->calls[i].begin, t->calls[i].end));
        t->rows[t->calls[i].row].ms += ms;
    }
    t->call_count = 0;
    return AMP_OK;
}

/* ---- the GPU's limits ---- */

/* Returns how many multiplications and additions a multiprocessor's Tensor Cores do per clock, in 16 bits
 * with fp32 sums; 0: unknown. Derived from NVIDIA's data sheets. */
int tensor_operations(int major, int minor)
{
    switch (major) {
    case 7: return 1024;
    case 8: return minor == 0 ? 2048 : 1024;
    case 9: return 4096;
    case 12: return 1024;
    default: return 0;
    }
}

/* Like tensor_operations, in fp32 without Tensor Cores (CUDA C++ Programming Guide, arithmetic
 * instructions). */
int fp32_operations(int major, int minor) { return major == 7 || (major == 8 && minor == 0) ? 128 : 256; }

amp_status find_limits(amp_cuda_backend *cuda, amp_operation_times *out, amp_error *error)
{
    int clock, memory_clock, width; /* kHz, kHz, bits */
    AMP_CUDA_TRY(cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, cuda->device));
    AMP_CUDA_TRY(cudaDeviceGetAttribute(&memory_clock, cudaDevAttrMemoryClockRate, cuda->device));
    AMP_CUDA_TRY(cudaDeviceGetAttribute(&width, cudaDevAttrGlobalMemoryBusWidth, cuda->device));
    const double clocks_per_ms = (double)clock * cuda->multiprocessors;
    out->bytes_per_ms = 2. * memory_clock * width / 8;
    out->half_per_ms = clocks_per_ms * tensor_operations(cuda->major, cuda->minor);
    out->fp32_per_ms = clocks_per_ms * fp32_operations(cuda->major, cuda->minor);
    return AMP_OK;
}

int longest_first(const void *a, const void *b)
{
    double x = ((const amp_operation_time *)a)->ms, y = ((const amp_operation_time *)b)->ms;
    return (x < y) - (x > y);
}

}

amp_status amp_cuda_operation_times(amp_backend *backend, amp_operation_times *out, amp_error *error)
{
    amp_cuda_backend *cuda = amp_cuda_of(backend);
    memset(out, 0, sizeof *out);
    if (!cuda->times) {
        begin(backend);
        return AMP_OK;
    }
    amp_cuda_times *t = cuda->times;
    AMP_TRY(read_events(cuda, error));
    AMP_TRY(find_limits(cuda, out, error));
    if (t->rows) qsort(t->rows, (size_t)t->row_count, sizeof *t->rows, longest_first);
    out->rows = t->rows;
    out->count = t->row_count;
    t->rows = NULL;
    t->row_count = 0;
    return AMP_OK;
}

void amp_cuda_times_free(amp_cuda_backend *cuda)
{
    amp_cuda_times *t = cuda->times;
    if (!t) return;
    for (int i = 0; i < t->room; i++) {
        cudaEventDestroy(t->calls[i].begin);
        cudaEventDestroy(t->calls[i].end);
    }
    free(t->calls);
    free(t->rows);
    free(t);
    cuda->times = NULL;
}
