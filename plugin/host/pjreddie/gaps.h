/* Why this file exists: layers that AMP does not compute itself run Darknet's own fp32 functions. Several of
 * Darknet's CPU functions are empty, crash, or write outside their buffers, although the GPU functions work.
 * Every layer type must train on the CPU. So the functions below stand between the engine and `l.forward` /
 * `l.backward`: they call stock's function if it is right. Otherwise they call ours, which computes what
 * stock's GPU function does.
 *
 * Conventions, as everywhere in Darknet: Buffers are fp32 NCHW. `delta` is minus the gradient. Backward adds
 * to net.delta and to *_updates. In rnn, gru, lstm and crnn l.batch is the number of streams, and buffers
 * hold steps*batch*outputs floats, step-major. The output and delta of rnn and crnn are the same buffers as
 * those of their output layer: keep these pointers equal. The CPU functions are for a build with GPU=0: with
 * GPU=1, stock's CPU code of region, yolo and iseg skips their activations.
 *
 * Differences from stock's CPU code (pjreddie 61c9d02e). Unless a row has a note, the column "ours" is what
 * stock computes on a GPU. tests/host/test_gaps*.c checks each row.
 *
 *  layer          | stock on the CPU                                        | ours
 * ----------------+---------------------------------------------------------+--------------------------------
 *  region fwd     | no logistic for mask coords (coords>4)                  | logistic
 *  region fwd     | softmax_tree: indexes as if entries were not spaced w*h | per pixel, temperature 1
 *                 | apart, divides by temperature 0                         |
 *  region bwd     | empty: nothing reaches the network                      | logistic gradient, then adds
 *  gru bwd        | empty                                                   | complete
 *  rnn fwd, bwd   | writes `steps` states into room for one; input layer    | right, keeps the state from
 *                 | gets the delta after the self layer's activation        | batch to batch; shortcut=1 is
 *                 | gradient; backward ignores shortcut                     | obeyed (a GPU ignores it)
 *  lstm           | no delta buffer, no backward pointer: crashes when      | stock's backward with dc zeroed
 *                 | training                                                | (1)
 *  crnn           | requests no workspace (also on a GPU): crashes unless   | stock's, with its own workspace
 *                 | another layer requested enough                          |
 *  local          | requests as many bytes as it needs floats (GPU: same)   | stock's, with its own workspace
 *  deconvolution- | loading divides by groups, which is 0, and resizing is  | not needed: AMP computes it
 *  al             | not possible (also on a GPU)                            |
 *  softmax        | ignores spatial=1 (on a GPU reads and writes outside    | softmax over channels at each
 *                 | the buffer when c > 1)                                  | pixel
 *  softmax        | tree: truths of SECRET_NUM are not ignored              | delta and loss are 0 there
 *  cost smooth    | |diff| >= 1: sign of delta is wrong                     | right
 *  cost wgan      | treated as sse                                          | right
 *  cost seg       | noobj= ignored                                          | scales where truth is 0
 *  cost masked    | writes SECRET_NUM into the previous layer's output to   | delta and output are 0 there,
 *                 | get delta 0 (a GPU masks another layer's delta)         | the input is unchanged
 *  cost           | thresh=, smooth= ignored (a GPU's smooth= changes       | applied, truth is unchanged
 *                 | net.truth in place)                                     |
 *  cost ratio     | ignored                                                 | ignored (unused on a GPU too)
 *  l2norm fwd     | 0/0 at a pixel whose channels are all 0                 | the pixel stays 0
 *  l2norm bwd     | net.delta += delta (a GPU adds (1-y)/norm)              | the CPU's (2)
 *  logistic fwd   | loss is NaN or inf at p = 0 or 1                        | 1e-7 inside the logarithms
 *  iseg fwd       | reads net.truth even when it is NULL, on a GPU too      | no truth: no loss
 *  upsample bwd   | stride < 0: overwrites net.delta                        | adds
 *  convolutional  | size=1 with stride > 1: the stride is ignored, the      | not needed: AMP computes it
 *                 | first out_w*out_h pixels are taken (right with cuDNN)   |
 *  convolutional, | the buffer of the binary input is not resized (also on  | resized
 *  xnor           | a GPU): random=1 writes beyond it                       |
 *  convolutional  | size=1 overwrites net.delta (its gemm has beta 0), on a | adds
 *  bwd            | GPU without cuDNN too: a second consumer's gradient is  |
 *                 | lost                                                    |
 *  normalization, | overwrite net.delta, on a GPU too: a second consumer's  | adds (3)
 *  activation,    | gradient is lost                                        |
 *  reorg,         |                                                         |
 *  batchnorm bwd  |                                                         |
 *  batchnorm      | no x, x_norm, mean_delta, variance_delta: crashes       | amp_gap_prepare makes them
 *  any bwd        | first layer (net.delta NULL) crashes in layers without  | skipped; a batchnorm gets a
 *                 | parameters and in batchnorm, on a GPU too               | delta that nobody reads
 *
 *  (1) dc carries the cell's delta from each step to the step before it. With the previous batch's values,
 *      deltas of two loss scales would be added, and an overflow would stay in dc forever.
 *  (2) The term that a GPU adds is not a gradient of the layer (see the test) and has no loss scale.
 *      Darknet's author commented it out in the CPU code.
 *  (3) A comment in Darknet's normalization layer asks for this.
 *
 * Known faults that are kept, because stock's CPU and GPU code agree on them:
 *  - normalization backward leaves out the derivative of the norm ("approximate ;-)").
 *  - lstm backward uses h and c *after* the first step as the states *before* it, which falsifies that
 *    step's share of the gradients of the w* weights and of the forget gate.
 *  - crnn: the input layer's delta is multiplied by the self layer's activation gradient too, and backward
 *    ignores shortcut=1.
 *  - batch norm inside rnn, gru, lstm, crnn: backward uses the final step's mean and variance for every step.
 *  - batch norm: forward computes the variance over n-1, and adds 1e-6 outside the root. backward computes
 *    with 1/n, and adds 1e-5 inside the root.
 *  - sse, smooth: delta is half of the gradient of the loss that is printed. softmax: delta lacks
 *    1/temperature.
 *  - crop: no gradient flows back. On the CPU angle, saturation, exposure, shift do nothing, and one crop
 *    serves the batch.
 *  - shortcut: forward multiplies by alpha only where the two inputs overlap, backward everywhere.
 *  - the GPU clips connected layers' deltas to +-1 (so inside rnn, gru, lstm too) and smooths convolutional
 *    deltas (smooth=); the CPU does neither. detection's GPU code skips its softmax at inference; its CPU
 *    code does not.
 *
 * How our GPU code differs from stock's (no device has run ours yet): a cost, a softmax with spatial=1 and an
 * iseg without truth run the CPU code above, on copies. Other differences:
 *
 *  layer          | stock on the GPU                               | ours
 * ----------------+------------------------------------------------+-----------------------------------------
 *  l2norm bwd     | adds (1-y)/norm, without the loss scale        | the gradient only, as on the CPU
 *  normalization  | overwrites net.delta: a second consumer's      | adds
 *  bwd            | gradient is lost                               |
 *  lstm bwd       | dc is not zeroed between batches: an overflow  | zeroed
 *                 | would stay in it forever                       |
 *  rnn, gru, lstm | clips the deltas of their connected layers to  | not clipped, as on the CPU and as in
 *  bwd            | +-1, ignoring the loss scale, and hides inf    | AMP's own connected layer
 *                 | and NaN                                        | (amp_own_keep_deltas)
 *  convolutional  | smooth= adds to the delta, without the loss    | not added, as on the CPU and as in AMP's
 *  bwd            | scale                                          | own convolution (amp_own_keep_deltas)
 *  crnn           | with cuDNN each step convolves batch * steps   | convolves batch images, requests enough
 *                 | images, beyond its buffers; requests no        | workspace
 *                 | workspace                                      |
 *  any bwd        | first layer (net.delta_gpu NULL): crashes in   | skipped
 *                 | layers without parameters                      |
 *
 * Not changed on the GPU: rnn ignores shortcut=1, crop draws from cuRAND, detection skips its softmax at
 * inference.
 */
