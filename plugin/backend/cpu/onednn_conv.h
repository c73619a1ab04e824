/* A convolution with oneDNN: onednn_conv_build.c builds it, and onednn_conv.c runs it. */
#pragma once

#include "onednn_primitive.h"
#include "weights_layout.h"
#include "winograd.h"

struct amp_conv {
    amp_conv_desc desc;
    amp_shape y;
    int inner_product;
    int activates;                   /* 1: leaky runs after the forward kernel, which cannot apply it */
    amp_dtype compute;               /* the primitives' dtype: desc.dtype, or fp32 if the library is wrong or
                                        slow in desc.dtype */
    int slice, adding_slice;         /* images per run of a primitive (adding_slice: for
                                        backward_data_adding); both divide the batch size */
    dnnl_primitive_desc_t forward_pd, backward_data_pd; /* hints for backward; have the weights' layouts */
    amp_primitive forward, backward_data, backward_weights; /* empty if not needed, or if Winograd is used */
    amp_winograd winograd[AMP_WINOGRAD_PASSES];
    amp_primitive backward_data_adding; /* variant for "dx += ...": writes fp32; built at the first use */
    amp_primitive load_forward, load_backward; /* reorders that make the copies from OIHW weights */
    amp_primitive add_weights;       /* a reorder that adds the gradient to the sum, which is in OIHW; empty
                                        if weights_add.c adds it */
    amp_weights_layout forward_layout, backward_layout; /* the copies' layouts, if weights_copy.c has them */
    size_t gradient_block;           /* result of amp_weights_squares for the gradient */
    size_t forward_bytes, backward_bytes, plain_bytes, gradient_bytes; /* 0: there is no such array */
    void *forward_weights, *backward_weights_copy; /* NULL: not loaded; equal if both layouts are equal */
    void *plain_copy;                /* a copy of the masters, if these may move or change */
    const float *plain;              /* the masters, or plain_copy, for winograd; NULL: not loaded */
    float *no_bias;                  /* k zeros, for calls without bias, so that one primitive is enough */
};

/* fail: returns the given status and fills in an error that names the convolution. outcome: returns AMP_OK if
 * the library's status is success; else calls fail. */
amp_status amp_onednn_conv_fail(const amp_conv_desc *, amp_status, const char *what, const char *why,
                                amp_error *);
amp_status amp_onednn_conv_outcome(const amp_conv *, const char *what, dnnl_status_t, amp_error *);

/* Whether the library has kernels, not only slow loops, in this dtype for all passes of a convolution. */
int amp_onednn_convolves(amp_onednn *, amp_dtype);

/* Builds backward_data_adding, which most convolutions never need. */
dnnl_status_t amp_onednn_conv_build_adding(amp_onednn *, amp_conv *);

/* ---- where the library is wrong or slow: onednn_faults.c ---- */

/* Sets problem->avoid to the implementations that are wrong or slow for this pass of the convolution. */
void amp_onednn_avoid_faults(const amp_conv *, dnnl_prop_kind_t pass, amp_problem *problem);

/* Whether no implementation trains this convolution correctly in a half. */
int amp_onednn_half_is_wrong(const amp_conv_desc *);

/* Bytes that forward reads past the end of its scratchpad (without effect on results). */
size_t amp_onednn_reads_behind_scratchpad(const amp_conv *);

/* ---- sizes ---- */

/* Scratch bytes for adding one slice's weight gradient to dw. */
static inline size_t amp_conv_adding_bytes(const amp_conv *conv)
{
    size_t places = (size_t)conv->desc.size_h * conv->desc.size_w;
    return conv->gradient_block ? amp_weights_add_scratch(conv->gradient_block, places)
        : conv->add_weights.scratchpad;
}

/* Bytes of the fp32 scratch for `images` images of a tensor. */
static inline size_t amp_stand_in_bytes(int needed, int images, amp_shape shape)
{
    return needed ? images * amp_shape_image(shape) * sizeof(float) : 0;
}
