/* A layer as the engine sees it: a description from the host, a kind, and a node that computes forward and
 * backward with the backend's operations. Each kind has its own file, which defines its amp_layer_ops: the
 * rest of the program knows nothing else about the kind. */
#pragma once

#include "../backend/backend.h"
#include "arena.h"
#include "value.h"

/* ---- what a kind defines ---- */

/* The autocast classes, as in torch.amp: what decides the form a layer computes in (amp/autocast.c). */
typedef enum amp_autocast_class {
    AMP_CLASS_LOWER,    /* half in, fp32 accumulation, half out */
    AMP_CLASS_FOLLOWS,  /* the form of its input */
    AMP_CLASS_PROMOTES, /* the widest form of its inputs */
    AMP_CLASS_FP32      /* the host's own fp32 layer */
} amp_autocast_class;

/* Activation checkpointing: what backward recomputes of a layer's forward, so that its memory is free in
 * between. */
typedef enum amp_recompute {
    AMP_RECOMPUTE_NOTHING,
    AMP_RECOMPUTE_OUTPUT, /* the output, from the sums that batch norm keeps: no matrix product */
    AMP_RECOMPUTE_ALL     /* everything that forward computes, from its inputs */
} amp_recompute;

/* Whether backward reads a tensor again, which decides its lifetime. */
typedef enum amp_backward_reads {
    AMP_READS_NOT,
    AMP_READS,
    AMP_READS_FOR_GRADIENT /* only if the gradient of the layer's activation depends on it */
} amp_backward_reads;

/* Which of epilogue.h's functions follow the kind's own computation. */
typedef enum amp_epilogue {
    AMP_EPILOGUE_NONE,
    AMP_EPILOGUE_ACTIVATION, /* the activation */
    AMP_EPILOGUE_WHOLE       /* batch norm or a bias too; backward computes a delta of the sums */
} amp_epilogue;

/* The matrix products of a forward: `groups` products of (out, in · window) by (in · window, places)
 * numbers. In training, the gradient of the weights takes as many operations again, and so does the gradient
 * of the input. */
typedef struct amp_products {
    int groups, in, out;       /* channels of a group; for a connected layer, all inputs and outputs */
    size_t window, places;     /* window: numbers per channel in a window; places: windows per pass */
    const char *out_key;       /* the .cfg's key that sets `out`: "filters" */
    int turned;                /* uses the backend's convolution backward, from `out` to `in` */
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
    /* What checkpoint=auto may repeat: work that needs a pass over memory but no matrix product. Nothing for
     * layers that read others far before them, which would have to be repeated too. */
    amp_recompute repeats;
    amp_epilogue epilogue;
    /* In a network that only predicts, batch norm may be folded into its weights, and the activation into its
     * convolution (fold.c). */
    int folds;
    /* In training, forward writes the batch's statistics to node->mean and variance, and updates the
     * description's rolling_mean and rolling_variance (epilogue.c). If 0, the host's own code updates any
     * statistics. */
    int normalizes;
    /* A loss that AMP computes itself. Its forward also writes its part of the input's delta, times the loss
     * scale. */
    int makes_loss;
    int draws_numbers; /* a training's forward draws from the host's random number generator */
    int chooses;       /* each output is one of the input's numbers, and backward passes its delta to that
                          number; if rounding makes two equal, it may be another one than in fp32 */
    /* NULL: it has no matrix products. */
    amp_products (*products)(const struct amp_node *);
    /* The number of inputs, counted from the first, whose delta equals the output's (after its activation),
     * so that they may share a buffer. Two: the output is exactly their sum, which a batch norm before it may
     * compute. NULL: none. */
    int (*passes_delta)(const struct amp_node *);
    /* Creates backend objects and requests buffers of the arena at this shape. forward_time and backward_time
     * are times of the arena's clock; backward_time is -1 if no backward follows. NULL: nothing to do. */
    amp_status (*plan)(struct amp_node *, struct amp_call *, amp_arena *, int forward_time, int backward_time,
                       amp_error *);
    /* Before backward is called, the output's delta is complete in its home form; backward may overwrite it.
     * A kind with one input may give map instead of forward, and map_delta instead of backward. */
    amp_status (*forward)(struct amp_node *, struct amp_call *, amp_error *);
    amp_status (*backward)(struct amp_node *, struct amp_call *, amp_error *);
    /* y from x; and dx (+)= what dy gives, called only if the input wants a delta. */
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
    float **gradient_slot;  /* where the host stores its weight_updates pointer: momentum between steps;
                               the engine's gradient array while the host's own backward runs */
    size_t count;
    int decays;             /* SGD decays it: weights, but not biases and scales */
    int unsaved;            /* not in the host's weights file, so a sidecar must hold it */
    float clip;             /* clamped to ±clip after each update; 0 is off */
} amp_param_desc;

