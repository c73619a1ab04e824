/* Convolutions and connected layers with oneDNN: forward, the data gradient (dx), the weight gradient (dw).
 *
 * Activations are NHWC: oneDNN's own blocked layouts would not be faster. The library reads copies of the
 * weights (weights_layout.h). Winograd's passes (winograd.h) read the masters, or a plain copy if the masters
 * may move or change before the pass (masters_stay is 0).
 *
 * If a half (fp16 or bf16) is only a storage format (onednn_halves.c), one slice of the batch at a time is
 * widened into scratch, computed in fp32, and narrowed again. Slices keep the scratch small enough for the
 * cache. "dx += ..." is sliced too: its sum is computed in fp32 scratch, so that it is rounded only once.
 *
 * A connected layer is an inner product for the library: its GEMM is several times faster than a convolution
 * with a window as large as the image. */
#include "onednn_conv.h"

#include <string.h>

#include "kernels.h"

/* ---- weights ---- */

static amp_status load_copy(amp_onednn *library, amp_conv *conv, amp_primitive *reorder, const void *plain,
                            void *copy, void *scratchpad, amp_error *error)
{
    dnnl_status_t status = amp_primitive_set(reorder, DNNL_ARG_FROM, plain);
    if (status == dnnl_success) status = amp_primitive_set(reorder, DNNL_ARG_TO, copy);
    if (status == dnnl_success) status = amp_primitive_run(library, reorder, scratchpad);
    return amp_onednn_conv_outcome(conv, "loading the weights", status, error);
}

/* Makes copies with the library's reorders. Rounds the weights first, because a reorder that also changes the
 * type takes 1.5 times as long. forward, backward: which copies to make. */
static amp_status load_by_library(amp_onednn *library, amp_conv *conv, const float *weights, int forward,
                                  int backward, amp_error *error)
{
    size_t count = amp_conv_weight_count(&conv->desc);
    int narrow = conv->compute != AMP_FP32;
    size_t sizes[3] = { conv->load_forward.scratchpad, conv->load_backward.scratchpad,
                        narrow ? count * amp_dtype_size(conv->compute) : 0 };
    void *scratch[3];
    AMP_TRY(amp_scratch_take(library, sizes, scratch, 3, error));
    if (narrow) amp_cpu_cast_flat(AMP_FP32, weights, conv->compute, scratch[2], count, 0);
    const void *plain = narrow ? scratch[2] : (const void *)weights;
    if (forward)
        AMP_TRY(load_copy(library, conv, &conv->load_forward, plain, conv->forward_weights, scratch[0],
                          error));
    if (!backward) return AMP_OK;
    return load_copy(library, conv, &conv->load_backward, plain, conv->backward_weights_copy, scratch[1],
                     error);
}

/* Like load_by_library, but with amp_weights_copy. */
static amp_status load_by_amp(amp_onednn *library, amp_conv *conv, const float *weights, int forward,
                              int backward, amp_error *error)
{
    const amp_conv_desc *d = &conv->desc;
    size_t places = (size_t)d->size_h * d->size_w,
        bytes = amp_weights_scratch(forward ? &conv->forward_layout : &conv->backward_layout, places);
    void *scratch;
    AMP_TRY(amp_scratch_take(library, &bytes, &scratch, 1, error));
    amp_weights_copy(weights, (size_t)d->k, (size_t)d->x.c, places,
                     (amp_weights_target){ &conv->forward_layout, forward ? conv->forward_weights : NULL },
                     (amp_weights_target){ &conv->backward_layout, backward ? conv->backward_weights_copy
                                           : NULL }, scratch);
    return AMP_OK;
}

