#include "comm.h"

/* The rows are for Open MPI's mpirun; MPICH's mpiexec and Slurm's --mpi=pmi2; Slurm's --mpi=pmix. */
static const struct { const char *size, *rank; } launchers[] = {
    { "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK" },
    { "PMI_SIZE", "PMI_RANK" },
    { "SLURM_STEP_NUM_TASKS", "SLURM_PROCID" },
};
enum { LAUNCHERS = sizeof launchers / sizeof *launchers };

static long number(const char *variable)
{
    const char *text = getenv(variable);
    return text ? strtol(text, NULL, 10) : 0;
}

static int find_launcher(void)
{
    int i = 0;
    while (i < LAUNCHERS && number(launchers[i].size) < 2) i++;
    return i;
}

int amp_comm_is_launched(void) { return find_launcher() < LAUNCHERS; }

int amp_comm_launched_rank(void)
{
    int i = find_launcher();
    return i < LAUNCHERS ? (int)number(launchers[i].rank) : 0;
}
