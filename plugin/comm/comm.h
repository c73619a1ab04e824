/* Ranks that train one network together: how they communicate, as a struct of function pointers, so that the
 * core names no library for it.
 *
 * Each rank has a network and an engine of its own, trains its share of a step's images, and makes the
 * same update: gradients are summed over all ranks before it. threads.c lets threads of one process be ranks,
 * and mpi/mpi.c the processes that mpirun has started; nccl/nccl.c wraps another comm and sums on GPUs.
 *
 * Conventions, for every function but prints_error, abort and destroy:
 *  - It is collective: all ranks call it, in the same order, with the same sizes. After a failure nothing
 *    further may be called but these three.
 *  - It ends: where a rank does not take part within the time limit, `lost` gets a line that names `phase`,
 *    or the function fails.
 *  - All ranks get the same bits. */
#pragma once

#include <stddef.h>

#include "../tensor/status.h"
#include "../tensor/tensor.h"

typedef struct amp_comm amp_comm;

struct amp_comm {
    const char *name;            /* "MPI", with its library's version: for the user */
    int rank, size;              /* from 0; how many there are */
    int local_rank, local_size;  /* among those on the same machine */
    int one_program;             /* the ranks are threads of one program */
    int settled;                 /* the caller's: this rank has made a step with the memory that it has now,
                                    so it takes none, and loads no code, between the sums of the next step */
    int has_summed;              /* set by comm when the first sums have ended; until then a call may take
                                    4 time limits (watchdog.h) */
    char phase[128];             /* what the collective calls are made for, as "step 17, gradients": kept up
                                    by the callers, for messages */
    double seconds;              /* the time limit of a call; 0: none */
    double waited;               /* how many seconds sum_end has waited in all; of sums in a GPU's memory,
                                    for which the program does not wait, nothing */
    void (*lost)(const char *line); /* set by the caller of join: prints this line and ends the program. comm
                                       calls it in a thread of its own when a call has passed its limit */

    /* Begins to sum count floats over all ranks, in place; wire: the type that they travel in (fp32, or bf16
     * or fp16, and sums are made in fp32). The memory belongs to comm until sum_end, which waits for all sums
     * that have begun. It is the program's, and a GPU's for nccl/nccl.c: there the backend's stream waits in
     * place of the program. */
    amp_status (*sum_begin)(amp_comm *, float *values, size_t count, amp_dtype wire, amp_error *);
    amp_status (*sum_end)(amp_comm *, amp_error *);

    /* all (size · bytes): every rank's `mine`, in the order of ranks. Host memory. */
    amp_status (*gather)(amp_comm *, const void *mine, size_t bytes, void *all, amp_error *);
    /* Rank root's memory goes to all others. Host memory. It may take eight time limits, since the others
     * wait for what root does alone, as a save. */
    amp_status (*broadcast)(amp_comm *, void *memory, size_t bytes, int root, amp_error *);

    /* NULL but for the ranks that a launcher has started. The first `size` of them as a comm of their own, to
     * be destroyed before this one; NULL on the others, and on all where that is one rank. Whoever comes
     * early sleeps, for any time, and takes no processor. */
    amp_status (*part)(amp_comm *, int size, amp_comm **out, amp_error *);

    /* Whether this rank is the first on its machine to call this, and so the one that prints why the program
     * ends. NULL: each rank prints. Any thread may call it. */
    int (*prints_error)(amp_comm *);
    /* Ends all ranks, with this status. Returns only where there is nothing to end. Any thread may call
     * it. */
    void (*abort)(amp_comm *, int status);
    void (*destroy)(amp_comm *);
};
