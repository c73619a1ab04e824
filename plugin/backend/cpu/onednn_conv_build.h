/* A convolution with oneDNN, shared by the file that builds it (onednn_conv_build.c) and the one that runs it
 * (onednn_conv.c). */
#pragma once

#include "onednn_pass.h"
#include "weights_layout.h"
#include "winograd.h"

struct amp_conv {
    amp_conv_desc desc;
    amp_shape y;
    int inner_product;
    int activates;                   /* leaky is applied in a separate pass: the best kernel cannot */
    amp_dtype compute;               /* dtype of the primitives: desc.dtype, or fp32 if desc.dtype is
                                        only a storage format */
    int slice, adding_slice;         /* images per run; both are divisors of the batch */
    dnnl_primitive_desc_t forward_pd, backward_data_pd; /* hints and layouts for passes that are built
                                                           later */
    amp_pass forward, backward_data, backward_weights; /* the passes that desc needs, except those in
                                                          winograd */
    amp_winograd winograd[AMP_WINOGRAD_PASSES]; /* rows is NULL if the library computes the pass */
    amp_pass backward_data_adding;   /* fp32 result; built by the first call that accumulates */
    amp_pass load_forward, load_backward; /* reorders: OIHW → copies */
    amp_pass add_weights;            /* reorder: gradient → OIHW sum; not built if weights_add.c adds it */
    amp_weights_layout forward_layout, backward_layout; /* of the copies, if weights_copy.c supports them */
    size_t gradient_block;           /* amp_weights_squares of the gradient */
    size_t forward_bytes, backward_bytes, plain_bytes, gradient_bytes; /* 0: there is no such copy */
    void *forward_weights, *backward_weights_copy; /* NULL: not loaded; the same block if both layouts are
                                                      equal */
    void *plain_copy;                /* a copy of the masters, if these may move or change */
    const float *plain;              /* the masters, or plain_copy, for winograd; NULL: not loaded */
    float *no_bias;                  /* k zeros: one forward primitive serves both with and without bias */
};

/* fail: returns this status, with an error that names the convolution. outcome: returns AMP_OK if the
 * library's status is success, else fails in the same way. */
amp_status amp_onednn_conv_fail(const amp_conv_desc *, amp_status, const char *what, const char *why,
                                amp_error *);
amp_status amp_onednn_conv_outcome(const amp_conv *, const char *what, dnnl_status_t, amp_error *);

/* Whether the library has kernels in this dtype for all passes of a plain convolution, and not only its slow
 * reference loops. */
int amp_onednn_convolves(amp_onednn *, amp_dtype);

/* Builds the pass for "dx += ...", which most convolutions never need. */
dnnl_status_t amp_onednn_conv_build_adding(amp_onednn *, amp_conv *);

/* Scratch bytes for adding the gradient of the weights to its sum. */
static inline size_t amp_conv_adding_bytes(const amp_conv *conv)
{
    size_t places = (size_t)conv->desc.size_h * conv->desc.size_w;
    return conv->gradient_block ? amp_weights_add_scratch(conv->gradient_block, places)
        : conv->add_weights.scratchpad;
}

/* Bytes of the fp32 scratch for `images` images of a tensor; 0 if none is needed. */
static inline size_t amp_stand_in_bytes(int needed, int images, amp_shape shape)
{
    return needed ? images * amp_shape_image(shape) * sizeof(float) : 0;
}
