/* The CPU backend: its object, its memory, and the table of its operations.
 *
 * The work is elsewhere: onednn*.c convolves, local.c computes locally connected layers, cast.c changes dtype and layout,
 * kernels*.c do everything that works element by element or channel by channel. */
#include "cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cast.h"
#include "kernels.h"
#include "local.h"
#include "rows.h"

enum { ALIGNMENT = 64 }; /* a cache line, and the widest vector */

amp_status amp_cpu_memory(size_t bytes, void **out, amp_error *error)
{
    *out = NULL;
    if (!bytes) return AMP_OK;
    /* No huge pages by madvise: measured on a convolutional trunk, they make no difference. */
    size_t padded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; /* 0 where the sum overflows */
    *out = padded ? aligned_alloc(ALIGNMENT, padded) : NULL;
    if (!*out)
        return amp_fail(error, AMP_NO_MEMORY, "no memory for %zu MiB: use a smaller batch or more subdivisions", bytes >> 20);
    return AMP_OK;
}

static amp_status allocate(amp_backend *backend, size_t bytes, void **out, amp_error *error)
{
    (void)backend;
    return amp_cpu_memory(bytes, out, error);
}

static void release(amp_backend *backend, void *memory)
{
    (void)backend;
    free(memory);
}

static amp_status upload(amp_backend *backend, void *memory, const void *from, size_t bytes, amp_error *error)
{
    (void)backend, (void)error;
    if (bytes) memcpy(memory, from, bytes);
    return AMP_OK;
}

static amp_status download(amp_backend *backend, void *to, const void *memory, size_t bytes, amp_error *error)
{
    return upload(backend, to, memory, bytes, error);
}

static amp_status synchronize(amp_backend *backend, amp_error *error)
{
    (void)backend, (void)error;
    return AMP_OK;
}

static amp_status zero(amp_backend *backend, void *memory, size_t bytes, amp_error *error)
{
    (void)backend, (void)error;
    if (bytes) memset(memory, 0, bytes);
    return AMP_OK;
}

static amp_status scale(amp_backend *backend, float *array, size_t count, float factor, amp_error *error)
{
    (void)backend, (void)error;
    for (size_t i = 0; i < count; i++) array[i] *= factor;
    return AMP_OK;
}

static amp_support supports(const amp_backend *backend, amp_dtype dtype, char note[256])
{
    (void)backend;
    amp_support library = amp_onednn_supports(dtype, note);
    /* The library goes by AVX2 alone; casts need FMA and F16C too, which a virtual machine may hide. */
    if (dtype == AMP_FP32 || library == AMP_SUPPORT_NONE || amp_cpu_rows_best() != amp_cpu_rows_base()) return library;
    snprintf(note, 256, "%s needs a CPU with AVX2, FMA and F16C (this one: %s): set dtype=fp32, or amp=0", amp_dtype_name(dtype),
             amp_cpu_rows_best()->name);
    return AMP_SUPPORT_NONE;
}

static void destroy(amp_backend *backend)
{
    if (!backend) return;
    amp_onednn_destroy(amp_cpu_library(backend));
    free(backend);
}

amp_backend *amp_cpu_backend_create(amp_error *error)
{
    amp_cpu_backend *cpu = calloc(1, sizeof *cpu);
    if (!cpu) {
        amp_fail(error, AMP_NO_MEMORY, "no memory for the CPU backend");
        return NULL;
    }
    if (amp_onednn_create(&cpu->library, error) != AMP_OK) {
        free(cpu);
        return NULL;
    }
    cpu->base = (amp_backend){
        .name = "cpu",
        .supports = supports,
        .destroy = destroy,
        .allocate = allocate,
        .release = release,
        .upload = upload,
        .download = download,
        .synchronize = synchronize,
        .zero = zero,
        .scale = scale,
        .cast = amp_cpu_cast,
        .conv_create = amp_cpu_conv_create,
        .conv_destroy = amp_cpu_conv_destroy,
        .conv_load_weights = amp_cpu_conv_load_weights,
        .conv_drop_weights = amp_cpu_conv_drop_weights,
        .conv_forward = amp_cpu_conv_forward,
        .conv_backward_data = amp_cpu_conv_backward_data,
        .conv_backward_weights = amp_cpu_conv_backward_weights,
        .conv_facts = amp_cpu_conv_facts,
        .add_bias = amp_cpu_add_bias,
        .local_create = amp_cpu_local_create,
        .local_destroy = amp_cpu_local_destroy,
        .local_load_weights = amp_cpu_local_load_weights,
        .local_drop_weights = amp_cpu_local_drop_weights,
        .local_forward = amp_cpu_local_forward,
        .local_backward_data = amp_cpu_local_backward_data,
        .local_backward_weights = amp_cpu_local_backward_weights,
        .local_facts = amp_cpu_local_facts,
        .bias_gradient = amp_cpu_bias_gradient,
        .batchnorm_forward_train = amp_cpu_batchnorm_forward_train,
        .batchnorm_forward_infer = amp_cpu_batchnorm_forward_infer,
        .batchnorm_backward = amp_cpu_batchnorm_backward,
        .activation_forward = amp_cpu_activation_forward,
        .activation_backward = amp_cpu_activation_backward,
        .maxpool_forward = amp_cpu_maxpool_forward,
        .maxpool_backward = amp_cpu_maxpool_backward,
        .avgpool_forward = amp_cpu_avgpool_forward,
        .avgpool_backward = amp_cpu_avgpool_backward,
        .upsample_forward = amp_cpu_upsample_forward,
        .upsample_backward = amp_cpu_upsample_backward,
        .channels = amp_cpu_channels,
        .shortcut_forward = amp_cpu_shortcut_forward,
        .shortcut_backward = amp_cpu_shortcut_backward,
        .gather_forward = amp_cpu_gather_forward,
        .gather_backward = amp_cpu_gather_backward,
        .dropout = amp_cpu_dropout,
        .check_gradients = amp_cpu_check_gradients,
        .update = amp_cpu_update,
    };
    amp_onednn_describe(cpu->base.description, sizeof cpu->base.description);
    return &cpu->base;
}
