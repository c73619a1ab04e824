/* What a layer is to the engine: a description that the host gives, a kind, and a node that computes forward
 * and backward with the backend's operations. Each kind has a file of its own, which defines its
 * amp_layer_ops: all that the rest of the program knows of the kind it asks there. */
#pragma once

#include "../backend/backend.h"
#include "arena.h"
#include "value.h"

/* ---- what a kind tells ---- */

/* The autocast classes, as torch.amp has them: what decides the form that a layer computes in
 * (amp/autocast.c). */
typedef enum amp_autocast_class {
    AMP_CLASS_LOWER,    /* half in, fp32 accumulation, half out */
    AMP_CLASS_FOLLOWS,  /* the form of its input */
    AMP_CLASS_PROMOTES, /* the widest form of its inputs */
    AMP_CLASS_FP32      /* the host's own fp32 layer */
} amp_autocast_class;

/* Activation checkpointing: what backward makes again of a layer's forward, so that its memory is free in
 * between. */
typedef enum amp_recompute {
    AMP_RECOMPUTE_NOTHING,
    AMP_RECOMPUTE_OUTPUT, /* the output, from the sums that batch norm keeps: costs no matrix product */
    AMP_RECOMPUTE_ALL     /* all that forward makes, from its inputs */
} amp_recompute;

/* Whether backward reads a tensor again, which decides how long it lives. */
typedef enum amp_backward_reads {
    AMP_READS_NOT,
    AMP_READS,
    AMP_READS_FOR_GRADIENT /* only where the gradient of the layer's activation is a function of it */
} amp_backward_reads;

/* What follows what a layer makes of its inputs, in epilogue.h's functions. */
typedef enum amp_epilogue {
    AMP_EPILOGUE_NONE,
    AMP_EPILOGUE_ACTIVATION, /* its activation */
    AMP_EPILOGUE_WHOLE       /* batch norm or a bias too; backward makes a delta of the sums */
} amp_epilogue;

/* The matrix products of a forward: `groups` of them, each of (out, in · window) by (in · window, places)
 * numbers. Where a training pass makes gradients of weights, or of the input, each takes as many again. */
typedef struct amp_products {
    int groups, in, out;       /* channels of a group; of a connected layer, all inputs and outputs */
    size_t window, places;     /* numbers of a channel in a window; how often a window is multiplied in a
                                  pass */
    const char *out_key;       /* the .cfg's key that `out` comes of: "filters" */
    int turned;                /* the backend's convolution is that of backward, from `out` to `in` */
} amp_products;

/* A multiplication and an addition count as two. */
static inline double amp_products_operations(amp_products p)
{
    return 2.0 * p.groups * p.in * p.out * (double)p.window * (double)p.places;
}

struct amp_node;
struct amp_call;

typedef struct amp_layer_ops {
    amp_autocast_class class;
    amp_backward_reads backward_reads_input, backward_reads_output;
    /* What checkpoint=auto may have repeated, because it takes a pass over memory and no matrix product. Not
     * of layers that read others far before them, which would have to be repeated too. */
    amp_recompute repeats;
    amp_epilogue epilogue;
    /* In a network that is only predicted with, batch norm may go into its weights, and the activation into
     * its convolution (fold.h). */
    int folds;
    /* In training, forward writes the batch's statistics to node->mean and variance, and moves rolling_mean
     * and rolling_variance of the description (epilogue.c). Else the host's own code moves its statistics. */
    int normalizes;
    /* A loss that AMP computes itself. Its forward already writes its part of the input's delta, times the
     * loss scale. */
    int makes_loss;
    int draws_numbers; /* of the host's generator, in a training's forward */
    int chooses;       /* each output is one of the input's numbers, and backward gives its delta to that one:
                          where rounding makes two equal, to another than fp32 would */
    /* NULL: it has none. */
    amp_products (*products)(const struct amp_node *);
    /* How many of its inputs, from the first on, get the output's delta as it is (behind its activation), so
     * that one buffer may serve for all. Two: the output is their sum and nothing else, which a batch norm
     * before it may add. NULL: none. */
    int (*passes_delta)(const struct amp_node *);
    /* Create backend objects and request buffers of the arena at this shape. forward_time and backward_time
     * are the arena's clock; backward_time is -1 where no backward follows. NULL: nothing is to be done. */
    amp_status (*plan)(struct amp_node *, struct amp_call *, amp_arena *, int forward_time, int backward_time,
                       amp_error *);
    amp_status (*forward)(struct amp_node *, struct amp_call *, amp_error *);
    /* The output's delta is settled in its home form before the call, and may be overwritten. */
    amp_status (*backward)(struct amp_node *, struct amp_call *, amp_error *);
} amp_layer_ops;

