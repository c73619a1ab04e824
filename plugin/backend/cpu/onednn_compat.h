/* One interface to both C APIs of oneDNN: 2.x (Debian 12) and 3.x (Debian 13).
 *
 * The APIs differ in three things: in 3.x, a memory descriptor is an opaque object and no longer a struct,
 * there are no "operation descriptors", and post-ops have other arguments. onednn*.c use everything else
 * directly. The code that creates an amp_md must destroy it. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include <dnnl.h>

#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t amp_md;
typedef const_dnnl_memory_desc_t amp_const_md;
#else
typedef dnnl_memory_desc_t *amp_md;
typedef const dnnl_memory_desc_t *amp_const_md;
#endif

/* A convolution or inner product. In a backward pass, some of src, weights and dst describe gradients. bias
 * may be NULL. */
typedef struct amp_problem {
    int inner_product;         /* 0: a convolution. An inner product ignores strides, dilates and pads */
    amp_const_md src, weights, bias, dst;
    dnnl_dims_t strides, dilates, pad_left, pad_right; /* dilates: 0 means no dilation */
    const char *avoid[2];      /* implementations whose name contains one of these are skipped; may be NULL */
} amp_problem;

/* Creates a descriptor in the layout of `tag`, or with `strides` if they are not NULL. */
static inline dnnl_status_t amp_md_create_strided(amp_md *out, int ndims, const dnnl_dims_t dims,
                                                  dnnl_data_type_t type, dnnl_format_tag_t tag,
                                                  const dnnl_dim_t *strides)
{
#if DNNL_VERSION_MAJOR >= 3
    return strides ? dnnl_memory_desc_create_with_strides(out, ndims, dims, type, strides)
        : dnnl_memory_desc_create_with_tag(out, ndims, dims, type, tag);
#else
    *out = malloc(sizeof **out);
    if (!*out) return dnnl_out_of_memory;
    dnnl_status_t status = strides ? dnnl_memory_desc_init_by_strides(*out, ndims, dims, type, strides)
        : dnnl_memory_desc_init_by_tag(*out, ndims, dims, type, tag);
    if (status != dnnl_success) { free(*out); *out = NULL; }
    return status;
#endif
}

static inline dnnl_status_t amp_md_create(amp_md *out, int ndims, const dnnl_dims_t dims,
                                          dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    return amp_md_create_strided(out, ndims, dims, type, tag, NULL);
}

static inline void amp_md_destroy(amp_md md)
{
#if DNNL_VERSION_MAJOR >= 3
    if (md) dnnl_memory_desc_destroy(md);
#else
    free(md);
#endif
}

/* The dimensions including the layout's padding; NULL if the library does not report them. */
static inline const dnnl_dim_t *amp_md_padded(amp_const_md md)
{
#if DNNL_VERSION_MAJOR >= 3
    dnnl_dims_t *padded = NULL;
    return dnnl_memory_desc_query(md, dnnl_query_padded_dims, &padded) == dnnl_success && padded ? *padded
        : NULL;
#else
    return md ? md->padded_dims : NULL;
#endif
}

/* The library's name for an implementation; "" if it has none. */
static inline const char *amp_pd_name(const_dnnl_primitive_desc_t pd)
{
    const char *name = NULL;
    dnnl_status_t status = dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name);
    return status == dnnl_success && name ? name : "";
}

/* Whether p->avoid excludes this implementation. An entry "brgconv:..." (a name in 2.6) also excludes
 * "brg_conv_fwd:..." (the name of the same implementation in 3.7). */
static inline int amp_pd_is_avoided(const_dnnl_primitive_desc_t pd, const amp_problem *p)
{
    static const char before[] = "brgconv:", now[] = "brg_conv_fwd:";
    const char *name = amp_pd_name(pd);
    for (int i = 0; i < 2; i++) {
        const char *part = p->avoid[i];
        if (!part) continue;
        if (strstr(name, part)) return 1;
        if (strncmp(part, before, sizeof before - 1) == 0 && strncmp(name, now, sizeof now - 1) == 0
            && strstr(name, part + sizeof before - 1)) return 1;
    }
    return 0;
}

#if DNNL_VERSION_MAJOR >= 3
/* Replaces *out by the first implementation that p->avoid does not exclude. created: the status of creating
 * *out. */
static inline dnnl_status_t amp_pd_avoid(dnnl_primitive_desc_t *out, dnnl_status_t created,
                                         const amp_problem *p)
{
    dnnl_status_t status = created;
    while (status == dnnl_success && amp_pd_is_avoided(*out, p))
        status = dnnl_primitive_desc_next_impl(*out);
    if (created != dnnl_success || status == dnnl_success) return status;
    dnnl_primitive_desc_destroy(*out);
    *out = NULL;
    return status == dnnl_last_impl_reached ? dnnl_unimplemented : status;
}
#else
static inline dnnl_status_t amp_pd_create(dnnl_primitive_desc_t *out, const void *op,
                                          const_dnnl_primitive_attr_t attr, dnnl_engine_t engine,
                                          const_dnnl_primitive_desc_t forward, const amp_problem *p)
{
    dnnl_primitive_desc_iterator_t list = NULL;
    dnnl_status_t status = dnnl_primitive_desc_iterator_create(&list, op, attr, engine, forward);
    *out = NULL;
    while (status == dnnl_success) {
        *out = dnnl_primitive_desc_iterator_fetch(list);
        if (!*out) status = dnnl_out_of_memory;
        if (!*out || !amp_pd_is_avoided(*out, p)) break;
        dnnl_primitive_desc_destroy(*out);
        *out = NULL;
        status = dnnl_primitive_desc_iterator_next(list);
    }
    if (list) dnnl_primitive_desc_iterator_destroy(list);
    return status == dnnl_iterator_ends ? dnnl_unimplemented : status;
}
#endif

