/* Builds convolutions with oneDNN: chooses primitives, layouts and slices of the batch; see onednn_conv.c. */
#include "onednn_conv.h"

#include <string.h>

#include "../check.h"
#include "kernels.h"

/* ---- description ---- */

static dnnl_status_t weights_md(const amp_conv_desc *d, dnnl_data_type_t type, int any_layout, amp_md *out)
{
    int grouped = d->groups > 1;
    dnnl_dims_t plain = { d->k, d->x.c, d->size_h, d->size_w };
    dnnl_dims_t with_groups = { d->groups, d->k / d->groups, d->x.c / d->groups, d->size_h, d->size_w };
    return amp_md_create(out, grouped ? 5 : 4, grouped ? with_groups : plain, type,
                         any_layout ? dnnl_format_tag_any : grouped ? dnnl_abcde : dnnl_abcd);
}

/* The padding on the right or at the bottom with which exactly `out` windows fit. It is negative if the last
 * rows or columns of the input are in no window. */
static dnnl_dim_t right_padding(int in, int out, int span, int stride, int pad)
{
    return (dnnl_dim_t)(out - 1) * stride + span - in - pad;
}

/* Gets the library's best implementation of a pass. adding = 1: the data gradient's variant for
 * "dx += ...", which writes fp32 and reads the same copy of the weights as conv->backward_data_pd. The weight
 * gradient is always fp32. */
static dnnl_status_t describe_pass(amp_onednn *library, const amp_conv *conv, dnnl_prop_kind_t pass,
                                   int adding, const_dnnl_primitive_attr_t attributes,
                                   dnnl_primitive_desc_t *out)
{
    const amp_conv_desc *d = &conv->desc;
    int data = pass == dnnl_backward_data, weights = pass == dnnl_backward_weights;
    int images = adding ? conv->adding_slice : conv->slice;
    dnnl_data_type_t type = amp_onednn_type(conv->compute);
    dnnl_dims_t x = { images, d->x.c, d->x.h, d->x.w }, y = { images, conv->y.c, conv->y.h, conv->y.w },
        k = { d->k };
    int stride_x = amp_conv_stride_x(d), apart = amp_conv_dilation(d);
    amp_md src = NULL, filters = NULL, bias = NULL, dst = NULL;
    dnnl_status_t status = amp_md_create(&src, 4, x, adding ? dnnl_f32 : type, dnnl_nhwc);
    if (status == dnnl_success) status = weights_md(d, weights ? dnnl_f32 : type, 1, &filters);
    if (status == dnnl_success) status = amp_md_create(&bias, 1, k, dnnl_f32, dnnl_a);
    if (status == dnnl_success)
        status = conv->inner_product ? amp_md_create(&dst, 2, y, type, dnnl_nc)
            : amp_md_create(&dst, 4, y, type, dnnl_nhwc);
    amp_problem problem = { conv->inner_product, src, filters, weights ? NULL : bias, dst,
                            { d->stride, stride_x }, { apart - 1, apart - 1 }, { d->pad, d->pad },
        { right_padding(d->x.h, conv->y.h, amp_conv_span(d, d->size_h), d->stride, d->pad),
          right_padding(d->x.w, conv->y.w, amp_conv_span(d, d->size_w), stride_x, d->pad) },
                            { NULL, NULL } }; /* no bias in the weight pass: bias_gradient computes db */
    if (adding) problem.weights = amp_argument_md(conv->backward_data_pd, DNNL_ARG_WEIGHTS);
    amp_onednn_avoid_faults(conv, pass, &problem);
    if (status == dnnl_success)
        status = amp_problem_pd(out, library->engine, pass, &problem,
                                data || weights ? conv->forward_pd : NULL, attributes);
    amp_md_destroy(src);
    amp_md_destroy(filters);
    amp_md_destroy(bias);
    amp_md_destroy(dst);
    return status;
}

/* ---- building ---- */

/* Lets the forward kernel apply leaky, unless the library would then choose another kernel. With AVX, that
 * kernel takes three times as long; applying leaky separately costs far less. */
