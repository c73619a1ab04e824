/* Finds the halves (fp16, bf16) in which oneDNN computes here. The others are only storage formats. */
#include "onednn_primitive.h"

#include "kernels.h"
#include "onednn_conv.h"

#if defined(__x86_64__)

static const char *isa_name(void)
{
    static const struct { dnnl_cpu_isa_t isa; const char *name; } known[] = { /* the most capable first */
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
        if (amp_onednn_has_isa(known[i].isa)) return known[i].name;
    return "no vector instructions known";
}

/* Returns why products in this half are slower than in fp32, or NULL. Measured, relative to fp32:
 *  - bf16 on a Xeon with AMX hidden (docs/results/steps.md): a convolution takes 1.7 times as long;
 *    vdpbf16ps does half as many multiplications per second as the instruction for fp32.
 *  - fp16 without AMX, in oneDNN 3.7.2 and 3.13: 1.8 times as long.
 *  - A half that is only a storage format, converted outside the library: 1.1 times as long.
 *  - bf16 on AMD's CPUs: 1.5 to 2.2 times as fast. */
static const char *slower(amp_dtype half)
{
    if (half == AMP_FP16) {
#if DNNL_VERSION_MAJOR >= 3
        if (amp_onednn_has_isa(dnnl_cpu_isa_avx512_core_amx_fp16)) return NULL;
        return amp_onednn_has_isa(dnnl_cpu_isa_avx512_core_fp16)
            ? "without AMX-FP16, fp16 is slower than fp32"
            : "there are no instructions for fp16";
#else
        return "only version 3 and later compute in fp16, with AMX-FP16";
#endif
    }
    if (!amp_onednn_has_isa(dnnl_cpu_isa_avx512_core_bf16)) return "there are no instructions for bf16";
    return __builtin_cpu_is("intel") && !amp_onednn_has_isa(dnnl_cpu_isa_avx512_core_amx)
        ? "on Intel's CPUs without AMX, bf16 is slower than fp32" : NULL;
}

#else /* dnnl_cpu_isa_t has only x86's instruction sets */

static const char *isa_name(void) { return amp_cpu_rows_best()->name; }

static const char *slower(amp_dtype half)
{
    return NULL;
}

#endif

/* Returns why this half is only a storage format; NULL if the library computes in it. */
static const char *why_stored(amp_onednn *library, amp_dtype half)
{
    const char *why = slower(half);
    return why || amp_onednn_convolves(library, half) ? why : "it lacks kernels that training needs";
}

void amp_onednn_describe(char *text, size_t size)
{
    const dnnl_version_t *version = dnnl_version();
    snprintf(text, size, "oneDNN %d.%d.%d, %s", version->major, version->minor, version->patch, isa_name());
}

/* Never returns AMP_SUPPORT_NONE: every CPU can convert between the halves and fp32. */
amp_support amp_cpu_supports(const amp_backend *backend, amp_dtype dtype, char note[256])
{
    const amp_onednn *library = ((const amp_cpu_backend *)backend)->library;
    const char *name = amp_dtype_name(dtype);
    char library_name[64];
    note[0] = '\0';
    if (!amp_onednn_only_stores(library, dtype)) return AMP_SUPPORT_NATIVE;
    amp_onednn_describe(library_name, sizeof library_name);
    snprintf(note, 256, "%s saves memory but no time here: stored in %s, computed in fp32 (%s: %s)", name,
             name, library_name, library->why_stored[dtype]);
    return AMP_SUPPORT_STORAGE;
}

void amp_onednn_choose_halves(amp_onednn *library)
{
    library->why_stored[AMP_FP16] = why_stored(library, AMP_FP16);
    library->why_stored[AMP_BF16] = why_stored(library, AMP_BF16);
}
