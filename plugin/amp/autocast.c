/* The autocast rules, and nothing else. */
#include "autocast.h"

amp_autocast_class amp_autocast_class_of(amp_layer_kind kind)
{
    switch (kind) {
    case AMP_LAYER_CONVOLUTIONAL:
    case AMP_LAYER_CONNECTED: return AMP_CLASS_LOWER;
    case AMP_LAYER_ROUTE:
    case AMP_LAYER_SHORTCUT: return AMP_CLASS_PROMOTES;
    case AMP_LAYER_HOST:
    case AMP_LAYER_KINDS: return AMP_CLASS_FP32;
    default: return AMP_CLASS_FOLLOWS;
    }
}

amp_form amp_autocast_form(const amp_layer_desc *desc, amp_dtype dtype, const amp_form *input_homes)
{
    amp_autocast_class class = amp_autocast_class_of(desc->kind);
    if (class == AMP_CLASS_FP32) return AMP_FORM_HOST;
    if (dtype == AMP_FP32 || desc->pinned) return AMP_FORM_WIDE;
    if (class == AMP_CLASS_LOWER) return AMP_FORM_LOW;
    int compared = class == AMP_CLASS_FOLLOWS ? 1 : desc->input_count;
    for (int i = 0; i < compared; i++)
        if (input_homes[i] != AMP_FORM_LOW) return AMP_FORM_WIDE;
    return AMP_FORM_LOW;
}