static void end_with_leaky(amp_onednn *library, amp_conv *conv)
{
    dnnl_primitive_desc_t pd = NULL;
    const char *plain = amp_pd_name(conv->forward_pd);
    dnnl_status_t status = describe_pass(library, conv, dnnl_forward_inference, 0, library->leaky, &pd);
    conv->activates = status != dnnl_success || !*plain || strcmp(plain, amp_pd_name(pd));
    if (!conv->activates) {
        dnnl_primitive_desc_t kept = pd;
        pd = conv->forward_pd;
        conv->forward_pd = kept;
    }
    if (pd) dnnl_primitive_desc_destroy(pd);
}

/* Always describes the forward pass, because the library needs it as a hint for backward passes. */
static dnnl_status_t build_forward(amp_onednn *library, amp_conv *conv, amp_const_md plain)
{
    static const int ids[] = { DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST };
    dnnl_prop_kind_t pass = conv->desc.training ? dnnl_forward_training : dnnl_forward_inference;
    dnnl_status_t status = describe_pass(library, conv, pass, 0, library->attributes, &conv->forward_pd);
    if (status == dnnl_success && conv->desc.leaky) end_with_leaky(library, conv);
    if (status != dnnl_success || !amp_conv_wants_forward(&conv->desc)) return status;
    if (conv->winograd[AMP_WINOGRAD_FORWARD].is_used) return status;
    status = amp_primitive_build(library, &conv->forward, conv->forward_pd, ids, 4);
    if (status != dnnl_success) return status;
    conv->forward.scratchpad += amp_onednn_reads_behind_scratchpad(conv);
    amp_const_md weights = amp_argument_md(conv->forward_pd, DNNL_ARG_WEIGHTS);
    conv->forward_bytes = dnnl_memory_desc_get_size(weights);
    conv->forward_layout = amp_weights_layout_of(weights);
    return amp_primitive_build_reorder(library, &conv->load_forward, plain, weights, 0);
}

static const int backward_data_ids[] = { DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC };

static dnnl_status_t build_backward_data(amp_onednn *library, amp_conv *conv, amp_const_md plain)
{
    dnnl_status_t status = describe_pass(library, conv, dnnl_backward_data, 0, library->attributes,
                                         &conv->backward_data_pd);
    if (status == dnnl_success)
        status = amp_primitive_build(library, &conv->backward_data, conv->backward_data_pd,
                                     backward_data_ids, 3);
    if (status != dnnl_success) return status;
    amp_const_md weights = amp_argument_md(conv->backward_data_pd, DNNL_ARG_WEIGHTS);
    if (conv->forward.handle
        && dnnl_memory_desc_equal(weights, amp_argument_md(conv->forward_pd, DNNL_ARG_WEIGHTS)))
        return dnnl_success;
    conv->backward_bytes = dnnl_memory_desc_get_size(weights);
    conv->backward_layout = amp_weights_layout_of(weights);
    return amp_primitive_build_reorder(library, &conv->load_backward, plain, weights, 0);
}

dnnl_status_t amp_onednn_conv_build_adding(amp_onednn *library, amp_conv *conv)
{
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t status = describe_pass(library, conv, dnnl_backward_data, 1, library->attributes, &pd);
    if (status != dnnl_success) return status;
    status = amp_primitive_build(library, &conv->backward_data_adding, pd, backward_data_ids, 3);
    dnnl_primitive_desc_destroy(pd);
    return status;
}

static dnnl_status_t build_backward_weights(amp_onednn *library, amp_conv *conv, amp_const_md masters,
                                            int *reference)
{
    static const int ids[] = { DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS };
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t status = describe_pass(library, conv, dnnl_backward_weights, 0, library->attributes, &pd);
    if (status != dnnl_success) return status;
    *reference |= amp_onednn_is_reference(pd);
    amp_const_md gradient = amp_argument_md(pd, DNNL_ARG_DIFF_WEIGHTS);
    conv->gradient_bytes = dnnl_memory_desc_get_size(gradient);
    conv->gradient_block = amp_weights_squares(gradient);
    status = amp_primitive_build(library, &conv->backward_weights, pd, ids, 3);
    if (status == dnnl_success && !conv->gradient_block)
        status = amp_primitive_build_reorder(library, &conv->add_weights, gradient, masters, 1);
    dnnl_primitive_desc_destroy(pd);
    return status;
}

