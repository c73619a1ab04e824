/* Autocast: which form each layer computes in. The classes are torch.amp's; see docs/design.md. */
#pragma once

#include "../layers/layer.h"

/* What decided the form of a layer. */
typedef enum amp_autocast_reason {
    AMP_WHY_CLASS,  /* the layer's class: half precision, or a host layer */
    AMP_WHY_DTYPE,  /* the network's dtype is fp32 */
    AMP_WHY_KEPT,   /* amp=0 in the layer's section */
    AMP_WHY_INPUT   /* the forms of the layer's inputs */
} amp_autocast_reason;

typedef struct amp_autocast {
    amp_autocast_class class;
    amp_form form;
    amp_autocast_reason reason;
    int input; /* AMP_WHY_INPUT: index of the input that decided; -1: all inputs have the same form */
} amp_autocast;

/* The form a layer computes in, and why. input_homes: the home forms of its inputs. With dtype fp32 or amp=0
 * the form is never HALF. */
amp_autocast amp_autocast_of(const amp_layer_desc *desc, amp_dtype dtype, const amp_form *input_homes);
