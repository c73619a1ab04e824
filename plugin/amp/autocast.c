/* The autocast rules of autocast.h. A layer has the autocast class of its kind (layers/layer.h). */
#include "autocast.h"

/* The form is HALF if the first `compared` inputs are all HALF, else WIDE. */
static amp_autocast by_inputs(amp_autocast_class class, int compared, const amp_form *input_homes)
{
    for (int i = 0; i < compared; i++)
        if (input_homes[i] != AMP_FORM_HALF) return (amp_autocast){ class, AMP_FORM_WIDE, AMP_WHY_INPUT, i };
    return (amp_autocast){ class, AMP_FORM_HALF, AMP_WHY_INPUT, compared == 1 ? 0 : -1 };
}

amp_autocast amp_autocast_of(const amp_layer_desc *desc, amp_dtype dtype, const amp_form *input_homes)
{
    amp_autocast_class class = desc->kind->class;
    /* amp=0 changes nothing for a host layer, except that its matrix products stay in fp32. */
    int kept = desc->keep_fp32 && desc->lends_products && dtype != AMP_FP32;
    if (class == AMP_CLASS_FP32)
        return (amp_autocast){ class, AMP_FORM_PLAIN, kept ? AMP_WHY_KEPT : AMP_WHY_CLASS, -1 };
    if (dtype == AMP_FP32) return (amp_autocast){ class, AMP_FORM_WIDE, AMP_WHY_DTYPE, -1 };
    if (desc->keep_fp32) return (amp_autocast){ class, AMP_FORM_WIDE, AMP_WHY_KEPT, -1 };
    if (class == AMP_CLASS_LOWER) return (amp_autocast){ class, AMP_FORM_HALF, AMP_WHY_CLASS, -1 };
    return by_inputs(class, class == AMP_CLASS_FOLLOWS ? 1 : desc->input_count, input_homes);
}