/* Undoes `build`. */
static void destroy_primitives(amp_conv *conv)
{
    amp_primitive *primitives[] = { &conv->forward, &conv->backward_data, &conv->backward_weights,
                                    &conv->backward_data_adding, &conv->load_forward, &conv->load_backward,
                                    &conv->add_weights };
    for (size_t i = 0; i < sizeof primitives / sizeof *primitives; i++) amp_primitive_destroy(primitives[i]);
    if (conv->forward_pd) dnnl_primitive_desc_destroy(conv->forward_pd);
    if (conv->backward_data_pd) dnnl_primitive_desc_destroy(conv->backward_data_pd);
    conv->forward_pd = conv->backward_data_pd = NULL;
    conv->forward_bytes = conv->backward_bytes = conv->plain_bytes = 0;
    conv->gradient_bytes = conv->gradient_block = 0;
    conv->forward_layout = conv->backward_layout = (amp_weights_layout){ 0 };
    memset(conv->winograd, 0, sizeof conv->winograd);
}

/* Chooses which passes use Winograd. Returns 1 if Winograd computes all passes that desc needs. */
static int choose_winograd(amp_conv *conv)
{
    const amp_conv_desc *d = &conv->desc;
    int all = 1;
    for (int pass = 0; pass < AMP_WINOGRAD_PASSES; pass++) {
        conv->winograd[pass] = amp_winograd_make(d, (amp_winograd_pass)pass, conv->compute);
        all &= conv->winograd[pass].is_used || !amp_winograd_wanted(d, (amp_winograd_pass)pass);
    }
    if (!d->masters_stay
        && (conv->winograd[AMP_WINOGRAD_FORWARD].is_used || conv->winograd[AMP_WINOGRAD_DATA].is_used))
        conv->plain_bytes = amp_conv_weight_count(d) * sizeof(float);
    return all;
}

enum { SLICE_BYTES = 2 << 20 }; /* the fp32 stand-ins of x and y should fit in a core's own cache */

/* The number of images in a slice: the largest divisor of n with slice·image ≤ SLICE_BYTES; at least 1.
 * image: bytes per image. */
static int slice_of(int n, size_t image)
{
    for (int slice = n; slice > 1; --slice)
        if (n % slice == 0 && slice * image <= SLICE_BYTES) return slice;
    return 1;
}

/* Builds the primitives of all passes, in the dtype conv->compute. Sets *reference if one of these primitives
 * is a slow reference loop. */
static amp_status build(amp_onednn *library, amp_conv *conv, int *reference, amp_error *error)
{
    const amp_conv_desc *d = &conv->desc;
    dnnl_data_type_t type = amp_onednn_type(conv->compute);
    size_t x_bytes = amp_shape_image(d->x) * sizeof(float),
        y_bytes = amp_shape_image(conv->y) * sizeof(float);
    conv->slice = conv->compute == d->dtype ? d->x.n : slice_of(d->x.n, x_bytes + y_bytes);
    conv->adding_slice = slice_of(d->x.n, x_bytes);
    if (conv->adding_slice > conv->slice) conv->adding_slice = conv->slice;
    if (choose_winograd(conv)) return AMP_OK;
    amp_md masters = NULL, plain = NULL; /* OIHW weights: masters in fp32, plain in conv->compute */
    const char *what = "describing the weights";
    dnnl_status_t status = weights_md(d, dnnl_f32, 0, &masters);
    if (status == dnnl_success) status = weights_md(d, type, 0, &plain);
    if (status == dnnl_success) what = "forward", status = build_forward(library, conv, plain);
    if (status == dnnl_success && conv->forward.handle)
        *reference |= amp_onednn_is_reference(conv->forward_pd);
    if (status == dnnl_success && amp_conv_wants_backward_data(d)
        && !conv->winograd[AMP_WINOGRAD_DATA].is_used) {
        what = "backward by data", status = build_backward_data(library, conv, plain);
        if (status == dnnl_success) *reference |= amp_onednn_is_reference(conv->backward_data_pd);
    }
    if (status == dnnl_success && d->training && !conv->winograd[AMP_WINOGRAD_WEIGHTS].is_used)
        what = "backward by weights", status = build_backward_weights(library, conv, masters, reference);
    amp_md_destroy(plain);
    amp_md_destroy(masters);
    return amp_onednn_conv_outcome(conv, what, status, error);
}

