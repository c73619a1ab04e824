/* GPUs as ranks: sums of device memory by NCCL, all else by the ranks' comm for the program's memory. */
#pragma once

#include "../../backend/backend.h"
#include "../comm.h"

/* Collective. cpu: the comm of all ranks, each with a GPU of its own; *out takes it over, and destroys it.
 * cuda: the backend of amp_cuda_backend_create whose memory is summed. A sum sees what was queued on it
 * before sum_begin, and what is queued on it after sum_end sees the sums; the CPU waits for neither. It may
 * be destroyed first. On failure cpu remains the caller's. */
amp_status amp_comm_nccl(amp_comm *cpu, amp_backend *cuda, amp_comm **out, amp_error *);
