/* Communication between the ranks that train one network together, as a struct of function pointers, so that
 * the core names no library.
 *
 * Each rank has its own network and engine, trains its share of a step's images, and makes the same update,
 * because gradients are summed over all ranks first. In threads.c the ranks are threads of one process; in
 * mpi/mpi.c they are processes started by mpirun; nccl/nccl.c wraps another comm and sums on GPUs.
 *
 * Rules for every function except prints_error, abort and destroy:
 *  - It is collective: all ranks call it, in the same order, with the same sizes. After a failure only
 *    prints_error, abort and destroy may be called.
 *  - It does not hang: if a rank does not take part within the time limit, `lost` is called with a line that
 *    names `phase`, or the function fails.
 *  - All ranks get the same bits. */
#pragma once

#include <stddef.h>

#include "../tensor/status.h"
#include "../tensor/tensor.h"

struct amp_backend;
typedef struct amp_comm amp_comm;

struct amp_comm {
    const char *name;            /* "MPI", with its library's version; shown to the user */
    int rank, size;              /* from 0; number of ranks */
    int local_rank, local_size;  /* the same, counting only the ranks on this machine */
    int one_program;             /* the ranks are threads of one program */
    int settled;                 /* set by the caller: this rank has made a step with its current memory,
                                    so it allocates nothing and loads no code between the sums of the next
                                    step */
    int has_summed;              /* set by comm after the first sums; until then a call may take 4 time
                                    limits (watchdog.h) */
    char phase[128];             /* the purpose of the collective calls, for messages; set by callers:
                                    "step 17, gradients" */
    double seconds;              /* the time limit of a call; 0: none */
    double waited;               /* seconds that sum_end has waited in total; 0 for sums in a GPU's memory,
                                    which the CPU does not wait for */
    void (*lost)(const char *line); /* set by the caller of join: prints this line and ends the program.
                                       comm calls it in a separate thread if a call exceeds its limit */

    /* sum_begin starts to sum count floats over all ranks, in place; sum_end waits for all sums that have
     * started. wire: the type in which the floats are sent (fp32, bf16 or fp16); sums are made in fp32. The
     * memory belongs to comm until sum_end returns. With nccl/nccl.c it is GPU memory, and the backend's
     * stream waits instead of the CPU; otherwise it is CPU memory. */
    amp_status (*sum_begin)(amp_comm *, float *values, size_t count, amp_dtype wire, amp_error *);
    amp_status (*sum_end)(amp_comm *, amp_error *);

    /* Copies every rank's `mine` into `all` (size · bytes), in rank order. CPU memory. */
    amp_status (*gather)(amp_comm *, const void *mine, size_t bytes, void *all, amp_error *);
    /* Copies rank root's memory to all other ranks. CPU memory. May take eight time limits, because the other
     * ranks wait for work that only root does, such as a save. */
    amp_status (*broadcast)(amp_comm *, void *memory, size_t bytes, int root, amp_error *);

    /* Makes a comm of the first `size` ranks, which must be destroyed before this one. *out is NULL in the
     * other ranks, and in all ranks if size is 1. A rank that calls this early sleeps until all ranks call
     * it, without a time limit, and uses no CPU meanwhile. `part` is NULL unless a launcher has started the
     * ranks. */
    amp_status (*part)(amp_comm *, int size, amp_comm **out, amp_error *);

    /* Whether this rank is the first on its machine to call this function: that rank prints why the program
     * ends. If prints_error is NULL, each rank prints. Any thread may call it. */
    int (*prints_error)(amp_comm *);
    /* Ends the processes of all ranks with this exit status. If the ranks are threads, it returns, and makes
     * their calls fail instead. Any thread may call it. */
    void (*abort)(amp_comm *, int status);
    void (*destroy)(amp_comm *);
};

/* ---- the ranks that a launcher such as mpirun has started ---- */

/* Whether a launcher has started this process as one of several, according to the environment. */
int amp_comm_is_launched(void);
/* The rank of this process; 0 if the environment does not contain it. */
int amp_comm_launched_rank(void);
/* Whether this program was built with MPI (mpi/). If not (none/), amp_comm_join fails. */
extern const int amp_comm_is_here;
/* Joins the other ranks; call it at most once. lost: as in amp_comm. After a failure, *out is NULL, or a comm
 * that can be used to end the other ranks. */
amp_status amp_comm_join(void (*lost)(const char *line), amp_comm **out, amp_error *);

/* ---- other ranks ---- */

/* Ranks that are threads of this program and exchange arrays through its memory. Fills ranks[0] to
 * ranks[size - 1], one for each thread; each must be destroyed. After one rank has called abort, the calls of
 * the others fail. seconds, lost: as in amp_comm. */
amp_status amp_comm_threads(int size, double seconds, void (*lost)(const char *line), amp_comm **ranks,
                            amp_error *);

/* Ranks that each have their own GPU: NCCL sums device memory, and `cpu`, a comm of the same ranks, does
 * everything else. Collective. *out takes ownership of cpu, except after a failure. cuda: the backend (from
 * amp_cuda_backend_create) whose memory is summed; it may be destroyed before *out. A sum waits for the work
 * that was queued on this backend before sum_begin, and work queued after sum_end waits for the sums; the CPU
 * does not wait. */
amp_status amp_comm_nccl(amp_comm *cpu, struct amp_backend *cuda, amp_comm **out, amp_error *);
