/* Autocast chooses the form in which each layer computes: HALF (fp16 or bf16), WIDE (fp32), or PLAIN (the
 * host's own fp32 layer). The classes are those of torch.amp; see docs/design.md. */
#pragma once

#include "../layers/layer.h"

/* What decided the form of a layer. */
typedef enum amp_autocast_reason {
    AMP_WHY_CLASS,  /* the layer's class alone: it always runs in half precision, or always in the host's
                       own fp32 code */
    AMP_WHY_DTYPE,  /* the network's dtype is fp32 */
    AMP_WHY_KEPT,   /* amp=0 in the layer's section */
    AMP_WHY_INPUT   /* the forms of the layer's inputs */
} amp_autocast_reason;

typedef struct amp_autocast {
    amp_autocast_class class;
    amp_form form;
    amp_autocast_reason reason;
    int input; /* with AMP_WHY_INPUT: the input that decided; -1: several decided, all of them HALF */
} amp_autocast;

/* Returns the form in which a layer computes, and why. input_homes: the home form of each input (the form in
 * which its producer wrote it). With dtype fp32 or amp=0 the result is never HALF. */
amp_autocast amp_autocast_of(const amp_layer_desc *desc, amp_dtype dtype, const amp_form *input_homes);
