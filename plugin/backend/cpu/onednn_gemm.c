/* Matrix products with oneDNN: the library's sgemm for fp32, and its matmul for fp16 and bf16. If one of
 * these two is only a storage format, factors are rounded to it and multiplied in fp32.
 *
 * Creating a primitive takes longer than running it, so the most recently used ones are cached. The copies of
 * factors with a version are cached, too. */
#include "onednn_primitive.h"

#include <string.h>

#include "../check.h"
#include "../factor_cache.h"
#include "kernels.h"

enum {
    MOST_PRIMITIVES = 64,
    SHORT_SUM = 32 /* if k is smaller, bf16 is slower than fp32 (2.6 times slower for k = 16) */
};

/* A cached primitive for products of one shape. */
typedef struct product {
    amp_gemm_desc of;        /* sizes, strides, alpha, beta and dtype; addresses are NULL */
    amp_primitive primitive; /* empty if the library has no good kernel */
    unsigned long last_use;
} product;

struct amp_cpu_products {
    product made[MOST_PRIMITIVES];
    int count;
    unsigned long uses;
    amp_factor_copy *factors;
};

static amp_status gemm_fail(const amp_gemm_desc *d, dnnl_status_t status, amp_error *error)
{
    return amp_fail(error, status == dnnl_out_of_memory ? AMP_NO_MEMORY : AMP_BACKEND_FAILED,
                    "matrix product of %dx%d by %dx%d " "in %s: oneDNN: %s", d->m, d->k, d->k, d->n,
                    amp_dtype_name(d->dtype), amp_dnnl_text(status));
}

/* ---- fp32 ---- */

/* Computes the product in fp32. Ignores d->dtype and versions. */
static amp_status multiply_floats(const amp_gemm_desc *d, amp_error *error)
{
    dnnl_status_t status = dnnl_sgemm(d->a.transposed ? 'T' : 'N', d->b.transposed ? 'T' : 'N', d->m, d->n,
                                      d->k, d->alpha, d->a.data, d->a.ld, d->b.data, d->b.ld, d->beta, d->c,
                                      d->ldc);
    return status == dnnl_success ? AMP_OK : gemm_fail(d, status, error);
}

/* ---- primitives ---- */

static dnnl_status_t describe_factor(const amp_factor *f, int rows, int columns, dnnl_data_type_t type,
                                     amp_md *out)
{
    const dnnl_dims_t dims = { rows, columns };
    const dnnl_dims_t strides = { f->transposed ? 1 : f->ld, f->transposed ? f->ld : 1 };
    return amp_md_create_strided(out, 2, dims, type, dnnl_format_tag_undef, strides);
}

/* Leaves *primitive empty if the library would use its slow loops or has no implementation. */
static dnnl_status_t build(amp_onednn *library, const amp_gemm_desc *d, dnnl_data_type_t type,
                           amp_primitive *primitive)
{
    static const int ids[] = { DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST };
    const amp_factor c = { .ld = d->ldc };
    amp_md a_md = NULL, b_md = NULL, c_md = NULL;
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t pd = NULL;
    memset(primitive, 0, sizeof *primitive);
    dnnl_status_t status = describe_factor(&d->a, d->m, d->k, type, &a_md);
    if (status == dnnl_success) status = describe_factor(&d->b, d->k, d->n, type, &b_md);
    if (status == dnnl_success) status = describe_factor(&c, d->m, d->n, dnnl_f32, &c_md);
    if (status == dnnl_success) status = amp_attributes_create(d->alpha, d->beta, 1, &attributes);
    if (status == dnnl_success) status = amp_matmul_pd(&pd, library->engine, a_md, b_md, c_md, attributes);
    if (status == dnnl_success && !amp_onednn_is_reference(pd))
        status = amp_primitive_build(library, primitive, pd, ids, 3);
    if (pd) dnnl_primitive_desc_destroy(pd);
    if (attributes) dnnl_primitive_attr_destroy(attributes);
    amp_md_destroy(c_md);
    amp_md_destroy(b_md);
    amp_md_destroy(a_md);
    return status == dnnl_unimplemented ? dnnl_success : status;
}

static int same_product(const amp_gemm_desc *a, const amp_gemm_desc *b)
{
    return a->m == b->m && a->n == b->n && a->k == b->k && a->alpha == b->alpha && a->beta == b->beta
        && a->a.ld == b->a.ld
        && a->b.ld == b->b.ld && a->ldc == b->ldc && a->a.transposed == b->a.transposed
            && a->b.transposed == b->b.transposed
        && a->dtype == b->dtype;
}

static product *free_place(amp_cpu_products *products)
{
    product *oldest = products->made;
    if (products->count < MOST_PRIMITIVES) return &products->made[products->count++];
    for (int i = 1; i < MOST_PRIMITIVES; i++)
        if (products->made[i].last_use < oldest->last_use) oldest = &products->made[i];
    amp_primitive_destroy(&oldest->primitive);
    return oldest;
}