/* The kinds. What is none of the others runs in the host's own fp32 code, on fp32 NCHW buffers. */
extern const amp_layer_ops amp_host_ops, amp_convolutional_ops, amp_deconvolutional_ops, amp_batchnorm_ops,
    amp_activation_ops, amp_maxpool_ops, amp_avgpool_ops, amp_upsample_ops, amp_reorg_ops, amp_dropout_ops,
    amp_yolo_ops, amp_route_ops, amp_shortcut_ops, amp_multiply_ops;

#define AMP_LAYER_HOST (&amp_host_ops)

/* ---- what the host describes ---- */

/* A trainable array of the host's, described once. */
typedef struct amp_param_desc {
    const char *name;       /* "weights", "biases", "scales", "input_layer.weights" */
    float *master;          /* fp32, the host's */
    float **gradient_slot;  /* where the host keeps its weight_updates pointer: momentum between steps; points
                               at the engine's gradient array while the host's own backward runs */
    size_t count;
    int decays;             /* SGD decays weights, not biases and scales */
    int unsaved;            /* the host's weights file does not hold it: a sidecar must */
    float clip;             /* kept within ±clip after each update; 0 is off */
} amp_param_desc;

/* What forward changes and a skipped step must restore: rolling statistics, a recurrent layer's state. */
typedef struct amp_statistics_desc {
    float *array;
    size_t count;
    int unsaved; /* as in amp_param_desc */
    float rolling_factor; /* as in amp_batchnorm_rule; 0: it is no rolling statistic, but a state */
} amp_statistics_desc;

enum { AMP_MAX_PARAMS = 32, AMP_MAX_STATISTICS = 18 }; /* lstm: 8 connected × 3 arrays; × 2, and its two
                                                          states */

/* One layer as the host describes it. inputs, params, statistics and yolo belong to the description; what
 * else pointers point to is the host's and outlives the engine. Shapes change with a resize, the rest does
 * not. */
typedef struct amp_layer_desc {
    const amp_layer_ops *kind;
    const char *type;           /* the .cfg section's name, for messages */
    const char *why_host;       /* AMP_LAYER_HOST: why AMP does not compute it, in a few words; else NULL */
    amp_shape output;           /* n,c,h,w; flat outputs have h = w = 1 */
    int *inputs, input_count;   /* producers' indices, -1 is the image; the previous layer first */
    int keep_fp32;              /* amp=0 in its section */
    int recompute;              /* checkpoint=1 in its section: backward makes its output again */
    int is_loss;                /* has a cost; its forward writes a delta */
    int is_truth;               /* its fp32 output replaces the truth of later layers */
    int stops_backward;         /* backward ends above this layer */
    int no_backward;            /* passes no gradient to its inputs (crop) */
    int lends_products;         /* AMP_LAYER_HOST: the backend's gemm computes its matrix products, in the
                                   dtype */

    amp_activation activation;  /* of layers with an epilogue, and of [activation] */
    int batch_normalize;
    union { /* the settings of its kind, by the names of the .cfg's keys */
        struct amp_convolution_settings {
            int filters, size, stride, pad; /* size 0: the whole input, as in a connected layer; pad counts
                                               pixels, not elements */
            int stride_x, dilation, groups; /* as amp_conv_desc has them */
        } convolution;                      /* deconvolutional layers too */
        struct amp_maxpool_settings { int size, stride, pad; } maxpool;
        struct amp_upsample_settings { int stride; float scale; } upsample;
        struct amp_reorg_settings { int stride, reverse, flatten, extra; } reorg;
        struct amp_dropout_settings { float probability, scale; } dropout;
        struct amp_route_settings { int groups, group_id; } route;
        struct amp_shortcut_settings { float alpha, beta; } shortcut;
    };
    const amp_yolo_desc *yolo;  /* of a yolo layer; else NULL */

    float *weights, *biases, *scales, *rolling_mean, *rolling_variance;
    amp_batchnorm_rule batchnorm_rule;
    float rate_scale;
    amp_param_desc *params;             /* AMP_MAX_PARAMS at most */
    amp_statistics_desc *statistics;    /* AMP_MAX_STATISTICS at most */
    int param_count, statistics_count;
} amp_layer_desc;

