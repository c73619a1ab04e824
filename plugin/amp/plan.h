/* A plan: the network at one shape and in one mode, ready to run. It has the nodes and values, the forms to
 * which each value is cast, and the place of each buffer in the arena. Plans are cached per key, so that with
 * random=1 the plan for each size is built once. */
#pragma once

#include "autocast.h"

/* Each distinct key has its own plan. */
typedef struct amp_plan_key {
    int batch, w, h;
    int keeps_state;  /* a backward will follow */
    int image_delta;  /* the gradient of the image is needed too */
    int frozen;       /* number of layers that do not learn now, according to the network's description */
    int folds;        /* the network only predicts: batch norm is folded into weights (fold.c), and matrix
                         products also apply the activation. Never with keeps_state */
} amp_plan_key;

typedef struct amp_network_desc {
    amp_layer_desc *layers;
    int count;
    amp_shape image;
    int output_layer;       /* the host returns this layer's fp32 output */
} amp_network_desc;

typedef struct amp_plan {
    amp_plan_key key;
    amp_network_desc network;  /* the description whose arrays the nodes use, if the plan owns it; else
                                  empty */
    amp_node *nodes;
    amp_value *values, image;
    amp_value **links;         /* memory for the `inputs` arrays of all nodes */
    amp_autocast *autocast;    /* per layer: the reason for its form */
    int count, output_layer;
    int *again, again_count;   /* indices of layers whose forward is repeated in backward, in the order of
                                  their nodes' again_time */
    amp_arena arena;
    char *needs_output, *needs_delta; /* per layer: whether the host's fp32 buffer is in use */
    char *host_reads;                 /* per layer: whether the host reads its fp32 output after the pass */
    amp_yolo_result *results;         /* in the arena: results of the losses that AMP computes, followed by
                                         each image's part of the cost (amp_plan_image_costs) */
    int result_count, loss_count;     /* result_count: losses that AMP computes; loss_count: all losses,
                                         including the host's own */
    unsigned long last_use;
    unsigned long planned_version;    /* version of the masters when the plan was made; their values decide
                                         which layers are folded */
    unsigned long weights_version;    /* version of the masters from which the half copies were made; 0: there
                                         are no copies (engine.c) */
} amp_plan;

void amp_network_desc_free(amp_network_desc *);

/* The size of plan->results in bytes, with the images' parts of the cost; and where these parts begin in
 * plan->results or in a copy of it: key.batch numbers for each result. */
size_t amp_plan_result_bytes(const amp_plan *);
double *amp_plan_image_costs(const amp_plan *, amp_yolo_result *results);

/* What a plan is built from. */
typedef struct amp_plan_request {
    const amp_network_desc *network; /* must outlive the plan, unless the caller gives it to plan->network */
    const amp_plan_key *key;
    amp_dtype low;                   /* the dtype of layers in form HALF; fp32: no layer has that form */
    const amp_gradients *gradients;  /* an entry per layer; they must outlive the plan */
    amp_call call;
    const amp_recompute *recompute;  /* activation checkpointing: an entry per layer (recompute.h), or NULL.
                                        Entries of layers that cannot be recomputed are ignored */
} amp_plan_request;

amp_status amp_plan_create(const amp_plan_request *, amp_plan **out, amp_error *);
void amp_plan_free(amp_plan *, amp_backend *);