/* Finds the primitive in the cache, or builds it. *out is NULL if the library has no good kernel. */
static amp_status find_primitive(amp_backend *backend, amp_cpu_products *products, const amp_gemm_desc *d,
                                 amp_primitive **out, amp_error *error)
{
    product *found = NULL;
    for (int i = 0; i < products->count && !found; i++)
        if (same_product(&products->made[i].of, d)) found = &products->made[i];
    if (!found) {
        amp_primitive primitive;
        dnnl_status_t status = build(amp_cpu_library(backend), d, amp_onednn_type(d->dtype), &primitive);
        if (status != dnnl_success) return gemm_fail(d, status, error);
        found = free_place(products);
        *found = (product){ .of = *d, .primitive = primitive };
        found->of.a.data = found->of.b.data = found->of.c = NULL;
    }
    found->last_use = ++products->uses;
    *out = found->primitive.handle ? &found->primitive : NULL;
    return AMP_OK;
}

/* ---- factors ---- */

/* dst ← src, rounded to dtype and stored in the dtype `computes`, which is dtype or fp32. */
static void round_to(amp_dtype dtype, amp_dtype computes, const float *src, void *dst, size_t count)
{
    if (computes == dtype) amp_cpu_cast_flat(AMP_FP32, src, dtype, dst, count, 0);
    else amp_cpu_round_flat(dtype, src, dst, count);
}

/* *out ← the factor, rounded to dtype: a cached copy if the factor has a version, else one in `scratch`. */
static amp_status prepare(amp_backend *backend, amp_cpu_products *products, const amp_factor *f, size_t count,
                          amp_dtype dtype, amp_dtype computes, void *scratch, const void **out,
                          amp_error *error)
{
    amp_factor_copy *entry;
    *out = scratch;
    if (!f->version) {
        round_to(dtype, computes, f->data, scratch, count);
        return AMP_OK;
    }
    AMP_TRY(amp_factor_copy_find(&products->factors, backend, f->data, count, dtype,
                                 count * amp_dtype_size(computes), &entry, error));
    if (entry->version != f->version) round_to(dtype, computes, f->data, entry->copy, count);
    entry->version = f->version;
    *out = entry->copy;
    return AMP_OK;
}

/* ---- running ---- */

static amp_status multiply(amp_backend *backend, amp_cpu_products *products, const amp_gemm_desc *d,
                           amp_primitive *primitive, amp_error *error)
{
    amp_onednn *library = amp_cpu_library(backend);
    const amp_dtype computes = primitive ? d->dtype : AMP_FP32;
    const size_t a_count = amp_gemm_a_extent(d), b_count = amp_gemm_b_extent(d),
        element = amp_dtype_size(computes);
    const size_t sizes[3] = { primitive ? primitive->scratchpad : 0, d->a.version ? 0 : a_count * element,
                              d->b.version ? 0 : b_count * element };
    const void *a, *b;
    void *scratch[3];
    AMP_TRY(amp_scratch_take(library, sizes, scratch, 3, error));
    AMP_TRY(prepare(backend, products, &d->a, a_count, d->dtype, computes, scratch[1], &a, error));
    AMP_TRY(prepare(backend, products, &d->b, b_count, d->dtype, computes, scratch[2], &b, error));
    if (!primitive) {
        amp_gemm_desc rounded = *d;
        rounded.a.data = a, rounded.b.data = b;
        return multiply_floats(&rounded, error);
    }
    dnnl_status_t status = amp_primitive_set(primitive, DNNL_ARG_SRC, a);
    if (status == dnnl_success) status = amp_primitive_set(primitive, DNNL_ARG_WEIGHTS, b);
    if (status == dnnl_success) status = amp_primitive_set(primitive, DNNL_ARG_DST, d->c);
    if (status == dnnl_success) status = amp_primitive_run(library, primitive, scratch[0]);
    return status == dnnl_success ? AMP_OK : gemm_fail(d, status, error);
}

amp_dtype amp_cpu_gemm_computes(const amp_backend *backend, amp_dtype dtype)
{
    const amp_onednn *library = ((const amp_cpu_backend *)backend)->library;
    return amp_onednn_only_stores(library, dtype) ? AMP_FP32 : dtype;
}

amp_status amp_cpu_gemm(amp_backend *backend, const amp_gemm_desc *d, amp_error *error)
{
    amp_cpu_products **products = &((amp_cpu_backend *)backend)->products;
    amp_primitive *primitive = NULL;
    AMP_TRY(amp_check_gemm(d, error));
    if (d->dtype == AMP_FP32) return multiply_floats(d, error);
    if (!*products) *products = amp_allocated(calloc(1, sizeof **products));
    /* If a factor has a version, all products that use its cached copy must compute in the same dtype. */
    const int is_short = d->k < SHORT_SUM && !d->a.version && !d->b.version;
    if (!is_short && amp_cpu_gemm_computes(backend, d->dtype) == d->dtype)
        AMP_TRY(find_primitive(backend, *products, d, &primitive, error));
    return multiply(backend, *products, d, primitive, error);
}

void amp_cpu_gemm_drop_copies(amp_backend *backend)
{
    amp_cpu_products *products = ((amp_cpu_backend *)backend)->products;
    if (products) amp_factor_copies_free(&products->factors, backend);
}

void amp_cpu_products_free(amp_cpu_products *products, amp_backend *backend)
{
    if (!products) return;
    amp_factor_copies_free(&products->factors, backend);
    for (int i = 0; i < products->count; i++) amp_primitive_destroy(&products->made[i].primitive);
    free(products);
}
