/* oneDNN's primitives with their arguments, and scratch memory. onednn.c defines the functions. */
#pragma once

#include "onednn.h"
#include "onednn_compat.h"

enum { AMP_PRIMITIVE_ARGUMENTS = 5, AMP_SCRATCH_PARTS = 6 };

struct amp_onednn {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_attr_t attributes;     /* the defaults, except that the caller passes the scratchpad */
    dnnl_primitive_attr_t adding;         /* the same, but for dst += result */
    dnnl_primitive_attr_t leaky;          /* the same, but for dst = leaky(result) */
    char *scratch;
    size_t scratch_bytes;
    const char *why_stored[AMP_BF16 + 1]; /* why a dtype is only stored; NULL: the library computes in it */
};

/* Whether the dtype is only a storage format (onednn_halves.c says why). Arithmetic is then in fp32. */
static inline int amp_onednn_only_stores(const amp_onednn *library, amp_dtype dtype)
{
    return library->why_stored[dtype] != NULL;
}

/* A primitive (one computation of the library, for one shape) and its memory objects. An all-zero primitive
 * is empty; destroying it does nothing. */
typedef struct amp_primitive {
    dnnl_primitive_t handle;              /* NULL: not built */
    dnnl_exec_arg_t arguments[AMP_PRIMITIVE_ARGUMENTS + 1];
    int count;
    size_t scratchpad;                    /* size in bytes */
} amp_primitive;

#if defined(__x86_64__) /* dnnl_cpu_isa_t has only x86's instruction sets */
static inline int amp_onednn_has_isa(dnnl_cpu_isa_t wanted)
{
    /* The value of an instruction set includes the bits of all sets that it contains. */
    return (dnnl_get_effective_cpu_isa() & wanted) == wanted;
}
#endif

/* The memory descriptor of an argument (id: DNNL_ARG_*) of a primitive. */
static inline amp_const_md amp_argument_md(const_dnnl_primitive_desc_t pd, int id)
{
    return dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, id);
}

/* The library's status as text, e.g. "unimplemented". */
const char *amp_dnnl_text(dnnl_status_t status);

static inline dnnl_data_type_t amp_onednn_type(amp_dtype dtype)
{
    return dtype == AMP_FP32 ? dnnl_f32 : dtype == AMP_BF16 ? dnnl_bf16 : dnnl_f16;
}

/* Creates attributes for dst = leaky(factor·result + kept·dst), with a scratchpad that each run passes.
 * slope: leaky's slope for negative numbers; 1: no leaky. The caller destroys *out, even after a failure,
 * unless it is NULL. */
dnnl_status_t amp_attributes_create(float factor, float kept, float slope, dnnl_primitive_attr_t *out);

/* Whether the implementation is a reference loop, hundreds of times slower than oneDNN's kernels. */
int amp_onednn_is_reference(const_dnnl_primitive_desc_t pd);

/* Builds a primitive with dnnl_primitive_create. The caller still owns pd. ids: the DNNL_ARG_* that the
 * primitive takes. */
dnnl_status_t amp_primitive_build(amp_onednn *library, amp_primitive *primitive,
                                  const_dnnl_primitive_desc_t pd, const int *ids, int count);
/* Builds a reorder: a primitive that copies DNNL_ARG_FROM to DNNL_ARG_TO in another layout, or adds it if
 * `adding` is set. */
dnnl_status_t amp_primitive_build_reorder(amp_onednn *library, amp_primitive *primitive, amp_const_md from,
                                          amp_const_md to, int adding);
void amp_primitive_destroy(amp_primitive *primitive);

/* amp_primitive_set sets the address of an argument. amp_primitive_run calls dnnl_primitive_execute, and
 * waits; scratchpad must have primitive->scratchpad bytes. */
dnnl_status_t amp_primitive_set(amp_primitive *primitive, int id, const void *address);
dnnl_status_t amp_primitive_run(amp_onednn *library, amp_primitive *primitive, void *scratchpad);

/* parts[i] ← sizes[i] bytes of scratch, 64-byte aligned, valid until the next call. count ≤
 * AMP_SCRATCH_PARTS. */
amp_status amp_scratch_take(amp_onednn *library, const size_t *sizes, void **parts, int count,
                            amp_error *error);
