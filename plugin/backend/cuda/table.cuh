/* Tables on the device, so that one launch can work on all arrays of a network. For .cu files only.
 *
 * A table has rows, one for each array: structures of any kind that begin with amp_cuda_work. It also has
 * cuts, one for each block: which part of which row the block works on. A table is uploaded again only if a
 * row has changed; a step with the same rows as the one before costs only a comparison on the CPU. */
#pragma once

#include "state.h"

/* units: how much work a row has; share: how much of it a block does. A unit is an element or a tile,
 * depending on the kernel. */
typedef struct amp_cuda_work { size_t units; int share; } amp_cuda_work;

typedef struct amp_cuda_cut {
    size_t first; /* the row's first unit */
    int row, count;
} amp_cuda_cut;

/* Returns `count` rows of row_bytes (a multiple of 8), zeroed. Set each field by itself, so that padding
 * stays 0: tables are compared byte by byte. */
void *amp_cuda_table_rows(size_t row_bytes, int count);

/* Makes the table hold these rows and takes ownership of them. If it fails, the table is empty. cuts is 0 if
 * there is nothing to do. */
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
