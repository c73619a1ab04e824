/* A training that is resumed from a backup keeps the log's rows up to the backup and drops later ones. Rows
 * of earlier iterations stay. At the backup's own iteration, the row of the step that was taken stays too.
 * Rows of skipped steps may follow it with the same iteration, and some may be later than the backup:
 *  - if the log holds all taken steps that the backup counts, as many skipped rows stay as it counts;
 *  - otherwise (the log began later), all of them stay unless a row of a later iteration follows. */
#include "../program/failure.h"
#include "training_log.h"

typedef struct rows_so_far {
    long iteration;
    unsigned long steps, skipped;              /* of the backup */
    long last;
    unsigned long good, skips;                 /* of the rows that certainly stay */
    size_t rows, kept;
    size_t uncertain;                          /* skipped steps at the backup's iteration */
    int beyond;                                /* there are rows of later iterations */
} rows_so_far;

static amp_status see_row(void *context, const char *text, amp_error *error)
{
    rows_so_far *so_far = context;
    amp_log_row row;
    AMP_TRY(amp_log_row_read(text, &row, error));
    if (row.iteration < so_far->last)
        return amp_fail(error, AMP_BAD_CONFIG,
                        "iteration %ld comes after %ld: this is not the log of one training",
                        row.iteration, so_far->last);
    so_far->last = row.iteration;
    so_far->rows++;
    if (row.iteration > so_far->iteration) {
        so_far->beyond = 1;
    } else if (row.iteration == so_far->iteration && amp_log_is_skipped(&row)) {
        so_far->uncertain++;
    } else {
        so_far->kept = so_far->rows;
        so_far->good += !amp_log_is_skipped(&row);
        so_far->skips += amp_log_is_skipped(&row);
    }
    return AMP_OK;
}

static size_t rows_to_keep(void *context)
{
    const rows_so_far *so_far = context;
    size_t more = so_far->beyond ? 0 : so_far->uncertain;
    if (so_far->good == so_far->steps)
        more = so_far->skipped > so_far->skips ? so_far->skipped - so_far->skips : 0;
    return so_far->kept + (more < so_far->uncertain ? more : so_far->uncertain);
}

void amp_log_resume(amp_log_file *log, const char *name, long iteration, unsigned long steps,
                    unsigned long skipped)
{
    amp_error error;
    size_t dropped;
    rows_so_far so_far = { .iteration = iteration, .steps = steps, .skipped = skipped };
    amp_log_reader reader = { &so_far, see_row, rows_to_keep };
    if (amp_log_file_open(log, name, "training log", AMP_LOG_COLUMNS, &reader, &dropped, &error) != AMP_OK)
        darknet_amp_refuse("log: %s", error.message);
    if (rows_to_keep(&so_far))
        fprintf(stderr, "log: %s continues after iteration %ld; %zu rows of later steps are dropped\n", name,
                iteration, dropped);
}
