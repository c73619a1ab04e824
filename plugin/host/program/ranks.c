/* The ranks as this program sees them. ranks_start.c starts them; ranks_join.c turns networks into ranks. */
#include "ranks.h"

#include <unistd.h>

#include "program.h"

amp_comm *amp_ranks(void) { return amp_this_program()->ranks.comm; }
int amp_ranks_count(void) { return amp_ranks() ? amp_ranks()->size : 1; }
int amp_ranks_leads(void) { return !amp_ranks() || amp_ranks()->rank == 0; }
int amp_ranks_of_step(void) { return amp_ranks() ? amp_ranks()->size : amp_this_program()->ranks.networks; }

void amp_ranks_phase(const char *format, ...)
{
    va_list args;
    amp_comm *comm = amp_ranks();
    if (!comm) return;
    va_start(args, format);
    vsnprintf(comm->phase, sizeof comm->phase, format, args);
    va_end(args);
}

void amp_ranks_set(amp_comm *comm, int networks)
{
    amp_program *program = amp_program_to_set();
    program->ranks.comm = comm;
    program->ranks.networks = networks;
    program->ranks.awaited = 0;
}

void amp_ranks_leave(void)
{
    amp_comm *left = amp_ranks();
    if (!left) return;
    amp_ranks_phase("the end");
    amp_program_to_set()->ranks.comm = NULL; /* before destroy: a loader may still print an error */
    left->destroy(left);
}

void amp_ranks_await_end(void)
{
    unsigned left = amp_ranks() ? 10 : 3; /* seconds */
    while ((left = sleep(left))) { /* interrupted by a signal */ }
}
