/* The CPU backend: its object and the table of its operations. README.md says which file holds which of them. */
#include <stdio.h>
#include <stdlib.h>

#include "cast.h"
#include "kernels.h"
#include "local.h"
#include "memory.h"
#include "onednn.h"
#include "rows.h"
#include "state.h"

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
    amp_cpu_products_free(((amp_cpu_backend *)backend)->products, backend);
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
        .allocate = amp_cpu_allocate,
        .release = amp_cpu_release,
        .upload = amp_cpu_upload,
        .upload_later = amp_cpu_upload_later,
        .stage = amp_cpu_stage,
        .uploads_done = amp_cpu_synchronize,
        .download = amp_cpu_download,
        .synchronize = amp_cpu_synchronize,
        .zero = amp_cpu_zero,
        .scale = amp_cpu_scale,
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
        .yolo_loss = amp_cpu_yolo_loss,
        .yolo_activate = amp_cpu_yolo_activate,
        .check_gradients = amp_cpu_check_gradients,
        .finish_step = amp_cpu_finish_step,
        .keep_statistics = amp_cpu_keep_statistics,
        .restore_statistics = amp_cpu_restore_statistics,
        .gemm = amp_cpu_gemm,
        .gemm_drop_copies = amp_cpu_gemm_drop_copies,
        .gemm_computes = amp_cpu_gemm_computes,
    };
    amp_onednn_describe(cpu->base.description, sizeof cpu->base.description);
    return &cpu->base;
}
