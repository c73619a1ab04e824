/* The ranks started by a launcher such as mpirun. Either comm/mpi or comm/none is linked; the latter only
 * reports that MPI is missing. */
#pragma once

#include "comm.h"

/* Whether a launcher has started this process as one of several, according to the environment. */
int amp_comm_is_launched(void);
/* Its rank; 0 if the environment does not have it. */
int amp_comm_launched_rank(void);
/* Whether this program was built with MPI. */
extern const int amp_comm_is_here;
/* Joins the other ranks; call it at most once. lost: as in amp_comm. After a failure, *out is set if it can
 * be used to end the other ranks, else NULL. */
amp_status amp_comm_join(void (*lost)(const char *line), amp_comm **out, amp_error *);
