/* The ranks that a launcher has started, as mpirun does. One of two rooms is linked: comm/mpi, or comm/none,
 * which can only say that it is missing. */
#ifndef AMP_COMM_LAUNCH_H
#define AMP_COMM_LAUNCH_H

#include "comm.h"

/* Whether a launcher has started this process as one of several, by what it has put into the environment. */
int amp_comm_is_launched(void);
/* Joins them; called at most once. */
amp_status amp_comm_join(amp_comm **out, amp_error *);

#endif
