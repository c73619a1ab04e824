/* The watchdog: a thread that reports when a call between ranks takes too long, so that the program can end.
 * MPI and NCCL notice neither a stopped rank nor a broken link.
 *
 * The thread wakes PARTS times per time limit, and measures a call by counting its wake-ups. So time in which
 * this process is suspended does not count. */
#pragma once

#include <pthread.h>

#include "comm.h"

typedef struct amp_watchdog amp_watchdog;

enum {
    AMP_WATCHED = 2, /* the maximum number of threads that make watched calls; callers number them from 0 */
    AMP_PHASE = 128  /* bytes of amp_comm.phase */
};

/* The timeout, as a multiple of the time limit, of a call in which ranks may wait while one rank works alone
 * (e.g. to save). */
enum { AMP_LIMITS_ALONE = 8 };
/* The timeout of any other call. It is longer before the first sums: ranks start at different speeds. */
static inline int amp_comm_limits(const amp_comm *comm) { return comm->has_summed ? 1 : 4; }

/* Sets *seconds to the time limit: AMP_COMM_TIMEOUT from the environment, or 300 if it is not set; 0: no
 * limit. If the variable's value is invalid, returns AMP_BAD_CONFIG and sets *seconds to 0. */
amp_status amp_comm_time_limit(double *seconds, amp_error *);
/* A `late` callback for amp_watchdog_start whose context is an amp_comm: calls comm->lost. */
void amp_comm_report_timeout(void *context, const char *phase);

/* Starts the watchdog's thread. seconds: the time limit; 0: no limit, and *out is NULL. late: called once, in
 * that thread, when a call exceeds its limit; phase: what the call was for. */
amp_status amp_watchdog_start(double seconds, void (*late)(void *context, const char *phase), void *context,
                              amp_watchdog **out, amp_error *);
/* begin and end enclose a watched call. The call times out after `limits` time limits. Without a watchdog
 * (NULL) they do nothing. */
void amp_watchdog_begin(amp_watchdog *, int thread, int limits, const char *phase);
void amp_watchdog_end(amp_watchdog *, int thread);
void amp_watchdog_stop(amp_watchdog *);

/* Starts a thread with all signals blocked, so that the main thread handles them. */
amp_status amp_start_helper(pthread_t *, void *(*run)(void *), void *context, amp_error *);
