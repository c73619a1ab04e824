#include "sharing.h"

#include <stdlib.h>
#include <string.h>

#include "../../amp/cfg_reader.h"
#include "../fork.h"
#include "random.h"
#include "ranks.h"
#include "state.h"

/* ---- subdivisions ---- */

static int greatest_common_divisor(int a, int b) { return b ? greatest_common_divisor(b, a % b) : a; }

long amp_sharing_cut(int ranks, int subdivisions)
{
    return (long)subdivisions * (ranks / greatest_common_divisor(ranks, subdivisions));
}

int amp_sharing_subdivisions(const char *cfg_file, int wanted, int sync_batchnorm)
{
    int ranks = amp_ranks_of_step();
    double batch_given, subdivisions_given;
    amp_error error;
    if (ranks < 2) return wanted;
    amp_host_check(cfg_net_number(cfg_file, "batch", 1, &batch_given, &error), &error);
    amp_host_check(cfg_net_number(cfg_file, "subdivisions", 1, &subdivisions_given, &error), &error);
    int batch = (int)batch_given; /* checked: whole, from 1 */
    int subdivisions = wanted ? wanted : (int)subdivisions_given;
    long step = amp_sharing_cut(ranks, subdivisions);
    int images = batch / subdivisions, cut = (int)(step / subdivisions);
    if (images % cut || !images)
        darknet_amp_refuse("amp: %s: [net]: %d ranks cannot share batch=%d with subdivisions=%d evenly; the "
                           "next batch that works is %ld", cfg_file, ranks, batch, subdivisions,
                           (batch / step + 1) * step);
    long alone = sync_batchnorm ? step / ranks : step; /* what one rank would do the same with */
    if (alone != subdivisions)
        fprintf(stderr, "amp: %d ranks share a step as if subdivisions were %ld, not %d: batch norm sees %ld "
                "images at a time, not %d\n", ranks, alone, subdivisions, batch / alone, images);
    return (int)step;
}

/* ---- images ---- */

/* Of the job under way; all of a training's are alike. Set by the thread that starts jobs, before those that
 * load: they still load when the training has stopped, and the main thread leaves the other ranks. first to
 * last: the parts that hold images of this rank. */
static struct { int images, parts, first, last, rank, ranks; } job;

/* Where part i's images begin in the step, the last part's being first. */
static int begin_of(int i) { return job.images - (int)((long)(i + 1) * job.images / job.parts); }

/* This rank's images of the step. */
static int own_begin(void) { return job.rank * (job.images / job.ranks); }
static int own_end(void) { return own_begin() + job.images / job.ranks; }

void amp_sharing_begin_job(int images, int parts)
{
    if (amp_ranks_count() < 2) return;
    job.rank = amp_ranks()->rank;
    job.ranks = amp_ranks_count();
    job.images = images;
    job.parts = parts < 1 ? 1 : parts;
    job.first = 0;
    job.last = job.parts - 1;
    while (begin_of(job.first) >= own_end()) job.first++;
    while (begin_of(job.last - 1) <= own_begin()) job.last--;
}

amp_shared_part amp_sharing_part(int thread)
{
    int idle = job.parts - (job.last - job.first + 1);
    amp_shared_part part = { .number = job.first + thread - idle };
    if (thread < idle) return (amp_shared_part){ 0 };
    int begin = begin_of(part.number), end = begin_of(part.number - 1);
    part.images = end - begin;
    part.first = begin < own_begin() ? own_begin() - begin : 0;
    part.kept = (end < own_end() ? end : own_end()) - begin - part.first;
    return part;
}

/* ---- a pass ---- */

/* Skips the random numbers that other ranks draw in this many passes. The main thread's generator begins each
 * step in the same state on all ranks, and must go on as if one rank had made all passes. A network that has
 * a thread of its own draws from a copy of that generator. */
static void leave_to_others(const struct network *net, int passes)
{
    size_t numbers = (size_t)passes * amp_fork_random_numbers(net);
    if (amp_ranks()) amp_random_skip(numbers);
    else amp_random_branch(numbers);
}

static void move_seen(struct network *net, int passes)
{
    amp_counters counters = amp_fork_counters(net);
    counters.seen += (size_t)((long)passes * amp_fork_view(net).batch);
    amp_fork_set_counters(net, counters);
}

/* By how many passes `seen` must rise before this rank's p-th pass of a step. It counts p passes of every
 * rank by then; a single rank would have made all passes of lower ranks and p of this one, but none of higher
 * ones. */
static int passes_ahead(const amp_comm *comm, const amp_view *view, int p)
{
    return comm->rank * (view->subdivisions / comm->size) - p * (comm->size - 1);
}

