/* The argument checks of operations, shared by all backends. They reject tensors that break backend.h's
 * rules, or whose shapes do not match. Each error is one line. Three things are checked elsewhere:
 * amp_host_why_own (host/darknet/native.c) checks max pooling's windows and the number of yolo's anchors;
 * yolo's masks are checked when the .cfg is read. */
#pragma once

#include <limits.h>

#include "backend.h"

/* Returns `status`. Sets *error to say that the two tensors do not fit together in this operation. */
static inline amp_status amp_refuse_pair(amp_status status, const char *operation, const amp_tensor *a,
                                         const amp_tensor *b, amp_error *error)
{
    amp_shape s = a->shape, t = b->shape;
    return amp_fail(error, status, "%s: %dx%dx%dx%d (n,c,h,w) in %s does not fit %dx%dx%dx%d in %s",
                    operation, s.n, s.c, s.h, s.w, amp_dtype_name(a->dtype), t.n, t.c, t.h, t.w,
                    amp_dtype_name(b->dtype));
}

/* Checks that two tensors are NHWC and have the same dtype, the same number of images and, if same_shape is
 * set, the same shape. */
static inline amp_status amp_check_pair(const char *operation, const amp_tensor *a, const amp_tensor *b,
                                        int same_shape, amp_error *error)
{
    if (a->layout != AMP_NHWC || b->layout != AMP_NHWC)
        return amp_fail(error, AMP_BACKEND_FAILED, "%s: the tensors must be NHWC", operation);
    if (a->dtype == b->dtype && a->shape.n == b->shape.n
        && (!same_shape || amp_shape_equal(a->shape, b->shape))) return AMP_OK;
    return amp_refuse_pair(AMP_BACKEND_FAILED, operation, a, b, error);
}

/* Like amp_check_pair, but b must have the shape `wanted`. */
static inline amp_status amp_check_shape(const char *operation, const amp_tensor *a, const amp_tensor *b,
                                         amp_shape wanted, amp_error *error)
{
    AMP_TRY(amp_check_pair(operation, a, b, 0, error));
    if (amp_shape_equal(b->shape, wanted)) return AMP_OK;
    return amp_refuse_pair(AMP_BACKEND_FAILED, operation, a, b, error);
}

static inline amp_status amp_check_cast(const amp_tensor *src, const amp_tensor *dst, amp_error *error)
{
    if (amp_shape_equal(src->shape, dst->shape)) return AMP_OK;
    return amp_refuse_pair(AMP_BAD_NETWORK, "cast", src, dst, error);
}

/* Describes a convolution in messages: "convolution forward of 64x3x416x416 (n,c,h,w) to 32 filters of 3x3,
 * ...". pass: the name of the pass ("forward"), or "". */
enum { AMP_CONV_TEXT = 240 };
static inline void amp_conv_text(const amp_conv_desc *d, const char *pass, char text[AMP_CONV_TEXT])
{
    snprintf(text, AMP_CONV_TEXT, "convolution%s%s of %dx%dx%dx%d (n,c,h,w) to %d filters of %dx%d, "
             "stride %d (%d along a row), padding %d, dilation %d, groups %d, in %s", *pass ? " " : "", pass,
             d->x.n, d->x.c, d->x.h, d->x.w, d->k, d->size_h, d->size_w, d->stride, amp_conv_stride_x(d),
             d->pad, amp_conv_dilation(d), d->groups, amp_dtype_name(d->dtype));
}

/* Checks the sizes of a convolution. Computes in 64 bits, because sizes come from a .cfg and may be large. */
static inline amp_status amp_check_conv(const amp_conv_desc *d, const char *pass, amp_error *error)
{
    const char *why = NULL;
    const int64_t h = d->x.h + 2 * (int64_t)d->pad, w = d->x.w + 2 * (int64_t)d->pad,
        apart = amp_conv_dilation(d);
    if (d->x.n < 1 || d->x.c < 1 || d->x.h < 1 || d->x.w < 1) why = "the input is empty";
    else if (d->k < 1 || d->size_h < 1 || d->size_w < 1) why = "the filters are empty";
    else if (d->stride < 1 || d->stride_x < 0 || d->pad < 0)
        why = "stride must be at least 1 and padding 0 or more";
    else if (d->dilation < 0) why = "dilation must be at least 1";
    else if (d->groups < 1 || d->x.c % d->groups || d->k % d->groups)
        why = "groups must divide the channels and the filters";
    else if (apart * (d->size_h - 1) >= h || apart * (d->size_w - 1) >= w)
        why = "the window is larger than the padded input";
    else if (h > INT_MAX || w > INT_MAX) why = "the padded input is too large";
    if (!why) return AMP_OK;
    char text[AMP_CONV_TEXT];
    amp_conv_text(d, pass, text);
    return amp_fail(error, AMP_BAD_NETWORK, "%s: %s", text, why);
}

static inline amp_status amp_check_maxpool(const amp_tensor *x, const amp_tensor *y, amp_error *error)
{
    const amp_shape s = y->shape;
    return amp_check_shape("max pooling", x, y, (amp_shape){ s.n, x->shape.c, s.h, s.w }, error);
}

