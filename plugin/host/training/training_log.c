/* A training step as a line of CSV, and back. */
#include "training_log.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../tensor/half.h"

enum { COLUMNS = 13, FLOAT_DIGITS = 9, DOUBLE_DIGITS = 17 };

/* ---- writing ---- */

/* Exact, also where the processor takes subnormal numbers for 0, as it does in a program
 * linked with -Ofast. */
static double widened(float value)
{
    uint32_t bits = amp_float_bits(value), magnitude = bits & 0x7fffffffu;
    if (magnitude >= 0x00800000u) return value;
    return (bits >> 31 ? -0x1p-149 : 0x1p-149) * (double)magnitude;
}

static int is_nan(double value) { return value != value; }

static void write_float(FILE *out, float value)
{
    char text[32];
    double wide = widened(value);
    if (is_nan(wide)) {
        fprintf(out, "nan");
        return;
    }
    for (int digits = 1; digits <= FLOAT_DIGITS; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, wide);
        if (amp_float_bits(strtof(text, NULL)) == amp_float_bits(value)) break;
    }
    fputs(text, out);
}

static void write_double(FILE *out, double value)
{
    char text[32];
    if (is_nan(value)) {
        fprintf(out, "nan");
        return;
    }
    for (int digits = 1; digits <= DOUBLE_DIGITS; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    fputs(text, out);
}

const char *amp_log_row_text(const amp_log_row *row, char text[AMP_LOG_TEXT])
{
    const float floats[] = { row->loss, row->avg_loss, row->learning_rate, row->scale };
    const double doubles[] = { row->images_per_second, row->load_seconds, row->train_seconds,
                               row->peak_memory_mb, row->time };
    FILE *out = fmemopen(text, AMP_LOG_TEXT, "w");
    text[0] = 0;
    if (!out) return text;
    fprintf(out, "%ld", row->iteration);
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        fputc(',', out);
        write_float(out, floats[i]);
    }
    fprintf(out, ",%d,", row->found_inf != 0);
    if (!is_nan(row->grad_norm)) write_double(out, row->grad_norm);
    for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++) {
        fputc(',', out);
        write_double(out, doubles[i]);
    }
    fprintf(out, ",%s", row->wire < 0 ? "" : amp_dtype_name((amp_dtype)row->wire));
    fclose(out);
    return text;
}

/* ---- reading ---- */

/* Only what is written above: strtod would take blanks, hexadecimal numbers and nan(...) as well. */
static int is_number(const char *text)
{
    const char *digits = text + (*text == '-');
    if (!strcmp(text, "nan") || !strcmp(digits, "inf")) return 1;
    return *digits >= '0' && *digits <= '9' && digits[strspn(digits, "0123456789.e+-")] == 0;
}

/* 0: no number, or one beyond the type's range. */
static int read_double(const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return is_number(text) && !*end && (fabs(*value) < HUGE_VAL || is_nan(*value) || strstr(text, "inf"));
}

static int read_float(const char *text, float *value)
{
    char *end;
    *value = strtof(text, &end);
    return is_number(text) && !*end && (amp_is_finite(*value) || !strcmp(text, "nan") || strstr(text, "inf"));
}

static int read_iteration(const char *text, long *value)
{
    char *end;
    errno = 0;
    *value = strtol(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && !errno;
}

static int read_flag(const char *text, int *value)
{
    *value = *text == '1';
    return (*text == '0' || *text == '1') && !text[1];
}

static int read_grad_norm(const char *text, double *value)
{
    if (*text) return read_double(text, value) && !is_nan(*value);
    *value = NAN;
    return 1;
}

static int read_wire(const char *text, int *value)
{
    *value = amp_dtype_find(text);
    return !*text || *value >= 0;
}

static int read_fields(char *const field[COLUMNS], amp_log_row *row)
{
    return read_iteration(field[0], &row->iteration) && read_float(field[1], &row->loss)
        && read_float(field[2], &row->avg_loss)
        && read_float(field[3], &row->learning_rate) && read_float(field[4], &row->scale)
        && read_flag(field[5], &row->found_inf) && read_grad_norm(field[6], &row->grad_norm)
        && read_double(field[7], &row->images_per_second) && read_double(field[8], &row->load_seconds)
        && read_double(field[9], &row->train_seconds) && read_double(field[10], &row->peak_memory_mb)
        && read_double(field[11], &row->time) && read_wire(field[12], &row->wire);
}

amp_status amp_log_row_read(const char *text, amp_log_row *row, amp_error *error)
{
    char copy[AMP_LOG_TEXT], *field[COLUMNS] = { copy, [COLUMNS - 1] = "" };
    int count = 1;
    amp_log_row read;
    int fits = strlen(text) < sizeof copy;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *at = copy; *at; at++) {
        if (*at != ',') continue;
        *at = 0;
        if (count < COLUMNS) field[count] = at + 1;
        count++;
    }
    if (!fits || (count != COLUMNS && count != COLUMNS - 1) || !read_fields(field, &read))
        return amp_fail(error, AMP_BAD_CONFIG, "'%.80s' is no row of a training log; expected: %s", text,
                        AMP_LOG_COLUMNS);
    *row = read;
    return AMP_OK;
}