/* Makes all copies of the weights that the passes of this convolution read. */
static amp_status load_one(amp_onednn *library, amp_conv *conv, const float *weights, amp_error *error)
{
    if (conv->plain_bytes) {
        if (!conv->plain_copy)
            AMP_TRY(amp_cpu_allocate(NULL, conv->plain_bytes, &conv->plain_copy, error));
        memcpy(conv->plain_copy, weights, conv->plain_bytes);
    }
    conv->plain = conv->plain_bytes ? conv->plain_copy : weights;
    if (!conv->forward_weights && conv->forward_bytes)
        AMP_TRY(amp_cpu_allocate(NULL, conv->forward_bytes, &conv->forward_weights, error));
    if (!conv->backward_weights_copy) {
        if (conv->backward_bytes)
            AMP_TRY(amp_cpu_allocate(NULL, conv->backward_bytes, &conv->backward_weights_copy, error));
        else conv->backward_weights_copy = conv->forward_weights;
    }
    int forward = conv->forward_bytes && conv->forward_layout.order != AMP_WEIGHTS_UNKNOWN;
    int backward = conv->backward_bytes && conv->backward_layout.order != AMP_WEIGHTS_UNKNOWN;
    if (forward || backward) AMP_TRY(load_by_amp(library, conv, weights, forward, backward, error));
    int forward_left = conv->forward_bytes && !forward, backward_left = conv->backward_bytes && !backward;
    return forward_left || backward_left ? load_by_library(library, conv, weights, forward_left,
                                                           backward_left, error) : AMP_OK;
}

amp_status amp_cpu_conv_load_weights(amp_backend *backend, const amp_conv_weights *all, int count,
                                     int *failed, amp_error *error)
{
    for (*failed = 0; *failed < count; ++*failed)
        AMP_TRY(load_one(amp_cpu_library(backend), all[*failed].conv, all[*failed].masters, error));
    return AMP_OK;
}

/* ---- running ---- */

/* A tensor that a primitive reads or writes as its argument `id`. stand_in: NULL, or fp32 scratch for a
 * slice of the batch, which the primitive then uses instead of the tensor. */
typedef struct side { int id; const void *tensor; amp_shape shape; void *stand_in; } side;

static void *slice_at(const amp_conv *conv, const side *s, int first)
{
    return (char *)s->tensor + first * amp_shape_image(s->shape) * amp_dtype_size(conv->desc.dtype);
}

/* Makes the primitive read `images` images from `first` on. Widens them into the stand-in, if any. */
static dnnl_status_t read_slice(const amp_conv *conv, amp_primitive *primitive, const side *s, int first,
                                int images)
{
    const void *slice = slice_at(conv, s, first);
    if (!s->stand_in) return amp_primitive_set(primitive, s->id, slice);
    amp_cpu_cast_flat(conv->desc.dtype, slice, AMP_FP32, s->stand_in, images * amp_shape_image(s->shape), 0);
    return amp_primitive_set(primitive, s->id, s->stand_in);
}

/* Applies leaky to `images` images of the output, whose dtype is conv->compute. */
static void activate(const amp_conv *conv, void *y, int images)
{
    amp_tensor tensor = { .data = y, .dtype = conv->compute, .layout = AMP_NHWC, .shape = conv->y };
    tensor.shape.n = images;
    amp_cpu_activation_forward(NULL, &tensor, &tensor, AMP_LEAKY, NULL); /* cannot fail: x and y are equal */
}

/* Runs forward or the data gradient in slices of the batch. If accumulate is set, computes each slice of
 * `out` in a stand-in and adds it to the tensor. bias: only for forward. */
