/* A plan: the network at one shape and in one mode, ready to run. It holds nodes and values, what each value
 * is cast to, and where each buffer is in the arena. Plans are cached per shape, so that random=1 builds each
 * size once. */
#pragma once

#include "autocast.h"

/* Each distinct key has its own plan. */
typedef struct amp_plan_key {
    int batch, w, h;
    int keeps_state;  /* a backward will follow */
    int image_delta;  /* the gradient of the image is needed too */
    int frozen;       /* number of layers that do not learn at present, according to the description; 0:
                         none */
    int folds;        /* the network only predicts: batch norm is folded into weights (fold.c), and
                         products apply their activation. Never with keeps_state */
} amp_plan_key;

typedef struct amp_network_desc {
    amp_layer_desc *layers;
    int count;
    amp_shape image;
    int output_layer;       /* the host returns this layer's fp32 output */
} amp_network_desc;

typedef struct amp_plan {
    amp_plan_key key;
    amp_network_desc network;  /* what the nodes' descriptions point to, if the plan owns it; else empty */
    amp_node *nodes;
    amp_value *values, image;
    amp_value **links;         /* the nodes' inputs arrays, in one block */
    amp_autocast *autocast;    /* per layer: why its node has its form */
    int count, output_layer;
    int *again, again_count;   /* layers whose forward is repeated during backward, in the order of their
                                  again_time */
    amp_arena arena;
    char *needs_output, *needs_delta; /* per layer: whether the host's fp32 buffer is in use */
    char *host_reads;                 /* per layer: the host reads its fp32 output after the pass */
    amp_yolo_result *results;         /* results of the losses that AMP computes, in the arena, followed by
                                         each image's part of each result (amp_plan_image_costs) */
    int result_count, loss_count;     /* loss_count: layers with a loss, both AMP's and the host's own */
    unsigned long last_use;
    unsigned long planned_version;    /* of the masters when the plan was made: they decide what folds */
    unsigned long weights_version;    /* version of the masters that the half copies were made from; 0: there
                                         are no copies (engine.c) */
} amp_plan;

void amp_network_desc_free(amp_network_desc *);

/* For plan->results or a copy of it: the size of the block, and where the images' parts of the cost begin:
 * key.batch numbers for each result. */
size_t amp_plan_result_bytes(const amp_plan *);
double *amp_plan_image_costs(const amp_plan *, amp_yolo_result *results);

/* What a plan is built from. */
typedef struct amp_plan_request {
    const amp_network_desc *network; /* must outlive the plan, unless the caller gives it to plan->network */
    const amp_plan_key *key;
    amp_dtype low;
    const amp_gradients *gradients;  /* an entry per layer; they must outlive the plan */
    amp_call call;
    const amp_recompute *recompute;  /* activation checkpointing: an entry per layer (recompute.h), or NULL. A
                                        layer keeps what it cannot give up, whatever its entry says */
} amp_plan_request;

amp_status amp_plan_create(const amp_plan_request *, amp_plan **out, amp_error *);
void amp_plan_free(amp_plan *, amp_backend *);
