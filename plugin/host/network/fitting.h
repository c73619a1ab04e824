/* -fit of `detector train` and `classifier train`: the training runs with the number of subdivisions, and
 * with the activation checkpointing, with which it fits into memory and is fastest by the planner's estimate.
 * The batch of a step stays, and so does all mathematics but batch norm's, which sees the images of one pass.
 */
#pragma once

/* -fit was given. */
void amp_fitting_request(void);

/* Whether the network that is being made is the one that is made to choose: what it takes is not checked. */
int amp_fitting_looks(void);