static amp_status run_slices(amp_onednn *library, const amp_conv *conv, amp_primitive *primitive,
                             const char *what, const float *bias, side in, side out, int accumulate,
                             amp_error *error)
{
    int widen = conv->compute != conv->desc.dtype, forward = primitive == &conv->forward;
    int images = accumulate ? conv->adding_slice : conv->slice;
    void *scratch[3];
    size_t sizes[3] = { primitive->scratchpad, amp_stand_in_bytes(widen, images, in.shape),
                        amp_stand_in_bytes(widen || accumulate, images, out.shape) };
    AMP_TRY(amp_scratch_take(library, sizes, scratch, 3, error));
    in.stand_in = scratch[1];
    out.stand_in = scratch[2];
    dnnl_status_t status = amp_primitive_set(primitive, DNNL_ARG_WEIGHTS, forward ? conv->forward_weights
                                        : conv->backward_weights_copy);
    if (status == dnnl_success && forward) status = amp_primitive_set(primitive, DNNL_ARG_BIAS, bias);
    for (int first = 0; first < conv->desc.x.n && status == dnnl_success; first += images) {
        void *slice = slice_at(conv, &out, first), *written = out.stand_in ? out.stand_in : slice;
        status = read_slice(conv, primitive, &in, first, images);
        if (status == dnnl_success) status = amp_primitive_set(primitive, out.id, written);
        if (status == dnnl_success) status = amp_primitive_run(library, primitive, scratch[0]);
        if (status == dnnl_success && forward && conv->activates) activate(conv, written, images);
        if (status == dnnl_success && out.stand_in)
            amp_cpu_cast_flat(AMP_FP32, out.stand_in, conv->desc.dtype, slice,
                              images * amp_shape_image(out.shape), accumulate);
    }
    return amp_onednn_conv_outcome(conv, what, status, error);
}

/* Fails unless the pass is built and the weights that it reads are loaded. */
static amp_status check(const amp_conv *conv, const char *what, int built, const void *weights,
                        amp_error *error)
{
    if (built && weights) return AMP_OK;
    return amp_onednn_conv_fail(&conv->desc, AMP_BACKEND_FAILED, what, built ? "its weights were not loaded"
                                : "it was created without wants_dx", error);
}

static amp_status convolve(amp_onednn *library, const amp_winograd *winograd, amp_winograd_task task,
                           amp_error *error)
{
    size_t bytes = amp_winograd_scratch(winograd);
    void *scratch;
    AMP_TRY(amp_scratch_take(library, &bytes, &scratch, 1, error));
    amp_winograd_convolve(winograd, &task, scratch);
    return AMP_OK;
}

amp_status amp_cpu_conv_forward(amp_backend *backend, amp_conv *conv, const void *x, const float *bias,
                                void *y, amp_error *error)
{
    amp_onednn *library = amp_cpu_library(backend);
    amp_primitive *primitive = &conv->forward;
    const amp_winograd *winograd = &conv->winograd[AMP_WINOGRAD_FORWARD];
    AMP_TRY(check(conv, "forward", primitive->handle || winograd->is_used,
                  winograd->is_used ? conv->plain : conv->forward_weights, error));
    if (winograd->is_used)
        return convolve(library, winograd, (amp_winograd_task){ .x = x, .filters = conv->plain, .bias = bias,
            .y = y, .leaky = conv->desc.leaky }, error);
    return run_slices(library, conv, primitive, "forward", bias ? bias : conv->no_bias,
                      (side){ DNNL_ARG_SRC, x, conv->desc.x, NULL },
                      (side){ DNNL_ARG_DST, y, conv->y, NULL }, 0, error);
}

