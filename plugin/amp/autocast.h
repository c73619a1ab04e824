/* Autocast: which form each layer computes in. The classes are torch.amp's, in Darknet's words; see docs/design.md. */
#ifndef AMP_AMP_AUTOCAST_H
#define AMP_AMP_AUTOCAST_H

#include "../layers/layer.h"

typedef enum amp_autocast_class {
    AMP_CLASS_LOWER,    /* half in, fp32 accumulation, half out */
    AMP_CLASS_FOLLOWS,  /* the form of its input */
    AMP_CLASS_PROMOTES, /* the widest form of its inputs */
    AMP_CLASS_FP32      /* the host's own fp32 layer */
} amp_autocast_class;

amp_autocast_class amp_autocast_class_of(amp_layer_kind kind);

/* The form a layer computes in; input_homes holds its inputs' home forms. dtype fp32 and pinned layers never get LOW. */
amp_form amp_autocast_form(const amp_layer_desc *desc, amp_dtype dtype, const amp_form *input_homes);

#endif
