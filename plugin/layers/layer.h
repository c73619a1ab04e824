/* A layer as the engine sees it: the host's description (amp_layer_desc), the kind's functions
 * (amp_layer_ops), and a node (amp_node), which computes forward and backward with the backend's operations.
 * Each kind has its own file; the rest of the program knows nothing else about it. */
#pragma once

#include "../backend/backend.h"
#include "arena.h"
#include "value.h"

/* ---- what a kind defines ---- */

/* torch.amp's autocast classes, which decide the form in which a layer computes (amp/autocast.c). */
typedef enum amp_autocast_class {
    AMP_CLASS_LOWER,    /* half in, fp32 accumulation, half out */
    AMP_CLASS_FOLLOWS,  /* the form of its input */
    AMP_CLASS_PROMOTES, /* the widest form of its inputs */
    AMP_CLASS_FP32      /* the host's own fp32 layer */
} amp_autocast_class;

/* Activation checkpointing: what backward recomputes, so that its memory is free until then. */
typedef enum amp_recompute {
    AMP_RECOMPUTE_NOTHING,
    AMP_RECOMPUTE_OUTPUT, /* the output, from the sums that batch norm keeps */
    AMP_RECOMPUTE_ALL     /* everything that forward computes, from its inputs */
} amp_recompute;

/* Whether backward reads a tensor again, which decides the tensor's lifetime. */
typedef enum amp_backward_reads {
    AMP_READS_NOT,
    AMP_READS,
    AMP_READS_FOR_GRADIENT /* only if the gradient of the layer's activation depends on it */
} amp_backward_reads;

/* Which of epilogue.h's functions follow the kind's own computation. */
typedef enum amp_epilogue {
    AMP_EPILOGUE_NONE,
    AMP_EPILOGUE_ACTIVATION, /* only the activation */
    AMP_EPILOGUE_WHOLE       /* batch norm or a bias, and the activation */
} amp_epilogue;

/* The matrix products of a layer's forward: `groups` products of an (out, in·window) matrix and an
 * (in·window, places) matrix. In training, each gradient (of weights, of input) takes as many operations. */
typedef struct amp_products {
    int groups, in, out;       /* channels per group; in a connected layer, numbers of inputs and outputs */
    size_t window, places;     /* window: elements of one channel that a window covers; places: number of
                                  window positions in all images of a pass */
    const char *out_key;       /* the .cfg's key that sets `out`, for example "filters" */
    int turned;                /* 1: a transposed convolution (deconvolutional.c): forward is the data
                                  gradient of a convolution from `out` to `in` channels */
} amp_products;

/* Counts a multiply-add as two operations. */
static inline double amp_products_operations(amp_products p)
{
    return 2.0 * p.groups * p.in * p.out * (double)p.window * (double)p.places;
}

struct amp_node;
struct amp_call;

typedef struct amp_layer_ops {
    amp_autocast_class class;
    amp_backward_reads backward_reads_input, backward_reads_output;
    /* What checkpoint=auto may recompute without a matrix product. It is AMP_RECOMPUTE_NOTHING for kinds that
     * read the outputs of much earlier layers, which would have to be recomputed too. */
    amp_recompute repeats;
    amp_epilogue epilogue;
    /* 1: in a network that only predicts, batch norm may be folded into the weights (fold.c), and the
     * convolution may apply the activation (amp_epilogue_is_fused). */
    int folds;
    /* 1: in training, forward writes node->mean and node->variance, and updates the description's
     * rolling_mean and rolling_variance (epilogue.c). 0: the host's own code updates all statistics. */
    int normalizes;
    /* 1: a loss that AMP computes. Forward also writes its part of the input's delta (loss-scaled). */
    int makes_loss;
    int draws_numbers; /* 1: in training, forward draws from the host's random number generator */
    int chooses;       /* 1: each output is a copy of one input element, to which backward passes its delta.
                          If rounding makes elements equal, the choice may differ from fp32's */
    /* NULL: the kind has no matrix products. */
    amp_products (*products)(const struct amp_node *);
    /* Returns n if the deltas of the first n inputs equal the output's (after the activation's backward), so
     * that they may share one buffer. 2: the output is exactly the sum of two inputs, and the previous
     * layer's batch norm may compute this sum. NULL: n is 0. */
    int (*passes_delta)(const struct amp_node *);
    /* Creates backend objects and requests buffers for the node's shape. Times are as in arena.h;
     * backward_time is -1 if no backward follows. NULL: nothing to do. */
    amp_status (*plan)(struct amp_node *, struct amp_call *, amp_arena *, int forward_time, int backward_time,
                       amp_error *);
    /* When backward is called, the output's delta is complete in its home form; backward may overwrite it. A
     * kind with one input may define map instead of forward, and map_delta instead of backward. */
    amp_status (*forward)(struct amp_node *, struct amp_call *, amp_error *);
    amp_status (*backward)(struct amp_node *, struct amp_call *, amp_error *);
    /* map computes y from x. map_delta, called only if the input wants a delta, writes x's delta to dx, or
     * adds it if accumulate is 1. */
    amp_status (*map)(struct amp_node *, struct amp_call *, const amp_tensor *x, const amp_tensor *y,
                      amp_error *);
    amp_status (*map_delta)(struct amp_node *, struct amp_call *, const amp_tensor *dy, const amp_tensor *dx,
                            int accumulate, amp_error *);
} amp_layer_ops;

