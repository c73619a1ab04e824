/* oneDNN at large: engine and stream, what the machine can do, primitives with their arguments, scratch
 * memory. The convolutions themselves are in onednn_conv.c and onednn_conv_build.c; onednn_compat.h hides
 * which API the library has. */
#include "onednn_pass.h"

#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "onednn_conv_build.h"

/* ---- the machine ---- */

#if defined(__x86_64__)

static int has_isa(dnnl_cpu_isa_t wanted)
{
    /* Each set's number holds the bits of those that it includes. */
    return (dnnl_get_effective_cpu_isa() & wanted) == wanted;
}

static const char *isa_name(void)
{
    static const struct { dnnl_cpu_isa_t isa; const char *name; } known[] = { /* best first */
#if DNNL_VERSION_MAJOR >= 3
        { dnnl_cpu_isa_avx512_core_amx_fp16, "avx512_core_amx_fp16" },
#endif
        { dnnl_cpu_isa_avx512_core_amx, "avx512_core_amx" },
#if DNNL_VERSION_MAJOR >= 3
        { dnnl_cpu_isa_avx512_core_fp16, "avx512_core_fp16" },
#endif
        { dnnl_cpu_isa_avx512_core_bf16, "avx512_core_bf16" },
        { dnnl_cpu_isa_avx512_core_vnni, "avx512_core_vnni" },
        { dnnl_cpu_isa_avx512_core, "avx512_core" },
        { dnnl_cpu_isa_avx2_vnni, "avx2_vnni" },
        { dnnl_cpu_isa_avx2, "avx2" },
        { dnnl_cpu_isa_avx, "avx" },
        { dnnl_cpu_isa_sse41, "sse41" },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (has_isa(known[i].isa)) return known[i].name;
    return "no vector instructions known";
}

amp_cpu_width amp_onednn_width(void)
{
    if (has_isa(dnnl_cpu_isa_avx512_core)) return AMP_CPU_AVX512;
    return has_isa(dnnl_cpu_isa_avx2) ? AMP_CPU_AVX2 : AMP_CPU_BASE;
}

/* Why products in a half would be slower than in fp32, though the library may have them; NULL: they are
 * faster. Measured on a Xeon whose AMX is hidden (docs/results/cpu-2026-11-22.md): vdpbf16ps does half as
 * many multiplications a second as fp32's instruction, and a convolution takes 1.7 times as long as in fp32.
 * The library's fp16 without AMX takes 1.8 times as long (3.7.2 and 3.13). Stored halves, converted outside,
 * take 1.1 times as long. On AMD's CPUs bf16 is 1.5 to 2.2 times as fast as fp32. */
static const char *slower(amp_dtype half)
{
    if (half == AMP_FP16) {
#if DNNL_VERSION_MAJOR >= 3
        if (has_isa(dnnl_cpu_isa_avx512_core_amx_fp16)) return NULL;
        return has_isa(dnnl_cpu_isa_avx512_core_fp16) ? "without AMX-FP16 its fp16 is slower than fp32"
            : "there are no instructions for fp16";
#else
        return "from version 3 on it computes in fp16, with AMX-FP16";
#endif
    }
    if (!has_isa(dnnl_cpu_isa_avx512_core_bf16)) return "there are no instructions for bf16";
    return __builtin_cpu_is("intel") && !has_isa(dnnl_cpu_isa_avx512_core_amx)
        ? "without AMX Intel's bf16 is slower than fp32" : NULL;
}

#else /* the library's numbers of instruction sets are x86's */

static const char *isa_name(void) { return amp_cpu_rows_best()->name; }

amp_cpu_width amp_onednn_width(void) { return AMP_CPU_BASE; }

static const char *slower(amp_dtype half)
{
    (void)half;
    return NULL;
}

#endif

/* Asked of the library, not of its version: 2.6 trains in fp16 nowhere, 3.x with AMX-FP16 only. */
static const char *why_stored(amp_onednn *library, amp_dtype half)
{
    const char *why = slower(half);
    return why || amp_onednn_convolves(library, half) ? why : "it has no kernels for all of a training";
}

void amp_onednn_describe(char *text, size_t size)
{
    const dnnl_version_t *version = dnnl_version();
    snprintf(text, size, "oneDNN %d.%d.%d, %s", version->major, version->minor, version->patch, isa_name());
}

amp_support amp_onednn_supports(const amp_onednn *library, amp_dtype dtype, char note[256])
{
    const char *name = amp_dtype_name(dtype);
    char library_name[64];
    note[0] = '\0';
    if (!library->why_stored[dtype]) return AMP_SUPPORT_NATIVE;
    amp_onednn_describe(library_name, sizeof library_name);
    snprintf(note, 256, "%s saves memory but no time here: stored in %s, computed in fp32 (%s: %s)", name,
             name, library_name, library->why_stored[dtype]);
    return AMP_SUPPORT_STORAGE;
}

/* ---- the library ---- */

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

/* A copy of library->attributes that ends with one more operation. */
static dnnl_status_t add_attributes(const amp_onednn *library, dnnl_primitive_attr_t *out,
                                    dnnl_status_t (*append)(dnnl_post_ops_t, float), float number)
{
    dnnl_post_ops_t last = NULL;
    dnnl_status_t status = dnnl_primitive_attr_clone(out, library->attributes);
    if (status == dnnl_success) status = dnnl_post_ops_create(&last);
    if (status == dnnl_success) status = append(last, number);
    if (status == dnnl_success) status = dnnl_primitive_attr_set_post_ops(*out, last);
    if (last) dnnl_post_ops_destroy(last);
    return status;
}

static dnnl_status_t make_attributes(amp_onednn *library)
{
    dnnl_status_t status = dnnl_primitive_attr_create(&library->attributes);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_scratchpad_mode(library->attributes, dnnl_scratchpad_mode_user);
    if (status == dnnl_success) status = add_attributes(library, &library->adding, amp_append_sum, 1);
    if (status == dnnl_success) status = add_attributes(library, &library->leaky, amp_append_leaky, .1f);
    return status;
}

amp_status amp_onednn_create(amp_onednn **out, amp_error *error)
{
    amp_onednn *library = calloc(1, sizeof *library);
    if (!library) return amp_fail(error, AMP_NO_MEMORY, "no memory for the oneDNN engine");
    dnnl_status_t status = dnnl_engine_create(&library->engine, dnnl_cpu, 0);
    if (status == dnnl_success)
        status = dnnl_stream_create(&library->stream, library->engine, dnnl_stream_default_flags);
    if (status == dnnl_success) status = make_attributes(library);
    if (status != dnnl_success) {
        amp_onednn_destroy(library);
        return amp_fail(error, AMP_BACKEND_FAILED, "oneDNN cannot start on this CPU: %s",
                        amp_dnnl_text(status));
    }
    library->why_stored[AMP_FP16] = why_stored(library, AMP_FP16);
    library->why_stored[AMP_BF16] = why_stored(library, AMP_BF16);
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

/* ---- passes ---- */

int amp_onednn_is_reference(const_dnnl_primitive_desc_t pd)
{
    const char *name = NULL;
    if (dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name) != dnnl_success || !name) return 0;
    return strncmp(name, "ref", 3) == 0;
}

static dnnl_status_t add_argument(amp_onednn *library, amp_pass *pass, int id, amp_const_md md)
{
    dnnl_memory_t memory = NULL;
    dnnl_status_t status = dnnl_memory_create(&memory, md, library->engine, DNNL_MEMORY_NONE);
    if (status == dnnl_success) pass->arguments[pass->count++] = (dnnl_exec_arg_t){ id, memory };
    return status;
}

dnnl_status_t amp_pass_build(amp_onednn *library, amp_pass *pass, const_dnnl_primitive_desc_t pd,
                             const int *ids, int count)
{
    memset(pass, 0, sizeof *pass);
    dnnl_status_t status = dnnl_primitive_create(&pass->primitive, pd);
    for (int i = 0; i < count && status == dnnl_success; i++)
        status = add_argument(library, pass, ids[i],
                              dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, ids[i]));
    if (status == dnnl_success) {
        amp_const_md scratchpad = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
        pass->scratchpad = dnnl_memory_desc_get_size(scratchpad);
        if (pass->scratchpad) status = add_argument(library, pass, DNNL_ARG_SCRATCHPAD, scratchpad);
    }
    if (status != dnnl_success) amp_pass_destroy(pass);
    return status;
}

