/* Lists on the device: one launch works on all arrays of a network, and finds them in a table. For .cu files
 * only.
 *
 * A table has rows, structures of any kind that begin with amp_cuda_work, and cuts: the work of each row in
 * parts, one for each block. It is uploaded again only when a row has changed; a step whose rows are those of
 * the step before costs a comparison on the CPU. */
#pragma once

#include "state.h"

/* How many units of work a row has, and how many of them a block does; each kernel has units of its own. */
typedef struct amp_cuda_work { size_t units; int share; } amp_cuda_work;

typedef struct amp_cuda_cut {
    size_t first; /* unit of the row */
    int row, count;
} amp_cuda_cut;

/* `count` rows of row_bytes (a multiple of 8), zeroed: set all that matters field by field, since tables are
 * compared by their bytes. */
void *amp_cuda_table_rows(size_t row_bytes, int count);

/* Makes the table hold these rows and takes ownership of them, also on failure, where it then holds none.
 * cuts is 0 where there is nothing to do. */
amp_status amp_cuda_table_set(amp_backend *, amp_cuda_table *, void *rows, size_t row_bytes, int count,
                              amp_error *);

/* Where they are on the device. */
template <class Row> static inline const Row *amp_cuda_rows_of(const amp_cuda_table *t)
{
    return (const Row *)t->memory;
}
static inline const amp_cuda_cut *amp_cuda_cuts_of(const amp_cuda_table *t)
{
    return (const amp_cuda_cut *)((const char *)t->memory + t->bytes);
}
