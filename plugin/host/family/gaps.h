/* Darknet's own fp32 layers under AMP: where this fork's functions have holes, and what runs instead. On the
 * CPU:
 *
 *  layer          | stock on the CPU                              | ours
 * ----------------+-----------------------------------------------+---------------------------------------
 *  any bwd        | col2im zeroes the input's delta first,        | each layer gets a delta of zeros,
 *                 | batchnorm, activation, normalization and      | which is added to the input's
 *                 | reorg overwrite it: another consumer's        | afterwards
 *                 | gradient is lost                              |
 *  convolutional, | frozen by stopbackward=1: no room for batch   | amp_gap_prepare makes it
 *  batch norm     | norm's numbers, so that training crashes      |
 *  convolutional, | takes all weights for those of one filter,    | each filter by its own mean, as on a
 *  xnor           | and writes beyond them                        | GPU
 *  shortcut with  | threads add to one weight gradient, which     | in one thread, the gradient of what
 *  weights        | leaves the normalization out                  | forward computes
 *  crnn           | loses what a step gives to those before it,   | the layer's gradient, as on a GPU, where
 *                 | applies the self layer's slope to the input   | shortcut=1 has Darknet's own, and batch
 *                 | layer's delta, forgets shortcut=1; with batch | norm takes the last step's statistics
 *                 | norm takes the last step's statistics in each |
 *                 | step, and leaves biases as they are           |
 *  yolo,          | the logistic function is NaN below -88.7      | into a copy, which begins at -88
 *  Gaussian_yolo  | (amp_fork_fault in own.c says why)            |
 *  yolo,          | backward leaves out delta_normalizer          | forward multiplies its delta by it
 *  Gaussian_yolo  |                                               |
 *  cost masked    | writes SECRET_NUM into its input, which       | into a copy
 *                 | others may read                               |
 *
 * On a GPU:
 *  - Convolutions add to the input's delta, but region, normalization and reorg overwrite it, and xnor
 *    applies its slope to all that lies there. So each layer gets a delta of zeros here too.
 *  - Batch norm's buffers of frozen layers are made, and a masked cost reads a copy, as on the CPU.
 *  - A crnn of hank-ai's steps the pointers of its stored inner layers, and so gets copies, as on the CPU.
 *  - A connected layer clips its deltas to 1, which would hide an overflow. Under AMP it does not.
 *  - A shortcut that AMP does not compute itself uses the addresses that its inputs had when it was made,
 *    adds up its weights' gradients in an order that varies, and replaces inf and NaN by 0. Ours is composed
 *    of other kernels of Darknet (shortcut_gpu.c), which add up in a fixed order.
 *
 * Networks with other faults of Darknet's code are refused when they are made (network.c). */
#pragma once

#include "darknet.h"

/* Gives a layer the buffers that its make function leaves out. Call it once; a second call changes
 * nothing. They belong to the layer: Darknet's free_layer frees them. */
void amp_gap_prepare(layer *l);

/* Floats that go into layer `index` in one pass: of all images and time steps. (Darknet's l.inputs is not in
 * all layers the number of one image's.) */
size_t amp_gap_input_count(const network *net, int index);

/* forward and backward of any layer in fp32. backward adds to state.delta, which may be NULL: then only
 * parameters get their gradients. */
void amp_gap_forward(layer l, network_state state);
void amp_gap_backward(layer l, network_state state);

/* Whether Darknet's own backward overwrites the delta of the layer before it, instead of adding to it. */
int amp_gap_overwrites_delta(const layer *l, int on_gpu);

/* A crnn steps the pointers of the layers inside it from one time step to the next, which in hank-ai's are
 * the stored ones: *l, a copy of a layer of any type, gets copies of them, if it is a crnn. */
enum { AMP_GAP_INNER = 3 };
void amp_gap_copy_inner(layer *l, layer inner[AMP_GAP_INNER]);

#ifdef GPU
/* The same on a GPU. state.workspace: at least as many bytes as the layer asks for and amp_gap_workspace_gpu
 * says, together. */
void amp_gap_prepare_gpu(layer *l);
size_t amp_gap_workspace_gpu(const network *net, int index);
void amp_gap_forward_gpu(layer l, network_state state);
void amp_gap_backward_gpu(layer l, network_state state);
/* shortcut_gpu.c: floats of a workspace, and a shortcut whose inputs lie on the GPU, in l.layers_output and
 * l.layers_delta. */
size_t amp_gap_shortcut_room(const layer *l);
void amp_gap_forward_shortcut_gpu(layer l, network_state state);
void amp_gap_backward_shortcut_gpu(layer l, network_state state);
#endif