/* State that forward changes and a skipped step must restore: rolling statistics, a recurrent layer's
 * state. */
typedef struct amp_statistics_desc {
    float *array;
    size_t count;
    int unsaved; /* as in amp_param_desc */
    float rolling_factor; /* as in amp_batchnorm_rule; 0: a state, not a rolling statistic */
} amp_statistics_desc;

enum { AMP_MAX_PARAMS = 32, AMP_MAX_STATISTICS = 18 }; /* lstm: 8 connected × 3 arrays; × 2, and its two
                                                          states */

/* One layer as the host describes it. The amp_network_desc owns inputs, params, statistics and yolo (a node's
 * copy only borrows them); the host owns everything else that pointers point to, and it outlives the engine.
 * Only shapes change with a resize. */
typedef struct amp_layer_desc {
    const amp_layer_ops *kind;
    const char *type;           /* the .cfg section's name, for messages */
    const char *why_host;       /* AMP_LAYER_HOST: in a few words, why AMP does not compute it; else NULL */
    amp_shape output;           /* n,c,h,w; flat outputs have h = w = 1 */
    int *inputs, input_count;   /* indices of the producers, the previous layer first; -1 is the image */
    int keep_fp32;              /* amp=0 in its section */
    int recompute;              /* checkpoint=1 in its section: backward recomputes its output */
    int is_loss;                /* has a cost; its forward writes a delta */
    int is_truth;               /* its fp32 output replaces the truth of later layers */
    int stops_backward;         /* this layer and those before it compute no backward */
    int no_backward;            /* passes no gradient to its inputs (crop) */
    int lends_products;         /* AMP_LAYER_HOST: the backend's gemm computes its matrix products, in the
                                   dtype */

    amp_activation activation;  /* for layers with an epilogue, and [activation] */
    int batch_normalize;
    union { /* settings of its kind, named like the .cfg's keys */
        struct amp_convolution_settings {
            int filters, size, stride, pad; /* size 0: the whole input, as in a connected layer; pad counts
                                               pixels, not elements */
            int stride_x, dilation, groups; /* as in amp_conv_desc */
        } convolution;                      /* deconvolutional layers too */
        struct amp_maxpool_settings { int size, stride, pad; } maxpool;
        struct amp_upsample_settings { int stride; float scale; } upsample;
        struct amp_reorg_settings { int stride, reverse, flatten, extra; } reorg;
        struct amp_dropout_settings { float probability, scale; } dropout;
        struct amp_route_settings { int groups, group_id; } route;
        struct amp_shortcut_settings { float alpha, beta; } shortcut;
    };
    const amp_yolo_desc *yolo;  /* for a yolo layer; else NULL */

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

struct amp_network_desc; /* amp/plan.h */

/* The functions of the host that the engine calls while it runs. */
typedef struct amp_host {
    void *context;
    /* Describes the layers in their current state, for passes of `batch` images. The caller frees *out with
     * amp_network_desc_free. */
    void (*describe)(void *context, int batch, struct amp_network_desc *out);
    /* Allocates exactly the fp32 NCHW buffers that are needed (arrays of flags, one per layer), and frees the
     * others. */
    amp_status (*prepare_buffers)(void *context, const char *needs_output, const char *needs_delta,
                                  amp_error *);
    float *(*output)(void *context, int layer);
    float *(*delta)(void *context, int layer);
    /* Runs the host's own layer. input: the fp32 NCHW output of its first producer; input_delta: its backward
     * adds to this, or NULL. */
    void (*forward)(void *context, int layer, float *input, int training);
    void (*backward)(void *context, int layer, float *input, float *input_delta, int training);
    /* The labels for a loss that AMP computes, where the backend can read them; NULL: there are none. */
    const float *(*labels)(void *context, int layer);
    /* Receives the result of a loss that AMP computed in the last forward, with each image's part of the
     * cost; `loss` is called after it. */
    void (*found)(void *context, int layer, const amp_yolo_result *, const double *image_costs);
    /* A loss layer's value in the last forward. */
    float (*loss)(void *context, int layer);
    /* Draws count numbers in [0,1) from the host's own generator, for dropout. */
    void (*random_uniform)(void *context, float *numbers, size_t count);
} amp_host;

/* Gradients of a layer's parameters, in the order of desc->params, inside the engine's memory. They outlive a
 * plan. */
typedef struct amp_gradients {
    float *all[AMP_MAX_PARAMS];
    int param[AMP_MAX_PARAMS]; /* its index among the engine's parameters: layers may share one */
    int count;
} amp_gradients;

typedef struct amp_node amp_node;

/* One pass over the network. */
typedef struct amp_call {
    amp_backend *backend;
    const amp_host *host;
    int training;      /* batch statistics, dropout */
    int keeps_state;   /* a backward follows */
    int direct;        /* amp_conv_desc.direct */
    int outline;       /* the plan is only for sizes: the backend creates no objects */
    int shown;         /* an observer reads each layer's output */
    int again;         /* backward repeats a forward: it reuses the first one's batch statistics and
                          dropout mask, and does not update rolling statistics */
    float loss_scale;          /* forward multiplies the delta of a loss by this; the loss scale enters a
                                  step nowhere else */
    amp_yolo_result *results;  /* results of AMP's losses, one each, in the backend's memory */
    double *image_costs;       /* and each one's costs per image of the pass */
    const amp_batchnorm_ranks *ranks; /* ranks whose images batch norm treats as one batch; NULL: only this
                                         pass's images */
} amp_call;

/* A layer at one shape. */
struct amp_node {
    amp_layer_desc desc;
    int index;
    amp_form form;             /* the form it computes in, and its output's home (except for yolo: PLAIN) */
    amp_dtype dtype;           /* of that form */
    amp_dtype products;        /* dtype of its matrix products, if any: `dtype`, unless the layer lends
                                  them */
    amp_value **inputs, *output;
    int computes_backward;     /* at least one gradient is needed from it */
    const amp_gradients *gradients;

    amp_conv *conv;
    int predicts;              /* the plan folds: nothing is kept for a backward */
    int folded;                /* the layer's batch norm is folded into its weights (fold.c) */
    float *folded_bias;        /* and into this bias, in the backend's memory, made with the copies of
                                  weights */
    amp_recompute recompute;   /* repeated in backward, at again_time of the arena's clock; -1: not needed */
    int again_time;
    void *pre_activation;      /* the epilogue's sums (epilogue.h), kept for backward */
    void *pre_activation_again; /* where backward recomputes it: exchanged like amp_value.data_again */
    float *mean, *variance;    /* batch statistics, c elements each */
    int leaves_norm;           /* forward ends with the sums, unless an observer sees the output: its only
                                  reader, a shortcut, computes its own output from the sums */
    amp_node *norm_of;         /* in that shortcut: the node whose batch norm it computes */
    int keeps_delta;           /* backward does not change the output's delta, because another value shares
                                  it */
    void *sums_delta;          /* and writes the delta of the sums (epilogue.h) here */
    void *delta_part;          /* deconvolutional: its part of the input's delta, if other layers add parts
                                  too */
    void *kept;                /* whatever else its kind's forward keeps for backward, in the arena: max
                                  pooling's indices, dropout's mask */
    void *table;               /* what its kind's plan created in the backend's memory, freed with the
                                  node: reorg's indices, yolo's classes; or NULL */
    int result;                /* for a loss that AMP computes: its index in call->results */
};

/* The gradient of the parameter with this master; NULL if the layer does not learn it. */
static inline float *amp_gradient_of(const amp_node *node, const float *master)
{
    for (int k = 0; k < node->desc.param_count; k++)
        if (node->desc.params[k].master == master) return node->gradients->all[k];
    return NULL;
}

/* The node's operations, as described in amp_layer_ops. An error's line begins with the layer, and the
 * backend's profiler ranges are named after it. */
amp_status amp_node_plan(amp_node *, amp_call *, amp_arena *, int forward_time, int backward_time,
                         amp_error *);
void amp_node_drop_weights(amp_node *, amp_backend *); /* free the copies until they are loaded again */
amp_status amp_node_forward(amp_node *, amp_call *, amp_error *);
amp_status amp_node_backward(amp_node *, amp_call *, amp_error *);

/* Activation checkpointing, in backward: recomputes what node->recompute says into its second buffer.
 * amp_node_exchange returns to the first one, for the next forward. */
amp_status amp_node_forward_again(amp_node *, amp_call *, amp_error *);
void amp_node_exchange(amp_node *);
/* Whether backward reads the node's inputs, or its output, again. */
int amp_node_reads_input(const amp_node *);
int amp_node_reads_output(const amp_node *);
/* Whether the epilogue's sums are in a buffer of their own: backward computes the activation's input from
 * them. */
int amp_node_keeps_sums(const amp_node *);

/* For plan: checks that the shape the layer computes is the one the host describes; `check` is what the user
 * should look at. */
amp_status amp_node_check_shape(const amp_node *, amp_shape made, const char *check, amp_error *);

/* For plan: fills node->table. */
amp_status amp_node_make_table(amp_node *, amp_call *, const void *table, size_t bytes, amp_error *);

/* Loads the weights of all convolutions among `count` nodes at once. An error's line begins with the layer,
 * if one is at fault. */
amp_status amp_nodes_load_weights(amp_node *nodes, int count, amp_backend *, amp_error *);

/* Frees what plan created (not arena memory). */
void amp_node_release(amp_node *node, amp_backend *backend);
