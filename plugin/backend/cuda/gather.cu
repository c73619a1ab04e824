/* Fixed rearrangements of an image's elements (reorg), by a map from each element of y to one of x.
 *
 * Forward is a gather as it stands. Backward would be a scatter, whose sums depend on the order of threads
 * where two entries of the map name one element; so the map is first inverted, in scratch memory: how many
 * entries name each element of dx, and the last of them. Then each element of dx gathers. For an element that
 * several entries name, which reorg's maps do not have, the whole map is searched, first to last. */
#include "kernels.h"

#include "../check.h"
#include "device.cuh"

/* ---- forward ---- */

/* A thread reads its entries of the map once, for all images. */
template <class T, int N>
__global__ void gather(const T *x, T *y, const int32_t *map, size_t images, size_t x_image, size_t y_image)
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
            amp_put(y + r * y_image + i, v, n);
        }
    }
}

/* ---- backward ---- */

/* times[t]: how many entries of the map name t; ends[t]: one more than the last of them. Both are 0
 * before. */
__global__ void count_entries(const int32_t *map, size_t count, unsigned *times, unsigned *ends)
{
    for (size_t i = amp_thread(); i < count; i += amp_threads()) {
        if (map[i] < 0) continue;
        atomicAdd(&times[map[i]], 1u);
        atomicMax(&ends[map[i]], (unsigned)i + 1);
    }
}

/* Element t of dx: the sum of all dy whose map entry is t, in the order of the map. */
template <class T>
__device__ float gathered(const T *dy, const int32_t *map, int32_t t, unsigned times, unsigned end)
{
    if (times == 0) return 0;
    if (times == 1) return amp_load(dy[end - 1]);
    float sum = 0;
    for (unsigned i = 0; i < end; i++)
        if (map[i] == t) sum += amp_load(dy[i]);
    return sum;
}

template <class T, int N>
__global__ void gather_delta(const T *dy, T *dx, const int32_t *map, const unsigned *times,
                             const unsigned *ends, size_t images, size_t dy_image, size_t dx_image,
                             int accumulate)
{
    for (size_t i = amp_thread() * N; i < dx_image; i += amp_threads() * N) {
        int n = amp_present<N>(i, dx_image);
        unsigned named[N] = { 0 }, end[N] = { 0 };
        amp_read(named, times + i, n);
        amp_read(end, ends + i, n);
        for (size_t r = amp_row(); r < images; r += amp_rows()) {
            float v[N];
            #pragma unroll
            for (int j = 0; j < N; j++)
                v[j] = gathered(dy + r * dy_image, map, (int32_t)(i + j), named[j], end[j]);
            amp_put_or_add(dx + r * dx_image + i, v, n, accumulate);
        }
    }
}

/* ---- launchers ---- */

static int wide_images(const amp_tensor *t)
{
    size_t bytes = amp_shape_image(t->shape) * amp_dtype_size(t->dtype);
    return amp_aligned(t->data) && (t->shape.n <= 1 || bytes % 16 == 0);
}

amp_status amp_cuda_gather_forward(amp_backend *backend, const amp_tensor *x, const amp_tensor *y,
                                   const int32_t *map, amp_error *error)
{
    AMP_TRY(amp_check_gather(x, y, error));
    if (!amp_shape_count(y->shape)) return AMP_OK;
    size_t images = (size_t)y->shape.n, image = amp_shape_image(y->shape);
    AMP_LAUNCH_PLANE(backend, x->dtype, wide_images(y) && amp_aligned(map), images, image, gather,
                     (const T *)x->data, (T *)y->data, map, images, amp_shape_image(x->shape), image);
    return AMP_OK;
}

amp_status amp_cuda_gather_backward(amp_backend *backend, const amp_tensor *dy, const amp_tensor *dx,
                                    const int32_t *map, int accumulate, amp_error *error)
{
    AMP_TRY(amp_check_gather(dx, dy, error));
    if (!amp_shape_count(dx->shape)) return AMP_OK;
    size_t images = (size_t)dx->shape.n, image = amp_shape_image(dx->shape);
    size_t from = amp_shape_image(dy->shape), to = amp_divide_up(image, 4) * 4;
    void *scratch;
    AMP_TRY(amp_cuda_scratch(backend, 2 * to * sizeof(unsigned), &scratch, error));
    unsigned *times = (unsigned *)scratch, *ends = times + to;
    AMP_CUDA_TRY(cudaMemsetAsync(scratch, 0, 2 * to * sizeof(unsigned), amp_cuda_of(backend)->stream));
    AMP_LAUNCH(backend, amp_cuda_blocks(backend, from), AMP_CUDA_THREADS, count_entries, map, from, times,
               ends);
    AMP_LAUNCH_PLANE(backend, dx->dtype, wide_images(dx), images, image, gather_delta, (const T *)dy->data,
                     (T *)dx->data, map, times, ends, images, from, image, accumulate);
    return AMP_OK;
}
