/* oneDNN's engine and stream, primitives with their arguments, and scratch memory. */
#include "onednn_primitive.h"

#include <string.h>

#include "kernels.h"

int amp_onednn_has_amx(void)
{
#if defined(__x86_64__)
    return amp_onednn_has_isa(dnnl_cpu_isa_avx512_core_amx);
#else
    return 0;
#endif
}

amp_cpu_width amp_onednn_width(void)
{
#if defined(__x86_64__)
    if (amp_onednn_has_isa(dnnl_cpu_isa_avx512_core)) return AMP_CPU_AVX512;
    if (amp_onednn_has_isa(dnnl_cpu_isa_avx2)) return AMP_CPU_AVX2;
#endif
    return AMP_CPU_BASE;
}

const char *amp_dnnl_text(dnnl_status_t status)
{
    switch (status) {
    case dnnl_success: return "success";
    case dnnl_out_of_memory: return "out of memory";
    case dnnl_invalid_arguments: return "invalid arguments";
    case dnnl_unimplemented: return "unimplemented";
    case dnnl_runtime_error: return "runtime error";
    default: return "unexpected status";
    }
}

dnnl_status_t amp_attributes_create(float factor, float kept, float slope, dnnl_primitive_attr_t *out)
{
    dnnl_post_ops_t then = NULL;
    dnnl_status_t status = dnnl_primitive_attr_create(out);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user);
    if (status == dnnl_success) status = dnnl_post_ops_create(&then);
    if (status == dnnl_success && factor != 1) status = amp_append_eltwise(then, dnnl_eltwise_linear, factor);
    if (status == dnnl_success && kept != 0) status = amp_append_sum(then, kept);
    if (status == dnnl_success && slope != 1) status = amp_append_eltwise(then, dnnl_eltwise_relu, slope);
    if (status == dnnl_success) status = dnnl_primitive_attr_set_post_ops(*out, then);
    if (then) dnnl_post_ops_destroy(then);
    return status;
}

amp_status amp_onednn_create(amp_onednn **out, amp_error *error)
{
    amp_onednn *library = amp_allocated(calloc(1, sizeof *library));
    dnnl_status_t status = dnnl_engine_create(&library->engine, dnnl_cpu, 0);
    if (status == dnnl_success)
        status = dnnl_stream_create(&library->stream, library->engine, dnnl_stream_default_flags);
    if (status == dnnl_success) status = amp_attributes_create(1, 0, 1, &library->attributes);
    if (status == dnnl_success) status = amp_attributes_create(1, 1, 1, &library->adding);
    if (status == dnnl_success) status = amp_attributes_create(1, 0, .1f, &library->leaky);
    if (status != dnnl_success) {
        amp_onednn_destroy(library);
        return amp_fail(error, AMP_BACKEND_FAILED, "oneDNN cannot start on this CPU: %s",
                        amp_dnnl_text(status));
    }
    *out = library;
    return AMP_OK;
}

void amp_onednn_destroy(amp_onednn *library)
{
    if (!library) return;
    if (library->leaky) dnnl_primitive_attr_destroy(library->leaky);
    if (library->adding) dnnl_primitive_attr_destroy(library->adding);
    if (library->attributes) dnnl_primitive_attr_destroy(library->attributes);
    if (library->stream) dnnl_stream_destroy(library->stream);
    if (library->engine) dnnl_engine_destroy(library->engine);
    free(library->scratch);
    free(library);
}

/* ---- primitives ---- */

int amp_onednn_is_reference(const_dnnl_primitive_desc_t pd)
{
    return strncmp(amp_pd_name(pd), "ref", 3) == 0;
}

static dnnl_status_t add_argument(amp_onednn *library, amp_primitive *primitive, int id, amp_const_md md)
{
    dnnl_memory_t memory = NULL;
    dnnl_status_t status = dnnl_memory_create(&memory, md, library->engine, DNNL_MEMORY_NONE);
    if (status == dnnl_success) primitive->arguments[primitive->count++] = (dnnl_exec_arg_t){ id, memory };
    return status;
}

