/* CRC-64/XZ (ECMA-182, reflected): tells a damaged file from a whole one, and one .weights file from another.
 *
 * It finds every burst of up to 64 bits and misses other damage once in 2^64; it is no protection against
 * somebody who forges a file. "123456789" gives 995DC9BBDF1939FA. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "../tensor/status.h"

/* A checksum under way: start, add any number of times, value. Plain data, 16 KiB of it tables: nothing to
 * free. */
typedef struct amp_checksum {
    uint64_t state, table[8][256];
} amp_checksum;

void amp_checksum_start(amp_checksum *);
void amp_checksum_add(amp_checksum *, const void *bytes, size_t size);
uint64_t amp_checksum_value(const amp_checksum *); /* of all that was added so far */

uint64_t amp_checksum_of(const void *bytes, size_t size);

/* Another sum, ten times as fast, of what only programs on this machine read. It finds every change of up to
 * 64 bits in a row, and misses other damage once in 2^64. */
uint64_t amp_quick_sum(const void *bytes, size_t size);

/* Of a whole file, which must be a regular one. AMP_IO_FAILED. */
amp_status amp_file_checksum(const char *path, uint64_t *sum, amp_error *);
