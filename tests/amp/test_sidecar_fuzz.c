/* No bytes crash the reader of sidecars, or bring an engine into a state it could not have: seeded mutants of
 * good files, most of them with their checksum made right again, so that what it protects is tried too. Worth
 * most in the asan preset. AMP_FUZZ_RUNS=N: so many (20000). AMP_FUZZ_SEED=N: start at mutant N, which a
 * failure names. */
#define _POSIX_C_SOURCE 200809L
#include "testing.h"

#include <signal.h>

#include "sidecar_fuzz.h"

static uint64_t random_state;
static volatile uint64_t run; /* the mutant at hand */

static uint32_t random_number(uint32_t below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % below;
}

/* What is needed to see a crash again. */
static void name_mutant(int signal_number)
{
    char text[] = "AMP_FUZZ_SEED=00000000000000000000\n";
    uint64_t number = run;
    for (char *digit = text + sizeof text - 3; *digit != '='; digit--, number /= 10)
        *digit = (char)('0' + number % 10);
    if (write(2, text, sizeof text - 1) < 0) _exit(3);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

TEST(any_bytes_are_read_or_refused)
{
    static unsigned char seeds[FUZZ_SEEDS][FUZZ_LIMIT], bytes[FUZZ_LIMIT];
    size_t sizes[FUZZ_SEEDS];
    memory_network *networks[3] = { memory_network_make(0, 1), memory_network_make(1, 1),
                                    memory_network_make(0, 0) };
    for (int i = 0; i < FUZZ_SEEDS; i++) {
        sizes[i] = fuzz_seed(i, seeds[i]);
        assert_true(fuzz_check(seeds[i], sizes[i], networks, 3));
    }
    const char *seed = getenv("AMP_FUZZ_SEED"), *runs = getenv("AMP_FUZZ_RUNS");
    signal(SIGABRT, name_mutant);
    long accepted = 0, refused = 0;
    run = seed ? strtoull(seed, NULL, 10) : 1;
    for (uint64_t end = run + (runs ? strtoull(runs, NULL, 10) : 20000); run < end; run++) {
        random_state = run * 0x9e3779b97f4a7c15u;
        int which = (int)random_number(FUZZ_SEEDS);
        size_t size = sizes[which];
        memcpy(bytes, seeds[which], size);
        for (uint32_t changes = 1 + random_number(4); changes; changes--)
            size = fuzz_spoil(bytes, size, random_number);
        if (random_number(16)) seal_sidecar(bytes, size);
        unsigned char *exact = malloc(size ? size : 1); /* of its own, so that sanitizers see its end */
        memcpy(exact, bytes, size);
        if (fuzz_check(exact, size, networks, 3)) accepted++;
        else refused++;
        free(exact);
    }
    signal(SIGABRT, SIG_DFL);
    for (int i = 0; i < 3; i++) memory_network_free(networks[i]);
    print_message("%ld mutants read, %ld refused\n", accepted, refused);
    assert_true(accepted > 100 && refused > 100);
}

/* Sidecars of other releases are read, and ours by them: size and checksum are those of
 * an earlier release's. */
TEST(version_4_has_the_same_bytes_as_ever)
{
    static const struct { size_t size; uint64_t sum; } expected[] = {
        { 935, 0x48ff44228e889af0 }, { 1159, 0xc9dba634202831c8 }, { 1283, 0x9dbd8fc247b3ee6e },
        { 1507, 0xaedd06deea43cda4 } };
    unsigned char bytes[FUZZ_LIMIT];
    for (int which = 0; which < (int)COUNT(expected); which++) {
        size_t size = fuzz_seed(which, bytes);
        uint64_t sum = amp_fetch_u64(bytes + size - AMP_SIDECAR_TRAILER_BYTES);
        if (size != expected[which].size || sum != expected[which].sum)
            fail_msg("seed %d: { %zu, 0x%016llx },", which, size, (unsigned long long)sum);
    }
}

TEST(averages_come_back_to_as_many_of_the_same_size)
{
    unsigned char bytes[FUZZ_LIMIT];
    float numbers[6] = { 7, 7, 7, 7, 7, 7 };
    const amp_average same[] = { { numbers, 3 }, { numbers + 3, 2 } },
                      other[] = { { numbers, 3 }, { numbers + 3, 3 } };
    amp_sidecar *c;
    amp_error error = { 0 };
    for (int which = 0; which < FUZZ_SEEDS; which += 4) { /* without averages, and with them */
        assert_int_equal(amp_sidecar_parse(bytes, fuzz_seed(which, bytes), "x.amp", &c, &error), AMP_OK);
        assert_int_equal(amp_sidecar_fit_averages(c, other, 2, &error),
                         which ? AMP_BAD_SIDECAR : AMP_OK);
        assert_int_equal(amp_sidecar_fit_averages(c, other, 1, &error),
                         which ? AMP_BAD_SIDECAR : AMP_OK);
        assert_int_equal(amp_sidecar_fit_averages(c, NULL, 0, &error), AMP_OK);
        assert_true(numbers[0] == 7 && numbers[3] == 7);
        assert_int_equal(amp_sidecar_fit_averages(c, same, 2, &error), AMP_OK);
        amp_sidecar_free(c);
    }
    const float expected[6] = { 1, -2, 3, .5f, 0, 7 };
    assert_memory_equal(numbers, expected, sizeof numbers);
    assert_non_null(strstr(error.message, "x.amp: it is of another network: other weights are averaged"));
}

int main(void) { return run_listed_tests("sidecar fuzz", NULL, NULL); }
