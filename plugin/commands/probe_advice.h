/* From histograms to advice: what loses too much in fp16, at which loss scales, and which layers to pin for it. */
#ifndef AMP_COMMANDS_PROBE_ADVICE_H
#define AMP_COMMANDS_PROBE_ADVICE_H

#include "probe.h"

/* Of outputs, which no loss scale moves: so many may become 0 before the layer counts as lost. A share as that of deltas would not
 * do: what a sigmoid or a leaky ReLU makes of very negative numbers is next to nothing, and not missed. */
#define AMP_PROBE_OUTPUT_SHARE .5

/* network, the layers' numerics, share and, unless it is AMP_SCALE_HIGHEST, scale are known; fills in the rest. */
amp_status amp_probe_advise(amp_probe_result *, amp_error *);

#endif
