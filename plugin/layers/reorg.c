/* The [reorg] layer: a fixed rearrangement of each image, in all of Darknet's modes (stride, reverse,
 * flatten, extra), done with index tables.
 *
 * Darknet's reorg works on flat NCHW memory. With stride s and r = c/s², element (k,j,i) of a (c,h,w) array
 * corresponds to flat element ((k%r)·h·s + j·s + (k/r)/s)·w·s + i·s + (k/r)%s of the other array (blas.c,
 * reorg_cpu). */
#include "layer.h"

/* The flat NHWC index of the element with this flat NCHW index. */
static int32_t nhwc_of_nchw(amp_shape s, size_t flat)
{
    size_t plane = (size_t)s.h * s.w;
    return (int32_t)(flat % plane * s.c + flat / plane);
}

/* Returns the input element from which output element `out` is copied (flat NCHW), or -1. */
static long source_of(const amp_layer_desc *d, amp_shape in, size_t out)
{
    size_t plane = (size_t)in.h * in.w;
    if (d->reorg.flatten) /* (c,h·w) ↔ (h·w,c) */
        return (long)(d->reorg.reverse ? out % plane * in.c + out / plane : out % in.c * plane + out / in.c);
    if (d->reorg.extra) return out < amp_shape_image(in) ? (long)out : -1;
    size_t s = (size_t)d->reorg.stride, r = in.c / (s * s), w = in.w, h = in.h;
    if (!d->reorg.reverse) { /* `out` is element (k,j,i) of an array of the input's shape (c,h,w) */
        size_t k = out / plane, j = out % plane / w, i = out % w, offset = k / r;
        return (long)(((k % r) * h * s + j * s + offset / s) * w * s + i * s + offset % s);
    }
    /* The inverse: `out` is element (k2,h2,w2) of an array of shape (r,h·s,w·s). */
    size_t w2 = out % (w * s), h2 = out / (w * s) % (h * s), k2 = out / (w * s * h * s);
    size_t offset = (h2 % s) * s + w2 % s;
    return (long)(((k2 + offset * r) * h + h2 / s) * w + w2 / s);
}

/* The table has forward's map, with one entry per output element, then backward's, with one entry per input
 * element. One is enough, because no two output elements come from the same input element. */
static amp_status plan(amp_node *node, amp_call *call, amp_arena *arena, int forward_time, int backward_time,
                       amp_error *error)
{
    amp_shape in = node->inputs[0]->shape, out = node->output->shape;
    size_t count = amp_shape_image(out), back_count = amp_shape_image(in);
    int stride = node->desc.reorg.stride, side = node->desc.reorg.reverse ? 1 : stride;
    if (!node->desc.reorg.flatten && !node->desc.reorg.extra
        && (in.c % (stride * stride) || in.h % side || in.w % side))
        return amp_fail(error, AMP_BAD_NETWORK,
                        "layer %d [reorg]: input %dx%dx%d (w x h x c) is not divisible by stride %d",
                        node->index, in.w, in.h, in.c, stride);
    if (call->outline) return AMP_OK;
    int32_t *map = amp_allocated(malloc((count + back_count + 1) * sizeof *map)), *back = map + count;
    for (size_t i = 0; i < back_count; i++) back[i] = -1;
    for (size_t i = 0; i < count; i++) {
        long from = source_of(&node->desc, in, i);
        int32_t to = nhwc_of_nchw(out, i);
        map[to] = from < 0 ? -1 : nhwc_of_nchw(in, (size_t)from);
        if (from >= 0) back[map[to]] = to;
    }
    amp_status status = amp_node_make_table(node, call, map, (count + back_count) * sizeof *map, error);
    free(map);
    return status;
}

static amp_status map(amp_node *node, amp_call *call, const amp_tensor *x, const amp_tensor *y,
                      amp_error *error)
{
    return call->backend->gather(call->backend, x, y, node->table, 0, error);
}

static amp_status map_delta(amp_node *node, amp_call *call, const amp_tensor *dy, const amp_tensor *dx,
                            int accumulate, amp_error *error)
{
    const int32_t *back = (const int32_t *)node->table + amp_shape_image(dy->shape);
    return call->backend->gather(call->backend, dy, dx, back, accumulate, error);
}

const amp_layer_ops amp_reorg_ops = { .class = AMP_CLASS_FOLLOWS, .plan = plan, .map = map,
                                      .map_delta = map_delta, .repeats = AMP_RECOMPUTE_ALL };
