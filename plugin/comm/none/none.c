/* The MPI functions of a program that was built without MPI: joining always fails. */
#include "../comm.h"

const int amp_comm_is_here = 0;

amp_status amp_comm_join(void (*lost)(const char *line), amp_comm **out, amp_error *error)
{
    *out = NULL;
    return amp_fail(error, AMP_UNSUPPORTED,
                    "command line: a launcher started several copies of this program, which was built "
                    "without MPI; build it with -DDARKNET_AMP_MPI=ON (make AMP_MPI=1), or start it without "
                    "the launcher");
}
