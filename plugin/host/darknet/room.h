/* The inside of this folder: what its files share, in terms of Darknet's structs. */
#pragma once

#include "../network/state.h"
#include "darknet.h"
#include "own.h"
#include "pinned.h"

/* Darknet's buffers of one layer, as AMP keeps them. Capacities are in floats; 0 is no buffer. copy: on a
 * GPU, of the output in the program's memory. */
typedef struct amp_host_buffers { size_t output_capacity, delta_capacity, copy_capacity; } amp_host_buffers;

struct amp_fork_memory {
    amp_host_buffers *buffers; /* per layer */
    char *held;                /* per layer: its update is to change nothing */
    amp_host_pinned pinned;    /* the network's input */
    int t;                     /* updates of Adam's moments, where Darknet does not count them */
    float *workspace;          /* what Darknet's own layers get for net->workspace, which is NULL under AMP */
    size_t workspace_bytes;
};

/* Notes the buffers that Darknet has made (after parsing and after a resize), and frees its workspace. */
void amp_host_note_buffers(struct darknet_amp *amp, network *net);

/* Darknet's own layers share one workspace: makes it large enough for each of them. It is ours, since
 * network_predict puts the network's fields back as they were. AMP_NO_MEMORY: it cannot be made. */
amp_status amp_host_fit_workspace(struct darknet_amp *amp, const network *net, amp_error *);

/* Frees amp->memory and what amp_fork_take_over made of the network's buffers, before Darknet frees the
 * rest. */
void amp_host_release(struct darknet_amp *amp, network *net);

/* A layer that Darknet has just made or resized, while the next is not made yet: what AMP does not use of
 * it is freed, so that a network that fits only under AMP can be made. */
void amp_host_trim(const network *net, layer *l);

/* Numbers that a layer learns (0: none): its weights, and for how many channels it has biases, scales and
 * rolling statistics. Those of layers inside a recurrent one count there. */
typedef struct amp_host_sizes { size_t weights, channels; } amp_host_sizes;
amp_host_sizes amp_host_sizes_of(const layer *l);

/* The .cfg section's name of a type: "convolutional". */
const char *amp_host_type_name(LAYER_TYPE type);

/* Layers that AMP computes itself (native.c): their Darknet buffers exist only on demand. kind_of:
 * AMP_LAYER_HOST for all others, of which why_own says in a few words why Darknet's own code runs them;
 * NULL for a native layer. */
int amp_host_is_native(const layer *l);
const amp_layer_ops *amp_host_kind_of(const layer *l);
const char *amp_host_why_own(const layer *l);
/* The settings of a native layer's kind. */
void amp_host_settings(const layer *l, amp_layer_desc *d);

/* AMP_ACTIVATIONS for one that AMP does not know. */
amp_activation amp_host_activation_of(ACTIVATION);

/* ---- losses.c ---- */

/* After a training forward of layer `index`, and before AMP multiplies its delta by the loss scale: if it is
 * a loss, adds to the losses of the pass's images. On a GPU, where input lies, Darknet pulls or makes the
 * other arrays in the program's memory. */
void amp_host_note_loss(struct darknet_amp *amp, int index, const float *input);

/* A softmax's loss is -log p of each true class. Where p underflows to 0, Darknet's loss is inf: computes it
 * from the softmax's input, which must lie in the program's memory, and adds up the cost again. Returns
 * whether the cost is finite now. */
int amp_host_complete_softmax(layer *l, const float *input);

/* ---- predicted.c ---- */

int amp_host_gives_boxes(const layer *l);
/* Darknet's network_predict; the caller checks what it gave. */
float *amp_host_predict(network *net, float *image);
/* Whether all outputs of the network and of its layers that give boxes are finite. of: what was predicted,
 * for the message. AMP_DIVERGED: some are not. */
amp_status amp_host_check_predicted(const network *, const float *output, const char *of, amp_error *);

/* ---- links.c: which layers a layer reads, and where its labels come from ---- */

/* The layer whose output stands for layer `index` when a later layer `consumer` reads it: Darknet's
 * dropout works inside its neighbour's output, so that later layers read what it left there. */
int amp_host_producer(const network *net, int index, int consumer);

/* The last layer before `index` with truth=1, which gives it its labels; -1: none, they are the network's. */
int amp_host_truth_layer(const network *net, int index);

/* How many numbers of labels an image has for layer `index`. */
int amp_host_truths(const network *net, int index);

/* The labels themselves, where the backend can read them: the network's or, where an earlier layer has
 * truth=1, that layer's output. NULL: there are none. */
const float *amp_host_labels(const network *net, int index);
