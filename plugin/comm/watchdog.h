/* A thread that ends a call between ranks if it lasts too long: MPI and NCCL notice neither a stopped rank
 * nor a broken link.
 *
 * Only time in which this process runs counts, so that a whole job can be suspended and continued: the thread
 * wakes PARTS times per time limit and counts its wake-ups during a call. */
#pragma once

#include <pthread.h>

#include "comm.h"

typedef struct amp_watchdog amp_watchdog;

enum {
    AMP_WATCHED = 2, /* the most threads that make watched calls; callers number them from 0 */
    AMP_PHASE = 128  /* bytes of amp_comm.phase */
};

/* The number of time limits for a call in which all ranks wait for work that one rank does, such as a
 * save. */
enum { AMP_LIMITS_ALONE = 8 };
/* The number of time limits for any other call. It is larger before the first sums, because each rank loads
 * and prepares at its own speed until then. */
static inline int amp_comm_limits(const amp_comm *comm) { return comm->has_summed ? 1 : 4; }

/* The time limit in seconds: AMP_COMM_TIMEOUT in the environment, 300 without it; 0: no limit. If its value
 * is not valid, returns AMP_BAD_CONFIG and sets *seconds to 0. */
amp_status amp_comm_time_limit(double *seconds, amp_error *);
/* A `late` callback for a context that is an amp_comm: calls comm->lost with a line about the time limit. */
void amp_comm_report_timeout(void *context, const char *phase);

/* late: called once, in the watchdog's thread, when a call exceeds its limit; phase: the purpose of the call.
 * seconds: the time limit; 0: no limit, and *out is NULL. */
amp_status amp_watchdog_start(double seconds, void (*late)(void *context, const char *phase), void *context,
                              amp_watchdog **out, amp_error *);
/* begin, end: mark a call that may take `limits` time limits. The watchdog may be NULL. */
void amp_watchdog_begin(amp_watchdog *, int thread, int limits, const char *phase);
void amp_watchdog_end(amp_watchdog *, int thread);
void amp_watchdog_stop(amp_watchdog *);

/* Starts a thread that receives no signals: the main thread handles them. */
amp_status amp_start_helper(pthread_t *, void *(*run)(void *), void *context, amp_error *);
