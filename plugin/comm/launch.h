/* The ranks that a launcher has started, as mpirun does. One of two rooms is linked: comm/mpi, or comm/none,
 * which can only say that it is missing. */
#pragma once

#include "comm.h"

/* Whether a launcher has started this process as one of several, by what it has put into the environment. */
int amp_comm_is_launched(void);
/* Its rank; 0 also where the environment does not have it. */
int amp_comm_launched_rank(void);
/* Whether this program has been built to join them. */
extern const int amp_comm_is_here;
/* Joins them; called at most once. lost: as in amp_comm. After a failure *out is there if the others can be
 * ended by it, else NULL. */
amp_status amp_comm_join(void (*lost)(const char *line), amp_comm **out, amp_error *);
