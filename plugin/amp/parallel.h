/* What ranks do together at the end of a step, before each makes the same update by itself.
 *
 * Gradients are summed over all ranks, so each has the step's gradient: whether it is finite, its norm and
 * the update follow from it alone, and are the same everywhere. They lie in one block, in the order of the
 * .cfg, and backward completes it from its end: in the step's last pass the all-reduce of each bucket begins
 * as soon as the bucket is complete, and overlaps with the rest of backward. Buckets have fixed borders, so
 * that the bits of a sum do not depend on when it begins.
 *
 * Rolling statistics become what one rank would have, which had made all passes of the step in the order of
 * ranks. With sync_batchnorm the ranks' images of a pass are one batch to batch norm: its sums are made over
 * all ranks in each pass, forward and backward, so that its statistics are the same everywhere.
 *
 * A record of each rank says what the others cannot see in the sums: that its step must be skipped, and from
 * what it starts, which must be the same everywhere. */
#pragma once

#include <stdint.h>

#include "../comm/comm.h"
#include "parameters.h"
#include "scaler.h"

/* 4 MB of fp32: many enough to overlap with backward, large enough that latency does not count. */
enum { AMP_BUCKET = 1 << 20, AMP_DRIFT_STEPS = 64 };

/* A rank's record of its share of a step, which every rank gathers from all. Plain bytes, no pointers. */
typedef struct amp_rank_record {
    uint64_t step, masters;   /* of the update under way; checksum of a 64th of the masters, another
                                 one at each step */
    double loss;              /* the sum over the rank's passes */
    float scale;              /* the loss scale */
    int32_t rejected;         /* the step must be skipped */
    int32_t found;            /* what follows says why, as in amp_anomaly, or where a loss is inf or NaN */
    int32_t layer, is_first, bad_images, image;
    char pass[16], tensor[64];
} amp_rank_record;

/* A rank's part. The first four are set by join, and all else is 0 then; passes, is_last_pass and begun are 0
 * at the beginning of every step. */
typedef struct amp_parallel {
    amp_comm *comm;           /* NULL: there is one rank, and nothing here does anything */
    amp_dtype wire;           /* what gradients travel in, */
    size_t bucket;            /* ... and how many at a time */
    amp_batchnorm_ranks batchnorm; /* count is 0 without sync_batchnorm */
    int passes;               /* training forward passes since the last update */
    int is_last_pass;         /* backward completes gradients */
    size_t begun;             /* elements at the end of the gradients whose sum has begun */
    uint64_t step;            /* updates asked for, from 1 */
    amp_rank_record blamed;   /* the record that the ranks agreed on last; holds its amp_anomaly's texts */
} amp_parallel;

/* Stays where it is from then on. */
void amp_parallel_join(amp_parallel *, amp_comm *, amp_dtype wire, size_t bucket, int sync_batchnorm);
/* For the passes of a training; NULL: batch norm goes by each rank's own images. */
const amp_batchnorm_ranks *amp_parallel_batchnorm(const amp_parallel *);

/* Another plan becomes active, for a training or a prediction: memory is taken in its passes. */
void amp_parallel_plan_changes(amp_parallel *);
/* Backward of layer i, and of all behind it, is done: begins the sums of buckets that are complete. */
amp_status amp_parallel_layer_done(amp_parallel *, const amp_parameters *, int i, amp_error *);

/* The end of a step: completes all sums, and sets the last three to the same on all ranks. *rejected: the
 * reason of the first rank that rejects the step. *bad_loss, if no rank does: that of the first rank that has
 * one. *loss: the sum of the ranks' losses. AMP_COMM_FAILED: the ranks did not start from the same weights,
 * scale and step. */
amp_status amp_parallel_finish(amp_parallel *, amp_parameters *, const amp_scaler *, amp_anomaly *rejected,
                               amp_anomaly *bad_loss, double *loss, amp_error *);

/* Of all masters, one behind the other: the numbers from `first` to before `last`, or to the end. */
amp_status amp_masters_checksum(const amp_parameters *, size_t first, size_t last, uint64_t *sum,
                                amp_error *);
