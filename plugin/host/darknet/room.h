/* What the files of this folder share, in terms of Darknet's structs. */
#pragma once

#include "../network/state.h"
#include "darknet.h"
#include "device.h"
#include "own.h"
#include "pinned.h"

/* The capacities of Darknet's buffers of one layer under AMP, in floats; 0: no buffer. copy: the copy of the
 * output in CPU memory, if the network runs on a GPU. */
typedef struct amp_host_buffers { size_t output_capacity, delta_capacity, copy_capacity; } amp_host_buffers;

struct amp_fork_memory {
    amp_host_buffers *buffers; /* per layer */
    char *held;                /* per layer: whether this step's update must not change it */
    amp_host_pinned pinned;    /* the network's input */
    int t;                     /* updates of Adam's moments, if Darknet does not count them */
    float *workspace;          /* for Darknet's own layers, since net->workspace is NULL under AMP */
    size_t workspace_bytes;
};

/* Notes the buffers that Darknet has made (after parsing and after a resize), and frees its workspace. */
void amp_host_note_buffers(struct darknet_amp *amp, network *net);

/* Makes the workspace that Darknet's own layers share large enough for each of them. AMP owns it, because
 * network_predict restores the network's fields. AMP_NO_MEMORY: it cannot be made. */
amp_status amp_host_fit_workspace(struct darknet_amp *amp, const network *net, amp_error *);

/* Frees amp->memory, and buffers of the network that Darknet does not know of, before Darknet frees the
 * rest. */
void amp_host_release(struct darknet_amp *amp, network *net);

/* Frees those buffers of a layer that AMP does not use. Call it as soon as Darknet has made or resized the
 * layer, before the next one is made, so that a network can be made that fits into memory only under AMP. */
void amp_host_trim(const network *net, layer *l);

/* weights: how many weights a layer learns. channels: how many channels have biases, scales and rolling
 * statistics. 0: none. The layers inside a recurrent layer are counted separately. */
typedef struct amp_host_sizes { size_t weights, channels; } amp_host_sizes;
amp_host_sizes amp_host_sizes_of(const layer *l);

/* The .cfg section's name of a type: "convolutional". */
const char *amp_host_type_name(LAYER_TYPE type);

/* A native layer is one that AMP computes itself (native.c); its Darknet buffers exist only on demand.
 * kind_of: AMP_LAYER_HOST if the layer is not native. why_own: why Darknet's own code runs the layer, in a
 * few words; NULL if it is native. */
int amp_host_is_native(const layer *l);
const amp_layer_ops *amp_host_kind_of(const layer *l);
const char *amp_host_why_own(const layer *l);
/* The settings of a native layer's kind. */
void amp_host_settings(const layer *l, amp_layer_desc *d);

/* AMP's number of an activation; AMP_ACTIVATIONS if AMP does not know it. */
amp_activation amp_host_activation_of(ACTIVATION);

/* ---- losses.c ---- */

/* If layer `index` is a loss, adds its loss of each image to the losses of the pass's images. Call it after
 * the layer's training forward, before AMP multiplies the layer's delta by the loss scale. input is in the
 * GPU's memory if the network runs on one. All other arrays that are read are in CPU memory, where Darknet
 * computes them or to which it copies them. */
void amp_host_note_loss(struct darknet_amp *amp, int index, const float *input);

/* ---- predicted.c ---- */

int amp_host_gives_boxes(const layer *l);
/* Darknet's network_predict; the caller checks the result. */
float *amp_host_predict(network *net, float *image);
/* Whether all outputs of the network and of its layers that give boxes are finite. of: what was predicted,
 * for the message. AMP_DIVERGED: some are not. */
amp_status amp_host_check_predicted(const network *, const float *output, const char *of, amp_error *);

/* ---- describe.c: which layers a layer reads, and where its labels come from ---- */

/* The layer whose output layer `consumer` reads when it names the earlier layer `index`. Darknet's dropout
 * runs in place on the output of the layer before it, so later layers read the dropout's result. */
int amp_host_producer(const network *net, int index, int consumer);

/* The last layer before `index` with truth=1, which provides its labels; -1: none, the labels are the
 * network's. */
int amp_host_truth_layer(const network *net, int index);

/* The labels themselves, where the backend can read them: the network's or, where an earlier layer has
 * truth=1, that layer's output. NULL: there are none. */
const float *amp_host_labels(const network *net, int index);
