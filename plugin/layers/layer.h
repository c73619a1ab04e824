/* What a layer is to the engine: a description that the host gives, and a node that computes forward and
 * backward with the backend's operations. One file per layer kind implements amp_layer_ops. */
#pragma once

#include "../backend/backend.h"
#include "arena.h"
#include "value.h"

/* The autocast classes, as torch.amp has them: what decides the form that a layer computes in
 * (amp/autocast.c). */
typedef enum amp_autocast_class {
    AMP_CLASS_LOWER,    /* half in, fp32 accumulation, half out */
    AMP_CLASS_FOLLOWS,  /* the form of its input */
    AMP_CLASS_PROMOTES, /* the widest form of its inputs */
    AMP_CLASS_FP32      /* the host's own fp32 layer */
} amp_autocast_class;

/* All layer kinds. A row is the kind's name, in capitals and as in its operations' name, and its autocast
 * class: it gives AMP_LAYER_<NAME> here, and the operations amp_<name>_ops and the class in registry.c. Kind
 * HOST runs the host's own fp32 code on fp32 NCHW buffers. To add a kind, write a row and the file that
 * defines its operations. */
#define AMP_LAYER_TABLE(ROW)                      \
    ROW(HOST, host, FP32)                         \
    ROW(CONVOLUTIONAL, convolutional, LOWER)      \
    ROW(CONNECTED, connected, LOWER)              \
    ROW(DECONVOLUTIONAL, deconvolutional, LOWER)  \
    ROW(BATCHNORM, batchnorm, FOLLOWS)            \
    ROW(ACTIVATION, activation, FOLLOWS)          \
    ROW(MAXPOOL, maxpool, FOLLOWS)                \
    ROW(AVGPOOL, avgpool, FOLLOWS)                \
    ROW(UPSAMPLE, upsample, FOLLOWS)              \
    ROW(REORG, reorg, FOLLOWS)                    \
    ROW(DROPOUT, dropout, FOLLOWS)                \
    ROW(YOLO, yolo, FOLLOWS)                      \
    ROW(ROUTE, route, PROMOTES)                   \
    ROW(SHORTCUT, shortcut, PROMOTES)             \
    ROW(MULTIPLY, multiply, PROMOTES)

typedef enum amp_layer_kind {
#define AMP_LAYER_ENUM(NAME, name, CLASS) AMP_LAYER_##NAME,
    AMP_LAYER_TABLE(AMP_LAYER_ENUM)
#undef AMP_LAYER_ENUM
    AMP_LAYER_KINDS
} amp_layer_kind;

/* Activation checkpointing: what backward makes again of a layer's forward, so that its memory is free in
 * between. */
typedef enum amp_recompute {
    AMP_RECOMPUTE_NOTHING,
    AMP_RECOMPUTE_OUTPUT, /* the output, from the sums that batch norm keeps: costs no matrix product */
    AMP_RECOMPUTE_ALL     /* all that forward makes, from its inputs */
} amp_recompute;

/* A trainable array of the host's, described once. */
typedef struct amp_param_desc {
    const char *name;       /* "weights", "biases", "scales", "input_layer.weights" */
    float *master;          /* fp32, the host's */
    float **gradient_slot;  /* where the host keeps its weight_updates pointer: momentum between steps; points
                               at the engine's gradient array while the host's own backward runs */
    size_t count;
    int decays;             /* SGD decays weights, not biases and scales */
    int unsaved;            /* the host's weights file does not hold it: a checkpoint must */
    float clip;             /* kept within ±clip after each update; 0 is off */
} amp_param_desc;

/* What forward changes and a skipped step must restore: running statistics, a recurrent layer's state. */
typedef struct amp_statistics_desc {
    float *array;
    size_t count;
    int unsaved; /* as in amp_param_desc */
    float rolling_factor; /* as in amp_batchnorm_rule; 0: it is no running statistic, but a state */
} amp_statistics_desc;

enum { AMP_MAX_PARAMS = 32, AMP_MAX_STATISTICS = 18 }; /* lstm: 8 connected × 3 arrays; × 2, and its two
                                                          states */

/* One layer as the host describes it. Pointers are the host's and outlive the engine; inputs belongs to the
 * description. Shapes change with a resize, the rest does not. */
typedef struct amp_layer_desc {
    amp_layer_kind kind;
    const char *type;           /* the .cfg section's name, for messages */
    const char *why_host;       /* AMP_LAYER_HOST: why AMP does not compute it, in a few words; else NULL */
    amp_shape output;           /* n,c,h,w; flat outputs have h = w = 1 */
    int *inputs, input_count;   /* producers' indices, -1 is the image; the previous layer first */
    int pinned;                 /* amp=0 in its section */
    int recompute;              /* checkpoint=1 in its section: backward makes its output again */
    int is_loss;                /* has a cost; its forward writes a delta */
    int is_truth;               /* its fp32 output replaces the truth of later layers */
    int stops_backward;         /* backward ends above this layer */
    int no_backward;            /* passes no gradient to its inputs (crop) */
    int lends_products;         /* AMP_LAYER_HOST: the backend's gemm computes its matrix products, in the
                                   dtype */

    amp_activation activation;
    int batch_normalize, filters, size, stride, pad;
    int stride_x, dilation;               /* convolution: amp_conv_desc; pad counts pixels, not elements */
    int groups, group_id;                 /* groups of a convolution; route: which of them it takes */
    int reverse, flatten, extra;          /* reorg */
    float alpha, beta, scale, probability;
    float *weights, *biases, *scales, *rolling_mean, *rolling_variance;
    amp_batchnorm_rule batchnorm_rule;
    float rate_scale;
    amp_yolo_desc yolo;

    amp_param_desc params[AMP_MAX_PARAMS];
    int param_count;
    amp_statistics_desc statistics[AMP_MAX_STATISTICS];
    int statistics_count;
} amp_layer_desc;

