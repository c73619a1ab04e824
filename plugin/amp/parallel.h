/* The collective part of a step with several ranks. After it, each rank makes the same update by itself.
 *
 * Gradients are summed over all ranks. The norm, the check for inf and NaN, and the update depend only on the
 * sum, so they are the same on all ranks. All gradients are in one block, in .cfg order; backward completes
 * the block from its end. In the step's final pass, each bucket's all-reduce starts as soon as the bucket is
 * complete, and overlaps with the rest of backward. Buckets have fixed bounds, so the bits of a sum do not
 * depend on when the all-reduce starts.
 *
 * Rolling statistics become those of a single rank that would make all passes of the step, in rank order.
 * With sync_batchnorm, batch norm instead treats all ranks' images of a pass as one batch: it sums over the
 * ranks in each forward and backward.
 *
 * Each rank also sends a record: whether it must skip the step, and its step number, loss scale and checksum
 * of masters, which must be the same on all ranks. */
#pragma once

#include <stdint.h>

#include "../comm/comm.h"
#include "parameters.h"
#include "scaler.h"

/* AMP_BUCKET: elements per bucket, 4 MB of fp32: small enough to overlap with backward, large enough to hide
 * latency. AMP_DRIFT_STEPS: number of steps in which ranks compare all masters, one part per step. */
enum { AMP_BUCKET = 1 << 20, AMP_DRIFT_STEPS = 64 };

/* What each rank sends to all others at the end of a step, as plain bytes. */
typedef struct amp_rank_record {
    uint64_t step, masters;   /* step: number of the current update; masters: checksum of a 64th of the
                                 masters */
    double loss;              /* sum of the losses of the rank's passes */
    float scale;              /* the loss scale */
    int32_t rejected;         /* 1: the step must be skipped */
    int32_t found;            /* 1: the following fields say where an inf or NaN was found, as in amp_anomaly.
                                 If `rejected` is 1, this is the reason; else it is in a loss */
    int32_t layer, is_first, bad_images, image;
    char pass[16], tensor[64];
} amp_rank_record;

/* The state of one rank. amp_parallel_join sets the first four members and zeroes the others; the fields
 * `passes`, `is_last_pass` and `begun` are 0 at the beginning of every step. */
typedef struct amp_parallel {
    amp_comm *comm;           /* NULL: there is only one rank, and the functions here do nothing */
    amp_dtype wire;           /* the type in which gradients are sent */
    size_t bucket;            /* the number of elements per bucket */
    amp_batchnorm_ranks batchnorm; /* count is 0 without sync_batchnorm */
    int passes;               /* training forward passes since the last update */
    int is_last_pass;         /* 1: this is the step's final pass; its backward completes the gradients */
    size_t begun;             /* number of gradients, at the block's end, whose all-reduce has started */
    uint64_t step;            /* number of updates that have started */
    amp_rank_record blamed;   /* the record of the rank that is blamed for inf or NaN in the latest step; all
                                 0: none. Strings in amp_parallel_finish's results point into this record */
} amp_parallel;

/* After this call the network trains together with comm's other ranks, and amp_engine_update is collective.
 * The caller owns comm. wire: the type in which gradients are sent. bucket: normally AMP_BUCKET. The
 * amp_parallel must not move afterwards. */
void amp_parallel_join(amp_parallel *, amp_comm *, amp_dtype wire, size_t bucket, int sync_batchnorm);
/* Returns what batch norm needs to sum over the ranks in training passes; NULL: it does not sum. */
const amp_batchnorm_ranks *amp_parallel_batchnorm(const amp_parallel *);

/* Call when backward has finished layer i and all later layers. In the step's final pass, starts the sums of
 * the buckets that are complete. */
amp_status amp_parallel_layer_done(amp_parallel *, const amp_parameters *, int i, amp_error *);

/* Call at the end of a step. Completes all sums, and gives all ranks the same results. *rejected: the reason
 * of the first rank that rejects the step. *bad_loss: if no rank rejects the step, the bad loss of the first
 * rank that has one. *loss: the sum of the ranks' losses. AMP_COMM_FAILED: an exchange failed, or the ranks
 * differ in weights, scale or step. */
amp_status amp_parallel_finish(amp_parallel *, amp_parameters *, const amp_scaler *, amp_anomaly *rejected,
                               amp_anomaly *bad_loss, double *loss, amp_error *);

/* Sets *sum to the checksum of elements `first` to `last` - 1 of the masters, concatenated. A `last` beyond
 * the end means the end. */
amp_status amp_masters_checksum(const amp_parameters *, size_t first, size_t last, uint64_t *sum,
                                amp_error *);
