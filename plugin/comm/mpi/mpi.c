/* Processes that mpirun has started, as ranks: see comm.h. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "../launch.h"

typedef struct mpi_comm {
    amp_comm comm;
    MPI_Comm all; /* of ours alone */
} mpi_comm;

static amp_status check(int result, const amp_comm *comm, amp_error *error)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (result == MPI_SUCCESS) return AMP_OK;
    MPI_Error_string(result, text, &length);
    return amp_fail(error, AMP_COMM_FAILED, "amp: rank %d of %d: MPI failed in %s: %s", comm->rank,
                    comm->size, comm->phase, text);
}

static amp_status sum_begin(amp_comm *comm, float *values, size_t count, amp_dtype wire, void *ready,
                            amp_error *error)
{
    enum { MOST = 1 << 20 }; /* MPI counts in int */
    (void)wire;
    (void)ready;
    for (size_t at = 0; at < count; at += MOST) {
        int n = (int)(count - at < MOST ? count - at : MOST);
        AMP_TRY(check(MPI_Allreduce(MPI_IN_PLACE, values + at, n, MPI_FLOAT, MPI_SUM,
                                    ((mpi_comm *)comm)->all), comm, error));
    }
    return AMP_OK;
}

static amp_status sum_end(amp_comm *comm, amp_error *error)
{
    (void)comm;
    (void)error;
    return AMP_OK;
}

static amp_status gather(amp_comm *comm, const void *mine, size_t bytes, void *all, amp_error *error)
{
    return check(MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE,
                               ((mpi_comm *)comm)->all), comm, error);
}

static amp_status broadcast(amp_comm *comm, void *memory, size_t bytes, int root, amp_error *error)
{
    return check(MPI_Bcast(memory, (int)bytes, MPI_BYTE, root, ((mpi_comm *)comm)->all), comm, error);
}

static void end_all(amp_comm *comm, int status) { MPI_Abort(((mpi_comm *)comm)->all, status); }

static void destroy(amp_comm *comm)
{
    MPI_Comm_free(&((mpi_comm *)comm)->all);
    MPI_Finalize();
    free(comm);
}

amp_status amp_comm_join(amp_comm **out, amp_error *error)
{
    int granted;
    mpi_comm *mpi = calloc(1, sizeof *mpi);
    *out = NULL;
    if (!mpi) return amp_fail(error, AMP_NO_MEMORY, "amp: out of memory");
    mpi->comm = (amp_comm){ .name = "MPI", .phase = "the start", .sum_begin = sum_begin, .sum_end = sum_end,
                            .gather = gather, .broadcast = broadcast, .abort = end_all, .destroy = destroy };
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &granted);
    MPI_Comm_dup(MPI_COMM_WORLD, &mpi->all);
    MPI_Comm_set_errhandler(mpi->all, MPI_ERRORS_RETURN);
    MPI_Comm_rank(mpi->all, &mpi->comm.rank);
    MPI_Comm_size(mpi->all, &mpi->comm.size);
    *out = &mpi->comm;
    return AMP_OK;
}
