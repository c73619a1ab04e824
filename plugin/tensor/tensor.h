/* A tensor: the address of its elements, their dtype and layout, and its logical shape N,H,W,C.
 *
 * A tensor never owns its memory; the code that allocated it does. Elements are always densely packed. */
#pragma once

#include <stddef.h>
#include <string.h>

typedef enum amp_dtype { AMP_FP32, AMP_FP16, AMP_BF16 } amp_dtype;
typedef enum amp_layout { AMP_NHWC, AMP_NCHW } amp_layout;

typedef struct amp_shape { int n, c, h, w; } amp_shape;

typedef struct amp_tensor {
    void *data;
    amp_dtype dtype;
    amp_layout layout;
    amp_shape shape;
} amp_tensor;

static inline size_t amp_dtype_size(amp_dtype dtype) { return dtype == AMP_FP32 ? 4 : 2; }

static inline const char *amp_dtype_name(amp_dtype dtype)
{
    return dtype == AMP_FP32 ? "fp32" : dtype == AMP_FP16 ? "fp16" : "bf16";
}

/* The dtype with this name, or -1. */
static inline int amp_dtype_find(const char *name)
{
    for (int dtype = AMP_FP32; dtype <= AMP_BF16; dtype++)
        if (!strcmp(name, amp_dtype_name((amp_dtype)dtype))) return dtype;
    return -1;
}

/* The number of elements of one image, and of the whole batch. */
static inline size_t amp_shape_image(amp_shape s) { return (size_t)s.c * s.h * s.w; }
static inline size_t amp_shape_count(amp_shape s) { return amp_shape_image(s) * s.n; }
static inline int amp_shape_equal(amp_shape a, amp_shape b) { return !memcmp(&a, &b, sizeof a); }
static inline size_t amp_tensor_bytes(const amp_tensor *t)
{
    return amp_shape_count(t->shape) * amp_dtype_size(t->dtype);
}
