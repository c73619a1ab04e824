/* Connects networks as ranks. Corrects `seen` and the random numbers when ranks divide the passes of a step.
 * See ranks_join.h. */
#include "ranks_join.h"

#include "../../comm/watchdog.h"
#include "../program/random.h"
#include "../program/ranks.h"

/* Connects a network with the other ranks. On GPUs, first replaces *ours by a comm that sums on the GPUs. For
 * everything else, this comm calls the old *ours. */
static amp_status join(struct darknet_amp *amp, amp_comm **ours, amp_error *error)
{
    if (amp_fork_device() >= 0) {
        AMP_TRY(amp_fork_sum_on_gpu(amp->engine->backend, ours, error));
        if ((*ours)->rank == 0) fprintf(stderr, "ranks: GPUs sum gradients with %s\n", (*ours)->name);
    }
    amp->comm = *ours;
    amp_parallel_join(&amp->engine->parallel, amp->comm, amp->config->wire, AMP_BUCKET,
                      amp->engine->settings.sync_batchnorm);
    return AMP_OK;
}

amp_status amp_ranks_use(struct darknet_amp *amp, amp_error *error)
{
    amp_comm *comm = amp_ranks();
    if (!comm) return AMP_OK;
    AMP_TRY(join(amp, &comm, error));
    amp_ranks_set(comm, 1);
    return AMP_OK;
}

/* ---- checking that all programs' networks agree ---- */

void amp_ranks_agree_to_train(struct network *net)
{
    amp_error error;
    uint64_t sum;
    const struct darknet_amp *amp = amp_fork_state(net);
    if (!amp_ranks() || !amp) return;
    const amp_parameters *all = &amp->engine->parameters;
    amp_host_check(amp_masters_checksum(all, 0, SIZE_MAX, &sum, &error), &error);
    amp_ranks_phase("comparing what the ranks start from");
    amp_ranks_note("dtype %s\n", amp_dtype_name(amp->config->dtype));
    amp_ranks_note("weights with checksum %016llx\n", (unsigned long long)sum);
    amp_ranks_note("a start at step %ld\n", amp_fork_view(net).batch_number);
    /* the number of steps identifies the sidecar; a rank without a sidecar has 0 steps and zero momentum */
    amp_ranks_note("a sidecar of %lu steps\n", amp->steps);
    amp_ranks_note("loss scale %a\n", (double)amp->engine->scaler.scale);
    amp_ranks_agree();
}

/* ---- several networks of this program ---- */

void amp_ranks_unite(struct network **nets, int count)
{
    amp_comm *members[count];
    amp_error error;
    double seconds;
    amp_host_check(amp_comm_time_limit(&seconds, &error), &error);
    amp_host_check(amp_comm_threads(count, seconds, amp_host_communicator_lost, members, &error), &error);
    for (int i = 0; i < count; i++) {
        struct darknet_amp *amp = amp_fork_state(nets[i]);
        amp->comm = members[i];
        amp->united = nets;
    }
}

/* Copies rank 0's masters to all networks. Their weights may differ in spite of the same seed, because
 * rand_normal makes two numbers at a time and keeps the second for its next call, which may be for another
 * network. */
static amp_status share_masters(const struct darknet_amp *amp, amp_error *error)
{
    const amp_parameters *all = &amp->engine->parameters;
    amp_backend *b = all->backend;
    snprintf(amp->comm->phase, sizeof amp->comm->phase, "sharing rank 0's weights");
    for (int i = 0; i < all->param_count; i++) {
        size_t bytes = all->params[i].count * sizeof(float);
        float *copy = amp_allocated(malloc(bytes));
        amp_status status = b->download(b, copy, all->params[i].master, bytes, error);
        if (status == AMP_OK) status = amp->comm->broadcast(amp->comm, copy, bytes, 0, error);
        if (status == AMP_OK) status = b->upload(b, all->params[i].master, copy, bytes, error);
        free(copy);
        AMP_TRY(status);
    }
    amp_engine_weights_changed(amp->engine);
    return AMP_OK;
}

void amp_ranks_join(struct darknet_amp *amp)
{
    amp_error error;
    if (!amp->comm || amp_engine_ranks(amp->engine) > 1) return;
    amp_host_check(join(amp, &amp->comm, &error), &error);
    amp_host_check(share_masters(amp, &error), &error);
}

void amp_ranks_forget(struct darknet_amp *amp)
{
    if (!amp->comm || amp_ranks()) return;
    amp->comm->abort(amp->comm, 0); /* without abort, destroy would wait for the other ranks */
    amp->comm->destroy(amp->comm);
    amp->comm = NULL;
}

int amp_ranks_prints_for(const struct darknet_amp *amp) { return !amp->comm || amp->comm->rank == 0; }

/* ---- the passes of this rank and of the other ranks ---- */

/* Skips the random numbers that other ranks draw in `passes` passes: the main thread's generator must advance
 * as if one rank had made all passes. With -gpus, each network's thread draws from its own copy. */
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

/* The number of passes by which `seen` must advance before this rank's pass number p (from 0) of a step.
 * `seen` counts p passes of every rank, but must count all passes of lower ranks and p of this rank. */
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