/* The kinds. All other layers run the host's own fp32 code on fp32 NCHW buffers (amp_host_ops). */
extern const amp_layer_ops amp_host_ops, amp_convolutional_ops, amp_deconvolutional_ops, amp_batchnorm_ops,
    amp_activation_ops, amp_maxpool_ops, amp_avgpool_ops, amp_upsample_ops, amp_reorg_ops, amp_dropout_ops,
    amp_yolo_ops, amp_route_ops, amp_shortcut_ops, amp_multiply_ops;

#define AMP_LAYER_HOST (&amp_host_ops)

/* ---- what the host describes ---- */

/* A trainable array of the host. */
typedef struct amp_param_desc {
    const char *name;       /* "weights", "biases", "scales", "input_layer.weights" */
    float *master;          /* fp32, owned by the host */
    float **gradient_slot;  /* the address of the host's weight_updates pointer, which points to the momentum
                               between steps, and to the engine's gradients during the host's own backward */
    size_t count;
    int decays;             /* 1: weight decay of SGD applies (to weights, not to biases and scales) */
    int unsaved;            /* 1: not in the host's weights file, so a sidecar must hold it */
    float clip;             /* each update clamps the parameter to ±clip; 0: no clamping */
} amp_param_desc;

/* What forward changes and a skipped step must restore: rolling statistics, or a recurrent layer's state. */
typedef struct amp_statistics_desc {
    float *array;
    size_t count;
    int unsaved; /* as in amp_param_desc */
    float rolling_factor; /* as in amp_batchnorm_rule; 0: a state, not a rolling statistic */
} amp_statistics_desc;

/* Upper limits. An lstm layer has the most: 8 connected layers with 3 parameter arrays and 2 rolling
 * statistics each, and 2 states, so 24 parameter arrays and 18 statistics. */
enum { AMP_MAX_PARAMS = 32, AMP_MAX_STATISTICS = 18 };

/* One layer as the host describes it. The amp_network_desc owns inputs, params, statistics and yolo. The host
 * owns everything else, and keeps it until the engine is freed. A resize changes only shapes. */
typedef struct amp_layer_desc {
    const amp_layer_ops *kind;
    const char *type;           /* the .cfg section's name, for messages */
    const char *why_host;       /* why AMP does not compute it, in a few words (AMP_LAYER_HOST); else NULL */
    amp_shape output;           /* n,c,h,w; flat outputs have h = w = 1 */
    int *inputs, input_count;   /* indices of the producers, the previous layer first; -1 is the image */
    int keep_fp32;              /* 1: amp=0 in its section */
    int recompute;              /* 1: checkpoint=1 in its section */
    int is_loss;                /* 1: it has a cost, and its forward writes a delta */
    int is_truth;               /* 1: its fp32 output replaces the truth of later layers */
    int stops_backward;         /* 1: it and the layers before it compute no backward */
    int no_backward;            /* 1: it passes no gradient to its inputs (crop) */
    int lends_products;         /* 1: the backend's gemm computes the layer's matrix products (only for
                                   AMP_LAYER_HOST; amp_node.products) */

    amp_activation activation;  /* the activation of layers with an epilogue, and of [activation] */
    int batch_normalize;
    union { /* settings of the layer's kind, named like the .cfg's keys */
        struct amp_convolution_settings {
            int filters, size, stride, pad; /* size 0: the window is the whole input. pad in pixels; elements
                                               of the window are `dilation` pixels apart */
            int stride_x, dilation, groups; /* as in amp_conv_desc */
        } convolution;                      /* also for deconvolutional layers */
        struct amp_maxpool_settings { int size, stride, pad; } maxpool;
        struct amp_upsample_settings { int stride; float scale; } upsample;
        struct amp_reorg_settings { int stride, reverse, flatten, extra; } reorg;
        struct amp_dropout_settings { float probability, scale; } dropout;
        struct amp_route_settings { int groups, group_id; } route;
        struct amp_shortcut_settings { float alpha, beta; } shortcut;
    };
    const amp_yolo_desc *yolo;  /* settings of a yolo layer; else NULL */

    float *weights, *biases, *scales, *rolling_mean, *rolling_variance;
    amp_batchnorm_rule batchnorm_rule;
    float rate_scale;
    amp_param_desc *params;             /* at most AMP_MAX_PARAMS */
    amp_statistics_desc *statistics;    /* at most AMP_MAX_STATISTICS */
    int param_count, statistics_count;
} amp_layer_desc;

