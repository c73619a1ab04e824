/* Communication between the ranks that train one network together, as a struct of function pointers, so that
 * the core names no library.
 *
 * Each rank has its own network and engine, trains its share of a step's images, and makes the same update,
 * because gradients are summed over all ranks first. In threads.c the ranks are threads of one process; in
 * mpi/mpi.c they are processes started by mpirun; nccl/nccl.c wraps another comm and sums on GPUs.
 *
 * Rules for every function except prints_error, abort and destroy:
 *  - It is collective: all ranks call it, in the same order, with the same sizes. After a failure only these
 *    three may be called.
 *  - It ends: if a rank does not take part within the time limit, `lost` gets a line that names `phase`, or
 *    the function fails.
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
    int local_rank, local_size;  /* among those on the same machine */
    int one_program;             /* the ranks are threads of one program */
    int settled;                 /* set by the caller: this rank has made a step with its current memory,
                                    so it allocates nothing and loads no code between the sums of the next
                                    step */
    int has_summed;              /* set by comm after the first sums; until then a call may take 4 time
                                    limits (watchdog.h) */
    char phase[128];             /* the purpose of the collective calls, as "step 17, gradients": set by
                                    callers, for messages */
    double seconds;              /* the time limit of a call; 0: none */
    double waited;               /* seconds that sum_end has waited in total; 0 for sums in a GPU's memory,
                                    which the CPU does not wait for */
    void (*lost)(const char *line); /* set by the caller of join: prints this line and ends the program.
                                       comm calls it in a separate thread if a call exceeds its limit */

    /* Starts to sum count floats over all ranks, in place. wire: the type they are sent in (fp32, or bf16 or
     * fp16); sums are made in fp32. Until sum_end, which waits for all sums that have started, the memory
     * belongs to comm. It is CPU memory, or for nccl/nccl.c a GPU's: then the backend's stream waits instead
     * of the CPU. */
    amp_status (*sum_begin)(amp_comm *, float *values, size_t count, amp_dtype wire, amp_error *);
    amp_status (*sum_end)(amp_comm *, amp_error *);

    /* all (size · bytes): every rank's `mine`, in rank order. CPU memory. */
    amp_status (*gather)(amp_comm *, const void *mine, size_t bytes, void *all, amp_error *);
    /* Copies rank root's memory to all others. CPU memory. May take eight time limits, since the others wait
     * for work that only root does, such as a save. */
    amp_status (*broadcast)(amp_comm *, void *memory, size_t bytes, int root, amp_error *);

    /* NULL except for ranks started by a launcher. The first `size` of them get a comm of their own, to be
     * destroyed before this one; the others get NULL, and so do all if size is 1. A rank that arrives early
     * sleeps, for any time, and uses no CPU. */
    amp_status (*part)(amp_comm *, int size, amp_comm **out, amp_error *);

    /* Whether this rank is the first on its machine to call this, and so prints why the program ends. NULL:
     * each rank prints. Any thread may call it. */
    int (*prints_error)(amp_comm *);
    /* Ends all ranks with this status. Returns only if there is nothing to end. Any thread may call it. */
    void (*abort)(amp_comm *, int status);
    void (*destroy)(amp_comm *);
};

/* ---- the ranks that a launcher such as mpirun has started ---- */

/* Whether a launcher has started this process as one of several, according to the environment. */
int amp_comm_is_launched(void);
/* Its rank; 0 if the environment does not have it. */
int amp_comm_launched_rank(void);
/* Whether this program was built with MPI (mpi/); in none/, joining fails. */
extern const int amp_comm_is_here;
/* Joins the other ranks; call it at most once. lost: as in amp_comm. After a failure, *out is set if it
 * can be used to end the other ranks, else NULL. */
amp_status amp_comm_join(void (*lost)(const char *line), amp_comm **out, amp_error *);

/* ---- other ranks ---- */

/* Threads of this program, with arrays in its memory. Fills ranks[0] to ranks[size - 1], one for each thread;
 * each must be destroyed. After abort of one, the others' calls fail. seconds, lost: as in amp_comm. */
amp_status amp_comm_threads(int size, double seconds, void (*lost)(const char *line), amp_comm **ranks,
                            amp_error *);

/* GPUs: NCCL sums device memory; `cpu`, a comm of the same ranks, does everything else. Each has its own GPU.
 * Collective. *out takes ownership of cpu, except after a failure. cuda: the backend (from
 * amp_cuda_backend_create) whose memory is summed; it may be destroyed before *out. A sum sees what was
 * queued on it before sum_begin, and what is queued after sum_end sees the sums; the CPU does not wait. */
amp_status amp_comm_nccl(amp_comm *cpu, struct amp_backend *cuda, amp_comm **out, amp_error *);
