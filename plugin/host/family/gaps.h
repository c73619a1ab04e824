/* What is wrong in the functions of this fork's own fp32 layers, and what runs instead. On the CPU:
 *
 *  layer          | stock on the CPU                              | ours
 * ----------------+-----------------------------------------------+---------------------------------------
 *  any bwd        | col2im zeroes the input's delta first,        | each layer gets a delta of zeros,
 *                 | batchnorm, activation, normalization and      | which is added to the input's
 *                 | reorg overwrite it: another consumer's        | afterwards
 *                 | gradient is lost                              |
 *  convolutional, | frozen by stopbackward=1: no buffers for      | amp_gap_prepare allocates them
 *  batch norm     | batch norm, so that training crashes          |
 *  convolutional, | treats all weights as those of one filter,    | each filter with its own mean, as on a
 *  xnor           | and writes outside them                       | GPU
 *  shortcut with  | several threads add to one weight gradient,   | one thread; the right gradient,
 *  weights        | which ignores the normalization               | including the normalization
 *  crnn           | loses what a step passes to earlier steps,    | the layer's gradient (on a GPU Darknet's
 *                 | applies the self layer's slope to the input   | own code runs, also for shortcut=1, and
 *                 | layer's delta, ignores shortcut=1; batch norm | batch norm uses the final step's
 *                 | uses the final step's statistics each time,   | statistics)
 *                 | and gives biases no gradient                  |
 *  yolo,          | the logistic function is NaN below -88.7      | reads a copy, clamped to -88 and above
 *  Gaussian_yolo  | (amp_fork_fault in own.c says why)            |
 *  yolo,          | backward ignores delta_normalizer             | forward multiplies its delta by it
 *  Gaussian_yolo  |                                               |
 *  cost masked    | writes SECRET_NUM into its input, which       | writes into a copy
 *                 | others may read                               |
 *
 * On a GPU:
 *  - Region, normalization and reorg overwrite the input's delta. A convolution with xnor multiplies the
 *    whole delta of its input by a slope, not only the part that it adds. So on a GPU, too, each layer gets a
 *    delta of zeros.
 *  - As on the CPU, frozen layers get their buffers for batch norm, and a masked cost reads a copy.
 *  - hank-ai's crnn moves the pointers in its stored inner layers from step to step, so it gets copies of
 *    these layers, as on the CPU.
 *  - A connected layer clips its deltas to +-1, and with try_fix_nan=1 other layers do too. This would hide
 *    an overflow. Under AMP they do not clip (amp_own_keep_deltas).
 *  - A shortcut that AMP does not compute itself uses the addresses that its inputs had when it was made. It
 *    adds up its weights' gradients in an order that varies, and replaces inf and NaN by 0. Ours is composed
 *    of other kernels of Darknet (shortcut_gpu.c), which add up in a fixed order.
 *
 * Networks with other faults of Darknet's code are rejected when they are made (network.c). */
#pragma once

#include "darknet.h"

/* Gives a layer the buffers that its make function forgets. Darknet's free_layer frees them. A second call
 * changes nothing. */
void amp_gap_prepare(layer *l);

/* Returns how many floats layer `index` reads from the layer before it in one pass, for all images and time
 * steps. (In some layers Darknet's l.inputs is not the number for one image.) */
size_t amp_gap_input_count(const network *net, int index);

/* Forward and backward of any layer, in fp32. backward adds to state.delta, which may be NULL. */
void amp_gap_forward(layer l, network_state state);
void amp_gap_backward(layer l, network_state state);

/* Whether Darknet's own backward overwrites the previous layer's delta instead of adding to it. */
int amp_gap_overwrites_delta(const layer *l, int on_gpu);

/* l: a copy of a layer. If it is a crnn, copies its inner layers to `inner`, and makes *l point to these
 * copies, because in each time step a crnn's functions move pointers in its inner layers; hank-ai's Darknet
 * would move them in the network's own layers. */
enum { AMP_GAP_INNER = 3 };
void amp_gap_copy_inner(layer *l, layer inner[AMP_GAP_INNER]);

#ifdef GPU
/* The same on a GPU. state.workspace has amp_gap_workspace_gpu's bytes in addition to the layer's own
 * workspace. */
void amp_gap_prepare_gpu(layer *l);
size_t amp_gap_workspace_gpu(const network *net, int index);
void amp_gap_forward_gpu(layer l, network_state state);
void amp_gap_backward_gpu(layer l, network_state state);
/* shortcut_gpu.c. room: floats of workspace. l.layers_output and l.layers_delta hold the addresses of the far
 * inputs' outputs and deltas on the GPU. */
size_t amp_gap_shortcut_room(const layer *l);
void amp_gap_forward_shortcut_gpu(layer l, network_state state);
void amp_gap_backward_shortcut_gpu(layer l, network_state state);
#endif
