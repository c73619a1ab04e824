/* A backend that computes one thing wrong, for tests of what finds it: `darknet amp probe` and
 * `darknet amp selftest`. */
#pragma once

#include "backend/backend.h"

/* AMP_FAULT in the environment, "NAME CHANNELS", is the fault, in operations on tensors of so many channels:
 *
 *   bias        biases are 1.001 times what they are
 *   minus       a bias is subtracted instead of added
 *   copies      a convolution goes on with the copies of its weights that were made first
 *   early       batch norm reads what lay there before the convolution has written, as where a stream is not
 *               waited for
 *   cast        of a delta's parts those in another form are dropped instead of added
 *   variance    the rolling variance averages sums over N instead of N - 1
 *   statistics  the rolling mean does not move
 *   biases      biases get no gradient where there is no batch norm
 *   slope       backward leaves the activation's slope out
 *   scales      batch norm's scales get no gradient
 *   upsample    a pixel's delta is not added to that of its neighbours
 *   shortcut    the second input counts twice
 *   choice      max pooling gives its delta to another pixel
 *   dropout     what is kept is not scaled up
 *   yolo        its delta is 1.01 times what it is
 *
 * Without it the backend stays as it is. Its tensors lie in the program's memory, and what it was asked to do
 * is done when its functions return. */
void put_fault(amp_backend *);
