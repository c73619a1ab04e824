/* Rearranges the elements of each image (reorg). The map gives, for each element of y, the index of its
 * source in x, or -1 for zero. */
#include "kernels.h"

#include "../check.h"
#include "device.cuh"

/* A thread reads its entries of the map once, for all images. */
template <class T, int N>
__global__ void gather(const T *x, T *y, const int32_t *map, size_t images, size_t x_image, size_t y_image,
                       int accumulate)
{
    for (size_t i = amp_thread() * N; i < y_image; i += amp_threads() * N) {
        int n = amp_present<N>(i, y_image);
        int32_t at[N];
        #pragma unroll
        for (int j = 0; j < N; j++) at[j] = -1;
        amp_read(at, map + i, n);
        for (size_t r = amp_row(); r < images; r += amp_rows()) {
            float v[N];
            #pragma unroll
            for (int j = 0; j < N; j++) v[j] = at[j] < 0 ? 0 : amp_load(x[r * x_image + (size_t)at[j]]);
            amp_put_or_add(y + r * y_image + i, v, n, accumulate);
        }
    }
}

amp_status amp_cuda_gather(amp_backend *backend, const amp_tensor *x, const amp_tensor *y, const int32_t *map,
                           int accumulate, amp_error *error)
{
    AMP_TRY(amp_check_pair("gather", x, y, 0, error));
    if (!amp_shape_count(y->shape)) return AMP_OK;
    size_t images = (size_t)y->shape.n, image = amp_shape_image(y->shape);
    int wide = amp_wide_rows(y->data, images, image, y->dtype) && amp_aligned(map);
    AMP_LAUNCH_PLANE(backend, x->dtype, wide, images, image, gather, (const T *)x->data, (T *)y->data, map,
                     images, amp_shape_image(x->shape), image, accumulate);
    return AMP_OK;
}
