/* Ranks with a GPU each sum in its memory: over NCCL, which another comm starts. */
#include "room.h"

#ifdef GPU
#include "../../comm/nccl/nccl.h"
#endif

amp_status amp_fork_sum_on_gpu(amp_backend *backend, amp_comm **comm, amp_error *error)
{
#ifdef GPU
    amp_comm *host = *comm, *gpus;
    AMP_TRY(amp_comm_nccl(host, backend, &gpus, error));
    *comm = gpus;
#else
    (void)backend, (void)comm, (void)error;
#endif
    return AMP_OK;
}
