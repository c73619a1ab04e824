/* What each fork must implement for the files of this folder, which are the same for all forks. pjreddie's
 * fork is in pjreddie/; the two others are in family/, and in alexeyab/ or hank_ai/. Unlike fork.h, this file
 * may name Darknet's structs. */
#pragma once

#include "darknet.h"

#include "../../layers/layer.h"
#include "../fork.h"
#include "../fork_commands.h"

#ifdef DARKNET_AMP_HANK_AI /* defined by the build */
#include "../hank_ai/types.h"
#else /* hank-ai's types.h defines its own form of these macros */
#ifdef DARKNET_AMP_ALEXEYAB /* defined by the patched darknet.h */
#include "../alexeyab/types.h"
#else
#include "../pjreddie/types.h"
#endif
#define AMP_OWN_LAYER layer /* the type in which a layer's functions take the layer */
#define AMP_OWN_LAYER_AT(l) (&(l))
#define AMP_OWN_KEEPS_A_NORMAL 1 /* rand_normal draws two numbers and keeps one for its next call */
#define AMP_OWN_LOAD_RESIZES 0 /* 1: load_image resizes differently from resize_image */
#define AMP_OWN_EDGE(edge) (edge) /* an edge of a label's box, as computed by read_boxes */
#define AMP_OWN_RANDOM(net) ((net)->random) /* random= of [net], which classifier train reads */
#define AMP_OWN_GPU gpu_index /* the number of the GPU to use; negative: none */
/* Finds the softmax (a group of the tree) that covers output i: its first output and number of outputs. */
#define AMP_OWN_TREE_GROUP(t, i, first, count) \
    (*(first) = (t)->group_offset[(t)->group[i]], *(count) = (t)->group_size[(t)->group[i]])
#endif

/* ---- layers (describe.c, native.c, footprint.c, learned_sizes.c) ----
 *
 * The fork's layers.c implements these functions and tables, except amp_own_batchnorm_rule. */

/* Sets *layers to the inputs of layer l other than the layer before it (for a route: to all its inputs).
 * Returns their number. */
int amp_own_far_inputs(const layer *l, const int **layers);
/* A recurrent layer's parts are the connected or convolutional layers inside it. amp_host_parts
 * (learned_sizes.c) fills in `parts`, and returns their number; 0 for other layers. */
enum { AMP_OWN_MOST_PARTS = 8 };
typedef struct amp_own_part {
    const char *names[3]; /* names of the part's weights, biases and scales */
    layer *part;
} amp_own_part;
#define AMP_OWN_NAMES(prefix) ((const char *const[3]){ prefix "weights", prefix "biases", prefix "scales" })
#define AMP_OWN_PART(field) { { #field ".weights", #field ".biases", #field ".scales" }, l->field }
#define AMP_OWN_LSTM_PARTS \
    AMP_OWN_PART(wf), AMP_OWN_PART(wi), AMP_OWN_PART(wg), AMP_OWN_PART(wo), \
    AMP_OWN_PART(uf), AMP_OWN_PART(ui), AMP_OWN_PART(ug), AMP_OWN_PART(uo)
int amp_host_parts(const layer *l, amp_own_part parts[AMP_OWN_MOST_PARTS]);
/* Adds this fork's own settings to a layer's description, which is otherwise complete. */
void amp_own_describe(const network *net, int index, amp_network_desc *out, amp_layer_desc *d);
/* Whether a layer is a loss that learns from a list of boxes. */
int amp_own_finds_boxes(const layer *l);
/* Returns how many numbers one label of a layer has: a box, its class, and maybe more. */
int amp_own_label_numbers(const layer *l);
/* Whether a layer uses the weights of an earlier layer, which trains and saves them. */
int amp_own_shares_weights(const layer *l);
/* Whether the layer's parameters never learn, so that they have neither gradient nor momentum. */
int amp_own_is_frozen(const layer *l);
/* The rule by which Darknet's own code computes batch norm. */
amp_batchnorm_rule amp_own_batchnorm_rule(const layer *l, int on_gpu);
/* Returns how many floats stock Darknet allocates for this layer besides those that footprint.c counts. */
size_t amp_own_stock_floats(const layer *l, int batch, int on_gpu);

/* The tables that native.c reads. */
typedef struct amp_own_type {
    const char *name;          /* name of the .cfg section; NULL: no such layer */
    const amp_layer_ops *kind; /* AMP's functions for the layer; AMP_LAYER_HOST: Darknet's own code */
    const char *why_own;       /* why Darknet's own code computes it, in a few words; else NULL */
    void (*settings)(const layer *, amp_layer_desc *); /* fills in the kind's settings; NULL: it has none */
} amp_own_type;

/* An option of a layer (a field of Darknet's struct), and the layer types that know it. */
typedef struct amp_own_option {
    const char *why_own;  /* for `amp plan` */
    size_t offset, bytes;
    /* one bit per layer type: set if AMP obeys the option for this type, or if Darknet ignores it */
    uint64_t types;
} amp_own_option;

extern const amp_own_type amp_own_types[];
extern const amp_activation amp_own_activations[];
extern const amp_own_option amp_own_options[];
extern const size_t amp_own_type_count, amp_own_activation_count, amp_own_option_count;
/* Returns a few words that name a setting of the layer that AMP does not support, or NULL. Call it only for a
 * layer of a type that AMP implements. */
const char *amp_own_unfit(const layer *l);

/* ---- a network (fork.c, hooks.c) ---- */

