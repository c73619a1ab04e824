/* From histograms to advice: what loses too much in fp16, at which loss scales, and which layers to pin for it. */
#ifndef AMP_COMMANDS_PROBE_ADVICE_H
#define AMP_COMMANDS_PROBE_ADVICE_H

#include "probe.h"

/* network, the layers' numerics, share and, unless it is AMP_SCALE_HIGHEST, scale are known; fills in the rest. */
amp_status amp_probe_advise(amp_probe_result *, amp_error *);

#endif
