#include "launch.h"

#include <stdlib.h>

/* Open MPI's mpirun; MPICH's mpiexec and Slurm's srun --mpi=pmi2; srun --mpi=pmix. A
 * number: how many ranks. */
int amp_comm_is_launched(void)
{
    static const char *const sizes[] = { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS" };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const char *size = getenv(sizes[i]);
        if (size && strtol(size, NULL, 10) > 1) return 1;
    }
    return 0;
}
