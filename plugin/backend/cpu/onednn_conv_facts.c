/* Describes how a convolution runs: its kernel, dtype and bytes. This is used by reports and by the check
 * that a training fits into memory; no result depends on it. */
#include "onednn_conv.h"

#include "kernels.h"

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* The most scratch bytes that any of the library's primitives needs, including fp32 stand-ins of x and y. */
static size_t direct_workspace(const amp_conv *conv)
{
    const amp_conv_desc *d = &conv->desc;
    int widen = conv->compute != d->dtype;
    if (!conv->forward.handle && !conv->backward_data.handle && !conv->backward_weights.handle)
        return 0;
    return amp_stand_in_bytes(widen, conv->slice, d->x) + amp_stand_in_bytes(widen, conv->slice, conv->y)
        + larger(larger(conv->forward.scratchpad, conv->backward_data.scratchpad),
                 conv->backward_weights.scratchpad + conv->gradient_bytes + amp_conv_adding_bytes(conv));
}

/* Bytes of a pass's copy of the weights if the convolution's dtype were fp32; 0 if the pass would then use
 * Winograd (in fp32, more passes do). bytes: the copy's size in its current dtype. */
static size_t fp32_copy(const amp_conv *conv, amp_winograd_pass pass, size_t bytes)
{
    if (amp_winograd_make(&conv->desc, pass, AMP_FP32).is_used) return 0;
    return bytes / amp_dtype_size(conv->compute) * sizeof(float);
}

/* Writes the names of the passes that Winograd computes. */
static void name_passes(const amp_conv *conv, char *text, size_t size)
{
    static const char *const names[] = { "forward", "data", "weights" };
    int length = 0;
    text[0] = '\0';
    for (int pass = 0; pass < AMP_WINOGRAD_PASSES; pass++)
        if (conv->winograd[pass].is_used)
            length += snprintf(text + length, size - (size_t)length, "%s%s", length ? "+" : "", names[pass]);
    if (length && !conv->forward_pd && conv->desc.training) snprintf(text, size, "all passes");
}

void amp_cpu_conv_facts(const amp_backend *backend, const amp_conv *conv, amp_conv_facts *out)
{
    const amp_conv_desc *d = &conv->desc;
    int grouped = d->groups > 1, winograd = conv->winograd[AMP_WINOGRAD_FORWARD].is_used;
    *out = (amp_conv_facts){ .computes = winograd ? AMP_FP32 : conv->compute,
        .padded_in = d->x.c / d->groups, .padded_out = d->k / d->groups,
        .weight_bytes = conv->forward_bytes + conv->backward_bytes + conv->plain_bytes,
        .fp32_weight_bytes = fp32_copy(conv, AMP_WINOGRAD_FORWARD, conv->forward_bytes)
            + fp32_copy(conv, AMP_WINOGRAD_DATA, conv->backward_bytes) + conv->plain_bytes,
        .workspace_bytes = direct_workspace(conv) };
    for (int pass = 0; pass < AMP_WINOGRAD_PASSES; pass++)
        out->workspace_bytes = larger(out->workspace_bytes, amp_winograd_scratch(&conv->winograd[pass]));
    name_passes(conv, out->winograd, sizeof out->winograd);
    if (winograd) {
        snprintf(out->kernel, sizeof out->kernel, "winograd");
        return;
    }
    const_dnnl_primitive_desc_t runs_forward = d->transposed ? conv->backward_data_pd : conv->forward_pd;
    const dnnl_dim_t *padded = amp_md_padded(amp_argument_md(runs_forward, DNNL_ARG_WEIGHTS));
    if (padded) {
        out->padded_out = (int)padded[grouped];
        out->padded_in = (int)padded[grouped + 1];
    }
    snprintf(out->kernel, sizeof out->kernel, "%s", amp_pd_name(runs_forward));
}
