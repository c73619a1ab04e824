/* The files of this folder are the same for all forks. Here they declare what the folder of a fork (pjreddie/
 * or alexeyab/) must implement for them. In contrast to fork.h, Darknet's structs may appear here. */
#pragma once

#include "darknet.h"

#include "../../layers/layer.h"
#include "../fork.h"
#include "../fork_commands.h"

#ifdef DARKNET_AMP_HANK_AI /* the build says so */
#include "../hank_ai/types.h"
#elif defined(DARKNET_AMP_ALEXEYAB) /* the patched darknet.h says so */
#include "../alexeyab/types.h"
#else
#include "../pjreddie/types.h"
#endif

/* ---- layers (describe.c, native.c, footprint.c, weights_layout.c) ---- */

/* The layers that layer l reads beside, or (a route) instead of, the one before it; returns how many. */
int amp_own_far_inputs(const layer *l, const int **layers);
/* The connected or convolutional layers inside a recurrent one: amp_host_parts (weights_layout.c) fills in
 * parts, from the fork's AMP_OWN_GRU_PARTS and AMP_OWN_LSTM_PARTS, and returns how many. */
enum { AMP_OWN_MOST_PARTS = 8 };
typedef struct amp_own_part {
    const char *names[3]; /* of its weights, biases and scales */
    layer *part;
} amp_own_part;
#define AMP_OWN_NAMES(prefix) ((const char *const[3]){ prefix "weights", prefix "biases", prefix "scales" })
#define AMP_OWN_PART(field) { { #field ".weights", #field ".biases", #field ".scales" }, l->field }
int amp_host_parts(const layer *l, amp_own_part parts[AMP_OWN_MOST_PARTS]);
/* What of a layer's description is this fork's alone: d is described already as all forks have it. */
void amp_own_describe(const network *net, int index, amp_network_desc *out, amp_layer_desc *d);
/* Whether it is a loss that learns from a list of boxes. */
int amp_own_finds_boxes(const layer *l);
/* Numbers of a label: a box, its class, and maybe more. */
int amp_own_label_numbers(const layer *l);
/* Whether a layer's weights are those of an earlier one, which trains and saves them. */
int amp_own_shares_weights(const layer *l);
/* Whether layer l is not to change in training, so that it has neither gradient nor momentum. */
int amp_own_is_frozen(const layer *l);
/* How batch norm computes in Darknet's own code. */
amp_batchnorm_rule amp_own_batchnorm_rule(const layer *l, int on_gpu);
/* Stock's buffers beside those that footprint.c knows, in floats of a pass of `batch` images. */
size_t amp_own_stock_floats(const layer *l, int batch, int on_gpu);

/* The tables that native.c reads: native_tables.c of the fork. */
typedef struct amp_own_type {
    const char *name;          /* the .cfg section's; NULL: there is no such layer */
    const amp_layer_ops *kind; /* that computes it, */
    const char *why_own;       /* or why Darknet's own code does, in a few words */
    void (*settings)(const layer *, amp_layer_desc *); /* fills the kind's; NULL: it has none */
} amp_own_type;

/* An option of a layer, and the types that know it. */
typedef struct amp_own_option {
    const char *why_own;  /* for `amp plan` */
    size_t offset, bytes;
    /* bits of the types whose kind computes with it, or for which it has no meaning in Darknet either */
    uint64_t types;
} amp_own_option;

extern const amp_own_type amp_own_types[];
extern const amp_activation amp_own_activations[];
extern const amp_own_option amp_own_options[];
extern const size_t amp_own_type_count, amp_own_activation_count, amp_own_option_count;
/* A value that its kind does not take, in a few words; NULL: none. */
const char *amp_own_unfit(const layer *l);

/* ---- a network (fork.c, hooks.c) ---- */

/* Fields that Darknet leaves at 0, or does not resize, and that AMP reads. */
void amp_own_complete(network *net);
/* The largest input that the loop makes of a network with random=1. */
void amp_own_largest_size(const network *net, int *w, int *h);
int amp_own_size_step(const network *net); /* random=1 chooses its multiples */
/* Whether AMP can train it. AMP_UNSUPPORTED: a key of a section cannot be followed. AMP_NO_MEMORY: there was
 * none for a buffer while it was made. */
