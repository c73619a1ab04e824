/* How a network becomes a rank, and what ranks of networks do: program/ranks.h says what ranks are. */
#pragma once

#include "state.h"

/* Sets amp->comm of a network that the programs train together; it stays NULL where this program is alone. */
amp_status amp_ranks_use(struct darknet_amp *, amp_error *);

/* -gpus: makes `count` networks of this program ranks of each other. The array `nets` is the caller's, and
 * must live as long as they do: each has it as amp->united. */
void amp_ranks_unite(struct network **nets, int count);
/* Sets amp->comm of such a network. Called at its first training pass, in the thread that makes this pass,
 * while the other networks' threads do the same. For any other network it does nothing. */
void amp_ranks_join(struct darknet_amp *);
/* Called before such a network is freed. */
void amp_ranks_forget(struct darknet_amp *);
/* Whether this network prints what happens in a step: rank 0's does, and one that trains alone. */
int amp_ranks_prints_for(const struct darknet_amp *);

/* As amp_ranks_agree, for the network: what it trains in, its weights, its loss scale and its step. */
void amp_ranks_agree_to_train(struct network *);
