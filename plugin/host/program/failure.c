/* Prints lines on stderr and ends the program, from any thread and on any rank: see failure.h. */
#define AMP_DEFINES_OUT_OF_MEMORY
#include "failure.h"

#include <pthread.h>
#include <unistd.h>

#include "../../comm/comm.h"
#include "program.h"
#include "ranks.h"

static int error_stream = STDERR_FILENO;
static const char *removed; /* the file to remove when the program ends with an error, or NULL */

void amp_host_remove_if_refused(const char *file) { removed = file; }
void amp_host_keep_error_stream(void) { error_stream = dup(STDERR_FILENO); }

/* Whether this rank prints its error. Of the ranks on a machine, only the first that has an error prints it;
 * before the ranks have joined, only rank 0 does. Programs that a launcher starts but that never join print
 * their own errors. */
static int prints_error(void)
{
    amp_comm *comm = amp_ranks();
    if (!comm) return !amp_this_program()->ranks.awaited || amp_comm_launched_rank() == 0;
    return !comm->prints_error || comm->prints_error(comm);
}

void darknet_amp_refuse(const char *format, ...)
{
    static pthread_mutex_t ending = PTHREAD_MUTEX_INITIALIZER;
    amp_error error;
    va_list args;
    va_start(args, format);
    vsnprintf(error.message, sizeof error.message, format, args);
    va_end(args);
    pthread_mutex_lock(&ending); /* only the first thread prints; any other thread waits here */
    fflush(stdout);
    int prints = prints_error(), rank = amp_ranks() ? amp_ranks()->rank
        : amp_this_program()->ranks.awaited ? amp_comm_launched_rank() : 0;
    if (!prints) amp_ranks_await_end();
    prints |= !amp_ranks(); /* no other rank has ended this one during the wait. If it has not joined them, it
                               may be the only rank with this error, so it must print */
    if (prints && rank) dprintf(error_stream, "rank %d: %s\n", rank, error.message);
    else if (prints) fprintf(stderr, "%s\n", error.message);
    if (removed) unlink(removed);
    if (amp_ranks()) amp_ranks()->abort(amp_ranks(), 1);
    _exit(1); /* not exit: its handlers would destroy objects that other threads still use */
}

void amp_host_communicator_lost(const char *line) { darknet_amp_refuse("%s", line); }

void amp_host_check(amp_status status, const amp_error *error)
{
    if (status != AMP_OK) darknet_amp_refuse("%s", error->message);
}

void amp_out_of_memory(void)
{
    darknet_amp_refuse("amp: out of memory; use more subdivisions, or end other programs");
}

void amp_host_print(const char *format, ...)
{
    char line[4096];
    const amp_comm *comm = amp_ranks(); /* read once: the main thread may leave the ranks meanwhile */
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (!comm || comm->rank == 0) fprintf(stderr, "%s\n", line);
    else dprintf(error_stream, "rank %d: %s\n", comm->rank, line);
}
