/* Tables on the device, so that one launch can work on all arrays of a network. For .cu files only.
 *
 * A table has a row for each array: a structure of any type that begins with amp_cuda_work. It also has a cut
 * for each block, which says on which part of which row the block works. A table is uploaded again only if a
 * row has changed; a step with the same rows as the one before costs only a comparison on the CPU. */
#pragma once

#include "state.h"

/* units: how much work a row has. share: how many of its units a block does. A unit is an element or a tile,
 * depending on the kernel. */
typedef struct amp_cuda_work { size_t units; int share; } amp_cuda_work;

typedef struct amp_cuda_cut {
    size_t first; /* the first unit that the block works on */
    int row, count;
} amp_cuda_cut;

/* Returns `count` rows of row_bytes (a multiple of 8), zeroed. Assign fields, not whole structures, so that
 * padding stays 0: tables are compared byte by byte. */
void *amp_cuda_table_rows(size_t row_bytes, int count);

/* Makes the table hold these rows and takes ownership of them. If the call fails, the table is empty. The
 * table's `cuts` is 0 if there is nothing to do. */
amp_status amp_cuda_table_set(amp_backend *, amp_cuda_table *, void *rows, size_t row_bytes, int count,
                              amp_error *);

/* Rows and cuts in device memory. */
template <class Row> static inline const Row *amp_cuda_rows_of(const amp_cuda_table *t)
{
    return (const Row *)t->memory;
}
static inline const amp_cuda_cut *amp_cuda_cuts_of(const amp_cuda_table *t)
{
    return (const amp_cuda_cut *)((const char *)t->memory + t->bytes);
}
