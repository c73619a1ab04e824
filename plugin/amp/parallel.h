/* What ranks do together at the end of a step, before each makes the same update by itself.
 *
 * Gradients are summed over all ranks, so each has the step's gradient: whether it is finite, its norm and
 * the update follow from it alone, and are the same everywhere. Running statistics become what one rank would
 * have, which had made all passes of the step in the order of ranks. A record of each rank says what the
 * others cannot see in the sums. */
#ifndef AMP_AMP_PARALLEL_H
#define AMP_AMP_PARALLEL_H

#include <stdint.h>

#include "../comm/comm.h"
#include "parameters.h"

/* What a rank says of its share of a step; gathered from all. Plain bytes, no pointers. */
typedef struct amp_rank_record {
    int32_t rejected;         /* the step must be skipped: why, as in amp_anomaly */
    int32_t layer, is_gradient, bad_images, image;
    char pass[16], tensor[64];
} amp_rank_record;

/* Sums gradients and combines running statistics, of `passes` forward passes of each rank. */
amp_status amp_parallel_sum(amp_comm *, amp_parameters *, int passes, amp_error *);

/* If a rank rejects its step (rejected->found), all do: *rejected is then the first such rank's reason, whose
 * texts stay in *kept. */
amp_status amp_parallel_agree(amp_comm *, amp_anomaly *rejected, amp_rank_record *kept, amp_error *);

#endif
