/* Lists on the device: one launch works on all arrays of a network, and finds them in a table. For .cu files
 * only.
 *
 * A table has rows, structures of any kind that begin with amp_cuda_work, and cuts: the work of each row in
 * parts, one for each block. It is made anew only when a row differs from what it was made of; what is asked
 * of it step after step costs a comparison on the host. */
#pragma once

#include "state.h"

/* How much there is to do, and how much of it a block does; in what units, is the kernel's matter. */
typedef struct amp_cuda_work { size_t units; int share; } amp_cuda_work;

typedef struct amp_cuda_cut {
    size_t first; /* unit of the row */
    int row, count;
} amp_cuda_cut;

/* `count` rows of row_bytes (a multiple of 8), zeroed: set all that matters field by field, since tables are
 * compared by their bytes. NULL and *error if there is no memory. */
void *amp_cuda_table_rows(size_t row_bytes, int count, amp_error *error);

/* The table is now of these rows, which are the table's from here on, also on failure. On failure it is of
 * none. cuts is 0 where there is nothing to do. */
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
