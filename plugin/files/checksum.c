/* Slicing by 8 (Kounavis and Berry, "A systematic approach to building high performance software-based CRC
 * generators"): table[k][b] is the contribution of byte b to the checksum if k more bytes follow it. So eight
 * bytes need eight independent look-ups. */
#include "checksum.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t POLYNOMIAL = 0xC96C5795D7870F42u; /* ECMA-182's polynomial, with its bits reversed */

enum { FILE_CHUNK = 1 << 14 };

void amp_checksum_start(amp_checksum *c)
{
    for (unsigned b = 0; b < 256; b++) {
        uint64_t value = b;
        for (int bit = 0; bit < 8; bit++) value = (value >> 1) ^ (value & 1 ? POLYNOMIAL : 0);
        c->table[0][b] = value;
    }
    for (int k = 1; k < 8; k++)
        for (unsigned b = 0; b < 256; b++) {
            uint64_t before = c->table[k - 1][b];
            c->table[k][b] = (before >> 8) ^ c->table[0][before & 0xff];
        }
    c->state = ~(uint64_t)0;
}

static uint64_t little_endian(const unsigned char *bytes)
{
    uint64_t value = 0;
    for (int k = 0; k < 8; k++) value |= (uint64_t)bytes[k] << 8 * k;
    return value;
}

void amp_checksum_add(amp_checksum *c, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    uint64_t state = c->state;
    for (; size >= 8; size -= 8, at += 8) {
        uint64_t x = state ^ little_endian(at);
        state = 0;
        for (int k = 0; k < 8; k++) state ^= c->table[7 - k][x >> 8 * k & 0xff];
    }
    for (; size; size--) state = (state >> 8) ^ c->table[0][(state ^ *at++) & 0xff];
    c->state = state;
}

uint64_t amp_checksum_value(const amp_checksum *c) { return ~c->state; }

uint64_t amp_checksum_of(const void *bytes, size_t size)
{
    amp_checksum c;
    amp_checksum_start(&c);
    amp_checksum_add(&c, bytes, size);
    return amp_checksum_value(&c);
}

/* Returns the next state of a lane. The result is different for each value of `word`. The lanes are
 * independent, so that the processor computes them in parallel. */
static uint64_t mix(uint64_t state, uint64_t word)
{
    state ^= word;
    return (state << 29 | state >> 35) * 0x9E3779B97F4A7C15u;
}

uint64_t amp_quick_sum(const void *bytes, size_t size)
{
    enum { LANES = 4 };
    uint64_t lanes[LANES] = { size, 1, 2, 3 }, words[LANES], sum = 0;
    const unsigned char *at = bytes;
    for (; size > 0; at += sizeof words) {
        size_t part = size < sizeof words ? size : sizeof words;
        if (part < sizeof words) memset(words, 0, sizeof words);
        memcpy(words, at, part);
        for (int k = 0; k < LANES; k++) lanes[k] = mix(lanes[k], words[k]);
        size -= part;
    }
    for (int k = 0; k < LANES; k++) sum = mix(sum, lanes[k]);
    return sum ^ sum >> 32;
}

static amp_status sum_file(int file, const char *path, uint64_t *sum, amp_error *error)
{
    unsigned char chunk[FILE_CHUNK];
    amp_checksum c;
    struct stat info;
    if (fstat(file, &info) != 0)
        return amp_fail(error, AMP_IO_FAILED, "cannot read %.500s: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return amp_fail(error, AMP_IO_FAILED, "cannot read %.500s: it is not a regular file", path);
    amp_checksum_start(&c);
    for (;;) {
        ssize_t got = read(file, chunk, FILE_CHUNK);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return amp_fail(error, AMP_IO_FAILED, "cannot read %.500s: %s", path, strerror(errno));
        if (got == 0) break;
        amp_checksum_add(&c, chunk, (size_t)got);
    }
    *sum = amp_checksum_value(&c);
    return AMP_OK;
}

amp_status amp_file_checksum(const char *path, uint64_t *sum, amp_error *error)
{
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a FIFO must not block */
    if (file < 0) return amp_fail(error, AMP_IO_FAILED, "cannot read %.500s: %s", path, strerror(errno));
    amp_status status = sum_file(file, path, sum, error);
    close(file);
    return status;
}
