/* The CPU backend: its object and the table of its operations. README.md says which file holds which of
 * them. */
#include <stdio.h>
#include <stdlib.h>

#include "kernels.h"
#include "onednn.h"
#include "rows.h"
#include "state.h"

amp_support amp_cpu_supports(const amp_backend *backend, amp_dtype dtype, char note[256])
{
    (void)backend;
    amp_support library = amp_onednn_supports(dtype, note);
    /* The library goes by AVX2 alone; casts need FMA and F16C too, which a virtual machine may hide. */
    if (dtype == AMP_FP32 || library == AMP_SUPPORT_NONE || amp_cpu_rows_best() != amp_cpu_rows_base())
        return library;
    snprintf(note, 256, "%s needs a CPU with AVX2, FMA and F16C (this one: %s): set dtype=fp32, or amp=0",
             amp_dtype_name(dtype), amp_cpu_rows_best()->name);
    return AMP_SUPPORT_NONE;
}

void amp_cpu_destroy(amp_backend *backend)
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
#define ENTRY(operation) .operation = amp_cpu_##operation,
    cpu->base = (amp_backend){ .name = "cpu", AMP_BACKEND_OPERATIONS(ENTRY) };
    amp_onednn_describe(cpu->base.description, sizeof cpu->base.description);
    return &cpu->base;
}
