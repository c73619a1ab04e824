/* AMP's state of one network. This struct is the same in every Darknet. */
#pragma once

#include "../../include/darknet_amp.h"
#include "../fork.h"
#include "../program/failure.h"
#include "../program/request.h"
#include "spikes.h"

struct amp_resume;      /* resume.h */
struct amp_fork_memory; /* defined by the fork; records which of Darknet's buffers AMP keeps */

struct darknet_amp {
    amp_config *config;
    amp_engine *engine;
    struct network *net;           /* network of the current hook; may be a copy that is valid only during
                                      this hook */
    struct amp_fork_memory *memory;
    struct amp_resume *resume;     /* state of saving and loading files */
    int measures;                  /* 1: the command measures accuracy; batch norm is not folded, so that a
                                      network detects the same before, during and after its training */
    int layer_count, batch, w, h;  /* values that the parser set; Darknet's own fp32 layers cannot run with a
                                      batch larger than `batch` */
    struct amp_comm *comm;         /* the ranks that train the network (ranks.h); NULL: it trains alone */
    struct network **united;       /* the networks of all ranks with -gpus, in rank order; otherwise NULL */

    /* For the summary line and the training log. Times are in seconds of CLOCK_MONOTONIC. */
    unsigned long steps, skipped;
    double started, computed, images;
    int subdivision;               /* number, from 1, of the latest training pass within its step */
    uint64_t weights_seen;         /* a checksum: see notice_weights in step.c */
    int step_skipped;              /* 1: the latest step was skipped (overflow) or dropped (spike) */
    amp_spike step_spike;          /* whether the latest step was a spike */
    float step_scale;              /* the loss scale of the latest step */
    double step_gradient_norm;     /* L2 norm of the unscaled mean gradient of the batch, before clipping;
                                      NaN after an overflow */
    int summary_printed, recompute_printed, bad_loss_printed, softmax_printed;
    int anomaly_noted, anomaly_subdivision; /* used with debug=1: see amp_host_note_images */
    char *anomaly_images;
    amp_image_losses image_losses; /* losses of the current step's images: see spikes.h */
};

/* darknet_amp_made (darknet/hooks.c) calls this function after Darknet has made all layers of the .cfg that
 * darknet_amp_open_cfg returned. Returns the value for net->amp; NULL: the network runs without AMP. */
struct darknet_amp *amp_host_create(struct network *net);
/* Call it after net->amp is set. Sets which layers backward recomputes. For a training, also builds the plan
 * of a training pass (only on a CPU), and ends the program if the training does not fit into memory
 * (fits.h). */
void amp_host_prepare(struct network *net);
/* Frees everything except amp->memory, which the fork frees first. */
void amp_host_free(struct darknet_amp *amp);

/* step.c: which plan a pass runs. (Not in state.c, since fits.c needs it too and state.c calls fits.c.)
 *
 * amp_host_plan_key returns the key for a pass of `batch` images at net's current size.
 * amp_host_training_plan returns the plan for a training pass at net's current shape, and builds it if it
 * does not exist. net's engine owns the plan; it is valid until the engine adds another. */
amp_plan_key amp_host_plan_key(const struct network *net, int batch, int training);
amp_status amp_host_training_plan(struct network *net, const amp_plan **out, amp_error *);

/* products.c: between begin and end, the backend computes the matrix products of Darknet's gemm in the
 * calling thread, for this layer of the engine's active plan. */
void amp_host_products_begin(struct darknet_amp *amp, int layer);
void amp_host_products_end(void);
