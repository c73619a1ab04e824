/* Tables in device memory, so that one launch can work on all arrays of a network. For .cu files only.
 *
 * A table has one row for each array. A row is a struct of any type that begins with amp_cuda_work. The table
 * also has one cut for each block of the launch: a row, and the part of it that the block works on. A table
 * is uploaded again only if a row has changed. */
#pragma once

#include "state.h"

/* The work on a row. units: elements or tiles, depending on the kernel. share: units per block. */
typedef struct amp_cuda_work { size_t units; int share; } amp_cuda_work;

typedef struct amp_cuda_cut {
    size_t first; /* the first unit that the block works on */
    int row, count;
} amp_cuda_cut;

/* Returns `count` zeroed rows of row_bytes (a multiple of 8). Assign fields, not whole structs, so that
 * padding stays 0: tables are compared byte by byte. */
void *amp_cuda_table_rows(size_t row_bytes, int count);

/* Sets the table's rows and takes ownership of `rows`. If the rows have no units of work, the table's `cuts`
 * becomes 0: then launch nothing. After an error the table is empty. */
amp_status amp_cuda_table_set(amp_backend *, amp_cuda_table *, void *rows, size_t row_bytes, int count,
                              amp_error *);

/* The rows and the cuts in device memory. */
template <class Row> static inline const Row *amp_cuda_rows_of(const amp_cuda_table *t)
{
    return (const Row *)t->memory;
}
static inline const amp_cuda_cut *amp_cuda_cuts_of(const amp_cuda_table *t)
{
    return (const amp_cuda_cut *)((const char *)t->memory + t->bytes);
}