_Static_assert(sizeof(amp_layer_desc) <= 512, "what is large belongs behind a pointer");

/* How many of a layer's inputs are the output of layer `producer`, or the image if that is -1. */
static inline int amp_layer_reads(const amp_layer_desc *d, int producer)
{
    int reads = 0;
    for (int k = 0; k < d->input_count; k++) reads += d->inputs[k] == producer;
    return reads;
}

struct amp_network_desc; /* amp/plan.h */

/* The functions of the host that the engine calls while it runs. */
typedef struct amp_host {
    void *context;
    /* Describes the layers as they are now, for passes of `batch` images. *out is freed with
     * amp_network_desc_free. */
    void (*describe)(void *context, int batch, struct amp_network_desc *out);
    /* Make the fp32 NCHW buffers exist exactly where needed (arrays of flags, one per layer), and free the
     * others. */
    amp_status (*prepare_buffers)(void *context, const char *needs_output, const char *needs_delta,
                                  amp_error *);
    float *(*output)(void *context, int layer);
    float *(*delta)(void *context, int layer);
    /* Run the host's own layer: input is the fp32 NCHW output of its first producer; input_delta is what its
     * backward adds to, or NULL. */
    void (*forward)(void *context, int layer, float *input, int training);
    void (*backward)(void *context, int layer, float *input, float *input_delta, int training);
    /* The labels that a loss of AMP's own reads, where the backend can; NULL: there are none. */
    const float *(*labels)(void *context, int layer);
    /* Takes the result of a loss that AMP computes itself, of the forward that just ran, with each image's
     * part of the cost; `loss` is called after it. */
    void (*found)(void *context, int layer, const amp_yolo_result *, const double *image_costs);
    /* A loss layer's value of the forward that just ran. */
    float (*loss)(void *context, int layer);
    /* count numbers in [0,1) from the host's own generator, for dropout. */
    void (*random_uniform)(void *context, float *numbers, size_t count);
} amp_host;

/* What outlives a plan: gradients of a layer's parameters, in the order of desc->params, inside the engine's
 * arena. */
typedef struct amp_gradients { float *weights, *biases, *scales; float *all[AMP_MAX_PARAMS]; } amp_gradients;

typedef struct amp_node amp_node;

/* One pass over the network. */
typedef struct amp_call {
    amp_backend *backend;
    const amp_host *host;
    int training;      /* batch statistics, dropout */
    int keeps_state;   /* a backward follows */
    int direct;        /* amp_conv_desc.direct */
    int outline;       /* the plan is only for sizes: the backend makes nothing for it */
    int shown;         /* an observer reads each layer's output */
    int again;         /* a forward that backward repeats: batch statistics and dropout's mask are those of
                          the first time, and rolling statistics stay */
    float loss_scale;          /* what forward multiplies the delta of a loss by: nothing else brings it into
                                  a step */
    amp_yolo_result *results;  /* theirs, in the backend's memory: one each */
    double *image_costs;       /* ... and for each as many as the pass has images */
    const amp_batchnorm_ranks *ranks; /* whose images are one batch to batch norm; NULL: this pass's alone */
} amp_call;

