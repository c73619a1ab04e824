/* GPUs as ranks: NCCL sums device memory; the ranks' comm for CPU memory does everything else. */
#pragma once

#include "../../backend/backend.h"
#include "../comm.h"

/* Collective. cpu: the comm of all ranks, each with its own GPU; *out takes ownership of it. cuda: the
 * backend (from amp_cuda_backend_create) whose memory is summed; it may be destroyed before *out. A sum sees
 * what was queued on it before sum_begin, and what is queued after sum_end sees the sums; the CPU does not
 * wait. On failure cpu remains the caller's. */
amp_status amp_comm_nccl(amp_comm *cpu, amp_backend *cuda, amp_comm **out, amp_error *);
