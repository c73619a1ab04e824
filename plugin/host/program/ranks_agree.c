/* Checks what must be the same on all ranks: each notes facts, as lines of text, which are compared. */
#include <string.h>

#include "../../files/checksum.h"
#include "exchange.h"
#include "failure.h"
#include "ranks.h"

enum { FACTS = 1024 };

static char facts[FACTS]; /* facts noted since the last comparison: lines of text */

void amp_ranks_note(const char *format, ...)
{
    size_t length = strlen(facts);
    va_list args;
    if (!amp_ranks()) return;
    va_start(args, format);
    vsnprintf(facts + length, sizeof facts - length, format, args);
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

/* Whether two multi-line texts differ. Then *at is the offset in both of the first line that differs, and the
 * lengths are that line's. */
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
    amp_comm *comm = amp_ranks();
    if (!comm) return;
    char *all = amp_exchange_gather(comm, facts, FACTS);
    for (int rank = 1; rank < comm->size; rank++) {
        const char *other = all + (size_t)rank * FACTS;
        if (!find_difference(all, other, &here, &there, &at)) continue;
        amp_ranks_refuse("ranks: rank 0 has %.*s, but rank %d has %.*s; give all ranks the same program, "
                         "options and files", here, all + at, rank, there, other + at);
    }
    free(all);
    *facts = 0;
}