int amp_sharing_begin_pass(struct network *net)
{
    const amp_comm *comm = amp_fork_state(net)->comm;
    if (!comm) return 0;
    amp_view view = amp_fork_view(net);
    size_t counted = amp_fork_counters(net).seen / (size_t)view.batch - 1; /* Darknet has counted this one */
    int p = (int)(counted % (size_t)view.subdivisions) / comm->size;
    if (p == 0) leave_to_others(net, passes_ahead(comm, &view, 0));
    move_seen(net, passes_ahead(comm, &view, p));
    return p;
}

void amp_sharing_end_pass(struct network *net, int p)
{
    const amp_comm *comm = amp_fork_state(net)->comm;
    if (!comm) return;
    amp_view view = amp_fork_view(net);
    int passes = view.subdivisions / comm->size;
    move_seen(net, comm->size - 1 - passes_ahead(comm, &view, p));
    if (p == passes - 1 && amp_ranks()) leave_to_others(net, (comm->size - 1 - comm->rank) * passes);
}

void amp_sharing_end_step(const struct network *net)
{
    if (!amp_fork_state(net)->comm || amp_ranks()) return;
    amp_random_skip((size_t)amp_fork_view(net).subdivisions * amp_fork_random_numbers(net));
}

void amp_sharing_align(struct network *net)
{
    amp_view view = amp_fork_view(net);
    amp_counters counters = amp_fork_counters(net);
    if (!amp_fork_state(net)->comm) return;
    counters.seen -= counters.seen % ((size_t)view.batch * (size_t)view.subdivisions);
    amp_fork_set_counters(net, counters);
}

/* ---- numbers that ranks exchange ---- */

static amp_comm *begin_call(const char *what)
{
    amp_ranks_phase("%s", what);
    return amp_ranks();
}

void amp_sharing_broadcast(void *value, size_t bytes, const char *what)
{
    amp_error error;
    amp_comm *comm = begin_call(what);
    if (!comm) return;
    amp_host_check(comm->broadcast(comm, value, bytes, 0, &error), &error);
}

void *amp_sharing_gather(amp_comm *comm, const void *mine, size_t bytes)
{
    amp_error error;
    void *all = amp_host_allocated(calloc((size_t)comm->size, bytes));
    amp_host_check(comm->gather(comm, mine, bytes, all, &error), &error);
    return all;
}

float amp_sharing_mean(float number, const char *what)
{
    amp_comm *comm = begin_call(what);
    if (!comm) return number;
    double sum = 0;
    float *all = amp_sharing_gather(comm, &number, sizeof number);
    for (int i = 0; i < comm->size; i++) sum += (double)all[i];
    free(all);
    return (float)(sum / comm->size);
}

void amp_sharing_sum(size_t *numbers, int count, const char *what)
{
    amp_comm *comm = begin_call(what);
    if (!comm) return;
    size_t *all = amp_sharing_gather(comm, numbers, (size_t)count * sizeof *all);
    memset(numbers, 0, (size_t)count * sizeof *numbers);
    for (int i = 0; i < comm->size * count; i++) numbers[i % count] += all[i];
    free(all);
}

amp_status amp_sharing_outcome(amp_status mine, const char *what, amp_error *error)
{
    amp_comm *comm = begin_call(what);
    amp_error outcome = { .status = AMP_OK };
    if (!comm) return mine;
    if (mine != AMP_OK) outcome = *error;
    amp_error *all = amp_sharing_gather(comm, &outcome, sizeof outcome);
    int i = 0;
    while (i < comm->size - 1 && all[i].status == AMP_OK) i++;
    amp_status status = all[i].status;
    if (status != AMP_OK) *error = all[i];
    free(all);
    return status;
}

void amp_sharing_join(void **rows, size_t *count, size_t row_bytes, const char *what)
{
    amp_comm *comm = begin_call(what);
    if (!comm) return;
    size_t *counts = amp_sharing_gather(comm, count, sizeof *count), most = 1, total = 0;
    for (int i = 0; i < comm->size; i++) {
        if (counts[i] > most) most = counts[i];
        total += counts[i];
    }
    /* gather takes the same number of bytes from each rank: room for the longest list */
    char *mine = amp_host_allocated(calloc(most, row_bytes));
    char *joined = amp_host_allocated(malloc((total + 1) * row_bytes));
    if (*count) memcpy(mine, *rows, *count * row_bytes);
    char *all = amp_sharing_gather(comm, mine, most * row_bytes), *end = joined;
    for (int i = 0; i < comm->size; i++) {
        memcpy(end, all + (size_t)i * most * row_bytes, counts[i] * row_bytes);
        end += counts[i] * row_bytes;
    }
    free(counts);
    free(mine);
    free(all);
    free(*rows);
    *rows = joined;
    *count = total;
}
