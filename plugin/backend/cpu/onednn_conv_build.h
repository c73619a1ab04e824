/* A convolution with oneDNN. onednn_conv_build.c builds it, and onednn_conv.c runs it. onednn_conv_facts.c
 * describes it for reports. */
#pragma once

#include "onednn_primitive.h"
#include "weights_layout.h"
#include "winograd.h"

struct amp_conv {
    amp_conv_desc desc;
    amp_shape y;
    int inner_product;
    int activates;                   /* 1: leaky is applied after the forward kernel, because the best kernel
                                        cannot apply it */
    amp_dtype compute;               /* dtype of the primitives: desc.dtype, or fp32 if the library does not
                                        compute this convolution in desc.dtype, or is slow in it */
    int slice, adding_slice;         /* slice: images per run of a primitive; adding_slice: images per run
                                        of backward_data_adding. Both are divisors of the batch size */
    dnnl_primitive_desc_t forward_pd, backward_data_pd; /* kept, because other primitives are built with them
                                                           (as hints), and layouts are looked up in them */
    amp_primitive forward, backward_data, backward_weights; /* for the passes that desc needs, except those
                                                               that Winograd computes */
    amp_winograd winograd[AMP_WINOGRAD_PASSES]; /* is_used is 0 if the library computes the pass */
    amp_primitive backward_data_adding; /* backward by data with an fp32 result; built by the first call that
                                           accumulates */
    amp_primitive load_forward, load_backward; /* reorders: OIHW → copies */
    amp_primitive add_weights;       /* reorder that adds: gradient → OIHW sum; not built if weights_add.c
                                        does this */
    amp_weights_layout forward_layout, backward_layout; /* layouts of the copies, if weights_copy.c knows
                                                           them */
    size_t gradient_block;           /* amp_weights_squares of the gradient */
    size_t forward_bytes, backward_bytes, plain_bytes, gradient_bytes; /* 0: this copy is not made */
    void *forward_weights, *backward_weights_copy; /* the copies; NULL: not loaded; both are the same block if
                                                      the layouts are equal */
    void *plain_copy;                /* a copy of the masters, if these may move or change */
    const float *plain;              /* the masters, or plain_copy, for winograd; NULL: not loaded */
    float *no_bias;                  /* k zeros, used if a call has no bias: so one forward primitive is
                                        enough */
};

/* fail: returns the given status and fills in an error that names the convolution. outcome: returns AMP_OK if
 * the library's status is success; else calls fail. */
amp_status amp_onednn_conv_fail(const amp_conv_desc *, amp_status, const char *what, const char *why,
                                amp_error *);
amp_status amp_onednn_conv_outcome(const amp_conv *, const char *what, dnnl_status_t, amp_error *);

/* Whether the library has real kernels in this dtype for all passes of a plain convolution, not only its slow
 * reference loops. */
int amp_onednn_convolves(amp_onednn *, amp_dtype);

/* Builds backward_data_adding, the primitive for "dx += ...", which most convolutions never need. */
dnnl_status_t amp_onednn_conv_build_adding(amp_onednn *, amp_conv *);

/* ---- where the library is wrong or slow: onednn_faults.c ---- */

/* Sets problem->avoid to the library's implementations that are wrong or slow for this pass of the
 * convolution. The library then uses the best of its others. */
void amp_onednn_avoid_faults(const amp_conv *, dnnl_prop_kind_t pass, amp_problem *problem);

/* Whether no implementation trains this convolution correctly in a half. It then computes in fp32. */
int amp_onednn_half_is_wrong(const amp_conv_desc *);

/* Bytes by which forward's scratchpad must be larger than the library says, because forward reads past its
 * end (without effect on results). */
size_t amp_onednn_reads_behind_scratchpad(const amp_conv *);

/* ---- sizes ---- */

/* Scratch bytes for adding one slice's gradient of the weights to dw. */
static inline size_t amp_conv_adding_bytes(const amp_conv *conv)
{
    size_t places = (size_t)conv->desc.size_h * conv->desc.size_w;
    return conv->gradient_block ? amp_weights_add_scratch(conv->gradient_block, places)
        : conv->add_weights.scratchpad;
}

/* Bytes of the fp32 scratch for `images` images of a tensor; 0 if `needed` is 0. */
static inline size_t amp_stand_in_bytes(int needed, int images, amp_shape shape)
{
    return needed ? images * amp_shape_image(shape) * sizeof(float) : 0;
}
