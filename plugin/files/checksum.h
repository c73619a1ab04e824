/* CRC-64/XZ (ECMA-182, reflected), to detect a damaged file and to recognize a .weights file. It detects
 * every error burst of up to 64 bits, and misses other damage with probability 2^-64. It does not protect
 * against forged files. The checksum of "123456789" is 995DC9BBDF1939FA. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "../tensor/status.h"

/* A checksum in progress. Call amp_checksum_start once, then amp_checksum_add any number of times, then
 * amp_checksum_value. The struct owns no memory. Its tables take 16 KiB. */
typedef struct amp_checksum {
    uint64_t state, table[8][256];
} amp_checksum;

void amp_checksum_start(amp_checksum *);
void amp_checksum_add(amp_checksum *, const void *bytes, size_t size);
uint64_t amp_checksum_value(const amp_checksum *); /* the checksum of everything added so far */

uint64_t amp_checksum_of(const void *bytes, size_t size);

/* A second checksum. It is ten times as fast, and its value depends on the machine's byte order. Use it for
 * files that never leave the machine that wrote them. It detects every change within one 64-bit word of
 * `bytes`, and misses other damage with probability 2^-64. */
uint64_t amp_quick_sum(const void *bytes, size_t size);

/* Sets *sum to the checksum of a whole regular file. Returns AMP_IO_FAILED if the file cannot be read. */
amp_status amp_file_checksum(const char *path, uint64_t *sum, amp_error *);
