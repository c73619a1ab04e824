/* Where oneDNN is wrong or slow for a convolution, and what to do instead.
 *
 * test_conv_fuzz.c and its predecessor found these errors with tensors between guard pages, in oneDNN 2.6.3
 * and (without AMX) 3.7.2. Where no version is given, the error is avoided in every version. In each case,
 * the next implementation in oneDNN's list computes the right numbers. */
#include "onednn_conv.h"

#include <string.h>

static int is_before(int major, int minor)
{
    const dnnl_version_t *version = dnnl_version();
    return version->major < major || (version->major == major && version->minor < minor);
}

/* ---- implementations to avoid, for each pass ---- */

/* With strides of 3 or more, AMX reads and writes past its scratchpad, and may be wrong.
 *
 * brgconv:avx512_core_amx, oneDNN's first choice with AMX for windows larger than 1x1, copies the image to
 * its scratchpad and pads each row to a multiple of the stride, but sizes the scratchpad without this
 * padding. (For most images, space added for another reason hides the error.) No padding is needed if the
 * window's width is a multiple of the stride.
 *
 * Before 3.0, this implementation also jumps through a null pointer if it cuts the channels into blocks (of
 * at most 5120 = 5·32 vectors of 32) and the last block is not full: it never creates the kernel for this
 * block.
 *
 * The variant for AVX512_BF16 multiplies channels in pairs. If it cuts an odd number of channels into blocks
 * (of at least 16 channels), it also multiplies the memory after the last pixel by 0. An inf or NaN in this
 * memory makes the result NaN.
 *
 * From 3.0 on, all of these variants may crash or be wrong for a padded image with a width of 1. */
static void avoid_forward(const amp_conv_desc *d, amp_problem *problem)
{
    int channels = d->x.c / d->groups, stride_x = amp_conv_stride_x(d);
    if (d->stride > 2 || stride_x > 2) problem->avoid[0] = "amx";
    else if (d->size_w % stride_x || (is_before(3, 0) && channels > 5120))
        problem->avoid[0] = "brgconv:avx512_core_amx";
    if (d->x.w == 1 && d->pad) problem->avoid[1] = "brgconv:";
    else if (channels > 16 && channels % 2) problem->avoid[1] = "brgconv:avx512_core_bf16";
}

/* If the number of filters is odd, the variant for 1x1 windows in bf16 loads the last filter into the vector
 * register that holds the weights, and the result is wrong. The source of this variant is the same in 3.7.
 *
 * The variant for strides, new in 3.0, writes past its scratchpad if there are very many filters (seen from
 * 9248 filters on). The variant without strides uses forward's kernel, which has the error for odd numbers of
 * channels that avoid_forward describes; in this pass, the kernel's channels are filters. */
static void avoid_backward_data(const amp_conv_desc *d, amp_problem *problem)
{
    int filters = d->k / d->groups;
    if (d->size_h == 1 && d->size_w == 1 && filters % 2) problem->avoid[0] = "bf16_1x1";
    else if (filters > 16 && filters % 2) problem->avoid[0] = "brg_conv_bwd:avx512_core_bf16";
    if (filters > 4096) problem->avoid[1] = "brgconv_strided";
}

/* Returns the name of the library's kernel for gradients of weights if it is slower for this convolution than
 * the next implementation, a matrix product of columns (im2col); else NULL. With AVX2, the kernel reads NHWC
 * pixels that are far apart. The matrix product is faster with a stride above 1 and enough channels: 64 on an
 * Intel CPU, 32 on others. Measured at 208x208 with batch 4:
 *
 *     64->128 channels: 95 ms instead of 341 on an AMD EPYC (Zen 5), 251 instead of 352 on an Intel Xeon
 *     with 32 channels: 133 ms instead of 481 on the EPYC, but 425 instead of 246 on the Xeon
 *
 * The matrix product takes 23 to 80 MB of scratch in yolov3. */
static const char *slow_backward_weights(const amp_conv *conv)
{
    const amp_conv_desc *d = &conv->desc;
    int channels = 64;
#if defined(__x86_64__)
    if (!__builtin_cpu_is("intel")) channels = 32;
#endif
    return amp_onednn_width() == AMP_CPU_AVX2 && conv->compute == AMP_FP32 && d->size_h == 3 && d->size_w == 3
        && d->stride == 2 && d->groups == 1 && d->x.c >= channels ? "jit:avx2" : NULL;
}

/* Before 3.6 (according to oneDNN's history), AMX is wrong for 3x3 windows of stride 1 if it cuts the image
 * into blocks of one row: it mixes up the window's rows, writes before the start of the gradient, and for
 * still wider images never finishes generating its code. Blocks have one row only if three rows of x and of
 * dy do not fit in 48 KiB, so if a row of x and a row of dy together have more than 512 columns (of 32
 * bytes). A row of x has (w/32 rounded up + 1)·32 columns, and a row of dy has w, rounded up to even:
 * together 480 for w = 224, 514 for w = 225.
 *
 * With dilation, AMX's gradients are wrong for some shapes, 1x1 windows among them.
 *
 * The special variants for 1x1 windows write past their scratchpad if the stride skips pixels and there are
 * fewer channels than a vector has lanes.
 *
 * The general variant in bf16 reads past its scratchpad if the image has fewer rows than the padding above
 * it, or if the window is dilated, a row of the output is longer than 28 pixels, and the last vector of
 * channels is not full. */
static void avoid_backward_weights(const amp_conv *conv, amp_problem *problem)
{
    const amp_conv_desc *d = &conv->desc;
    int strides = d->stride > 1 || amp_conv_stride_x(d) > 1, channels = d->x.c / d->groups;
    int cut = amp_conv_dilation(d) > 1 && amp_conv_output(d).w > 28 && channels % 16;
    if (d->size_h == 1 && d->size_w == 1 && strides && channels < 16) problem->avoid[0] = "1x1";
    else if (cut || d->x.h < d->pad) problem->avoid[0] = "jit_bf16:";
    else problem->avoid[0] = slow_backward_weights(conv);
    if (amp_conv_dilation(d) > 1 || (is_before(3, 6) && d->size_h == 3 && d->size_w == 3 && d->stride == 1
                                     && d->pad == 1 && d->x.w > 224)) problem->avoid[1] = "amx";
}

void amp_onednn_avoid_faults(const amp_conv *conv, dnnl_prop_kind_t pass, amp_problem *problem)
{
    if (pass == dnnl_backward_data) avoid_backward_data(&conv->desc, problem);
    else if (pass == dnnl_backward_weights) avoid_backward_weights(conv, problem);
    else avoid_forward(&conv->desc, problem);
}

/* ---- errors that all implementations have, or that can be allowed for ---- */

/* If the image is narrower than the stride, the library's gradient of the weights in a half is garbage, with
 * any instruction set. */
int amp_onednn_half_is_wrong(const amp_conv_desc *d)
{
    return d->training && d->x.w < amp_conv_stride_x(d);
}

/* brgconv:avx512_core_amx loads 16 pixels at a time, one stride apart, from a copy of the image in the
 * scratchpad. Up to 15 of them lie past the last pixel. */
size_t amp_onednn_reads_behind_scratchpad(const amp_conv *conv)
{
    const amp_conv_desc *d = &conv->desc;
    if (!strstr(amp_pd_name(conv->forward_pd), "brgconv:avx512_core_amx")) return 0;
    return (size_t)15 * amp_conv_stride_x(d) * ((d->x.c / d->groups + 31) / 32 * 32) * 2;
}
