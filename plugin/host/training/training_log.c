/* Converts a training step to a line of CSV and back. Decides which rows a resumed training keeps. */
#define _DEFAULT_SOURCE /* strsep */
#include "training_log.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "../../tensor/half.h"
#include "../data/text_lines.h"
#include "../fork.h"
#include "../program/failure.h"

/* A column. at: its member's offset in amp_log_row. OR_EMPTY: a double; NaN is written as an empty field. */
typedef struct column {
    size_t at;
    enum { ITERATION, FLOAT, FLAG, OR_EMPTY, DOUBLE, WIRE, SPIKE } kind;
} column;

#define COLUMN(member, kind) { offsetof(amp_log_row, member), kind }
/* In the order of AMP_LOG_COLUMNS. */
static const column columns[] = {
    COLUMN(iteration, ITERATION), COLUMN(loss, FLOAT), COLUMN(avg_loss, FLOAT), COLUMN(learning_rate, FLOAT),
    COLUMN(scale, FLOAT), COLUMN(found_inf, FLAG), COLUMN(grad_norm, OR_EMPTY),
    COLUMN(images_per_second, OR_EMPTY), COLUMN(load_seconds, DOUBLE), COLUMN(train_seconds, DOUBLE),
    COLUMN(peak_memory_mb, DOUBLE),
    COLUMN(time, DOUBLE), COLUMN(wire, WIRE), COLUMN(spike, SPIKE) };
/* The text of each amp_log_spike_word. The first value of this enum is -1, so index with value + 1. */
static const char *const spike_words[] = { "", "0", "1", "skipped" };
enum { COLUMNS = sizeof columns / sizeof *columns, DIGITS = 17 };

/* ---- writing ---- */

/* Exact even if the processor treats subnormal numbers as 0, as in a program linked with -Ofast. */
static double widened(float value)
{
    uint32_t bits = amp_float_bits(value), magnitude = bits & 0x7fffffffu;
    if (magnitude >= 0x00800000u) return value;
    return (bits >> 31 ? -0x1p-149 : 0x1p-149) * (double)magnitude;
}

static int is_nan(double value) { return value != value; }

static void write_number(FILE *out, double value, int is_float)
{
    char text[32] = "nan";
    for (int digits = 1; digits <= DIGITS && !is_nan(value); digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if ((is_float ? widened(strtof(text, NULL)) : strtod(text, NULL)) == value) break;
    }
    fputs(text, out);
}

static void write_field(FILE *out, const column *c, const amp_log_row *row)
{
    const void *at = (const char *)row + c->at;
    int number = c->kind == FLAG || c->kind == WIRE || c->kind == SPIKE ? *(const int *)at : 0;
    double value = c->kind == OR_EMPTY || c->kind == DOUBLE ? *(const double *)at : 0;
    switch (c->kind) {
    case ITERATION: fprintf(out, "%ld", *(const long *)at); break;
    case FLOAT: write_number(out, widened(*(const float *)at), 1); break;
    case FLAG: fputs(number ? "1" : "0", out); break;
    case WIRE: if (number >= 0) fputs(amp_dtype_name((amp_dtype)number), out); break;
    case SPIKE: fputs(spike_words[number + 1], out); break;
    default: if (c->kind == DOUBLE || !is_nan(value)) write_number(out, value, 0);
    }
}

const char *amp_log_row_text(const amp_log_row *row, char text[AMP_LOG_TEXT])
{
    FILE *out = fmemopen(text, AMP_LOG_TEXT, "w");
    text[0] = 0;
    if (!out) return text;
    for (int i = 0; i < COLUMNS; i++) {
        if (i) putc(',', out);
        write_field(out, &columns[i], row);
    }
    fclose(out);
    return text;
}

/* ---- reading ---- */

/* Accepts only what is written above: strtod would also accept blanks, hexadecimal numbers and nan(...). */
static int is_number(const char *text)
{
    const char *digits = text + (*text == '-');
    if (!strcmp(text, "nan") || !strcmp(digits, "inf")) return 1;
    return *digits >= '0' && *digits <= '9' && digits[strspn(digits, "0123456789.e+-")] == 0;
}