#pragma once

#include "darknet.h"

/* Gives a layer the buffers that stock's make_*_layer forgets on the CPU. Call it after the layer was made; a
 * second call changes nothing. Darknet's free_layer frees the buffers. */
void amp_gap_prepare(layer *l);

/* Forward of any layer in fp32: reads net.input, net.truth, net.train (and net.layers for route, shortcut),
 * writes l.output, and for losses l.delta and l.cost. Needs the same fields as stock's forward, except
 * net.workspace for local and crnn. The caller zeroes l.delta beforehand, as forward_network does. */
void amp_gap_forward(layer l, network net);

/* Backward of any layer in fp32: reads net.input, l.output, l.delta (which it may change), adds to net.delta
 * and to the parameters' *_updates. If net.delta is NULL, only the gradients of parameters are computed. */
void amp_gap_backward(layer l, network net);

/* Bytes of workspace that a local or crnn layer needs. */
size_t amp_gap_workspace(const layer *l);

/* Whether the type has parameters or far inputs: its backward then runs even if its input needs no delta. */
int amp_gap_works_without_delta(LAYER_TYPE type);

/* Whether Darknet's own backward overwrites the previous layer's delta instead of adding to it. */
int amp_gap_overwrites_delta(const layer *l, int on_gpu);

/* gaps_recurrent.c: recurrent layers. */
void amp_gap_forward_rnn(layer l, network net);
void amp_gap_backward_rnn(layer l, network net);
void amp_gap_backward_gru(layer l, network net);

#ifdef GPU
/* gaps_gpu.c: the same on a GPU, with net.input_gpu, net.truth_gpu, net.delta_gpu and net.workspace. Call
 * prepare once, after the layer was made, while its device is the current one. */
void amp_gap_prepare_gpu(layer *l);
size_t amp_gap_workspace_gpu(const layer *l);
void amp_gap_forward_gpu(layer l, network net);
/* Whether the layer's forward runs on the CPU, from net.input and net.truth, as for a cost. */
int amp_gap_is_on_cpu(const layer *l);
void amp_gap_backward_gpu(layer l, network net);
#endif
