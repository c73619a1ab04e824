/* Sums of gradients, rolling statistics, and the record by which ranks agree on a skip: see parallel.h. */
#include "parallel.h"

#include <math.h>
#include <string.h>

#include "../files/checksum.h"

/* ---- sums of batch norm ---- */

/* Implements amp_batchnorm_ranks.sum. sum_end also waits for those sums of gradients that have begun. */
static amp_status sum_of_batchnorm(void *context, float *values, size_t count, amp_error *error)
{
    amp_parallel *p = context;
    snprintf(p->comm->phase, sizeof p->comm->phase, "step %llu, sums of batch norm",
             (unsigned long long)p->step + 1);
    AMP_TRY(p->comm->sum_begin(p->comm, values, count, AMP_FP32, error));
    return p->comm->sum_end(p->comm, error);
}

const amp_batchnorm_ranks *amp_parallel_batchnorm(const amp_parallel *p)
{
    return p->batchnorm.count ? &p->batchnorm : NULL;
}

void amp_parallel_join(amp_parallel *p, amp_comm *comm, amp_dtype wire, size_t bucket, int sync_batchnorm)
{
    *p = (amp_parallel){ .comm = comm, .wire = wire, .bucket = bucket };
    if (sync_batchnorm && comm && comm->size > 1)
        p->batchnorm = (amp_batchnorm_ranks){ comm->rank, comm->size, sum_of_batchnorm, p };
}

/* ---- gradients ---- */

/* Starts the sums of all buckets within the last `complete` elements of the gradient block. Buckets are
 * counted from the end of the block: only the bucket at its start may be short. */
static amp_status begin_sums(amp_parallel *p, const amp_parameters *params, size_t complete, amp_error *error)
{
    float *end = params->gradient_block + params->gradient_count;
    while (p->begun < complete) {
        size_t left = params->gradient_count - p->begun, count = left < p->bucket ? left : p->bucket;
        if (count > complete - p->begun) break;
        snprintf(p->comm->phase, sizeof p->comm->phase, "step %llu, gradients %zu to %zu of %zu",
                 (unsigned long long)p->step + 1, left - count, left, params->gradient_count);
        AMP_TRY(p->comm->sum_begin(p->comm, end - p->begun - count, count, p->wire, error));
        p->begun += count;
    }
    return AMP_OK;
}

amp_status amp_parallel_layer_done(amp_parallel *p, const amp_parameters *params, int i, amp_error *error)
{
    int first = params->param_count;
    if (!p->comm || !p->is_last_pass) return AMP_OK;
    while (first > 0 && params->params[first - 1].layer >= i) first--;
    if (first == params->param_count) return AMP_OK;
    size_t before = (size_t)(params->params[first].grad - params->gradient_block);
    return begin_sums(p, params, params->gradient_count - before, error);
}

/* ---- rolling statistics ---- */

/* Whether each rank computes these rolling statistics from its own images. */
static int differs(const amp_parallel *p, const amp_statistics *s)
{
    return s->rolling_factor > 0 && (s->by_host || !amp_parallel_batchnorm(p));
}

/* Compute the rolling statistics that a single rank would have after all passes of the step: to_terms
 * computes one rank's term of a sum over the ranks, and from_terms turns the sum into the statistics.
 *
 * A rank that starts at r0 and makes S passes ends at r = k·r0 + s, where k = (1 - rolling_factor)^S and s
 * comes from its images. A single rank that made the passes of all N ranks in rank order would end at
 * k^N·r0 + Σ k^(N-1-rank)·s. to_terms computes k^(N-1-rank)·s, and from_terms adds k^N·r0. */
static void to_terms(const amp_parallel *p, const amp_statistics *s, const float *committed,
                     const float *now, float *terms)
{
    double k = pow(1 - (double)s->rolling_factor, p->passes);
    double weight = pow(k, p->comm->size - 1 - p->comm->rank);
    for (size_t j = 0; j < s->count; j++)
        terms[j] = (float)(weight * ((double)now[j] - k * (double)committed[j]));
}

static void from_terms(const amp_parallel *p, const amp_statistics *s, const float *committed,
                       const float *terms, float *now)
{
    double kept = pow(1 - (double)s->rolling_factor, (double)p->passes * p->comm->size);
    for (size_t j = 0; j < s->count; j++) now[j] = (float)(kept * (double)committed[j] + (double)terms[j]);
}

