/* Exchanges numbers between ranks (exchange.h), and checks that ranks agree about their input (ranks.h). */
#include "exchange.h"

#include <string.h>

#include "../../files/checksum.h"
#include "failure.h"
#include "program.h"
#include "ranks.h"

static amp_comm *begin_call(const char *what)
{
    amp_ranks_phase("%s", what);
    return amp_ranks();
}

void amp_exchange_broadcast(void *value, size_t bytes, const char *what)
{
    amp_error error;
    amp_comm *comm = begin_call(what);
    if (!comm) return;
    amp_host_check(comm->broadcast(comm, value, bytes, 0, &error), &error);
}

void *amp_exchange_gather(amp_comm *comm, const void *mine, size_t bytes)
{
    amp_error error;
    void *all = amp_allocated(calloc((size_t)comm->size, bytes));
    amp_host_check(comm->gather(comm, mine, bytes, all, &error), &error);
    return all;
}

float amp_exchange_mean(float number, const char *what)
{
    amp_comm *comm = begin_call(what);
    if (!comm) return number;
    double sum = 0;
    float *all = amp_exchange_gather(comm, &number, sizeof number);
    for (int i = 0; i < comm->size; i++) sum += (double)all[i];
    free(all);
    return (float)(sum / comm->size);
}

void amp_exchange_sum(size_t *numbers, int count, const char *what)
{
    amp_comm *comm = begin_call(what);
    if (!comm) return;
    size_t *all = amp_exchange_gather(comm, numbers, (size_t)count * sizeof *all);
    memset(numbers, 0, (size_t)count * sizeof *numbers);
    for (int i = 0; i < comm->size * count; i++) numbers[i % count] += all[i];
    free(all);
}

amp_status amp_exchange_outcome(amp_status mine, const char *what, amp_error *error)
{
    amp_comm *comm = begin_call(what);
    amp_error outcome = { .status = AMP_OK };
    if (!comm) return mine;
    if (mine != AMP_OK) outcome = *error;
    amp_error *all = amp_exchange_gather(comm, &outcome, sizeof outcome);
    int i = 0;
    while (i < comm->size - 1 && all[i].status == AMP_OK) i++;
    amp_status status = all[i].status;
    if (status != AMP_OK) *error = all[i];
    free(all);
    return status;
}

void amp_exchange_join(void **rows, size_t *count, size_t row_bytes, const char *what)
{
    amp_comm *comm = begin_call(what);
    if (!comm) return;
    size_t *counts = amp_exchange_gather(comm, count, sizeof *count), most = 1, total = 0;
    for (int i = 0; i < comm->size; i++) {
        if (counts[i] > most) most = counts[i];
        total += counts[i];
    }
    /* gather needs the same number of bytes from each rank, so all lists are padded to the longest */
    char *mine = amp_allocated(calloc(most, row_bytes));
    char *joined = amp_allocated(malloc((total + 1) * row_bytes));
    if (*count) memcpy(mine, *rows, *count * row_bytes);
    char *all = amp_exchange_gather(comm, mine, most * row_bytes), *end = joined;
    for (int i = 0; i < comm->size; i++) {
        memcpy(end, all + (size_t)i * most * row_bytes, counts[i] * row_bytes);
        end += counts[i] * row_bytes;
    }
    free(counts);
    free(mine);
    free(all);
    free(*rows);
    *rows = joined;
    *count = total;
}

/* ---- comparing ranks: the lines that they have noted must be the same on all ranks ---- */

void amp_ranks_note(const char *format, ...)
{
    char *facts = amp_program_to_set()->ranks.facts;
    size_t length = strlen(facts);
    va_list args;
    if (!amp_ranks()) return;
    va_start(args, format);
    vsnprintf(facts + length, AMP_FACTS - length, format, args);
    va_end(args);
}

void amp_ranks_note_file(const char *what, const char *name)
{
    amp_error error;
    uint64_t sum;
    if (!amp_ranks()) return;
    amp_host_check(amp_file_checksum(name, &sum, &error), &error);
    amp_ranks_note("%s with checksum %016llx\n", what, (unsigned long long)sum);
}

/* Whether two multi-line texts differ. If so, sets *at to where the first different line begins in both
 * texts, and *a_length and *b_length to the lengths of this line. */
static int find_difference(const char *a, const char *b, int *a_length, int *b_length, int *at)
{
    int line = 0, i = 0;
    for (; a[i] && a[i] == b[i]; i++) if (a[i] == '\n') line = i + 1;
    *at = line;
    *a_length = (int)strcspn(a + line, "\n");
    *b_length = (int)strcspn(b + line, "\n");
    return a[i] != b[i];
}

void amp_ranks_agree(void)
{
    int at, here, there;
    char *facts = amp_program_to_set()->ranks.facts;
    amp_comm *comm = amp_ranks();
    if (!comm) return;
    char *all = amp_exchange_gather(comm, facts, AMP_FACTS);
    for (int rank = 1; rank < comm->size; rank++) {
        const char *other = all + (size_t)rank * AMP_FACTS;
        if (!find_difference(all, other, &here, &there, &at)) continue;
        amp_ranks_refuse("ranks: rank 0 has %.*s, but rank %d has %.*s; give all ranks the same program, "
                         "options and files", here, all + at, rank, there, other + at);
    }
    free(all);
    *facts = 0;
}