dnnl_status_t amp_pass_build_reorder(amp_onednn *library, amp_pass *pass, amp_const_md from, amp_const_md to,
                                     int adding)
{
    static const int ids[] = { DNNL_ARG_FROM, DNNL_ARG_TO };
    dnnl_primitive_desc_t pd = NULL;
    memset(pass, 0, sizeof *pass);
    dnnl_status_t status = dnnl_reorder_primitive_desc_create(&pd, from, library->engine, to, library->engine,
                                                              adding ? library->adding : library->attributes);
    if (status != dnnl_success) return status;
    status = amp_pass_build(library, pass, pd, ids, 2);
    dnnl_primitive_desc_destroy(pd);
    return status;
}

void amp_pass_destroy(amp_pass *pass)
{
    for (int i = 0; i < pass->count; i++) dnnl_memory_destroy(pass->arguments[i].memory);
    if (pass->primitive) dnnl_primitive_destroy(pass->primitive);
    memset(pass, 0, sizeof *pass);
}

dnnl_status_t amp_pass_set(amp_pass *pass, int id, const void *address)
{
    for (int i = 0; i < pass->count; i++)
        if (pass->arguments[i].arg == id) /* the library takes inputs without const, too */
            return dnnl_memory_set_data_handle(pass->arguments[i].memory, (void *)address);
    return dnnl_invalid_arguments;
}

dnnl_status_t amp_pass_run(amp_onednn *library, amp_pass *pass, void *scratchpad)
{
    dnnl_status_t status = dnnl_success;
    if (pass->scratchpad) status = amp_pass_set(pass, DNNL_ARG_SCRATCHPAD, scratchpad);
    if (status == dnnl_success)
        status = dnnl_primitive_execute(pass->primitive, library->stream, pass->count, pass->arguments);
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
        /* First, so that the two do not exist at once; nothing in it outlives a call. */
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
