/* One rank's pass among those of the other ranks: see ranks_join.h. */
#include "ranks_join.h"

#include "../program/random.h"
#include "../program/ranks.h"

/* Skips the random numbers that other ranks draw in this many passes. The main thread's generator begins each
 * step in the same state on all ranks, and must advance as if one rank had made all passes. A network with
 * its own thread draws from a copy of that generator. */
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

/* How far `seen` must be advanced, in passes, before this rank's p-th pass of a step. It then counts p passes
 * of every rank; a single rank would have made all passes of lower ranks, p of this one, and none of higher
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
    size_t counted = amp_fork_counters(net).seen / (size_t)view.batch - 1; /* Darknet has already counted
                                                                              this pass */
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
