/* A convolution over oneDNN, between the file that builds it (onednn_conv_build.c) and the one that runs it
 * (onednn_conv.c). */
#pragma once

#include "onednn_pass.h"
#include "weights_layout.h"
#include "winograd.h"

struct amp_conv {
    amp_conv_desc desc;
    amp_shape y;
    int inner_product;
    int activates;                   /* desc.leaky is a pass of its own: the library has no such kernel */
    amp_dtype compute;               /* what the primitives run in: desc.dtype, or fp32 where that is storage
                                        only */
    int slice, adding_slice;         /* images per run; divisors of the batch */
    dnnl_primitive_desc_t forward_pd, backward_data_pd; /* hints and layouts for what is built later */
    amp_pass forward, backward_data, backward_weights; /* those that desc wants, but for winograd's */
    amp_winograd winograd[AMP_WINOGRAD_PASSES]; /* rows is NULL where the library computes the pass */
    amp_pass backward_data_adding;   /* fp32 result; built by the first call that accumulates */
    amp_pass load_forward, load_backward; /* reorders: OIHW → copies */
    amp_pass add_weights;            /* reorder: gradient → OIHW sum; not built where weights_add.c does it */
    amp_weights_layout forward_layout, backward_layout; /* of the copies, where weights_copy.c knows them */
    size_t gradient_block;           /* amp_weights_squares of the gradient */
    size_t forward_bytes, backward_bytes, plain_bytes, gradient_bytes; /* 0: there is no such copy */
    void *forward_weights, *backward_weights_copy; /* NULL: not loaded; one block where both layouts are
                                                      equal */
    void *plain_copy;                /* of the masters as they are, if these do not stay */
    const float *plain;              /* the masters, or plain_copy, for winograd; NULL: not loaded */
    float *no_bias;                  /* k zeros: one forward primitive serves with and without bias */
};

/* Errors that name the convolution; outcome is AMP_OK if the library's status is success. */
amp_status amp_onednn_conv_fail(const amp_conv_desc *, amp_status, const char *what, const char *why,
                                amp_error *);
amp_status amp_onednn_conv_outcome(const amp_conv *, const char *what, dnnl_status_t, amp_error *);

/* Whether the library has kernels in this dtype, not its slow loops, for all passes of a plain
 * convolution. */
int amp_onednn_convolves(amp_onednn *, amp_dtype);

/* The pass for "dx += ...", which most convolutions never make. */
dnnl_status_t amp_onednn_conv_build_adding(amp_onednn *, amp_conv *);

/* Bytes of scratch for adding the gradient of the weights to its sum. */
static inline size_t amp_conv_adding_bytes(const amp_conv *conv)
{
    size_t places = (size_t)conv->desc.size_h * conv->desc.size_w;
    return conv->gradient_block ? amp_weights_add_scratch(conv->gradient_block, places)
        : conv->add_weights.scratchpad;
}

/* Bytes of a tensor's fp32 stand-in in scratch, where one is needed. */
static inline size_t amp_stand_in_bytes(int needed, int images, amp_shape shape)
{
    return needed ? images * amp_shape_image(shape) * sizeof(float) : 0;
}
