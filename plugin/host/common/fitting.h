/* -fit of `detector train` and `classifier train`: the training runs with the number of subdivisions, and with
 * the activation checkpointing, with which it fits into memory and is fastest by the planner's estimate. The
 * batch of a step stays, and so does all mathematics but batch norm's, which sees the images of one pass. */
#pragma once

#include "../../amp/config.h"

/* -fit was given. */
void amp_fitting_request(void);

/* Called when Darknet's parser opens a .cfg. In a training with -fit the first call makes the network once
 * more, with one image a pass, chooses, and says what it has chosen; for other programs it does nothing. The
 * program ends where nothing fits. */
void amp_fitting_choose(const char *cfg_file);

/* Puts the choice into the settings of a network that is about to be made, and returns its subdivisions; 0:
 * the .cfg's own. */
int amp_fitting_apply(amp_config *);

/* Whether the network that is made is the one that is made to choose: what it takes is not checked. */
int amp_fitting_looks(void);
/* Whether there was such a network. */
int amp_fitting_has_looked(void);