/* Whether a whole field was read as a number within the type's range (beyond it, strtof returns inf). */
static int is_read(const char *text, const char *end, int is_finite)
{
    return is_number(text) && !*end && (is_finite || strstr(text, "inf") || !strcmp(text, "nan"));
}

static int read_field(const column *c, const char *text, amp_log_row *row)
{
    void *at = (char *)row + c->at;
    char *end;
    switch (c->kind) {
    case ITERATION:
        errno = 0;
        *(long *)at = strtol(text, &end, 10);
        return *text >= '0' && *text <= '9' && !*end && !errno;
    case FLOAT:
        *(float *)at = strtof(text, &end);
        return is_read(text, end, amp_is_finite(*(float *)at));
    case FLAG:
        *(int *)at = *text == '1';
        return (*text == '0' || *text == '1') && !text[1];
    case WIRE:
        *(int *)at = amp_dtype_find(text);
        return !*text || *(int *)at >= 0;
    case SPIKE: {
        int word = AMP_LOG_NO_RULE;
        while (word <= AMP_LOG_DROPPED && strcmp(text, spike_words[word + 1])) word++;
        *(int *)at = word;
        return word <= AMP_LOG_DROPPED;
    }
    default:
        *(double *)at = c->kind == OR_EMPTY && !*text ? NAN : strtod(text, &end);
        if (c->kind == OR_EMPTY && (!*text || is_nan(*(double *)at))) return !*text;
        return is_read(text, end, fabs(*(double *)at) < HUGE_VAL);
    }
}

amp_status amp_log_row_read(const char *text, amp_log_row *row, amp_error *error)
{
    char copy[AMP_LOG_TEXT], *rest = copy;
    amp_log_row read;
    int fits = strlen(text) < sizeof copy;
    snprintf(copy, sizeof copy, "%s", text);
    for (int i = 0; i < COLUMNS && fits; i++) {
        char *field = strsep(&rest, ",");
        fits = field && read_field(&columns[i], field, &read);
    }
    if (!fits || rest)
        return amp_fail(error, AMP_BAD_CONFIG, "'%.80s' is not a row of a training log; expected: %s", text,
                        AMP_LOG_COLUMNS);
    *row = read;
    return AMP_OK;
}

amp_status amp_log_rows_read(const char *file, amp_log_rows *rows, amp_error *error)
{
    amp_lines lines = { 0 };
    amp_status status = amp_lines_read(file, "the training log", &lines, error);
    for (size_t i = 0; status == AMP_OK && i < lines.count; i++) {
        amp_log_row row;
        if (!i && !strcmp(lines.line[i], AMP_LOG_COLUMNS)) continue;
        if (i && amp_log_row_read(lines.line[i], &row, NULL) == AMP_OK) {
            rows->row = amp_grow(rows->row, rows->count, &rows->room, sizeof row);
            rows->row[rows->count++] = row;
        } else if (!i || i + 1 < lines.count) {
            status = amp_fail(error, AMP_BAD_CONFIG, "%.300s:%zu: not a line of a training log, which %s "
                              "writes; expected: %s", file, i + 1, amp_fork_log_option, AMP_LOG_COLUMNS);
        }
    }
    amp_lines_free(&lines);
    return status;
}

/* ---- resuming ---- */

/* A training that is resumed from a backup keeps the log's rows up to the backup and drops later ones:
 *  - All rows of earlier iterations stay, and so does the row of the step taken at the backup's iteration.
 *  - This row may be followed by rows of skipped steps with the same iteration; some may be later than the
 *    backup. If the log has all taken steps that the backup counts, the first of these rows stay, until the
 *    log has as many skipped steps as the backup counts. If the log lacks taken steps, it was started later
 *    than the training; then all of these rows stay, or none if a row of a later iteration follows. */
typedef struct rows_so_far {
    long iteration;
    unsigned long steps, skipped;              /* taken and skipped steps that the backup counts */
    long last;                                 /* iteration of the latest row */
    unsigned long good, skips;                 /* taken and skipped steps among the rows that surely stay */
    size_t rows, kept;                         /* number of all rows; number of rows that surely stay */
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