/* A layer at one shape. */
struct amp_node {
    amp_layer_desc desc;
    int index;
    amp_form form;             /* the form it computes in; its output's home, but yolo's is PLAIN */
    amp_dtype dtype;           /* of that form */
    amp_dtype products;        /* what its matrix products run in, if it has any: dtype, unless it lends
                                  them */
    amp_value **inputs, *output;
    int computes_backward;     /* some gradient is wanted from it */
    const amp_gradients *gradients;

    amp_conv *conv;
    int predicts;              /* the plan folds: nothing is kept for a backward */
    int folded;                /* ... and the layer's batch norm lies in its weights (fold.h), */
    float *folded_bias;        /* ... and in this bias: the backend's memory, made with the copies of
                                  weights */
    amp_recompute recompute;   /* in backward, at the time again_time of the arena's clock; -1: nobody asks */
    int again_time;
    void *pre_activation;      /* the epilogue's sums (epilogue.h), kept for backward */
    void *pre_activation_again; /* ... and where backward makes it anew: exchanged as amp_value.data_again */
    float *mean, *variance;    /* batch statistics, c elements each */
    int leaves_norm;           /* forward ends with the sums, unless it is shown: the shortcut that alone
                                  reads the output writes its own from them, */
    amp_node *norm_of;         /* that one's: whose batch norm it makes */
    int keeps_delta;           /* backward leaves the output's delta as it is, for a value that shares it, */
    void *sums_delta;          /* ... and makes that of the sums (epilogue.h) here */
    void *delta_part;          /* deconvolutional: its part of the input's delta, where others give theirs
                                  too */
    void *kept;                /* what else its kind's forward leaves for backward, in the arena: max
                                  pooling's choice, dropout's mask */
    void *table;               /* what its kind's plan made in the backend's memory, which goes with the node:
                                  reorg's indices, yolo's classes; NULL: nothing */
    int result;                /* of a loss of AMP's own: which of call->results is its */
};

/* The node's operations. They do what the ops say; an error's line begins with the layer, and the backend's
 * ranges are named after it. */
amp_status amp_node_plan(amp_node *, amp_call *, amp_arena *, int forward_time, int backward_time,
                         amp_error *);
void amp_node_drop_weights(amp_node *, amp_backend *); /* give the copies back, until they are loaded again */
amp_status amp_node_forward(amp_node *, amp_call *, amp_error *);
amp_status amp_node_backward(amp_node *, amp_call *, amp_error *);

/* Activation checkpointing, in backward: makes what node->recompute says in its second place.
 * amp_node_exchange returns to the first, for the next forward. */
amp_status amp_node_forward_again(amp_node *, amp_call *, amp_error *);
void amp_node_exchange(amp_node *);
/* Whether backward reads the node's inputs, or its output, again. */
int amp_node_reads_input(const amp_node *);
int amp_node_reads_output(const amp_node *);
/* Whether the epilogue's sums lie beside the output: backward makes the activation's input of them. */
int amp_node_keeps_sums(const amp_node *);

/* For plan: that what the layer makes of its input is what the host describes; `check` is what the user
 * should look at. */
amp_status amp_node_check_shape(const amp_node *, amp_shape made, const char *check, amp_error *);

/* For plan: fills node->table. */
amp_status amp_node_make_table(amp_node *, amp_call *, const void *table, size_t bytes, amp_error *);

/* Loads the weights of all convolutions among `count` nodes, in one go; an error's line begins with the
 * layer, if one is to blame. */
amp_status amp_nodes_load_weights(amp_node *nodes, int count, amp_backend *, amp_error *);

/* Frees what plan made (not arena memory). */
void amp_node_release(amp_node *node, amp_backend *backend);
