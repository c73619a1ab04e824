/* Decides which of Darknet's layers AMP computes itself (native layers), and which stay Darknet's own fp32
 * code.
 *
 * The rule fails closed. A layer is native only if AMP implements its type, and if all options that AMP does
 * not know for this type are 0 (not set) in the layer's struct. So AMP never ignores an option that a fork
 * adds: test e2e_source_tree fails until the fork's layers.c has a row for it. */
#include "room.h"

static const amp_own_type *type_of(const layer *l)
{
    return l->type < amp_own_type_count && amp_own_types[l->type].name ? &amp_own_types[l->type] : NULL;
}

const char *amp_host_type_name(LAYER_TYPE type)
{
    const amp_own_type *row = type_of(&(layer){ .type = type });
    return row ? row->name : "layer";
}

/* ---- options ---- */

static int is_zero(const void *field, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (((const char *)field)[i]) return 0;
    return 1;
}

static const char *unknown_option(const layer *l)
{
    for (size_t i = 0; i < amp_own_option_count; i++) {
        const amp_own_option *o = &amp_own_options[i];
        if (!(o->types >> l->type & 1) && !is_zero((const char *)l + o->offset, o->bytes)) return o->why_own;
    }
    return NULL;
}

/* ---- settings that AMP does not support in a layer ---- */

amp_activation amp_host_activation_of(ACTIVATION a)
{
    return (unsigned)a < amp_own_activation_count ? amp_own_activations[a] : AMP_ACTIVATIONS;
}

/* The largest side of a maxpool's window. The backend stores the maximum's index within the window in a byte,
 * in which 255 means no maximum. */
enum { LARGEST_POOL = 15 };

const char *amp_host_why_own(const layer *l)
{
    const amp_own_type *type = type_of(l);
    if (!type) return "Darknet's own fp32 code";
    if (l->type == SOFTMAX && l->noloss) return "fp32 output";
    if (type->why_own) return type->why_own;
    if (amp_host_activation_of(l->activation) == AMP_ACTIVATIONS)
        return "an activation that AMP does not know";
    if (l->type == UPSAMPLE && l->reverse) return "downsamples (stride < 0)";
    if (l->type == MAXPOOL && l->size > LARGEST_POOL) return "window above 15";
    if (l->type == YOLO && (l->total > AMP_YOLO_MAX_ANCHORS || l->n > AMP_YOLO_MAX_ANCHORS))
        return "more than 32 anchors";
    const char *unfit = amp_own_unfit(l);
    return unfit ? unfit : unknown_option(l);
}

int amp_host_is_native(const layer *l) { return !amp_host_why_own(l); }

const amp_layer_ops *amp_host_kind_of(const layer *l)
{
    return amp_host_is_native(l) ? type_of(l)->kind : AMP_LAYER_HOST;
}

void amp_host_settings(const layer *l, amp_layer_desc *d)
{
    if (type_of(l)->settings) type_of(l)->settings(l, d);
}
