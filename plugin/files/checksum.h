/* CRC-64/XZ (ECMA-182, reflected): detects a damaged file, and tells one .weights file from another.
 *
 * It detects every burst of up to 64 bits and misses other damage once in 2^64. It does not protect against
 * forged files. "123456789" gives 995DC9BBDF1939FA. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "../tensor/status.h"

/* A checksum in progress: start, add any number of times, value. Plain data, of which 16 KiB are tables:
 * nothing to free. */
typedef struct amp_checksum {
    uint64_t state, table[8][256];
} amp_checksum;

void amp_checksum_start(amp_checksum *);
void amp_checksum_add(amp_checksum *, const void *bytes, size_t size);
uint64_t amp_checksum_value(const amp_checksum *); /* of everything added so far */

uint64_t amp_checksum_of(const void *bytes, size_t size);

/* Another sum, ten times as fast, for what only programs on this machine read. It finds every change of up to
 * 64 bits in a row, and misses other damage once in 2^64. */
uint64_t amp_quick_sum(const void *bytes, size_t size);

/* Of a whole regular file. AMP_IO_FAILED. */
amp_status amp_file_checksum(const char *path, uint64_t *sum, amp_error *);
