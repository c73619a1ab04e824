/* Where oneDNN is wrong or slow for a convolution, and what to do instead.
 *
 * test_conv_fuzz.c and its predecessor found these errors by putting tensors between guard pages, with oneDNN
 * 2.6.3 and (without AMX) 3.7.2. "Before 3.6" comes from oneDNN's history. Where no version is given, the
 * error is avoided in every version. In each case, the next implementation in oneDNN's list computes the
 * right numbers. */
#include "onednn_conv_build.h"

#include <string.h>

static int is_before(int major, int minor)
{
    const dnnl_version_t *version = dnnl_version();
    return version->major < major || (version->major == major && version->minor < minor);
}

/* ---- implementations to avoid, for each pass ---- */

/* With strides of 3 or more, AMX reads and writes past its scratchpad, and may be wrong.
 *
 * For windows larger than 1x1, the first AMX implementation in oneDNN's list is brgconv:avx512_core_amx. It
 * copies the image to its scratchpad, and pads each row to a multiple of the stride, but sizes the scratchpad
 * for rows without this padding. (For most images, space added for another reason hides the error.) The error
 * cannot occur if the window's width is a multiple of the stride: then so is the part of a row that windows
 * reach, and no padding is needed.
 *
 * Before 3.0, this implementation jumps through a null pointer if it cuts the channels into blocks and the
 * last block is not full. A block has at most 5120 channels (5·32 vectors of 32). If the last block has fewer
 * channels, it needs its own kernel. But this kernel is not created, because the implementation compares
 * padded numbers of channels, which are equal for all blocks.
 *
 * The variant for AVX512_BF16 multiplies channels in pairs. If it cuts an odd number of channels into blocks
 * (of at least 16 channels), it also reads the memory after the last pixel and multiplies it by 0. An inf or
 * NaN in this memory makes the result NaN.
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

/* The variant for 1x1 windows in bf16 computes up to 30 pixels at a time. Their sums take 30 of the 32 vector
 * registers, and the weights take one. If the number of filters is odd, the last filter is loaded into the
 * register that holds the weights, and the result is wrong. The source of this variant is the same in 3.7.
 *
 * The variant for strides, new in 3.0, writes past its scratchpad if there are very many filters (seen from
 * 9248 filters on). The variant without strides uses forward's kernel and has the error described at
 * avoid_forward: if it cuts an odd number of filters into blocks, it multiplies the memory after the last
 * pixel by 0. */
static void avoid_backward_data(const amp_conv_desc *d, amp_problem *problem)
{
    int filters = d->k / d->groups;
    if (d->size_h == 1 && d->size_w == 1 && filters % 2) problem->avoid[0] = "bf16_1x1";
    else if (filters > 16 && filters % 2) problem->avoid[0] = "brg_conv_bwd:avx512_core_bf16";
    if (filters > 4096) problem->avoid[1] = "brgconv_strided";
}

/* Returns the name of the library's own kernel for gradients of weights if this kernel is slow for this
 * convolution, else NULL. With AVX2, the kernel reads NHWC pixels that are far apart. The alternative is a
 * matrix product of columns (im2col), which is up to 3.8 times as fast with a stride above 1 and enough
 * channels: 64 on an Intel CPU, 32 on others. These times were measured with the matrix product instead of
 * the library's kernel:
 *
 *     64->128, 208x208, batch 4: 95 ms instead of 341 on an AMD EPYC (Zen 5), 251 instead of 352 on an Intel
 *         Xeon
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

/* Before 3.6, AMX is wrong for 3x3 windows of stride 1 if it cuts the image into blocks of one row. It mixes
 * up the window's rows, writes before the start of the gradient, and for still wider images never finishes
 * generating its code. This can happen only if w > 224: AMX divides the height by its smallest prime factors
 * until a block's rows of x and dy fit in 48 KiB, so a block has one row only if three rows do not fit. A
 * column has 32 bytes. A row of x has (w/32 rounded up + 1)·32 columns. A row of dy has w columns, rounded up
 * to even. Three rows fit if one row of x and one row of dy together have at most 512 columns: they have 480
 * for w = 224, and 514 for w = 225.
 *
 * With dilation, AMX's gradients are wrong for some shapes, 1x1 windows among them.
 *
 * The special variants for 1x1 windows write past their scratchpad if the stride skips pixels and there are
 * fewer channels than a vector has lanes.
 *
 * The general variant in bf16 reads past its scratchpad if the image has fewer rows than the padding above
 * it. It also reads past its scratchpad, and sums uninitialized memory, if the window is dilated, a row of
 * the output is cut into pieces of 28 pixels, and the last vector of channels is not full. */
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

/* brgconv:avx512_core_amx loads the 16 rows of a tile from a copy of the image in the scratchpad. A row is a
 * pixel, and rows are one stride apart. Up to 15 rows lie past the last pixel. */
size_t amp_onednn_reads_behind_scratchpad(const amp_conv *conv)
{
    const amp_conv_desc *d = &conv->desc;
    if (!strstr(amp_pd_name(conv->forward_pd), "brgconv:avx512_core_amx")) return 0;
    return (size_t)15 * amp_conv_stride_x(d) * ((d->x.c / d->groups + 31) / 32 * 32) * 2;
}
