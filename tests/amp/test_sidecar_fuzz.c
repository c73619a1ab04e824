/* No bytes crash the reader of sidecars, or put an engine into an impossible state: seeded mutants of valid
 * files, most of them with a corrected checksum, to test what it protects too. Most useful in the asan
 * preset. AMP_FUZZ_RUNS=N: number of mutants (20000). AMP_FUZZ_SEED=N: start at mutant N, which a failure
 * prints. */
#define _POSIX_C_SOURCE 200809L
#include "testing.h"

#include <signal.h>

#include "memory_network.h"
#include "random_numbers.h"
#include "sidecar_testing.h"
#include "tensor/half.h"

#define FUZZ_SEEDS 5         /* SGD or Adam, between steps or within one; with averaged weights */
#define FUZZ_LIMIT (1 << 14) /* size of a mutant */

/* A hash of everything that a sidecar may change. */
static uint64_t fuzz_state(const memory_network *n)
{
    amp_parameters e = n->engine->parameters;
    amp_checksum sum;
    amp_checksum_start(&sum);
    amp_checksum_add(&sum, n->masters, sizeof n->masters);
    amp_checksum_add(&sum, n->momenta, sizeof n->momenta);
    amp_checksum_add(&sum, n->statistics, sizeof n->statistics);
    for (int i = 0; i < e.param_count; i++) {
        size_t bytes = e.params[i].count * sizeof(float);
        amp_checksum_add(&sum, memory_here(e.params[i].grad), bytes);
        if (!e.adam) continue;
        amp_checksum_add(&sum, memory_here(e.params[i].m), bytes);
        amp_checksum_add(&sum, memory_here(e.params[i].v), bytes);
    }
    for (int i = 0; i < e.statistics_count; i++)
        amp_checksum_add(&sum, memory_here(e.statistics[i].committed), e.statistics[i].count * sizeof(float));
    amp_checksum_add(&sum, &n->engine->scaler, sizeof(amp_scaler));
    return amp_checksum_value(&sum);
}

/* ---- valid files ---- */

enum { FUZZ_AVERAGES = 2 }; /* of 3 and 2 numbers */

/* Writes seed `which` (below FUZZ_SEEDS) to bytes, which has FUZZ_LIMIT bytes; returns its size. */
static size_t fuzz_seed(int which, unsigned char *bytes)
{
    char path[] = "/tmp/amp_fuzz_XXXXXX";
    int file = mkstemp(path);
    REQUIRE(file >= 0);
    memory_network *n = memory_network_make(which & 1, 1);
    float three[] = { 1, -2, 3 }, two[] = { .5f, 0 };
    const amp_average averages[FUZZ_AVERAGES] = { { three, 3 }, { two, 2 } };
    amp_run_state run = { .seen = 64, .t = 8, .steps = 8, .width = 32, .height = 32, .batch = 4,
                          .subdivisions = 2, .window = which >> 1 & 1,
                          .averages = averages, .average_count = which == 4 ? FUZZ_AVERAGES : 0 };
    REQUIRE(amp_sidecar_write(path, n->engine, &run, 42, NULL) == AMP_OK);
    memory_network_free(n);
    ssize_t size = read(file, bytes, FUZZ_LIMIT);
    REQUIRE(size > 0 && size < FUZZ_LIMIT);
    close(file);
    unlink(path);
    return (size_t)size;
}

/* ---- mutation ---- */

/* Start and size of a random record, including its head; 0 if there is none. */
static size_t fuzz_record(unsigned char *bytes, size_t size, size_t *at)
{
    static const uint32_t tags[] = { AMP_TAG_SCALER, AMP_TAG_RUN, AMP_TAG_NETWORK, AMP_TAG_ARRAY,
                                     AMP_TAG_ARRAY, AMP_TAG_ARRAY, AMP_TAG_AVERAGES };
    if (size < AMP_SIDECAR_HEADER_BYTES + AMP_SIDECAR_TRAILER_BYTES) return 0;
    uint32_t tag = tags[below(7)];
    unsigned char *content = sidecar_record(bytes, size, tag, tag == AMP_TAG_ARRAY ? below(12) : 0);
    if (!content) return 0;
    *at = (size_t)(content - bytes) - 12;
    return 12 + (size_t)amp_fetch_u64(content - 8);
}

static uint64_t fuzz_number(void)
{
    static const uint64_t numbers[] = { 0, 1, 2, 3, 7, 255, 0x7fffffff, 0x80000000, 0xffffffff, 0x7f800000,
        0xff800000, 0x7fc00001, 0x3f800000, 0x80000001, 0x477fe000, UINT64_C(0x7ff0000000000000),
        UINT64_C(0x7ff8000000000000), UINT64_C(1) << 62, (UINT64_C(1) << 62) + 6, UINT64_MAX, UINT64_MAX - 11,
        UINT64_MAX / 4 };
    return below(3) ? numbers[below(COUNT(numbers))] : (uint64_t)below(64);
}