_Static_assert(sizeof(amp_layer_desc) <= 512, "what is large belongs behind a pointer");

/* How many of a layer's inputs are the output of layer `producer` (-1: the image). */
static inline int amp_layer_reads(const amp_layer_desc *d, int producer)
{
    int reads = 0;
    for (int k = 0; k < d->input_count; k++) reads += d->inputs[k] == producer;
    return reads;
}

struct amp_network_desc; /* defined in amp/plan.h */

/* Functions of the host that the engine calls. */
typedef struct amp_host {
    void *context;
    /* Describes the layers in their current state, for passes of `batch` images. The caller frees *out with
     * amp_network_desc_free. */
    void (*describe)(void *context, int batch, struct amp_network_desc *out);
    /* Allocates the fp32 NCHW buffers that are needed (one flag per layer), and frees all others. */
    amp_status (*prepare_buffers)(void *context, const char *needs_output, const char *needs_delta,
                                  amp_error *);
    float *(*output)(void *context, int layer);
    float *(*delta)(void *context, int layer);
    /* Run the host's own layer. input: the fp32 NCHW output of the layer's first producer. input_delta: the
     * delta of that output, which backward adds to; NULL: the delta is not needed. */
    void (*forward)(void *context, int layer, float *input, int training);
    void (*backward)(void *context, int layer, float *input, float *input_delta, int training);
    /* The labels for a loss that AMP computes, in memory that the backend can read, or NULL. */
    const float *(*labels)(void *context, int layer);
    /* Receives the result of a loss that AMP computed in the latest forward, with each image's part of the
     * cost. `loss` is called after `found`. */
    void (*found)(void *context, int layer, const amp_yolo_result *, const double *image_costs);
    /* Returns a loss layer's loss in the latest forward. */
    float (*loss)(void *context, int layer);
    /* Draws count numbers in [0,1) from the host's own generator, for dropout. */
    void (*random_uniform)(void *context, float *numbers, size_t count);
} amp_host;

/* A layer's gradients, in the order of desc->params. The engine owns the memory, which outlives a plan. */
typedef struct amp_gradients {
    float *all[AMP_MAX_PARAMS];
    int param[AMP_MAX_PARAMS]; /* indices in the engine's list of parameters; layers may share a parameter */
    int count;
} amp_gradients;

typedef struct amp_node amp_node;

/* One pass over the network. */
typedef struct amp_call {
    amp_backend *backend;
    const amp_host *host;
    int training;      /* 1: batch norm uses the batch's statistics, and dropout drops elements */
    int keeps_state;   /* 1: a backward follows */
    int direct;        /* amp_conv_desc.direct */
    int outline;       /* 1: only sizes are planned, and the backend creates no objects */
    int shown;         /* 1: an observer reads each layer's output */
    int again;         /* 1: backward recomputes a forward, which reuses the first forward's batch statistics
                          and dropout mask, and does not update rolling statistics */
    float loss_scale;          /* factor by which forward multiplies a loss's delta; has no other use */
    amp_yolo_result *results;  /* one result per loss that AMP computes, in the backend's memory */
    double *image_costs;       /* each image's cost, for each loss in `results` */
    const amp_batchnorm_ranks *ranks; /* sync_batchnorm: the ranks whose images batch norm treats as one
                                         batch; NULL: only this pass's images */
} amp_call;

