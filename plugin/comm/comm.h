/* Communication between the ranks that train one network together. The interface is a struct of function
 * pointers, so that the core depends on neither MPI nor NCCL.
 *
 * Each rank has its own network and engine, and trains on its share of a step's images. Gradients are then
 * summed over all ranks, so all make the same update. Ranks are threads of one process (threads.c) or
 * processes started by mpirun (mpi/mpi.c); nccl/nccl.c wraps another comm and sums on GPUs.
 *
 * Rules for every function except prints_error, abort and destroy:
 *  - It is collective: all ranks call it, in the same order, with the same sizes. After a failure only
 *    prints_error, abort and destroy may be called.
 *  - It does not hang: if a rank does not take part within the time limit, the function fails or calls `lost`
 *    with a line that contains `phase`.
 *  - All ranks get the same bits. */
#pragma once

#include <stddef.h>

#include "../tensor/status.h"
#include "../tensor/tensor.h"

struct amp_backend;
typedef struct amp_comm amp_comm;

struct amp_comm {
    const char *name;            /* "MPI", with its library's version; shown to the user */
    int rank, size;              /* this rank's number, from 0; the number of ranks */
    int local_rank, local_size;  /* rank and size among the ranks on this machine only */
    int one_program;             /* 1: the ranks are threads of one program */
    int settled;                 /* 1: this rank's next step neither allocates memory nor loads code between
                                    sums, because a step with the same memory came before; set by the
                                    caller */
    int has_summed;              /* 1 after the first sums, set by the implementation; until then a call may
                                    take four times `seconds` (watchdog.h) */
    char phase[128];             /* what this rank is doing, for messages, such as "step 17, gradients"; set
                                    by callers */
    double seconds;              /* the time limit of a call; 0: none */
    double waited;               /* total seconds that sum_end has waited; 0 if sums are in GPU memory,
                                    because the CPU does not wait for those */
    void (*lost)(const char *line); /* called in a separate thread if a call exceeds its time limit; prints
                                       `line` and ends the program */

    /* sum_begin starts to sum `count` floats over all ranks, in place. sum_end waits for all sums that have
     * been started; until it returns, the caller must not use their memory. wire: the type in which the
     * floats are sent (fp32, bf16 or fp16); sums are computed in fp32. With nccl/nccl.c, the memory is GPU
     * memory, and the backend's stream waits instead of the CPU. */
    amp_status (*sum_begin)(amp_comm *, float *values, size_t count, amp_dtype wire, amp_error *);
    amp_status (*sum_end)(amp_comm *, amp_error *);

    /* All-gather in CPU memory: collects all ranks' `bytes` bytes in `all` (size · bytes), in rank order. */
    amp_status (*gather)(amp_comm *, const void *mine, size_t bytes, void *all, amp_error *);
    /* Copies the memory of rank `root` to all other ranks, in CPU memory. Times out only after eight time
     * limits, because the other ranks may have to wait while `root` works alone, for example to save. */
    amp_status (*broadcast)(amp_comm *, void *memory, size_t bytes, int root, amp_error *);

    /* Creates a comm of the first `size` ranks; destroy it before the old one. *out is NULL in the other
     * ranks, and in all ranks if size is 1. A rank that calls `part` early sleeps until all ranks have called
     * it, without a time limit. Only mpi/mpi.c has this function; elsewhere the pointer is NULL. */
    amp_status (*part)(amp_comm *, int size, amp_comm **out, amp_error *);

    /* Returns 1 if this rank must print why the program ends: the first call on each machine returns 1, all
     * later ones 0. If the pointer is NULL, every rank prints. Any thread may call it. */
    int (*prints_error)(amp_comm *);
    /* Ends the processes of all ranks with this exit status. If the ranks are threads, makes the calls of all
     * ranks fail instead, and returns. Any thread may call it. */
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
/* Joins the other ranks and sets *out. It may be called only once. lost: as in amp_comm. After a failure,
 * *out is NULL, or a comm that can be used only to end the other ranks. */
amp_status amp_comm_join(void (*lost)(const char *line), amp_comm **out, amp_error *);

/* ---- ranks that are threads, and sums on GPUs ---- */

/* Creates ranks that are threads of this program and exchange arrays through its memory. Fills ranks[0] to
 * ranks[size - 1] with one comm for each thread; each must be destroyed. seconds, lost: as in amp_comm. */
amp_status amp_comm_threads(int size, double seconds, void (*lost)(const char *line), amp_comm **ranks,
                            amp_error *);

/* Creates a comm for ranks that each have their own GPU. NCCL sums device memory; `cpu`, a comm of the same
 * ranks, does everything else. All ranks call it. On success, *out owns `cpu`. cuda: the backend whose memory
 * is summed (from amp_cuda_backend_create); it may be destroyed before *out. Sums wait for the work queued on
 * this backend before sum_begin. Work queued after sum_end waits for the sums. */
amp_status amp_comm_nccl(amp_comm *cpu, struct amp_backend *cuda, amp_comm **out, amp_error *);
