/* Activations as separate operations, for layers whose activation is not part of a batch norm. */
#include "kernels.h"

#include "../check.h"
#include "device.cuh"

/* y = act(x); y may be x. */
template <class T, int N, int A>
__global__ void activate(const T *x, T *y, size_t count, amp_activation given)
{
    const amp_activation activation = amp_chosen<A>(given);
    for (size_t i = amp_thread() * N; i < count; i += amp_threads() * N) {
        int n = amp_present<N>(i, count);
        float v[N];
        amp_get(v, x + i, n);
        #pragma unroll
        for (int j = 0; j < N; j++) v[j] = amp_activate(v[j], activation);
        amp_put(y + i, v, n);
    }
}

/* dx (+)= dy·act'(y); dx may be dy. */
template <class T, int N, int A>
__global__ void activate_delta(const T *y, const T *dy, T *dx, size_t count, amp_activation given,
                               int accumulate)
{
    const amp_activation activation = amp_chosen<A>(given);
    for (size_t i = amp_thread() * N; i < count; i += amp_threads() * N) {
        int n = amp_present<N>(i, count);
        float v[N], d[N];
        amp_get(v, y + i, n);
        amp_get(d, dy + i, n);
        #pragma unroll
        for (int j = 0; j < N; j++) d[j] *= amp_gradient(v[j], activation);
        amp_put_or_add(dx + i, d, n, accumulate);
    }
}

/* ---- launchers ---- */

/* Launches kernel<T, N, A> over `count` numbers, like AMP_LAUNCH_ALONG. */
#define LAUNCH_BY_ACTIVATION(backend, dtype, wide, count, activation, kernel, ...) \
    AMP_CUDA_BY_DTYPE(dtype, AMP_CUDA_BY_GROUP(wide, AMP_CUDA_BY_ACTIVATION(activation, \
        AMP_LAUNCH(backend, amp_cuda_blocks(backend, amp_divide_up(count, N)), AMP_CUDA_THREADS, \
                   (kernel<T, N, A>), __VA_ARGS__))))

amp_status amp_cuda_activation_forward(amp_backend *backend, const amp_tensor *x, const amp_tensor *y,
    amp_activation activation, amp_error *error)
{
    AMP_TRY(amp_check_pair("activation", x, y, 1, error));
    if (!amp_shape_count(x->shape) || (activation == AMP_LINEAR && x->data == y->data)) return AMP_OK;
    if (activation == AMP_LINEAR) return amp_cuda_copy(backend, x->data, y->data, amp_tensor_bytes(x), error);
    int wide = amp_aligned(x->data) && amp_aligned(y->data);
    const size_t count = amp_shape_count(x->shape);
    LAUNCH_BY_ACTIVATION(backend, x->dtype, wide, count, activation, activate, (const T *)x->data,
                         (T *)y->data, count, activation);
    return AMP_OK;
}

amp_status amp_cuda_activation_backward(amp_backend *backend, const amp_tensor *y, const amp_tensor *dy,
    const amp_tensor *dx, amp_activation activation, int accumulate, amp_error *error)
{
    AMP_TRY(amp_check_pair("activation backward", y, dy, 1, error));
    AMP_TRY(amp_check_pair("activation backward", dy, dx, 1, error));
    int copies = activation == AMP_LINEAR && !accumulate;
    if (!amp_shape_count(dy->shape) || (copies && dy->data == dx->data)) return AMP_OK;
    if (copies) return amp_cuda_copy(backend, dy->data, dx->data, amp_tensor_bytes(dy), error);
    int wide = amp_aligned(y->data) && amp_aligned(dy->data) && amp_aligned(dx->data);
    const size_t count = amp_shape_count(dy->shape);
    LAUNCH_BY_ACTIVATION(backend, dy->dtype, wide, count, activation, activate_delta, (const T *)y->data,
                         (const T *)dy->data, (T *)dx->data, count, activation, accumulate);
    return AMP_OK;
}
