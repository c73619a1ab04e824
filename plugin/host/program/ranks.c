/* The ranks as this program sees them. ranks_start.c starts them; ranks_join.c turns networks into ranks. */
#include "ranks.h"

#include <unistd.h>

static amp_comm *comm;
static int networks = 1; /* of this program that train together: -gpus */
static int awaited;      /* 1 until amp_ranks_start knows whether there are other ranks */

amp_comm *amp_ranks(void) { return comm; }
int amp_ranks_count(void) { return comm ? comm->size : 1; }
int amp_ranks_leads(void) { return !comm || comm->rank == 0; }
int amp_ranks_of_step(void) { return comm ? comm->size : networks; }

void amp_ranks_phase(const char *format, ...)
{
    va_list args;
    if (!comm) return;
    va_start(args, format);
    vsnprintf(comm->phase, sizeof comm->phase, format, args);
    va_end(args);
}

void amp_ranks_await(void) { awaited = 1; }
int amp_ranks_is_awaited(void) { return awaited; }

void amp_ranks_set(amp_comm *now, int networks_now)
{
    comm = now;
    networks = networks_now;
    awaited = 0;
}

void amp_ranks_leave(void)
{
    amp_comm *left = comm;
    if (!left) return;
    amp_ranks_phase("the end");
    comm = NULL; /* loaders may still be running, and print an error */
    left->destroy(left);
}

void amp_ranks_await_end(void)
{
    unsigned left = comm ? 10 : 3; /* seconds */
    while ((left = sleep(left))) { /* interrupted by a signal */ }
}