/* Makes one change in bytes[0..size), which has FUZZ_LIMIT bytes. */
static size_t fuzz_spoil(unsigned char *bytes, size_t size)
{
    static unsigned char kept[FUZZ_LIMIT];
    size_t at = size ? (size_t)below(size) : 0, from = 0, length;
    uint64_t number;
    switch (below(8)) {
    case 0: /* a byte */
        if (size) bytes[at] = (unsigned char)below(256);
        return size;
    case 1: /* a bit */
        if (size) bytes[at] ^= (unsigned char)(1 << below(8));
        return size;
    case 2: case 3: /* a number where there is one */
        length = fuzz_record(bytes, size, &at);
        at = length ? at + 4 * below((length < 160 ? length : 160) / 4) : (size_t)(8 + 4 * below(8));
        number = fuzz_number();
        length = below(2) ? 4 : 8;
        if (at + length <= size)
            for (size_t k = 0; k < length; k++) bytes[at + k] = (unsigned char)(number >> 8 * k);
        return size;
    case 4: /* truncate */
        length = below(40);
        if (length > size - at) length = size - at;
        memmove(bytes + at, bytes + at + length, size - at - length);
        return size - length;
    case 5: /* remove a record */
        length = fuzz_record(bytes, size, &at);
        if (length && below(2)) amp_store_u32(bytes + 36, amp_fetch_u32(bytes + 36) - 1);
        memmove(bytes + at, bytes + at + length, size - at - length);
        return size - length;
    case 6: /* duplicate a record */
        length = fuzz_record(bytes, size, &from);
        if (!length || size + length > FUZZ_LIMIT) return size;
        if (below(2)) amp_store_u32(bytes + 36, amp_fetch_u32(bytes + 36) + 1);
        at = from + (below(2) ? length : 0);
        memcpy(kept, bytes + from, length);
        memmove(bytes + at + length, bytes + at, size - at);
        memcpy(bytes + at, kept, length);
        return size + length;
    default: /* duplicate a range */
        length = 1 + below(60);
        if (length > size - at || size + length > FUZZ_LIMIT) return size;
        memmove(bytes + at + length, bytes + at, size - at);
        return size + length;
    }
}

/* ---- properties ---- */

/* Reads the bytes, and restores each of the networks from them. Returns 1 if they were a valid sidecar. */
static int fuzz_check(const unsigned char *bytes, size_t size, memory_network *const networks[], int count)
{
    amp_sidecar *c = (void *)bytes;
    amp_error error = { 0 };
    amp_status status = parse_copy(bytes, size, "x.amp", &c, &error);
    if (status != AMP_OK) {
        REQUIRE(status == AMP_BAD_SIDECAR && !c);
        REQUIRE(!strncmp(error.message, "x.amp: ", 7) && is_one_line(error.message)
                && strstr(error.message, "remove the sidecar"));
        return 0;
    }
    REQUIRE(amp_sidecar_run(c)->window >= 0 && amp_sidecar_run(c)->t >= 0);
    float numbers[5] = { 7, 7, 7, 7, 7 };
    const amp_average averages[FUZZ_AVERAGES] = { { numbers, 3 }, { numbers + 3, 2 } };
    status = amp_sidecar_fit_averages(c, averages, FUZZ_AVERAGES, &error);
    REQUIRE(status == AMP_OK || (status == AMP_BAD_SIDECAR && is_one_line(error.message)));
    for (int k = 0; k < 5; k++) REQUIRE(status == AMP_OK ? amp_is_finite(numbers[k]) : numbers[k] == 7);
    for (int i = 0; i < count; i++) {
        char note[256];
        uint64_t before = fuzz_state(networks[i]);
        if (amp_sidecar_apply(c, networks[i]->engine, note, &error) != AMP_OK) {
            REQUIRE(error.status == AMP_BAD_SIDECAR && is_one_line(error.message)
                    && strstr(error.message, "another network"));
            REQUIRE(fuzz_state(networks[i]) == before);
            continue;
        }
        REQUIRE(!amp_scaler_problem(&networks[i]->engine->scaler));
        REQUIRE(!*note || is_one_line(note));
        amp_parameters e = networks[i]->engine->parameters;
        for (int p = 0; p < e.param_count; p++) {
            const float *momentum = memory_here(e.params[p].momentum);
            const float *m = e.adam ? memory_here(e.params[p].m) : NULL,
                *v = e.adam ? memory_here(e.params[p].v) : NULL;
            for (size_t k = 0; k < e.params[p].count; k++) {
                REQUIRE(amp_is_finite(momentum[k]));
                if (e.adam) REQUIRE(amp_is_finite(m[k]) && amp_is_finite(v[k]) && v[k] >= 0);
            }
        }
    }
    amp_sidecar_free(c);
    return 1;
}

/* ---- mutants ---- */

static volatile uint64_t run; /* the current mutant */

/* Prints what is needed to reproduce a crash. */
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
        int which = below(FUZZ_SEEDS);
        size_t size = sizes[which];
        memcpy(bytes, seeds[which], size);
        for (int changes = 1 + below(4); changes; changes--)
            size = fuzz_spoil(bytes, size);
        if (below(16)) seal_sidecar(bytes, size);
        unsigned char *exact = malloc(size ? size : 1); /* in a separate block, so that sanitizers see its
                                                           end */
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

/* Other releases' sidecars can be read, and other releases can read ours: size and checksum equal those of an
 * earlier release. */
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
    for (int which = 0; which < FUZZ_SEEDS; which += 4) { /* without and with averages */
        assert_int_equal(parse_copy(bytes, fuzz_seed(which, bytes), "x.amp", &c, &error), AMP_OK);
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
    assert_non_null(strstr(error.message, "x.amp: it belongs to another network: the averaged weights in"));
}

int main(void) { return run_listed_tests("sidecar fuzz", NULL, NULL); }
