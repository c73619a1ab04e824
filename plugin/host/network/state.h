/* What AMP keeps for one network, in whatever Darknet it lives. */
#pragma once

#include "../../amp/cfg_check.h"
#include "../../amp/config.h"
#include "../../amp/engine.h"
#include "../../include/darknet_amp.h"
#include "../fork.h"
#include "../program/failure.h"
#include "../program/request.h"
#include "spikes.h"

struct amp_resume;      /* resume.h */
struct amp_fork_memory; /* the fork's own: Darknet's buffers as AMP keeps them */

struct darknet_amp {
    amp_config *config;
    amp_engine *engine;
    struct network *net;           /* of the hook that runs now; it may be a copy, and ends with the hook */
    struct amp_fork_memory *memory;
    struct amp_resume *resume;     /* files saved and loaded */
    int measures;                  /* its accuracy is measured: no batch norm is folded into weights, so that
                                      a network finds the same before, during and after its training */
    int layer_count, batch, w, h;  /* as parsed: Darknet's own fp32 layers cannot grow beyond that batch */
    struct amp_comm *comm;         /* of the ranks that train the network together: ranks.h; NULL: alone */
    struct network **united;       /* -gpus: the networks of all ranks, in their order; else NULL */

    /* Counters for the summary line and the training log. Times in seconds of CLOCK_MONOTONIC. */
    unsigned long steps, skipped;
    double started, computed, images;
    int subdivision;               /* of the last training pass: its number in the step, from 1 */
    uint64_t weights_seen;         /* notice_weights in step.c */
    int step_skipped;              /* the last one was: of an overflow, or of a spike that was dropped */
    amp_spike step_spike;          /* whether it was a spike */
    float step_scale;              /* the loss scale it was made with */
    double step_gradient_norm;     /* L2, unscaled, of the batch's mean, before clipping; NaN after an
                                      overflow */
    int summary_printed, recompute_printed, bad_loss_printed, softmax_printed;
    int anomaly_noted, anomaly_subdivision; /* debug=1, of the step under way: see report.h */
    char *anomaly_images;
    amp_image_losses image_losses; /* of the step under way: see spikes.h */
};

/* For the fork's parser, when all layers are made of what darknet_amp_open_cfg read: what net->amp becomes,
 * NULL for a network without AMP. */
struct darknet_amp *amp_host_make(struct network *net);
/* ... and once it is: ends the program if it is to be trained and does not fit into memory (fits.h). */
void amp_host_network_made(struct network *net);
/* All but amp->memory, which is the fork's and freed before. */
void amp_host_free(struct darknet_amp *amp);

/* products.c: matrix products of Darknet's own layers (rnn, gru, lstm, crnn), which the backend makes instead
 * of its gemm. From begin to end, the calling thread's are those of the engine's active plan's layer. */
void amp_host_products_begin(struct darknet_amp *amp, int layer);
void amp_host_products_end(void);
