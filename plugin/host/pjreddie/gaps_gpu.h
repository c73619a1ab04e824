/*
 * Why this file exists: layers that AMP does not run natively run Darknet's own fp32 code, and on a GPU
 * that has holes as well, though fewer than on the CPU (gaps.h lists both). These functions stand between
 * the engine and l.forward_gpu, l.backward_gpu. What differs from stock (pjreddie 61c9d02e) here; no
 * device has run this yet:
 *
 *  layer          | stock on the GPU                               | ours
 * ----------------+------------------------------------------------+-----------------------------------------
 *  softmax        | spatial=1 reads and writes outside the buffer  | softmax over channels at each pixel
 *  cost masked    | masks a delta that is not its own              | its own delta and output
 *  cost smooth=   | changes net.truth in place, for later losses   | a copy
 *                 | too                                            |
 *  cost ratio=    | computed, printed, then unused                 | ignored
 *  iseg fwd       | reads net.truth even when it is NULL           | no truth: no loss
 *  l2norm bwd     | adds (1-y)/norm, which knows no loss scale     | the gradient only, as on the CPU
 *  normalization  | overwrites net.delta: a second consumer's is   | adds
 *  bwd            | lost                                           |
 *  lstm bwd       | dc is not zeroed between batches               | zeroed: an overflow would stay in it for
 *                 |                                                | ever
 *  rnn, gru, lstm | clips the deltas of their connected layers to  | not clipped, as on the CPU and as in
 *  bwd            | +-1, which knows no loss scale and hides inf   | AMP's own connected layer
 *                 | and NaN                                        | (layer.amp_unclipped)
 *  convolutional  | smooth= adds to the delta, and knows no loss   | not added, as on the CPU
 *  bwd            | scale (binary=1 and xnor=1 only: others are    |
 *                 | native)                                        |
 *  crnn           | with cuDNN each step convolves batch * steps   | batch images, and enough workspace
 *                 | images, beyond its buffers; asks for no        |
 *                 | workspace                                      |
 *  any bwd        | first layer (net.delta_gpu NULL): faults in    | skipped
 *                 | layers without parameters                      |
 *
 * Left as it is: rnn ignores shortcut=1, crop draws from cuRAND, detection skips its softmax at inference,
 * and what gaps.h says of both forms.
 */
#pragma once

#include "darknet.h"

#ifdef GPU
/* As gaps.h's three doors; net.input_gpu, net.truth_gpu, net.delta_gpu and net.workspace are device memory.
 * prepare must run once, after the layer was made, with its device as the current one. workspace: bytes. */
void amp_gap_prepare_gpu(layer *l);
size_t amp_gap_workspace_gpu(const layer *l);
void amp_gap_forward_gpu(layer l, network net);
void amp_gap_backward_gpu(layer l, network net);
#endif
