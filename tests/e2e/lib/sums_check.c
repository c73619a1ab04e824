/* What plugin/comm/mpi sums: of every count and type the sum in the order of ranks, bit by bit, on all ranks.
 * Ends with status 0 and prints how many sums it looked at. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"
#include "comm/wire.h"

static amp_error error;

__attribute__((noreturn)) static void fail(const char *text)
{
    fprintf(stderr, "sums_check: %s\n", text);
    abort();
}

static void must(amp_status status) { if (status != AMP_OK) fail(error.message); }

/* What rank `rank` gives at place i: numbers whose sum depends on its order, and a few that are none or
 * overflow in fp16. */
static float given(int rank, size_t i)
{
    unsigned hash = ((unsigned)i * 64 + (unsigned)rank) * 2654435761u;
    if (i % 1001 == 7) return rank ? 60000 : 50000;
    if (i % 1009 == 8) return rank ? INFINITY : 1;
    if (i % 1013 == 9) return rank ? -INFINITY : INFINITY;
    return ldexpf((float)(hash % 20001) - 10000, (int)(hash >> 20) % 18 - 12);
}

static float rounded(float value, amp_dtype wire)
{
    float packed;
    amp_wire_pack(&packed, &value, 1, wire);
    amp_wire_unpack(&value, &packed, 1, wire);
    return value;
}

static float expected(int ranks, size_t i, amp_dtype wire)
{
    float sum = rounded(given(0, i), wire);
    for (int r = 1; r < ranks; r++) sum += rounded(given(r, i), wire);
    return rounded(sum, wire);
}

static int same(float a, float b) { return isnan(a) ? isnan(b) : amp_float_bits(a) == amp_float_bits(b); }

static void check(const amp_comm *comm, const float *sums, size_t count, amp_dtype wire)
{
    char text[200];
    for (size_t i = 0; i < count; i++) {
        float right = expected(comm->size, i, wire);
        if (same(sums[i], right)) continue;
        snprintf(text, sizeof text, "rank %d of %d, %s, %zu of %zu: %a instead of %a", comm->rank, comm->size,
                 amp_dtype_name(wire), i, count, (double)sums[i], (double)right);
        fail(text);
    }
}

static void lost(const char *line) { fail(line); }

int main(void)
{
    static const size_t counts[] = { 1, 2, 3, 1000, 5003, (1 << 18) + 1, 700001 };
    enum { COUNTS = sizeof counts / sizeof *counts };
    amp_comm *comm;
    float *values[COUNTS];
    int made = 0;
    must(amp_comm_join(lost, &comm, &error));
    for (int wire = AMP_FP32; wire <= AMP_BF16; wire++) {
        for (int k = 0; k < COUNTS; k++) { /* all are under way at a time */
            values[k] = malloc(counts[k] * sizeof **values);
            if (!values[k]) fail("no memory");
            for (size_t i = 0; i < counts[k]; i++) values[k][i] = given(comm->rank, i);
            must(comm->sum_begin(comm, values[k], counts[k], (amp_dtype)wire, &error));
        }
        must(comm->sum_end(comm, &error));
        for (int k = 0; k < COUNTS; k++, made++) {
            check(comm, values[k], counts[k], (amp_dtype)wire);
            free(values[k]);
        }
    }
    must(comm->sum_end(comm, &error)); /* of none */
    int all[64], told = comm->rank;
    /* more than MPI counts in a call; it looks at no byte of it */
    if (comm->gather(comm, &told, (size_t)INT_MAX + 1, all, &error) != AMP_COMM_FAILED) fail("2 GB");
    if (!comm->rank) printf("%d sums of %d ranks\n", made, comm->size);
    comm->destroy(comm);
    return 0;
}
