/* The collective part of a step with several ranks. After it, each rank makes the same update by itself.
 *
 * Gradients are summed over all ranks, so each rank has the whole gradient of the step. The gradient's norm,
 * whether it is finite, and the update depend only on this sum, so they are the same on all ranks. All
 * gradients are in one block, in .cfg order, and backward completes the block from its end. In the step's
 * last pass, the all-reduce of each bucket starts as soon as the bucket is complete, and overlaps with the
 * rest of backward. The bounds of buckets are fixed, so that the bits of a sum do not depend on when it
 * starts.
 *
 * Rolling statistics become those that a single rank would have after making all passes of the step in rank
 * order. With sync_batchnorm, batch norm treats the images of all ranks in a pass as one batch: it sums over
 * all ranks in each pass, forward and backward, so that its statistics are the same on all ranks.
 *
 * Each rank also sends a record to the others. The record says whether the sending rank must skip the step.
 * It also has that rank's step number, loss scale and checksum of masters, which must be the same on all
 * ranks. */
#pragma once

#include <stdint.h>

#include "../comm/comm.h"
#include "parameters.h"
#include "scaler.h"

/* AMP_BUCKET: elements per bucket, 4 MB of fp32. Buckets are small enough to overlap with backward, and large
 * enough to make latency negligible. AMP_DRIFT_STEPS: each step compares a part of the masters between
 * ranks; after this many steps all masters have been compared. */
enum { AMP_BUCKET = 1 << 20, AMP_DRIFT_STEPS = 64 };

/* The record that each rank sends to all others at the end of a step. It is sent as plain bytes and has no
 * pointers. */
typedef struct amp_rank_record {
    uint64_t step, masters;   /* step: number of the current update; masters: checksum of a 64th of the
                                 masters, a different 64th at each step */
    double loss;              /* the sum over the rank's passes */
    float scale;              /* the loss scale */
    int32_t rejected;         /* 1: the step must be skipped */
    int32_t found;            /* 1: the following fields say where an inf or NaN was found, as in amp_anomaly.
                                 If `rejected` is 1, this inf or NaN is why the step must be skipped. If
                                 `rejected` is 0, only a loss is inf or NaN */
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
    int is_last_pass;         /* 1: the current pass is the step's last, so its backward completes the
                                 gradients */
    size_t begun;             /* the all-reduce has started for this many elements at the end of the gradient
                                 block */
    uint64_t step;            /* number of updates that have started */
    amp_rank_record blamed;   /* a copy of the record of the rank that is blamed for the last step's inf or
                                 NaN; all 0: no rank. amp_parallel_finish sets *rejected or *bad_loss from
                                 this copy, and their strings point into the copy */
} amp_parallel;

/* After this call the network trains together with comm's other ranks, and amp_engine_update is collective.
 * The caller owns comm. wire: the type in which gradients are sent. bucket: elements per bucket, normally
 * AMP_BUCKET. The amp_parallel must not move in memory afterwards. */
void amp_parallel_join(amp_parallel *, amp_comm *, amp_dtype wire, size_t bucket, int sync_batchnorm);
/* Returns what batch norm needs to sum over ranks in training passes. NULL: each rank uses only its own
 * images. */
const amp_batchnorm_ranks *amp_parallel_batchnorm(const amp_parallel *);

/* Call when backward has finished layer i and all later layers. In the step's last pass, starts the sums of
 * complete buckets. */
amp_status amp_parallel_layer_done(amp_parallel *, const amp_parameters *, int i, amp_error *);

/* Call at the end of a step. Completes all sums, and sets *rejected, *bad_loss and *loss to the same values
 * on all ranks:
 *   *rejected: the reason of the first rank that rejects the step;
 *   *bad_loss: if no rank rejects the step, the bad loss of the first rank that has one;
 *   *loss: the sum of the ranks' losses.
 * AMP_COMM_FAILED: an exchange failed, or the ranks differ in weights, scale or step. */
amp_status amp_parallel_finish(amp_parallel *, amp_parameters *, const amp_scaler *, amp_anomaly *rejected,
                               amp_anomaly *bad_loss, double *loss, amp_error *);

/* Sets *sum to the checksum of elements first to last - 1 of all masters, concatenated. If there are fewer
 * elements than `last`, the range ends with the last element. */
amp_status amp_masters_checksum(const amp_parameters *, size_t first, size_t last, uint64_t *sum,
                                amp_error *);