struct amp_network_desc; /* amp/plan.h */

/* The functions of the host that the engine calls while it runs. */
typedef struct amp_host {
    void *context;
    /* Describes the layers as they are now, for passes of `batch` images. *out is freed with
     * amp_network_desc_free. */
    amp_status (*describe)(void *context, int batch, struct amp_network_desc *out, amp_error *);
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
    /* Takes the result of a loss that AMP computes itself, of the forward that just ran; `loss` is called
     * after it. */
    void (*found)(void *context, int layer, const amp_yolo_result *);
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
typedef struct amp_step {
    amp_backend *backend;
    const amp_host *host;
    int training;      /* batch statistics, dropout */
    int keeps_state;   /* a backward follows */
    int direct;        /* amp_conv_desc.direct */
    int outline;       /* the plan is only for sizes: the backend makes nothing for it */
    int shown;         /* an observer reads each layer's output */
    int again;         /* a forward that backward repeats: batch statistics and dropout's mask are those of
                          the first time, and running statistics stay */
    float loss_scale;          /* what forward multiplies the delta of a loss by: nothing else brings it into
                                  a step */
    amp_yolo_result *results;  /* theirs, in the backend's memory: one each */
    const amp_batchnorm_ranks *ranks; /* whose images are one batch to batch norm; NULL: this pass's alone */
} amp_step;

typedef struct amp_layer_ops {
    /* What backward reads again; decides how long activations live: amp_node_reads_input. */
    int backward_reads_input, backward_reads_output;
    /* A loss that AMP computes itself. Its forward already writes its part of the input's delta, times the
     * loss scale. */
    int makes_loss;
    /* Create backend objects and request buffers of the arena at this shape. forward_time and backward_time
     * are the arena's clock; backward_time is -1 where no backward follows. */
    amp_status (*plan)(amp_node *, amp_step *, amp_arena *, int forward_time, int backward_time, amp_error *);
    amp_status (*forward)(amp_node *, amp_step *, amp_error *);
    /* The output's delta is settled in its home form before the call, and may be overwritten. */
    amp_status (*backward)(amp_node *, amp_step *, amp_error *);
} amp_layer_ops;

/* A layer at one shape. */
struct amp_node {
    const amp_layer_ops *ops;
    amp_layer_desc desc;
    int index;
    amp_form form;             /* the form it computes in; its output's home, but yolo's is HOST */
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
    uint8_t *bytes;            /* max pooling's choice, dropout's keep */
    int32_t *map;              /* reorg */
    amp_yolo_class_rule *class_table; /* yolo; NULL where the description has none */
    int result;                /* yolo: which of step->results is its own */
};

/* What a row of AMP_LAYER_TABLE says. */
const amp_layer_ops *amp_layer_ops_of(amp_layer_kind);
amp_autocast_class amp_autocast_class_of(amp_layer_kind);

/* The node's operations. They do what the ops say; an error's line begins with the layer, and the backend's
 * ranges are named after it. */
amp_status amp_node_plan(amp_node *, amp_step *, amp_arena *, int forward_time, int backward_time,
                         amp_error *);
void amp_node_drop_weights(amp_node *, amp_backend *); /* give the copies back, until they are loaded again */
amp_status amp_node_forward(amp_node *, amp_step *, amp_error *);
amp_status amp_node_backward(amp_node *, amp_step *, amp_error *);

/* Activation checkpointing, in backward: makes what node->recompute says in its second place.
 * amp_node_exchange returns to the first, for the next forward. */
amp_status amp_node_forward_again(amp_node *, amp_step *, amp_error *);
void amp_node_exchange(amp_node *);
/* Whether backward reads the node's inputs, or its output, again: as its ops say, but for the output of an
 * activation whose gradient wants its input, which an [activation] layer finds in its own, and others
 * keep. */
int amp_node_reads_input(const amp_node *);
int amp_node_reads_output(const amp_node *);
/* Whether the epilogue's sums lie beside the output: backward makes the activation's input of them. */
int amp_node_keeps_sums(const amp_node *);

/* For plan: that what the layer makes of its input is what the host describes; `check` is what the user
 * should look at. */
amp_status amp_node_check_shape(const amp_node *, amp_shape made, const char *check, amp_error *);

/* Loads the weights of all convolutions among `count` nodes, in one go; an error's line begins with the
 * layer, if one is to blame. */
amp_status amp_nodes_load_weights(amp_node *nodes, int count, amp_backend *, amp_error *);

/* Frees what plan made (not arena memory). */
void amp_node_release(amp_node *node, amp_backend *backend);
