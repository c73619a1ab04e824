/* The CPU backend's object and the table of its operations. README.md lists the files that define them. */
#include "kernels.h"
#include "onednn.h"

void amp_cpu_destroy(amp_backend *backend)
{
    if (!backend) return;
    amp_cpu_products_free(((amp_cpu_backend *)backend)->products, backend);
    amp_onednn_destroy(amp_cpu_library(backend));
    free(backend);
}

amp_backend *amp_cpu_backend_create(amp_error *error)
{
    amp_cpu_backend *cpu = amp_allocated(calloc(1, sizeof *cpu));
    if (amp_onednn_create(&cpu->library, error) != AMP_OK) {
        free(cpu);
        return NULL;
    }
    amp_onednn_choose_halves(cpu->library);
#define ENTRY(operation) .operation = amp_cpu_##operation,
    cpu->base = (amp_backend){ .name = "cpu", AMP_BACKEND_OPERATIONS(ENTRY) };
    amp_onednn_describe(cpu->base.description, sizeof cpu->base.description);
    return &cpu->base;
}
