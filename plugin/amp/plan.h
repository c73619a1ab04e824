/* A plan: the network at one input shape and in one mode, ready to run: nodes, values, casts, and each
 * buffer's location in the arena. Plans are cached per key: with random=1 each size's plan is built once. */
#pragma once

#include "autocast.h"

/* Each distinct key has its own plan. */
typedef struct amp_plan_key {
    int batch, w, h;
    int keeps_state;  /* 1: a backward will follow, so forward keeps what it needs */
    int image_delta;  /* 1: backward also computes the gradient of the image */
    int frozen;       /* number of layers at the network's start that do not learn now; set by the host */
    int folds;        /* 1: the network only predicts. Batch norm is folded into weights (fold.c), and matrix
                         products also apply the activation. Never with keeps_state */
} amp_plan_key;

typedef struct amp_network_desc {
    amp_layer_desc *layers;
    int count;
    amp_shape image;
    int output_layer;       /* index of the layer whose fp32 output the host returns */
} amp_network_desc;

typedef struct amp_plan {
    amp_plan_key key;
    amp_network_desc network;  /* the description whose arrays the nodes use; amp_plan_free frees it. Empty if
                                  the caller keeps the description (amp_plan_request.network) */
    amp_node *nodes;
    amp_value *values, image;
    amp_value **links;         /* memory for the `inputs` arrays of all nodes */
    amp_autocast *autocast;    /* per layer: its form, and the reason for it */
    int count, output_layer;
    int *again, again_count;   /* the layers that repeat their forward in backward, sorted by again_time */
    amp_arena arena;
    char *needs_output, *needs_delta; /* per layer: 1 if the host's fp32 buffer is in use */
    char *host_reads;                 /* per layer: 1 if the host reads its fp32 output after the pass */
    amp_yolo_result *results;         /* results of the losses that AMP computes, followed by each image's
                                         part of the cost (amp_plan_image_costs); in the arena */
    int result_count, loss_count;     /* result_count: losses that AMP computes; loss_count: all losses */
    unsigned long last_use;
    unsigned long planned_version;    /* version of the masters that decided which layers are folded */
    unsigned long weights_version;    /* version of the masters in the half copies; 0: no copies (engine.c) */
} amp_plan;

void amp_network_desc_free(amp_network_desc *);

/* plan->results ends with each image's part of the cost: key.batch numbers per result. amp_plan_result_bytes:
 * the bytes of results and parts together. amp_plan_image_costs: the address of the first part, in
 * plan->results or in a copy of it. */
size_t amp_plan_result_bytes(const amp_plan *);
double *amp_plan_image_costs(const amp_plan *, amp_yolo_result *results);

typedef struct amp_plan_request {
    const amp_network_desc *network; /* must outlive the plan, unless the caller moves it to plan->network */
    const amp_plan_key *key;
    amp_dtype low;                   /* the dtype of layers in form HALF; fp32: no layer gets this form */
    const amp_gradients *gradients;  /* one entry per layer; must outlive the plan */
    amp_call call;
    const amp_recompute *recompute;  /* one entry per layer (recompute.h), ignored if that layer can recompute
                                        nothing. May be NULL */
} amp_plan_request;

amp_status amp_plan_create(const amp_plan_request *, amp_plan **out, amp_error *);
void amp_plan_free(amp_plan *, amp_backend *);