static inline amp_status amp_check_avgpool(const amp_tensor *image, const amp_tensor *average,
                                           amp_error *error)
{
    const amp_shape s = image->shape;
    return amp_check_shape("average pooling", image, average, (amp_shape){ s.n, s.c, 1, 1 }, error);
}

static inline amp_status amp_check_upsample(const amp_tensor *small, const amp_tensor *large, int stride,
                                            amp_error *error)
{
    const amp_shape s = small->shape;
    return amp_check_shape("upsampling", small, large, (amp_shape){ s.n, s.c, s.h * stride, s.w * stride },
                           error);
}

static inline amp_status amp_check_channels(const amp_tensor *src, int src_first, const amp_tensor *dst,
                                            int dst_first, int channels, amp_error *error)
{
    AMP_TRY(amp_check_pair("channel copy", src, dst, 0, error));
    if (src->shape.h != dst->shape.h || src->shape.w != dst->shape.w)
        return amp_refuse_pair(AMP_BACKEND_FAILED, "channel copy", src, dst, error);
    if (channels < 0 || src_first < 0 || dst_first < 0 || src_first > src->shape.c - channels ||
        dst_first > dst->shape.c - channels)
        return amp_fail(error, AMP_BACKEND_FAILED,
                        "channel copy out of range: %d channels; source starts at channel %d of %d, "
                        "destination at channel %d of %d",
                        channels, src_first, src->shape.c, dst_first, dst->shape.c);
    return AMP_OK;
}

/* What one number of s multiplies in `multiply`, y (+)= x·s: one element of x, one channel of an image of x,
 * or all channels of a pixel of x. */
typedef enum amp_factor_of {
    AMP_FACTOR_OF_ELEMENT, AMP_FACTOR_OF_CHANNEL, AMP_FACTOR_OF_PIXEL
} amp_factor_of;

static inline amp_status amp_check_multiply(const amp_tensor *x, const amp_tensor *s, amp_factor_of *out,
                                            amp_error *error)
{
    amp_shape a = x->shape, b = s->shape;
    int one_size = a.h == b.h && a.w == b.w;
    AMP_TRY(amp_check_pair("product", x, s, 0, error));
    *out = !one_size ? AMP_FACTOR_OF_CHANNEL : a.c != b.c ? AMP_FACTOR_OF_PIXEL : AMP_FACTOR_OF_ELEMENT;
    if (one_size ? a.c == b.c || b.c == 1 : a.c == b.c && b.h == 1 && b.w == 1) return AMP_OK;
    return amp_refuse_pair(AMP_BACKEND_FAILED, "product", x, s, error);
}

/* Checks a shortcut's two tensors: x and from, or dy and dfrom. Sets *out to the pixels that correspond. */
static inline amp_status amp_check_shortcut(const amp_tensor *x, const amp_tensor *from,
                                            amp_shortcut_grid *out, amp_error *error)
{
    *out = (amp_shortcut_grid){ 0, 0, 1, 1 };
    AMP_TRY(amp_check_pair("shortcut", x, from, 0, error));
    if (amp_shortcut_grid_of(x->shape, from->shape, out)) return AMP_OK;
    return amp_fail(error, AMP_UNSUPPORTED,
                    "shortcut: %dx%d and %dx%d (h,w); height and width must differ by the same factor",
                    x->shape.h, x->shape.w, from->shape.h, from->shape.w);
}

/* Returns the number of elements from a factor's first element to its last element, including the gaps
 * between its rows; 0 if this number does not fit in an int. rows, columns: the size of the stored array. */
static inline size_t amp_factor_extent(const amp_factor *f, int rows, int columns)
{
    size_t extent = (size_t)(rows - 1) * (size_t)f->ld + (size_t)columns;
    return extent <= INT_MAX ? extent : 0;
}

static inline size_t amp_gemm_a_extent(const amp_gemm_desc *d)
{
    return d->a.transposed ? amp_factor_extent(&d->a, d->k, d->m) : amp_factor_extent(&d->a, d->m, d->k);
}

static inline size_t amp_gemm_b_extent(const amp_gemm_desc *d)
{
    return d->b.transposed ? amp_factor_extent(&d->b, d->n, d->k) : amp_factor_extent(&d->b, d->k, d->n);
}

static inline amp_status amp_check_gemm(const amp_gemm_desc *d, amp_error *error)
{
    const char *why = NULL;
    if (d->m < 1 || d->n < 1 || d->k < 1) why = "nothing to multiply";
    else if (d->a.ld < (d->a.transposed ? d->m : d->k) || d->b.ld < (d->b.transposed ? d->k : d->n)
             || d->ldc < d->n)
        why = "rows overlap";
    else if (!amp_gemm_a_extent(d) || !amp_gemm_b_extent(d)) why = "a factor has more than 2^31-1 elements";
    if (!why) return AMP_OK;
    return amp_fail(error, AMP_BAD_NETWORK, "matrix product of %dx%d by %dx%d with leading dimensions "
                    "%d, %d and %d: %s", d->m, d->k, d->k, d->n, d->a.ld, d->b.ld, d->ldc, why);
}