/* A layer, planned for one shape. */
struct amp_node {
    amp_layer_desc desc;
    int index;
    amp_form form;             /* the form in which it computes, and the home form of its output (except
                                  that a yolo layer's output has the plain form) */
    amp_dtype dtype;           /* the dtype of `form` */
    amp_dtype products;        /* dtype of its matrix products: the network's half dtype if
                                  desc.lends_products is set and desc.keep_fp32 is not; else `dtype` */
    amp_value **inputs, *output;
    int computes_backward;     /* 1: backward must compute at least one gradient of this layer */
    const amp_gradients *gradients;

    amp_conv *conv;
    int predicts;              /* 1: the network only predicts; nothing is kept for backward */
    int folded;                /* 1: its batch norm is folded into its weights (fold.c) */
    float *folded_bias;        /* the bias after folding, in the backend's memory; made with the folded copies
                                  of the weights */
    amp_recompute recompute;   /* which of its results are recomputed during backward */
    int again_time;            /* the time of this recomputation, as in arena.h; -1: never */
    void *pre_activation;      /* the epilogue's sums (epilogue.h) */
    void *pre_activation_again; /* the buffer into which backward recomputes the sums; while backward
                                   uses it, it is swapped with pre_activation */
    float *mean, *variance;    /* batch statistics, c elements each */
    int leaves_norm;           /* 1: forward stops after the sums: the output's only reader, a shortcut, uses
                                  the sums instead. Ignored if an observer reads outputs */
    amp_node *norm_of;         /* the node with leaves_norm whose batch norm this shortcut computes; NULL:
                                  none */
    int keeps_delta;           /* 1: backward must not overwrite the output's delta: its buffer is shared */
    void *sums_delta;          /* the delta of the sums, used with keeps_delta */
    void *delta_part;          /* scratch for a deconvolutional layer's part of the input's delta */
    void *kept;                /* other data that forward keeps for backward, in the arena: max pooling's
                                  indices, dropout's mask */
    void *table;               /* data that plan put into the backend's memory (reorg's indices, yolo's
                                  classes); freed with the node; may be NULL */
    int result;                /* index, in call->results, of a loss that AMP computes */
};

/* Returns the gradient of the parameter with this master; NULL: the layer does not learn it. */
static inline float *amp_gradient_of(const amp_node *node, const float *master)
{
    for (int k = 0; k < node->desc.param_count; k++)
        if (node->desc.params[k].master == master) return node->gradients->all[k];
    return NULL;
}

/* These functions run those of amp_layer_ops. Error messages and the profiler's ranges name the layer. */
amp_status amp_node_plan(amp_node *, amp_call *, amp_arena *, int forward_time, int backward_time,
                         amp_error *);
void amp_node_drop_weights(amp_node *, amp_backend *); /* frees amp_nodes_load_weights's copies */
amp_status amp_node_forward(amp_node *, amp_call *, amp_error *);
amp_status amp_node_backward(amp_node *, amp_call *, amp_error *);

/* Activation checkpointing. amp_node_forward_again, called in backward, swaps the node's buffers with those
 * for recomputation, and recomputes what node->recompute says. After backward, amp_node_exchange swaps them
 * back. */
amp_status amp_node_forward_again(amp_node *, amp_call *, amp_error *);
void amp_node_exchange(amp_node *);
/* Whether backward reads the node's inputs; whether it reads the node's output. */
int amp_node_reads_input(const amp_node *);
int amp_node_reads_output(const amp_node *);
/* Whether the sums have a buffer of their own, because batch norm or the activation's backward reads them. */
int amp_node_keeps_sums(const amp_node *);

/* For plan: fails if `made`, the shape that the layer computes, is not the host's. check: what the message
 * asks the user to check. */
amp_status amp_node_check_shape(const amp_node *, amp_shape made, const char *check, amp_error *);

/* For plan: makes node->table, a copy of `table` in the backend's memory. */
amp_status amp_node_make_table(amp_node *, amp_call *, const void *table, size_t bytes, amp_error *);

/* Loads the weights of all convolutions of `count` nodes at once. An error names the layer at fault. */
amp_status amp_nodes_load_weights(amp_node *nodes, int count, amp_backend *, amp_error *);

/* Frees what amp_node_plan has created, except arena memory. */
void amp_node_release(amp_node *node, amp_backend *backend);
