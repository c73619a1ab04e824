/* Whether a training fits into the memory that there is: asked before anything large is taken. */
#pragma once

#include "../../tensor/status.h"

struct network;

/* Compares what a training of the network takes at its largest input size with the free memory. Too little:
 * AMP_NO_MEMORY, and the error gives both numbers and a batch that would fit. Hardly enough: a warning on
 * stderr.
 *
 * It is called twice. First with roughly=1, before the backend allocates anything, because libraries crash
 * when an allocation fails: what only a library knows (workspaces, layouts of weights) is then estimated or
 * left out, and with checkpoint=auto, which is decided later, so are activations. Then with roughly=0,
 * exactly; the memory that remains is offered to the cache of decoded images (cache=ram). */
amp_status amp_host_check_fits(struct network *, int roughly, amp_error *);

/* Tells the engine which layers backward computes again, by checkpoint= and memory= of [amp]. With
 * checkpoint=auto that is the cheapest choice with which a training of this network fits into memory=, or
 * into the free memory. The engine drops the plans it has made so far. */
amp_status amp_host_choose_recompute(struct network *, amp_error *);