/* Finds the library's best implementation of one pass, except for those that p->avoid excludes. Returns
 * dnnl_unimplemented if the library has no other. forward: for a backward pass, the primitive descriptor of
 * the forward pass; else NULL. */
static inline dnnl_status_t amp_problem_pd(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                           dnnl_prop_kind_t pass, const amp_problem *p,
                                           const_dnnl_primitive_desc_t forward,
                                           const_dnnl_primitive_attr_t attr)
{
    dnnl_status_t status;
    const int data = pass == dnnl_backward_data, weights = pass == dnnl_backward_weights;
#if DNNL_VERSION_MAJOR >= 3
    if (p->inner_product)
        status = data ? dnnl_inner_product_backward_data_primitive_desc_create(out, engine, p->src,
                            p->weights, p->dst, forward, attr)
            : weights ? dnnl_inner_product_backward_weights_primitive_desc_create(out, engine, p->src,
                            p->weights, p->bias, p->dst, forward, attr)
            : dnnl_inner_product_forward_primitive_desc_create(out, engine, pass, p->src, p->weights,
                                                               p->bias, p->dst, attr);
    else
        status = data ? dnnl_convolution_backward_data_primitive_desc_create(out, engine,
                            dnnl_convolution_direct, p->src, p->weights, p->dst, p->strides, p->dilates,
                            p->pad_left, p->pad_right, forward, attr)
            : weights ? dnnl_convolution_backward_weights_primitive_desc_create(out, engine,
                            dnnl_convolution_direct, p->src, p->weights, p->bias, p->dst, p->strides,
                            p->dilates, p->pad_left, p->pad_right, forward, attr)
            : dnnl_convolution_forward_primitive_desc_create(out, engine, pass, dnnl_convolution_direct,
                            p->src, p->weights, p->bias, p->dst, p->strides, p->dilates, p->pad_left,
                            p->pad_right, attr);
    return amp_pd_avoid(out, status, p);
#else
    union { dnnl_convolution_desc_t convolution; dnnl_inner_product_desc_t inner_product; } op;
    if (p->inner_product)
        status = data ? dnnl_inner_product_backward_data_desc_init(&op.inner_product, p->src, p->weights,
                                                                   p->dst)
            : weights ? dnnl_inner_product_backward_weights_desc_init(&op.inner_product, p->src, p->weights,
                                                                      p->bias, p->dst)
            : dnnl_inner_product_forward_desc_init(&op.inner_product, pass, p->src, p->weights, p->bias,
                                                   p->dst);
    else
        status = data ? dnnl_dilated_convolution_backward_data_desc_init(&op.convolution,
                            dnnl_convolution_direct, p->src, p->weights, p->dst, p->strides, p->dilates,
                            p->pad_left, p->pad_right)
            : weights ? dnnl_dilated_convolution_backward_weights_desc_init(&op.convolution,
                            dnnl_convolution_direct, p->src, p->weights, p->bias, p->dst, p->strides,
                            p->dilates, p->pad_left, p->pad_right)
            : dnnl_dilated_convolution_forward_desc_init(&op.convolution, pass, dnnl_convolution_direct,
                            p->src, p->weights, p->bias, p->dst, p->strides, p->dilates, p->pad_left,
                            p->pad_right);
    return status == dnnl_success ? amp_pd_create(out, &op, attr, engine, forward, p) : status;
#endif
}

/* dst = src · weights, without a bias. */
static inline dnnl_status_t amp_matmul_pd(dnnl_primitive_desc_t *out, dnnl_engine_t engine, amp_const_md src,
                                          amp_const_md weights, amp_const_md dst,
                                          const_dnnl_primitive_attr_t attr)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_matmul_primitive_desc_create(out, engine, src, weights, NULL, dst, attr);
#else
    dnnl_matmul_desc_t op;
    dnnl_status_t status = dnnl_matmul_desc_init(&op, src, weights, NULL, dst);
    return status == dnnl_success ? dnnl_primitive_desc_create(out, &op, attr, engine, NULL) : status;
#endif
}

/* Makes a primitive add its result to factor · dst, instead of overwriting dst. */
static inline dnnl_status_t amp_append_sum(dnnl_post_ops_t post_ops, float factor)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_post_ops_append_sum(post_ops, factor, 0, dnnl_data_type_undef);
#else
    return dnnl_post_ops_append_sum(post_ops, factor);
#endif
}

static inline dnnl_status_t amp_append_eltwise(dnnl_post_ops_t post_ops, dnnl_alg_kind_t kind, float alpha)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_post_ops_append_eltwise(post_ops, kind, alpha, 0.0f);
#else
    return dnnl_post_ops_append_eltwise(post_ops, 1.0f, kind, alpha, 0.0f);
#endif
}