dnnl_status_t amp_primitive_build(amp_onednn *library, amp_primitive *primitive,
                                  const_dnnl_primitive_desc_t pd, const int *ids, int count)
{
    memset(primitive, 0, sizeof *primitive);
    dnnl_status_t status = dnnl_primitive_create(&primitive->handle, pd);
    for (int i = 0; i < count && status == dnnl_success; i++)
        status = add_argument(library, primitive, ids[i], amp_argument_md(pd, ids[i]));
    if (status == dnnl_success) {
        amp_const_md scratchpad = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
        primitive->scratchpad = dnnl_memory_desc_get_size(scratchpad);
        if (primitive->scratchpad) status = add_argument(library, primitive, DNNL_ARG_SCRATCHPAD, scratchpad);
    }
    if (status != dnnl_success) amp_primitive_destroy(primitive);
    return status;
}

dnnl_status_t amp_primitive_build_reorder(amp_onednn *library, amp_primitive *primitive, amp_const_md from,
                                          amp_const_md to, int adding)
{
    static const int ids[] = { DNNL_ARG_FROM, DNNL_ARG_TO };
    dnnl_primitive_desc_t pd = NULL;
    memset(primitive, 0, sizeof *primitive);
    dnnl_status_t status = dnnl_reorder_primitive_desc_create(&pd, from, library->engine, to, library->engine,
                                                              adding ? library->adding : library->attributes);
    if (status != dnnl_success) return status;
    status = amp_primitive_build(library, primitive, pd, ids, 2);
    dnnl_primitive_desc_destroy(pd);
    return status;
}

void amp_primitive_destroy(amp_primitive *primitive)
{
    for (int i = 0; i < primitive->count; i++) dnnl_memory_destroy(primitive->arguments[i].memory);
    if (primitive->handle) dnnl_primitive_destroy(primitive->handle);
    memset(primitive, 0, sizeof *primitive);
}

dnnl_status_t amp_primitive_set(amp_primitive *primitive, int id, const void *address)
{
    for (int i = 0; i < primitive->count; i++)
        if (primitive->arguments[i].arg == id) /* the library takes inputs as non-const, too */
            return dnnl_memory_set_data_handle(primitive->arguments[i].memory, (void *)address);
    return dnnl_invalid_arguments;
}

dnnl_status_t amp_primitive_run(amp_onednn *library, amp_primitive *primitive, void *scratchpad)
{
    dnnl_status_t status = dnnl_success;
    if (primitive->scratchpad) status = amp_primitive_set(primitive, DNNL_ARG_SCRATCHPAD, scratchpad);
    if (status == dnnl_success)
        status = dnnl_primitive_execute(primitive->handle, library->stream, primitive->count,
                                        primitive->arguments);
    if (status == dnnl_success) status = dnnl_stream_wait(library->stream);
    return status;
}

/* ---- scratch ---- */

amp_status amp_scratch_take(amp_onednn *library, const size_t *sizes, void **parts, int count,
                            amp_error *error)
{
    size_t total = 0;
    for (int i = 0; i < count; i++) total += (sizes[i] + 63) / 64 * 64;
    if (total > library->scratch_bytes) {
        void *larger = NULL;
        /* Frees the old block first, so that the two blocks never exist at once. */
        free(library->scratch);
        library->scratch = NULL;
        library->scratch_bytes = 0;
        AMP_TRY(amp_cpu_allocate(NULL, total, &larger, error));
        library->scratch = larger;
        library->scratch_bytes = total;
    }
    char *next = library->scratch;
    for (int i = 0; i < count; i++) {
        parts[i] = sizes[i] ? next : NULL;
        next += (sizes[i] + 63) / 64 * 64;
    }
    return AMP_OK;
}
