/* A record's fields are listed once, and can then be written as JSON, as columns of a table or as CSV.
 *
 *     static const amp_field fields[] = {
 *         AMP_FIELD(amp_bench_side, dtype, .title = "dtype", .left = 1),
 *         AMP_FIELD(amp_bench_side, steps, .title = "steps"),
 *         { 0 } };
 *     amp_json_fields(&json, side, fields);                           "dtype": "bf16", "steps": 12
 *     amp_table_print(stream, 0, fields, sides, sizeof *sides, count, NULL);
 *
 * A field without a key is left out of the JSON, and one without a title out of the table. */
#pragma once

#include "../host/data/text_lines.h"
#include "json.h"

#include <stddef.h>

typedef enum amp_field_kind {
    AMP_INT, AMP_UNSIGNED, AMP_LONG, AMP_SIZE, AMP_COUNT, AMP_FLOAT, AMP_DOUBLE,
    AMP_TEXT,     /* char *; NULL becomes null in JSON */
    AMP_CHARS,    /* char [...]; an empty text becomes null in JSON */
    AMP_FLAG,     /* int, written as true or false */
    AMP_NAME,     /* an enumeration, written as names[value]; a NULL name becomes null in JSON */
    AMP_RECORD    /* a record with `fields`, written as an object */
} amp_field_kind;

/* What the text of a cell is made from. context: the argument of amp_table_print. */
typedef struct amp_cell {
    const void *value, *record, *context;
    const struct amp_field *field;
} amp_cell;
enum { AMP_CELL_TEXT = 1000 };
typedef void amp_cell_text(const amp_cell *, char text[AMP_CELL_TEXT]);

/* Which numbers of a field count as known: all, those above 0, or those from 0 on. inf and NaN are unknown;
 * only a table shows them, in a field with AMP_ANY. An unknown number is null in JSON, and empty in CSV and
 * tables. */
typedef enum amp_known { AMP_ANY, AMP_ABOVE_0, AMP_FROM_0 } amp_known;

typedef struct amp_field {
    const char *key;                /* in JSON and CSV */
    size_t at;                      /* offset in the record */
    amp_field_kind kind;
    const char *const *names;       /* AMP_NAME */
    const struct amp_field *fields; /* AMP_RECORD */
    amp_known known;                /* which of the field's numbers count as known */
    const char *title;              /* the title of its column */
    int left;                       /* 1: its column is left-aligned */
    amp_cell_text *cell;            /* makes the cell's text; not called for an unknown number. NULL:
                                       amp_plain_cell */
    const char *none;               /* text that is shown instead of an empty cell */
    const char *format;             /* printf's format for the number, as a double; NULL: %.10g */
    double unit;                    /* the cell shows the number divided by `unit`; 0 means 1 */
} amp_field;

#define AMP_KIND_OF(record, member) _Generic(&((record *)0)->member, \
    int *: AMP_INT, unsigned *: AMP_UNSIGNED, long *: AMP_LONG, unsigned long *: AMP_SIZE, \
    unsigned long long *: AMP_COUNT, float *: AMP_FLOAT, \
    double *: AMP_DOUBLE, char **: AMP_TEXT, const char **: AMP_TEXT, default: AMP_CHARS)

/* AMP_FIELD_AS: the key is `name`. AMP_FIELD: the key is the member's name. Further arguments set other
 * members of amp_field. */
#define AMP_FIELD_AS(name, record, member, ...) \
    { .key = name, .at = offsetof(record, member), .kind = AMP_KIND_OF(record, member), __VA_ARGS__ }
#define AMP_FIELD(record, member, ...) AMP_FIELD_AS(#member, record, member, __VA_ARGS__)
#define AMP_FLAG_AS(name, record, member) { .key = name, .at = offsetof(record, member), .kind = AMP_FLAG }
#define AMP_NAME_AS(name, record, member, of, ...) \
    { .key = name, .at = offsetof(record, member), .kind = AMP_NAME, .names = of, __VA_ARGS__ }
/* AMP_RECORD_AS: a member that is a record. AMP_GROUP_AS: an object that groups fields of the same record. */
#define AMP_RECORD_AS(name, record, member, of, ...) \
    { .key = name, .at = offsetof(record, member), .kind = AMP_RECORD, .fields = of, __VA_ARGS__ }
#define AMP_GROUP_AS(name, of) { .key = name, .kind = AMP_RECORD, .fields = of }

/* amp_json_fields writes a record's fields into the open object, and amp_json_record writes a record as an
 * object. amp_json_records writes an array of `count` records of `size` bytes each. amp_json_lines writes
 * lines as an array of texts. */
void amp_json_fields(amp_json *, const void *record, const amp_field *fields);
void amp_json_record(amp_json *, const char *key, const void *record, const amp_field *fields);
void amp_json_records(amp_json *, const char *key, const void *records, size_t size, int count,
                      const amp_field *fields);
void amp_json_lines(amp_json *, const char *key, const amp_lines *);

/* Writes the value as text; a number is written in the field's format. */
amp_cell_text amp_plain_cell;

/* Prints a line of titles and a line per record. Columns are as wide as their longest text; a column without
 * any text is left out. The text of the last column is wrapped if the column is left-aligned. */
void amp_table_print(FILE *, int indent, const amp_field *, const void *records, size_t size, int count,
                     const void *context);

/* Prints a line for each field with a title: the title, padded to `width` columns, and the record's value. */
void amp_sheet_print(FILE *, int width, const amp_field *, const void *record);

/* Prints a line of CSV (RFC 4180) with the record's values. If record is NULL, the line has the keys. */
void amp_csv_print(FILE *, const amp_field *, const void *record);

/* Prints text and a line end, wrapped at 110 columns. Lines after the first are indented by `indent`. */
__attribute__((format(printf, 3, 4)))
void amp_print_wrapped(FILE *, int indent, const char *format, ...);

/* Appends to a text in a buffer of `size` bytes; what does not fit is cut off. */
__attribute__((format(printf, 3, 4)))
void amp_append(char *text, size_t size, const char *format, ...);
