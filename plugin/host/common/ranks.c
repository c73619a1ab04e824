#include "ranks.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "../../comm/launch.h"
#include "failure.h"
#include "random.h"

static amp_comm *comm;

amp_comm *amp_ranks(void) { return comm; }
int amp_ranks_count(void) { return comm ? comm->size : 1; }
int amp_ranks_leads(void) { return !comm || comm->rank == 0; }

static void leave(void)
{
    comm->destroy(comm);
    comm = NULL;
}

/* Images must differ from rank to rank, in one order that all know: without -seed, rank
 * 0's clock gives one. */
static void agree_on_seed(void)
{
    amp_error error;
    unsigned seed;
    if (!amp_random_seed(&seed)) seed = (unsigned)time(0);
    amp_host_check(comm->broadcast(comm, &seed, sizeof seed, 0, &error), &error);
    amp_random_set_seed(seed);
}

void amp_ranks_start(void)
{
    amp_error error;
    if (comm || !amp_comm_is_launched()) return;
    amp_host_check(amp_comm_join(&comm, &error), &error);
    atexit(leave);
    agree_on_seed();
    if (amp_ranks_leads()) return;
    amp_host_keep_error_stream();
    if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
        darknet_amp_refuse("amp: rank %d: /dev/null cannot be written to", comm->rank);
}
