/* Helpers for the tests of sidecars: find and change fields in a file's bytes. Include CMocka first. */
#ifndef SIDECAR_TESTING_H
#define SIDECAR_TESTING_H

#include <stdlib.h>
#include <string.h>

#include "amp/sidecar_format.h"
#include "files/checksum.h"

/* Corrects size and checksum, so that a change is detected by its contents and not by the checksum. */
static inline void seal_sidecar(unsigned char *bytes, size_t size)
{
    if (size < AMP_SIDECAR_HEADER_BYTES + AMP_SIDECAR_TRAILER_BYTES) return;
    amp_store_u64(bytes + 16, size);
    amp_store_u64(bytes + size - 8, amp_checksum_of(bytes, size - 8));
}

/* The content of the nth record (from 0) with this tag, or NULL. The tag is 12 bytes before it. */
static inline unsigned char *sidecar_record(unsigned char *bytes, size_t size, uint32_t tag, int nth)
{
    size_t at = AMP_SIDECAR_HEADER_BYTES, end = size - AMP_SIDECAR_TRAILER_BYTES;
    while (at + 12 <= end) {
        uint64_t length = amp_fetch_u64(bytes + at + 4);
        if (length > end - at - 12) return NULL;
        if (amp_fetch_u32(bytes + at) == tag && nth-- == 0) return bytes + at + 12;
        at += 12 + (size_t)length;
    }
    return NULL;
}

/* amp_sidecar_parse, with a copy of the bytes that is exactly as long. */
__attribute__((unused)) static amp_status parse_copy(const void *bytes, size_t size, const char *name,
                                                     amp_sidecar **out, amp_error *error)
{
    unsigned char *copy = amp_allocated(malloc(size ? size : 1));
    if (size) memcpy(copy, bytes, size);
    return amp_sidecar_parse(copy, size, name, out, error);
}

/* Whether text is one line that a terminal can show. */
static inline int is_one_line(const char *text)
{
    if (!*text) return 0;
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f) return 0;
    return 1;
}

#endif
