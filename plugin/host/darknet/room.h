/* Types and functions that the files of this folder share. They use Darknet's structs. */
#pragma once

#include "../network/state.h"
#include "darknet.h"
#include "device.h"
#include "own.h"
#include "pinned.h"

/* The capacities, in floats, of one layer's Darknet buffers under AMP; 0: no buffer. copy_capacity: that of
 * the output's copy in CPU memory, for a network on a GPU. */
typedef struct amp_host_buffers { size_t output_capacity, delta_capacity, copy_capacity; } amp_host_buffers;

struct amp_fork_memory {
    amp_host_buffers *buffers; /* per layer */
    char *held;                /* per layer: 1 if this step's update must leave its parameters unchanged */
    amp_host_pinned pinned;    /* the network's input */
    int t;                     /* number of updates of Adam's moments, if Darknet does not count them */
    float *workspace;          /* workspace of Darknet's own layers; under AMP net->workspace is NULL */
    size_t workspace_bytes;
};

/* Darknet's pointers to a layer's output and delta in CPU memory or, with on_gpu=1, GPU memory. */
float **amp_host_output_of(layer *l, int on_gpu);
float **amp_host_delta_of(layer *l, int on_gpu);

/* Records the buffers that Darknet has allocated by parsing or a resize, and frees its workspace. */
void amp_host_note_buffers(struct darknet_amp *amp, network *net);

/* Allocates the fp32 outputs and deltas that a plan needs, and frees those of native layers that the plan
 * does not need. needs_output and needs_delta have one flag per layer. Also calls amp_host_fit_workspace. */
amp_status amp_host_fit_buffers(struct darknet_amp *amp, const char *needs_output, const char *needs_delta,
                                amp_error *);

/* Darknet's own layers share one workspace. Enlarges it to the largest size that one of these layers needs.
 * It is in amp->memory: a change of net->workspace would be lost when network_predict restores the network's
 * fields. */
amp_status amp_host_fit_workspace(struct darknet_amp *amp, const network *net, amp_error *);

/* Frees amp->memory, and buffers that Darknet would not free. Call it before Darknet frees the network. */
void amp_host_release(struct darknet_amp *amp, network *net);

/* Frees those buffers of layer l that AMP does not use. Call it right after Darknet has made or resized the
 * layer, so that a network that fits into memory only under AMP can be made. */
void amp_host_trim(const network *net, layer *l);

/* How many weights a layer learns, and how many channels have biases, scales and rolling statistics. 0: none.
 * The layers inside a recurrent layer are counted separately. */
typedef struct amp_host_sizes { size_t weights, channels; } amp_host_sizes;
amp_host_sizes amp_host_sizes_of(const layer *l);

/* The name of the .cfg section of a type, for example "convolutional". */
const char *amp_host_type_name(LAYER_TYPE type);

/* A native layer is one that AMP computes itself (native.c); its Darknet buffers exist only on demand. For
 * other layers kind_of is AMP_LAYER_HOST, and why_own says why in a few words (NULL: native). */
int amp_host_is_native(const layer *l);
const amp_layer_ops *amp_host_kind_of(const layer *l);
const char *amp_host_why_own(const layer *l);
/* The settings of a native layer's kind. */
void amp_host_settings(const layer *l, amp_layer_desc *d);

/* Returns AMP_ACTIVATIONS if AMP does not know the activation. */
amp_activation amp_host_activation_of(ACTIVATION);

/* ---- losses.c ---- */

/* If layer `index` is a loss, adds each image's loss to amp->image_losses.pass. Call it after the layer's
 * training forward, before AMP multiplies its delta by the loss scale. `input` is in the memory of the
 * network's device; the layer's other arrays are read in CPU memory. */
void amp_host_note_loss(struct darknet_amp *amp, int index, const float *input);

/* ---- predicted.c ---- */

int amp_host_gives_boxes(const layer *l);
/* Darknet's network_predict; the caller checks the result. */
float *amp_host_predict(network *net, float *image);
/* Whether all outputs of the network and of its layers that give boxes are finite. of: names what was
 * predicted, for the message. AMP_DIVERGED: some outputs are not finite. */
amp_status amp_host_check_predicted(const network *, const float *output, const char *of, amp_error *);

/* ---- describe.c: which layers a layer reads, and where its labels come from ---- */

/* If layer `consumer` names the earlier layer `index` as an input, returns the layer whose output the
 * consumer really reads. Darknet's dropout runs in place on the output of the layer before it, and an
 * [empty] layer shares this output (amp_own_borrows_buffers). So a later layer that names the layer before
 * the dropout reads the dropout's result. */
int amp_host_producer(const network *net, int index, int consumer);

/* Returns the nearest layer before layer `index` that has truth=1: its output is the labels of layer `index`.
 * -1: the labels are the network's. */
int amp_host_truth_layer(const network *net, int index);

/* Returns the labels of layer `index`, in memory that the backend can read. NULL: no labels. */
const float *amp_host_labels(const network *net, int index);