/* Sets fields that AMP reads, and that Darknet leaves at 0 or does not update in a resize. */
void amp_own_complete(network *net);
/* Changes *w and *h from the .cfg's size to the largest size that training with random=1 chooses. */
void amp_own_largest_size(const network *net, int *w, int *h);
int amp_own_size_step(const network *net); /* random=1 resizes to multiples of this step */
/* Whether AMP can train the network. AMP_UNSUPPORTED: AMP does not support a key of its .cfg. AMP_NO_MEMORY:
 * one of the network's buffers could not be allocated. */
amp_status amp_own_check(const network *net, amp_error *);

/* Faults of Darknet's own code that only this fork has; darknet/stock_faults.c lists those of all forks. The
 * last row's is_in is NULL. */
typedef struct amp_own_fault {
    int (*is_in)(const network *, const layer *, int index, int on_gpu);
    amp_stock_fault told;
} amp_own_fault;
extern const amp_own_fault amp_own_faults[];

/* ---- memory (buffers.c, hooks.c) ---- */

/* Frees those buffers of a native layer that only this fork has, and that only Darknet's own forward and
 * backward use. */
void amp_own_free_internals(layer *l, int on_gpu);
/* Whether this layer has no output and delta of its own in Darknet, but uses those of the layer before it: a
 * dropout or an [empty] layer. */
int amp_own_borrows_buffers(const layer *l);
/* Resizes a layer if resize_network does not call Darknet's function for it. Returns 0 for other layers. */
int amp_own_resize(layer *l, int w, int h);

/* ---- a pass (callbacks.c, fork.c) ---- */

/* On a GPU: whether Darknet's own code of this layer also writes its output to CPU memory, where other code
 * reads it. This copy may differ from the output on the GPU. */
int amp_own_pulls_output(const layer *l);
#ifdef GPU
/* Call it before a forward on a GPU. Starts to copy images and labels to the engine's arrays there. */
amp_status amp_own_push(network *net, amp_backend *, amp_error *);
#endif
/* Call it after a forward. Sets fields that Darknet reads from the network, like the cost. */
void amp_own_end_forward(network *net, int output_layer);

/* The following functions are needed to run one of Darknet's own layers, on the CPU or a GPU. The fork's
 * gaps.h declares the functions that prepare the layer and run its forward and backward. */

/* The arrays to which a layer from amp_own_joined points: one element per layer from amp_own_far_inputs. */
typedef struct amp_joined { int *indices; float **outputs, **deltas; } amp_joined;

/* Bytes of workspace that the layer needs. */
size_t amp_own_layer_workspace(const network *net, int index);
/* Whether the backend can compute the layer's matrix products (products.c). */
int amp_own_lends_products(const layer *l, int on_gpu);
/* Returns the argument for the layer's forward and backward. Backward adds to input_delta (may be NULL). */
amp_pass amp_own_pass(const network *net, int index, float *input, float *input_delta, float *workspace,
    int training);
/* Darknet's GPU code changes deltas: it clips them to +-1 in [connected] layers, also inside recurrent
 * layers, and with try_fix_nan=1 in more layers, and it smooths them in convolutions with smooth=. Turns all
 * of this off, because it would ignore the loss scale, and hide inf and NaN. AMP's layers and Darknet's CPU
 * code do not change deltas like this. */
void amp_own_keep_deltas(network *net);
/* Returns a copy of layer `index`, in which each far input is replaced by the layer that really produces it
 * (amp_host_producer). The copy points to the arrays in room. */
layer amp_own_joined(const network *net, int index, amp_joined *room);

/* Helpers for a fork's gaps.c, implemented in buffers.c. */

/* Allocates `count` zeros, which the caller frees, or ends the program. */
float *amp_gap_scratch(size_t count);
/* If *buffer, a layer's buffer, is NULL, allocates `count` zeros for it, or ends the program. Darknet's
 * free_layer frees the buffer. */
void amp_gap_own_buffer(float **buffer, size_t count);
/* Returns a copy of `inner`, a layer inside a recurrent layer, that points to the data of one time step. The
 * arrays of `inner` hold all steps, one after the other. */
layer amp_gap_at_step(const layer *inner, int step);

/* Sets a yolo layer's cost in the layer and in the network, and prints this fork's line for it. */
void amp_own_print_yolo(network *, int index, const amp_yolo_result *);

/* ---- Darknet's functions whose signatures differ (make_network.c, evaluate.c, passes.c) ---- */

network *amp_own_parse(char *cfg);
void amp_own_free(network *net);
void amp_own_forward(network *net);
void amp_own_backward(network *net);
void amp_own_update(network *net);
/* Reads an image's size from the start of its file. Returns 0 if that fails, or if the size is not accepted
 * or does not fit the file's length; hank-ai's always returns 0. The caller then decodes the whole file. */
int amp_own_image_size(const char *path, int *w, int *h);
image amp_own_center_crop(image im, int w, int h);
/* Returns the boxes of the predicted image. A box that non-maximum suppression has removed from a class has
 * probability 0 for that class. */
detection *amp_own_boxes(network *net, const int size[2], float least, float hierarchy, float suppression,
                         int *count);
/* Call after a prediction without AMP. Replaces NaN from Darknet's logistic function by the right value. */
void amp_own_fix_logistics(network *net);
void amp_own_sort_classes(float *probabilities, network *net);

/* Sets the loader arguments that only this fork's train_detector or train_classifier sets. If `threads` stays
 * 0, batches.c sets the default of all forks. */
void amp_own_detector_args(network *net, const layer *last, load_args *args);
void amp_own_classifier_args(network *net, load_args *args);
/* Call after the last load with these arguments, or if nothing was loaded. */
void amp_own_end_loading(load_args *args);
