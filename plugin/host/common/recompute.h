/* Activation checkpointing as a .cfg asks for it: checkpoint= and memory= of [amp]. */
#pragma once

#include "state.h"

/* What the engine's plans are to recompute; with checkpoint=auto as little as makes a training of
 * this network fit into `memory`, or into what the machine has left. Its engine has no plan yet. */
amp_status amp_host_choose_recompute(struct network *, amp_error *);

/* Prints, once, what the training's first plan recomputes and saves by it. */
amp_status amp_host_tell_recompute(struct darknet_amp *, const amp_network_desc *, const amp_plan_key *,
                                   amp_error *);