/* Combines the ranks' rolling statistics, which are in many arrays, possibly on a device. The block of
 * committed copies is reused as the buffer of the sum:
 *   - the committed copies are downloaded;
 *   - the backend copies the current statistics into the block (copy_statistics); they are downloaded too;
 *   - the ranks' terms are uploaded to the block, summed over the ranks, and downloaded;
 *   - the results are uploaded to the block, and the backend copies them back into the arrays;
 *   - the committed copies are uploaded to the block again.
 * committed, now, terms: buffers in CPU memory, each as large as the block; `terms` contains zeros.
 * Statistics that are the same on all ranks, or belong to one rank (a recurrent layer's state), stay
 * unchanged. */
static amp_status combine(const amp_parallel *p, const amp_parameters *params, float *committed, float *now,
                          float *terms, amp_error *error)
{
    amp_backend *b = params->backend;
    float *block = params->committed_block;
    size_t bytes = params->committed_count * sizeof *block;
    AMP_TRY(b->download(b, committed, block, bytes, error));
    AMP_TRY(b->copy_statistics(b, params->statistics, params->statistics_count, 0, error));
    AMP_TRY(b->download(b, now, block, bytes, error));
    for (int i = 0; i < params->statistics_count; i++) {
        const amp_statistics *s = &params->statistics[i];
        size_t at = (size_t)(s->committed - block);
        if (differs(p, s)) to_terms(p, s, committed + at, now + at, terms + at);
    }
    AMP_TRY(b->upload(b, block, terms, bytes, error));
    AMP_TRY(p->comm->sum_begin(p->comm, block, params->committed_count, AMP_FP32, error));
    AMP_TRY(p->comm->sum_end(p->comm, error));
    AMP_TRY(b->download(b, terms, block, bytes, error));
    for (int i = 0; i < params->statistics_count; i++) {
        const amp_statistics *s = &params->statistics[i];
        size_t at = (size_t)(s->committed - block);
        if (differs(p, s)) from_terms(p, s, committed + at, terms + at, now + at);
    }
    AMP_TRY(b->upload(b, block, now, bytes, error));
    AMP_TRY(b->copy_statistics(b, params->statistics, params->statistics_count, 1, error));
    return b->upload(b, block, committed, bytes, error);
}

static amp_status combine_statistics(amp_parallel *p, const amp_parameters *params, amp_error *error)
{
    size_t count = params->committed_count;
    int any = 0;
    for (int i = 0; i < params->statistics_count; i++) any |= differs(p, &params->statistics[i]);
    if (!any) return AMP_OK;
    float *memory = amp_allocated(calloc(3 * count, sizeof *memory));
    snprintf(p->comm->phase, sizeof p->comm->phase, "step %llu, rolling statistics",
             (unsigned long long)p->step);
    amp_status status = combine(p, params, memory, memory + count, memory + 2 * count, error);
    free(memory);
    return status;
}

/* ---- the record ---- */

amp_status amp_masters_checksum(const amp_parameters *params, size_t first, size_t last, uint64_t *sum,
                                amp_error *error)
{
    enum { CHUNK = 1 << 12 };
    float chunk[CHUNK];
    amp_backend *b = params->backend;
    amp_checksum checksum;
    size_t at = 0;
    amp_checksum_start(&checksum);
    for (int i = 0; i < params->param_count; at += params->params[i++].count) {
        const amp_param *param = &params->params[i];
        size_t from = first > at ? first - at : 0, to = last > at ? last - at : 0, count;
        if (to > param->count) to = param->count;
        for (; from < to; from += count) {
            count = to - from < CHUNK ? to - from : CHUNK;
            AMP_TRY(b->download(b, chunk, param->master + from, count * sizeof *chunk, error));
            amp_checksum_add(&checksum, chunk, count * sizeof *chunk);
        }
    }
    *sum = amp_checksum_value(&checksum);
    return AMP_OK;
}

/* The checksum of a 64th of the masters, a different 64th at each step. */
static amp_status checksum_masters(const amp_parallel *p, const amp_parameters *params, uint64_t *sum,
                                   amp_error *error)
{
    size_t part = p->step % AMP_DRIFT_STEPS, each = params->gradient_count / AMP_DRIFT_STEPS;
    size_t last = part + 1 == AMP_DRIFT_STEPS ? params->gradient_count : each * (part + 1);
    return amp_masters_checksum(params, each * part, last, sum, error);
}

