/* A thread that ends a call between ranks which lasts too long: MPI and NCCL notice neither a rank that is
 * stopped nor a link that is cut.
 *
 * Only time in which this process runs counts, so that a job may be suspended as a whole and go on: the
 * thread wakes PARTS times in a time limit, and counts how often it woke during a call. */
#pragma once

#include <pthread.h>

#include "comm.h"

typedef struct amp_watchdog amp_watchdog;

enum { AMP_WATCHED = 2, AMP_PHASE = 128 }; /* threads whose calls are watched: they number themselves */

/* How many time limits a call may take in which all wait for the work of one rank, such as a save. */
enum { AMP_LIMITS_ALONE = 8 };
/* How many any other call may take: more until the first sums are made, since until then each rank loads and
 * prepares by itself. */
static inline int amp_comm_limits(const amp_comm *comm) { return comm->has_summed ? 1 : 4; }

/* The time limit: as many seconds as AMP_COMM_TIMEOUT in the environment says, 300 without it; 0: none.
 * AMP_BAD_CONFIG: it is no such number, and *seconds is 0. */
amp_status amp_comm_time_limit(double *seconds, amp_error *);
/* What a watchdog calls whose context is an amp_comm: calls its lost with a line about the time limit. */
void amp_comm_report_timeout(void *context, const char *phase);

/* late: called once, in the watchdog's thread, when a call has lasted longer than its limit; phase: what the
 * call was made for. seconds: of the limit; 0: none, and *out is NULL. */
amp_status amp_watchdog_start(double seconds, void (*late)(void *context, const char *phase), void *context,
                              amp_watchdog **out, amp_error *);
/* A call begins, which may take `limits` of them, and ends. The watchdog may be NULL. */
void amp_watchdog_begin(amp_watchdog *, int thread, int limits, const char *phase);
void amp_watchdog_end(amp_watchdog *, int thread);
void amp_watchdog_stop(amp_watchdog *);

/* Starts a thread that gets no signals: they are the main thread's. */
amp_status amp_start_helper(pthread_t *, void *(*run)(void *), void *context, amp_error *);
