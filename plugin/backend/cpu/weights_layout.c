/* Reads oneDNN's descriptions of blocked weights; see weights_layout.h. */
#include "weights_layout.h"

enum { LINE = 16 }; /* the size of a block of filters or channels must be a multiple of this */

typedef struct blocking {
    dnnl_data_type_t type;
    const dnnl_dim_t *padded, *strides, *blocks, *indexes;
    int count;
} blocking;

#if DNNL_VERSION_MAJOR >= 3
static int read_blocking(amp_const_md md, const dnnl_dim_t **dims, blocking *b)
{
    int ndims = 0;
    dnnl_format_kind_t kind = dnnl_format_kind_undef;
    if (dnnl_memory_desc_query(md, dnnl_query_ndims_s32, &ndims) != dnnl_success || ndims != 4) return 0;
    if (dnnl_memory_desc_query(md, dnnl_query_format_kind, &kind) != dnnl_success || kind != dnnl_blocked)
        return 0;
    return dnnl_memory_desc_query(md, dnnl_query_data_type, &b->type) == dnnl_success
        && dnnl_memory_desc_query(md, dnnl_query_dims, dims) == dnnl_success
        && dnnl_memory_desc_query(md, dnnl_query_padded_dims, &b->padded) == dnnl_success
        && dnnl_memory_desc_query(md, dnnl_query_strides, &b->strides) == dnnl_success
        && dnnl_memory_desc_query(md, dnnl_query_inner_nblks_s32, &b->count) == dnnl_success
        && dnnl_memory_desc_query(md, dnnl_query_inner_blks, &b->blocks) == dnnl_success
        && dnnl_memory_desc_query(md, dnnl_query_inner_idxs, &b->indexes) == dnnl_success;
}
#else
static int read_blocking(amp_const_md md, const dnnl_dim_t **dims, blocking *b)
{
    if (md->ndims != 4 || md->format_kind != dnnl_blocked || md->offset0
        || md->extra.flags != dnnl_memory_extra_flag_none) return 0;
    const dnnl_blocking_desc_t *d = &md->format_desc.blocking;
    *dims = md->dims;
    *b = (blocking){ md->data_type, md->padded_dims, d->strides, d->inner_blks, d->inner_idxs,
                     d->inner_nblks };
    return 1;
}
#endif

/* Whether there are exactly `count` inner blocks, with these dimensions (0: filters, 1: channels) and these
 * sizes (0: any size), outermost first. */
static int has_blocks(const blocking *b, int count, const dnnl_dim_t *indexes, const dnnl_dim_t *sizes)
{
    if (b->count != count) return 0;
    for (int i = 0; i < count; i++)
        if (b->indexes[i] != indexes[i] || (sizes[i] && b->blocks[i] != sizes[i])) return 0;
    return 1;
}

/* Sets the layout's order, block and channel_block if the order is one of those in weights_layout.h. */
static void find_order(const blocking *b, amp_weights_layout *layout)
{
    static const dnnl_dim_t a[] = { 0 }, ab[] = { 0, 1 }, bab[] = { 1, 0, 1 }, aba[] = { 0, 1, 0 };
    static const dnnl_dim_t any[] = { 0 }, any_2[] = { 0, 2 }, eights[] = { 8, 16, 2 };
    static const dnnl_dim_t squares[] = { 16, 16 };
    layout->block = LINE;
    if (b->type == dnnl_bf16 && has_blocks(b, 2, ab, any_2) && b->blocks[0] % LINE == 0) {
        layout->order = AMP_WEIGHTS_PAIRS_OF_CHANNELS;
        layout->block = (size_t)b->blocks[0];
    }
    else if (b->type == dnnl_bf16 && has_blocks(b, 3, bab, eights))
        layout->order = AMP_WEIGHTS_CHANNELS_IN_EIGHTS;
    else if (b->type == dnnl_bf16 && has_blocks(b, 3, aba, eights))
        layout->order = AMP_WEIGHTS_FILTERS_IN_EIGHTS;
    else if (b->type == dnnl_f32 && has_blocks(b, 1, a, any) && b->blocks[0] % LINE == 0) {
        layout->order = AMP_WEIGHTS_FLOATS_OF_FILTERS;
        layout->block = (size_t)b->blocks[0];
    }
    else if (b->type == dnnl_f32 && has_blocks(b, 2, ab, squares)) {
        layout->order = AMP_WEIGHTS_FLOATS_OF_CHANNELS;
        layout->channel_block = LINE;
    }
    else if (b->type == dnnl_f32 && has_blocks(b, 1, ab + 1, any) && b->blocks[0] % LINE == 0) {
        layout->order = AMP_WEIGHTS_FLOATS_OF_CHANNELS;
        layout->block = 1;
        layout->channel_block = (size_t)b->blocks[0];
    }
}

amp_weights_layout amp_weights_layout_of(amp_const_md md)
{
    amp_weights_layout layout = { 0 };
    const dnnl_dim_t *dims;
    blocking b;
    if (!read_blocking(md, &dims, &b)) return layout;
    /* one place_stride must fit both dimensions of the window */
    if (dims[2] > 1 && dims[3] > 1 && b.strides[2] != b.strides[3] * dims[3]) return layout;
    find_order(&b, &layout);
    layout.padded_filters = (size_t)b.padded[0];
    layout.padded_channels = (size_t)b.padded[1];
    layout.filter_stride = (size_t)b.strides[0];
    layout.channel_stride = (size_t)b.strides[1];
    layout.place_stride = (size_t)(dims[3] > 1 ? b.strides[3] : b.strides[2]);
    return layout;
}

size_t amp_weights_squares(amp_const_md md)
{
    static const dnnl_dim_t ba[] = { 1, 0 }, any[] = { 0, 0 };
    const dnnl_dim_t *dims;
    blocking b;
    if (!read_blocking(md, &dims, &b) || b.type != dnnl_f32 || !has_blocks(&b, 2, ba, any)) return 0;
    dnnl_dim_t n = b.blocks[0], square = n * n;
    int gaps = b.blocks[1] != n || b.strides[1] != square * dims[2] * dims[3]
        || b.strides[0] != b.strides[1] * (b.padded[1] / n) || (dims[3] > 1 && b.strides[3] != square)
        || (dims[2] > 1 && b.strides[2] != square * dims[3]);
    return gaps ? 0 : (size_t)n;
}
