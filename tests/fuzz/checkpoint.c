/* The reader of sidecars under libFuzzer. From the repository's root:
 *
 *     clang -g -O1 -std=c11 -D_POSIX_C_SOURCE=200809L \
 *         -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -Iplugin -Itests/helpers \
 *         tests/fuzz/checkpoint.c $(find plugin/amp plugin/files plugin/layers -name '*.c') -lm \
 *         -o fuzz_checkpoint && ./fuzz_checkpoint -max_total_time=60 -max_len=16384
 */
#include "checkpoint_fuzz.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

static uint32_t random_state;

static uint32_t random_number(uint32_t below)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % below;
}

/* libFuzzer's own changes or the test's, the checksum made right again most of the time. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    static unsigned char bytes[FUZZ_LIMIT];
    random_state = seed;
    if (size > FUZZ_LIMIT) size = FUZZ_LIMIT;
    memcpy(bytes, data, size);
    if (size < AMP_CHECKPOINT_HEADER_BYTES && random_number(64))
        size = fuzz_seed((int)random_number(FUZZ_SEEDS), bytes);
    else if (random_number(2)) size = LLVMFuzzerMutate(bytes, size, FUZZ_LIMIT);
    else size = fuzz_spoil(bytes, size, random_number);
    if (random_number(16)) seal_sidecar(bytes, size);
    if (size > max_size) size = max_size;
    memcpy(data, bytes, size);
    return size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static memory_network *networks[3];
    for (int i = 0; i < 3; i++)
        if (!networks[i]) networks[i] = memory_network_make(i == 1, i < 2);
    fuzz_check(data, size, networks, 3);
    return 0;
}
