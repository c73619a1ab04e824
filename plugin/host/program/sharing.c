/* Finds out which images of a step belong to this rank: see sharing.h. */
#include "sharing.h"

#include "failure.h"
#include "program.h"
#include "ranks.h"

/* ---- subdivisions ---- */

static int greatest_common_divisor(int a, int b) { return b ? greatest_common_divisor(b, a % b) : a; }

long amp_sharing_cut(int ranks, int subdivisions)
{
    return (long)subdivisions * (ranks / greatest_common_divisor(ranks, subdivisions));
}

int amp_sharing_subdivisions(const cfg_document *cfg, int sync_batchnorm)
{
    int ranks = amp_ranks_of_step();
    if (ranks < 2) return 0;
    int batch = (int)cfg_net_number(cfg, "batch", 1);               /* an integer from 1: see cfg_check.h */
    int subdivisions = (int)cfg_net_number(cfg, "subdivisions", 1);
    long step = amp_sharing_cut(ranks, subdivisions);
    int images = batch / subdivisions, cut = (int)(step / subdivisions);
    if (images % cut || !images)
        darknet_amp_refuse("amp: %s: [net]: %d ranks cannot share batch=%d with subdivisions=%d evenly; the "
                           "next batch that works is %ld", cfg->file, ranks, batch, subdivisions,
                           (batch / step + 1) * step);
    long alone = sync_batchnorm ? step / ranks : step; /* on a single rank with this number of subdivisions,
                                                          batch norm would see the same number of images at a
                                                          time (but other images, with sync_batchnorm and
                                                          several passes per rank) */
    if (alone != subdivisions)
        fprintf(stderr, "amp: %d ranks share a step as if subdivisions were %ld, not %d: batch norm sees %ld "
                "images at a time, not %d\n", ranks, alone, subdivisions, batch / alone, images);
    return (int)step;
}

/* ---- images ---- */

/* The current loading job. All jobs of a training have the same values, set before the loaders start. first,
 * last: the first and the last part with images of this rank. rank and ranks are copies, because the main
 * thread may leave the other ranks while loaders still run. */
typedef struct amp_shared_job job;

/* The index of part i's first image in the step. The last part's images come first. */
static int begin_of(const job *j, int i)
{
    return j->images - (int)((long)(i + 1) * j->images / j->parts);
}

/* This rank's images in the step: from own_begin to own_end - 1. */
static int own_begin(const job *j) { return j->rank * (j->images / j->ranks); }
static int own_end(const job *j) { return own_begin(j) + j->images / j->ranks; }

void amp_sharing_begin_job(int images, int parts)
{
    job *j = &amp_program_to_set()->job;
    if (amp_ranks_count() < 2) return;
    *j = (job){ .rank = amp_ranks()->rank, .ranks = amp_ranks_count(), .images = images,
                .parts = parts < 1 ? 1 : parts };
    j->last = j->parts - 1;
    while (begin_of(j, j->first) >= own_end(j)) j->first++;
    while (begin_of(j, j->last - 1) <= own_begin(j)) j->last--;
}

amp_shared_part amp_sharing_part(int thread)
{
    const job *j = &amp_this_program()->job;
    int idle = j->parts - (j->last - j->first + 1);
    amp_shared_part part = { .number = j->first + thread - idle };
    if (thread < idle) return (amp_shared_part){ 0 };
    int begin = begin_of(j, part.number), end = begin_of(j, part.number - 1);
    part.images = end - begin;
    part.first = begin < own_begin(j) ? own_begin(j) - begin : 0;
    part.kept = (end < own_end(j) ? end : own_end(j)) - begin - part.first;
    return part;
}
