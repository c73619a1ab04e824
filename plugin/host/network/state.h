/* What AMP keeps for one network, the same for every Darknet. */
#pragma once

#include "../../include/darknet_amp.h"
#include "../fork.h"
#include "../program/failure.h"
#include "../program/request.h"
#include "spikes.h"

struct amp_resume;      /* resume.h */
struct amp_fork_memory; /* defined by the fork: Darknet's buffers as AMP keeps them */

struct darknet_amp {
    amp_config *config;
    amp_engine *engine;
    struct network *net;           /* of the current hook; it may be a copy, and is only valid during the
                                      hook */
    struct amp_fork_memory *memory;
    struct amp_resume *resume;     /* files saved and loaded */
    int measures;                  /* its accuracy is measured: batch norm is not folded into weights, so
                                      that a network detects the same before, during and after its training */
    int layer_count, batch, w, h;  /* as parsed: Darknet's own fp32 layers cannot grow beyond that batch */
    struct amp_comm *comm;         /* of the ranks that train the network together: ranks.h; NULL: it
                                      trains alone */
    struct network **united;       /* -gpus: the networks of all ranks, in rank order; else NULL */

    /* Counters for the summary line and the training log. Times in seconds of CLOCK_MONOTONIC. */
    unsigned long steps, skipped;
    double started, computed, images;
    int subdivision;               /* number of the last training pass within its step, from 1 */
    uint64_t weights_seen;         /* notice_weights in step.c */
    int step_skipped;              /* the last step was skipped: because of an overflow, or of a dropped
                                      spike */
    amp_spike step_spike;          /* whether it was a spike */
    float step_scale;              /* the loss scale of the last step */
    double step_gradient_norm;     /* L2 norm of the unscaled mean gradient of the batch, before clipping;
                                      NaN after an overflow */
    int summary_printed, recompute_printed, bad_loss_printed, softmax_printed;
    int anomaly_noted, anomaly_subdivision; /* debug=1, for the current step: see step.c */
    char *anomaly_images;
    amp_image_losses image_losses; /* of the current step: see spikes.h */
};

/* Called by the fork's parser when it has made all layers from what darknet_amp_open_cfg returned: returns
 * the new net->amp, NULL for a network without AMP. */
struct darknet_amp *amp_host_make(struct network *net);
/* Called after that: ends the program if the network is to be trained and does not fit into memory
 * (fits.h). */
void amp_host_network_made(struct network *net);
/* Frees everything except amp->memory, which the fork frees before. */
void amp_host_free(struct darknet_amp *amp);

/* products.c: matrix products of Darknet's own layers (rnn, gru, lstm, crnn), which the backend computes
 * instead of Darknet's gemm. Between begin and end, the calling thread's products belong to this layer of the
 * engine's active plan. */
void amp_host_products_begin(struct darknet_amp *amp, int layer);
void amp_host_products_end(void);
