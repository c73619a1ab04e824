#include "parallel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A rank that starts at r0 and makes S passes has r = k r0 + (what it saw), k = (1 - rolling_factor)^S. One
 * rank making the passes of all N, in their order, would have k^N r0 + Σ k^(N-1-rank)·(r - k r0). Gives this
 * rank's term. */
static float share_of(const amp_comm *comm, float r, float r0, double k)
{
    return (float)(pow(k, comm->size - 1 - comm->rank) * ((double)r - k * (double)r0));
}

static amp_status combine_statistics(amp_comm *comm, amp_parameters *p, int passes, amp_error *error)
{
    size_t count = 0, at = 0;
    for (int i = 0; i < p->statistics_count; i++)
        if (p->statistics[i].rolling_factor > 0) count += p->statistics[i].count;
    if (!count) return AMP_OK;
    float *terms = malloc(count * sizeof *terms);
    if (!terms) return amp_fail(error, AMP_NO_MEMORY, "amp: out of memory for %zu running statistics", count);
    for (int i = 0; i < p->statistics_count; i++) {
        const amp_statistics *s = &p->statistics[i];
        if (s->rolling_factor <= 0) continue;
        double k = pow(1 - (double)s->rolling_factor, passes);
        for (size_t j = 0; j < s->count; j++) terms[at++] = share_of(comm, s->array[j], s->committed[j], k);
    }
    amp_status status = comm->sum_begin(comm, terms, count, AMP_FP32, NULL, error);
    if (status == AMP_OK) status = comm->sum_end(comm, error);
    at = 0;
    for (int i = 0; status == AMP_OK && i < p->statistics_count; i++) {
        const amp_statistics *s = &p->statistics[i];
        if (s->rolling_factor <= 0) continue;
        double k = pow(1 - (double)s->rolling_factor, (double)passes * comm->size);
        for (size_t j = 0; j < s->count; j++) s->array[j] = (float)(k * (double)s->committed[j]) + terms[at++];
    }
    free(terms);
    return status;
}

amp_status amp_parallel_sum(amp_comm *comm, amp_parameters *p, int passes, amp_error *error)
{
    AMP_TRY(comm->sum_begin(comm, p->gradient_block, p->gradient_count, AMP_FP32, NULL, error));
    AMP_TRY(comm->sum_end(comm, error));
    return combine_statistics(comm, p, passes, error);
}

amp_status amp_parallel_agree(amp_comm *comm, amp_anomaly *rejected, amp_rank_record *kept, amp_error *error)
{
    amp_rank_record *all = calloc((size_t)comm->size, sizeof *all), mine = { 0 };
    if (!all) return amp_fail(error, AMP_NO_MEMORY, "amp: out of memory for the records of %d ranks",
                              comm->size);
    if (rejected->found) {
        mine = (amp_rank_record){ .rejected = 1, .layer = rejected->layer,
                                  .is_gradient = rejected->is_gradient, .bad_images = rejected->bad_images,
                                  .image = rejected->image };
        snprintf(mine.pass, sizeof mine.pass, "%s", rejected->pass);
        snprintf(mine.tensor, sizeof mine.tensor, "%s", rejected->tensor);
    }
    amp_status status = comm->gather(comm, &mine, sizeof mine, all, error);
    for (int i = 0; status == AMP_OK && i < comm->size; i++) {
        if (!all[i].rejected) continue;
        *kept = all[i];
        *rejected = (amp_anomaly){ .found = 1, .layer = kept->layer, .pass = kept->pass,
                                   .tensor = kept->tensor, .is_gradient = kept->is_gradient,
                                   .bad_images = kept->bad_images, .image = kept->image };
        break;
    }
    free(all);
    return status;
}
