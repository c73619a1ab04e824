/* Activations that are not fused into another operation. */
#include "kernels.h"
#include "blocks.h"
#include "../check.h"

amp_status amp_cpu_activation_forward(amp_backend *backend, const amp_tensor *x, const amp_tensor *y,
    amp_activation activation, amp_error *error)
{
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    size_t count = amp_shape_count(x->shape);
    AMP_TRY(amp_check_pair("activation", x, y, 1, error));
    if (activation == AMP_LINEAR && x->data == y->data) return AMP_OK;
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(count))
    for (size_t first = 0; first < count; first += AMP_CPU_STRETCH)
        rows->activate(x->dtype, activation, amp_cpu_at(x, first), amp_cpu_into(y, first),
                       amp_cpu_stretch_count(count, first));
    return AMP_OK;
}

amp_status amp_cpu_activation_backward(amp_backend *backend, const amp_tensor *y, const amp_tensor *dy,
    const amp_tensor *dx, amp_activation activation, int accumulate, amp_error *error)
{
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    size_t count = amp_shape_count(dy->shape);
    AMP_TRY(amp_check_pair("activation backward", y, dy, 1, error));
    AMP_TRY(amp_check_pair("activation backward", dy, dx, 1, error));
    if (activation == AMP_LINEAR && dy->data == dx->data && !accumulate) return AMP_OK;
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(count))
    for (size_t first = 0; first < count; first += AMP_CPU_STRETCH)
        rows->gradient(dy->dtype, activation, amp_cpu_at(y, first), amp_cpu_at(dy, first),
                       amp_cpu_into(dx, first), amp_cpu_stretch_count(count, first), accumulate);
    return AMP_OK;
}