int amp_onednn_convolves(amp_onednn *library, amp_dtype dtype)
{
    amp_conv conv = { .compute = dtype };
    conv.desc = (amp_conv_desc){ .x = { 1, 32, 16, 16 }, .k = 32, .size_h = 3, .size_w = 3, .stride = 1,
        .pad = 1, .groups = 1, .dtype = dtype, .training = 1, .wants_dx = 1, .direct = 1 };
    conv.y = amp_conv_output(&conv.desc);
    amp_error why;
    int reference = 0;
    amp_status status = build(library, &conv, &reference, &why);
    destroy_primitives(&conv);
    return status == AMP_OK && !reference;
}

amp_status amp_cpu_conv_create(amp_backend *backend, const amp_conv_desc *desc, amp_conv **out,
                               amp_error *error)
{
    amp_onednn *library = amp_cpu_library(backend);
    AMP_TRY(amp_check_conv(desc, "", error));
    amp_conv *conv = amp_allocated(calloc(1, sizeof *conv));
    conv->no_bias = amp_allocated(calloc((size_t)desc->k, sizeof *conv->no_bias));
    conv->desc = *desc;
    conv->y = amp_conv_output(desc);
    conv->inner_product = desc->size_h == desc->x.h && desc->size_w == desc->x.w && !desc->pad
        && desc->groups == 1;
    conv->compute = amp_onednn_only_stores(library, desc->dtype) || amp_onednn_half_is_wrong(desc) ? AMP_FP32
        : desc->dtype;
    int reference = 0;
    amp_status status = build(library, conv, &reference, error);
    if (conv->compute != AMP_FP32 && (status != AMP_OK || reference)) {
        /* For this shape, the library has no good kernel in fp16 or bf16 (an odd group size). Casting and
         * computing in fp32 is far faster than the library's reference loops. */
        destroy_primitives(conv);
        conv->compute = AMP_FP32;
        status = build(library, conv, &reference, error);
    }
    if (status != AMP_OK) {
        amp_cpu_conv_destroy(backend, conv);
        return status;
    }
    *out = conv;
    return AMP_OK;
}

void amp_cpu_conv_drop_weights(amp_backend *backend, amp_conv *conv)
{
    if (conv->backward_weights_copy != conv->forward_weights) free(conv->backward_weights_copy);
    free(conv->forward_weights);
    free(conv->plain_copy);
    conv->forward_weights = conv->backward_weights_copy = conv->plain_copy = NULL;
    conv->plain = NULL;
}

void amp_cpu_conv_destroy(amp_backend *backend, amp_conv *conv)
{
    if (!conv) return;
    amp_cpu_conv_drop_weights(backend, conv);
    destroy_primitives(conv);
    free(conv->no_bias);
    free(conv);
}

/* ---- messages ---- */

amp_status amp_onednn_conv_fail(const amp_conv_desc *d, amp_status status, const char *what, const char *why,
                                amp_error *error)
{
    char text[AMP_CONV_TEXT];
    amp_conv_text(d, "", text);
    return amp_fail(error, status, "%s: %s: %s", text, what, why);
}

amp_status amp_onednn_conv_outcome(const amp_conv *conv, const char *what, dnnl_status_t status,
                                   amp_error *error)
{
    if (status == dnnl_success) return AMP_OK;
    return amp_onednn_conv_fail(&conv->desc,
                                status == dnnl_out_of_memory ? AMP_NO_MEMORY : AMP_BACKEND_FAILED, what,
                                amp_dnnl_text(status), error);
}
