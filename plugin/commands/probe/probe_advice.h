/* From histograms to advice: what loses too much in fp16, at which loss scales, and which layers to pin for it. */
#ifndef AMP_COMMANDS_PROBE_PROBE_ADVICE_H
#define AMP_COMMANDS_PROBE_PROBE_ADVICE_H

#include "probe.h"

/* network, the layers' numerics, share and, unless it is AMP_SCALE_HIGHEST, scale are known; fills in the rest. */
amp_status amp_probe_advise(amp_probe_result *, amp_error *);

/* Whether a GPU's library writes a layer's weight gradient in the layer's dtype; else it is fp32 from the start. */
int amp_probe_gradient_is_low(const amp_layer_desc *);
/* What a GPU multiplies layer i's weight gradient with before it is fp16, as an exponent: 0 or less. */
int amp_probe_gradient_shift(const amp_probe_result *, int i);

/* 2^exponent for a reader: "2048", "0.25", "2^40". */
const char *amp_probe_scale_text(int exponent, char text[32]);

#endif
