/* Whether a training fits into the memory that there is: asked before anything large is taken. */
#pragma once

#include "../../tensor/status.h"

struct network;

/* AMP_NO_MEMORY, if a training of the network at its largest size needs more than there is: a line with both
 * numbers, and with what would fit. If it needs nearly all, a warning on stderr.
 * roughly: before the backend makes anything, since libraries crash where they find no memory. Then what only
 * a library can tell (workspaces, layouts of weights) is left out or estimated. With checkpoint=auto, whose
 * choice comes later, activations do not count then. Otherwise what it leaves may hold decoded images
 * (cache=ram). */
amp_status amp_host_check_fits(struct network *, int roughly, amp_error *);

/* What the engine's plans are to recompute, as checkpoint= and memory= of [amp] say; with checkpoint=auto as
 * little as makes a training of this network fit into `memory`, or into what the machine has left. Its engine
 * keeps no plan that it had. */
amp_status amp_host_choose_recompute(struct network *, amp_error *);