static amp_status check_drift(const amp_rank_record *all, int size, amp_error *error)
{
    const amp_rank_record *first = all;
    for (int i = 1; i < size; i++) {
        if (all[i].step != first->step)
            return amp_fail(error, AMP_COMM_FAILED, "amp: rank %d is at step %llu, but rank 0 is at %llu; "
                            "start again from the last saved weights", i, (unsigned long long)all[i].step,
                            (unsigned long long)first->step);
        if (memcmp(&all[i].scale, &first->scale, sizeof first->scale))
            return amp_fail(error, AMP_COMM_FAILED,
                            "amp: step %llu: rank %d has loss scale %g, but rank 0 has %g; start again from "
                            "the last saved weights", (unsigned long long)first->step, i,
                            (double)all[i].scale, (double)first->scale);
        if (all[i].masters != first->masters)
            return amp_fail(error, AMP_COMM_FAILED, "amp: step %llu: the weights of rank %d differ from "
                                                    "those of rank 0; "
                            "start again from the last saved weights", (unsigned long long)first->step, i);
    }
    return AMP_OK;
}

static void record_blame(const amp_anomaly *rejected, const amp_anomaly *bad_loss, amp_rank_record *mine)
{
    const amp_anomaly *why = rejected->found ? rejected : bad_loss;
    mine->rejected = rejected->found;
    mine->found = why->found;
    if (!why->found) return;
    mine->layer = why->layer;
    mine->is_first = why->is_first;
    mine->bad_images = why->bad_images;
    mine->image = why->image;
    snprintf(mine->pass, sizeof mine->pass, "%s", why->pass);
    snprintf(mine->tensor, sizeof mine->tensor, "%s", why->tensor);
}

static void agree_on_blame(amp_parallel *p, const amp_rank_record *all, amp_anomaly *rejected,
                           amp_anomaly *bad_loss)
{
    amp_rank_record *blamed = &p->blamed;
    *blamed = (amp_rank_record){ 0 };
    for (int i = p->comm->size - 1; i >= 0; i--)
        if (all[i].found && all[i].rejected >= blamed->rejected) *blamed = all[i];
    *rejected = *bad_loss = (amp_anomaly){ 0 };
    *(blamed->rejected ? rejected : bad_loss) =
        (amp_anomaly){ .found = blamed->found, .is_first = blamed->is_first, .layer = blamed->layer,
                       .pass = blamed->pass, .tensor = blamed->tensor, .bad_images = blamed->bad_images,
                       .image = blamed->image };
}

static amp_status agree(amp_parallel *p, const amp_parameters *params, const amp_scaler *scaler,
                        amp_anomaly *rejected, amp_anomaly *bad_loss, double *loss, amp_error *error)
{
    amp_rank_record all[p->comm->size], mine;
    memset(&mine, 0, sizeof mine);
    mine.step = p->step;
    mine.scale = scaler->scale;
    mine.loss = *loss;
    AMP_TRY(checksum_masters(p, params, &mine.masters, error));
    record_blame(rejected, bad_loss, &mine);
    snprintf(p->comm->phase, sizeof p->comm->phase, "step %llu, the ranks' records",
             (unsigned long long)p->step);
    AMP_TRY(p->comm->gather(p->comm, &mine, sizeof mine, all, error));
    AMP_TRY(check_drift(all, p->comm->size, error));
    *loss = 0;
    for (int i = 0; i < p->comm->size; i++) *loss += all[i].loss;
    agree_on_blame(p, all, rejected, bad_loss);
    return AMP_OK;
}

amp_status amp_parallel_finish(amp_parallel *p, amp_parameters *params, const amp_scaler *scaler,
                               amp_anomaly *rejected, amp_anomaly *bad_loss, double *loss, amp_error *error)
{
    if (!p->comm) return AMP_OK;
    AMP_TRY(begin_sums(p, params, params->gradient_count, error));
    AMP_TRY(p->comm->sum_end(p->comm, error));
    p->step++;
    AMP_TRY(combine_statistics(p, params, error));
    AMP_TRY(agree(p, params, scaler, rejected, bad_loss, loss, error));
    p->comm->settled = 1;
    p->begun = 0;
    p->passes = p->is_last_pass = 0;
    return AMP_OK;
}