amp_status amp_own_check(const network *net, amp_error *);

/* Known faults of Darknet's own code (stock_faults.c): this fork's, up to a row whose is_in is NULL. Those of
 * all forks are in stock_faults.c of this folder. */
typedef struct amp_own_fault {
    int (*is_in)(const network *, int index, int on_gpu);
    amp_stock_fault told;
} amp_own_fault;
extern const amp_own_fault amp_own_faults[];

/* ---- memory (device.c, buffers.c) ---- */

/* What only this fork's own forward and backward use of a native layer, beside what device.c knows. */
void amp_own_free_internals(layer *l, int on_gpu);
/* Whether its parser or its functions let this layer's output be its neighbour's. */
int amp_own_borrows_buffers(const layer *l);
/* Resizes a layer whose function Darknet has, although its resize_network does not call it; 0: it is none. */
int amp_own_resize(layer *l, int w, int h);

/* ---- a pass (buffers.c, fork.c) ---- */

/* Whether Darknet's own layer leaves its output in the program's memory too, as others read it there; the
 * GPU's is then another. */
int amp_own_pulls_output(const layer *l);
/* After a forward: what Darknet's functions read of the network itself. */
void amp_own_end_forward(network *net, int output_layer);

/* Darknet's own layers, wherever they run. The fork's gaps.h has the functions that prepare them and run
 * their forward and backward. workspace: bytes that these want. lends_products: whether its matrix
 * products can be the backend's (products.c). pass: what layer `index` is given, with its input and the
 * delta that its backward adds to, which may be NULL. joined: the layer, for which the layers that it
 * reads are those that amp_host_producer finds; room: for as many as it has far inputs. */
typedef struct amp_joined { int *indices; float **outputs, **deltas; } amp_joined;

size_t amp_own_layer_workspace(const network *net, int index);
int amp_own_lends_products(const layer *l, int on_gpu);
amp_pass amp_own_pass(const network *net, int index, float *input, float *input_delta, float *workspace,
    int training);
layer amp_own_joined(const network *net, int index, amp_joined *room);

/* For gaps.c of a fork, in buffers.c. scratch: `count` zeros for the length of one call; without memory the
 * program ends with a line. own_buffer: the same for a layer that lacks a buffer, which Darknet's free_layer
 * frees. at_step: a layer inside a recurrent one as it stands at one time step; its arrays hold all steps,
 * one behind the other. */
float *amp_gap_scratch(size_t count);
void amp_gap_own_buffer(float **buffer, size_t count);
layer amp_gap_at_step(const layer *inner, int step);

/* A yolo layer's cost into the layer and the network, and its line as forward_yolo_layer prints it. */
void amp_own_print_yolo(network *, int index, const amp_yolo_result *);

/* ---- Darknet's functions, whose signatures differ (make_network.c, evaluate.c, passes.c) ---- */

network *amp_own_parse(char *cfg);
void amp_own_free(network *net);
void amp_own_forward(network *net);
void amp_own_backward(network *net);
void amp_own_update(network *net);
float *amp_own_predict(network *net, float *image); /* fork.c */
/* An image's size, by the first bytes of its file; 0: it is of no kind that stb_image reads. */
int amp_own_image_size(const char *path, int *w, int *h);
image amp_own_center_crop(image im, int w, int h);
/* Of the image that was predicted; what another box suppresses has a probability of 0. */
detection *amp_own_boxes(network *net, const int size[2], float least, float hierarchy, float suppression,
                         int *count);
/* A network without AMP has predicted: outputs that Darknet's logistic function alone made NaN become what it
 * is there. */
void amp_own_fix_logistics(network *net);
void amp_own_sort_classes(float *probabilities, network *net);

/* What train_detector and train_classifier of this fork alone have their loaders do; batches.c does the rest.
 * threads: 0 for as many as all forks have. */
void amp_own_detector_args(network *net, const layer *last, load_args *args);
void amp_own_classifier_args(network *net, load_args *args);
/* After the last load of these arguments, or where there was none. */
void amp_own_end_loading(load_args *args);