amp_status amp_cpu_conv_backward_data(amp_backend *backend, amp_conv *conv, const void *dy, void *dx,
                                      int accumulate, amp_error *error)
{
    amp_onednn *library = amp_cpu_library(backend);
    amp_primitive *primitive = accumulate ? &conv->backward_data_adding : &conv->backward_data;
    const amp_winograd *winograd = &conv->winograd[AMP_WINOGRAD_DATA];
    AMP_TRY(check(conv, "backward by data", conv->backward_data_pd || winograd->is_used,
                  winograd->is_used ? conv->plain : conv->backward_weights_copy, error));
    if (accumulate && conv->desc.transposed)
        return amp_onednn_conv_fail(&conv->desc, AMP_BACKEND_FAILED, "backward by data",
                                    "a deconvolution does not add to its output", error);
    if (winograd->is_used)
        return convolve(library, winograd, (amp_winograd_task){ .x = dy, .filters = conv->plain, .y = dx,
            .accumulate = accumulate }, error);
    dnnl_status_t status = primitive->handle ? dnnl_success : amp_onednn_conv_build_adding(library, conv);
    if (status != dnnl_success)
        return amp_onednn_conv_outcome(conv, "backward by data, adding", status, error);
    return run_slices(library, conv, primitive, "backward by data", NULL,
                      (side){ DNNL_ARG_DIFF_DST, dy, conv->y, NULL },
                      (side){ DNNL_ARG_DIFF_SRC, dx, conv->desc.x, NULL }, accumulate, error);
}

/* Adds a gradient in the library's layout to dw, which has Darknet's layout. */
static dnnl_status_t add_gradient(amp_onednn *library, amp_conv *conv, const void *gradient, float *dw,
                                  void *scratch)
{
    const amp_conv_desc *d = &conv->desc;
    if (conv->gradient_block) {
        amp_weights_add(gradient, conv->gradient_block, (size_t)d->k, (size_t)d->x.c,
                        (size_t)d->size_h * d->size_w, dw, scratch);
        return dnnl_success;
    }
    dnnl_status_t status = amp_primitive_set(&conv->add_weights, DNNL_ARG_FROM, gradient);
    if (status == dnnl_success) status = amp_primitive_set(&conv->add_weights, DNNL_ARG_TO, dw);
    return status == dnnl_success ? amp_primitive_run(library, &conv->add_weights, scratch) : status;
}

amp_status amp_cpu_conv_backward_weights(amp_backend *backend, amp_conv *conv, const void *x, const void *dy,
                                         float *dw, amp_error *error)
{
    amp_onednn *library = amp_cpu_library(backend);
    amp_primitive *primitive = &conv->backward_weights;
    int widen = conv->compute != conv->desc.dtype, images = conv->slice;
    const amp_winograd *winograd = &conv->winograd[AMP_WINOGRAD_WEIGHTS];
    if (!primitive->handle && !winograd->is_used)
        return amp_onednn_conv_fail(&conv->desc, AMP_BACKEND_FAILED, "backward by weights",
                                    "it was created without training", error);
    if (winograd->is_used) {
        size_t bytes = amp_winograd_scratch(winograd);
        void *room;
        AMP_TRY(amp_scratch_take(library, &bytes, &room, 1, error));
        amp_winograd_gradient(winograd, x, dy, dw, room);
        return AMP_OK;
    }
    void *scratch[5];
    size_t sizes[5] = { primitive->scratchpad, amp_stand_in_bytes(widen, images, conv->desc.x),
                        amp_stand_in_bytes(widen, images, conv->y), conv->gradient_bytes,
                        amp_conv_adding_bytes(conv) };
    AMP_TRY(amp_scratch_take(library, sizes, scratch, 5, error));
    dnnl_status_t status = amp_primitive_set(primitive, DNNL_ARG_DIFF_WEIGHTS, scratch[3]);
    const side x_side = { DNNL_ARG_SRC, x, conv->desc.x, scratch[1] };
    const side dy_side = { DNNL_ARG_DIFF_DST, dy, conv->y, scratch[2] };
    for (int first = 0; first < conv->desc.x.n && status == dnnl_success; first += images) {
        status = read_slice(conv, primitive, &x_side, first, images);
        if (status == dnnl_success) status = read_slice(conv, primitive, &dy_side, first, images);
        if (status == dnnl_success) status = amp_primitive_run(library, primitive, scratch[0]);
        if (status == dnnl_success) status = add_gradient(library, conv, scratch[3], dw, scratch[4]);
    }
    return amp_onednn_conv_outcome(conv, "backward by weights", status, error);
}
