/* Writes records as JSON, tables and CSV. */
#include "table.h"

#include <math.h>
#include <string.h>

enum { WIDTH = 110, GAP = 2, MOST_COLUMNS = 24 };

/* ---- values ---- */

static double number_of(const amp_field *f, const void *value)
{
    switch (f->kind) {
    case AMP_INT: return *(const int *)value;
    case AMP_UNSIGNED: return *(const unsigned *)value;
    case AMP_LONG: return (double)*(const long *)value;
    case AMP_SIZE: return (double)*(const size_t *)value;
    case AMP_COUNT: return (double)*(const unsigned long long *)value;
    case AMP_FLOAT: return (double)*(const float *)value;
    default: return *(const double *)value;
    }
}

static int is_known(const amp_field *f, const void *value)
{
    double number = number_of(f, value);
    return isfinite(number) && (f->known == AMP_ANY || number > 0 || (f->known == AMP_FROM_0 && number >= 0));
}

static const char *text_of(const amp_field *f, const void *value)
{
    if (f->kind == AMP_NAME) return f->names[*(const int *)value];
    if (f->kind == AMP_TEXT) return *(const char *const *)value;
    return *(const char *)value ? value : NULL;
}

static int is_text(const amp_field *f)
{
    return f->kind == AMP_TEXT || f->kind == AMP_CHARS || f->kind == AMP_NAME;
}

static const void *value_of(const amp_field *f, const void *record) { return (const char *)record + f->at; }

/* ---- JSON ---- */

static void write_field(amp_json *json, const amp_field *f, const void *value)
{
    if (f->kind == AMP_RECORD) amp_json_record(json, f->key, value, f->fields);
    else if (is_text(f)) amp_json_text(json, f->key, text_of(f, value));
    else if (f->kind == AMP_FLAG) amp_json_boolean(json, f->key, *(const int *)value);
    else if (!is_known(f, value)) amp_json_text(json, f->key, NULL);
    else if (f->kind <= AMP_COUNT) amp_json_integer(json, f->key, (long long)number_of(f, value));
    else amp_json_number(json, f->key, number_of(f, value));
}

void amp_json_fields(amp_json *json, const void *record, const amp_field *fields)
{
    for (const amp_field *f = fields; f->key || f->title; f++)
        if (f->key) write_field(json, f, value_of(f, record));
}

void amp_json_record(amp_json *json, const char *key, const void *record, const amp_field *fields)
{
    amp_json_object(json, key);
    amp_json_fields(json, record, fields);
    amp_json_close(json);
}

void amp_json_records(amp_json *json, const char *key, const void *records, size_t size, int count,
                      const amp_field *fields)
{
    amp_json_array(json, key);
    for (int i = 0; i < count; i++)
        amp_json_record(json, NULL, (const char *)records + (size_t)i * size, fields);
    amp_json_close(json);
}

void amp_json_lines(amp_json *json, const char *key, const amp_lines *lines)
{
    amp_json_array(json, key);
    for (size_t i = 0; i < lines->count; i++) amp_json_text(json, NULL, lines->line[i]);
    amp_json_close(json);
}

/* ---- tables ---- */

/* Counts the characters of a UTF-8 text; printf's width counts bytes. */
static int width_of(const char *text)
{
    int letters = 0;
    for (; *text; text++) letters += (*text & 0xc0) != 0x80;
    return letters;
}

void amp_plain_cell(const amp_cell *cell, char text[AMP_CELL_TEXT])
{
    const amp_field *f = cell->field;
    const char *words = is_text(f) ? text_of(f, cell->value) : NULL;
    if (is_text(f)) snprintf(text, AMP_CELL_TEXT, "%s", words ? words : "");
    else snprintf(text, AMP_CELL_TEXT, f->format ? f->format : "%.10g",
                  number_of(f, cell->value) / (f->unit > 0 ? f->unit : 1));
}

static void make_cell(const amp_field *f, const void *record, const void *context, char text[AMP_CELL_TEXT])
{
    const amp_cell cell = { value_of(f, record), record, context, f };
    text[0] = 0;
    if (f->known == AMP_ANY || is_known(f, cell.value)) (f->cell ? f->cell : amp_plain_cell)(&cell, text);
    if (!text[0] && f->none) snprintf(text, AMP_CELL_TEXT, "%s", f->none);
}

/* Prints a cell. The last cell of a line is followed by a line end instead of padding; if it is left-aligned,
 * it is wrapped. */
static void print_cell(FILE *stream, int at, const amp_field *f, int width, int last, const char *text)
{
    int padding = width - width_of(text);
    if (!f->left) fprintf(stream, "%*s", padding, "");
    if (last && f->left) amp_print_wrapped(stream, at, "%s", text);
    else if (last) fprintf(stream, "%s\n", text);
    else fprintf(stream, "%s%*s", text, GAP + (f->left ? padding : 0), "");
}

void amp_table_print(FILE *stream, int indent, const amp_field *fields, const void *records, size_t size,
                     int count, const void *context)
{
    const amp_field *columns[MOST_COLUMNS];
    int widths[MOST_COLUMNS], n = 0;
    char text[AMP_CELL_TEXT];
    for (const amp_field *f = fields; (f->key || f->title) && n < MOST_COLUMNS; f++) {
        int width = 0;
        for (int i = 0; f->title && i < count; i++) {
            make_cell(f, (const char *)records + (size_t)i * size, context, text);
            if (width_of(text) > width) width = width_of(text);
        }
        if (!width) continue;
        columns[n] = f;
        widths[n++] = width > width_of(f->title) ? width : width_of(f->title);
    }
    for (int i = -1; i < count; i++) { /* -1: the titles */
        fprintf(stream, "%*s", indent, "");
        for (int k = 0, at = indent; k < n; at += widths[k++] + GAP) {
            if (i >= 0) make_cell(columns[k], (const char *)records + (size_t)i * size, context, text);
            print_cell(stream, at, columns[k], widths[k], k + 1 == n, i < 0 ? columns[k]->title : text);
        }
    }
}

void amp_sheet_print(FILE *stream, int width, const amp_field *fields, const void *record)
{
    char text[AMP_CELL_TEXT];
    for (const amp_field *f = fields; f->key || f->title; f++) {
        if (!f->title) continue;
        make_cell(f, record, record, text);
        fprintf(stream, "  %-*s%s\n", width, f->title, text);
    }
}

/* ---- CSV ---- */

static void print_csv_text(FILE *stream, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, stream);
        return;
    }
    putc('"', stream);
    for (; *text; text++) fprintf(stream, *text == '"' ? "\"\"" : "%c", *text);
    putc('"', stream);
}

void amp_csv_print(FILE *stream, const amp_field *fields, const void *record)
{
    for (const amp_field *f = fields; f->key; f++) {
        const void *value = record ? value_of(f, record) : NULL;
        if (f != fields) putc(',', stream);
        if (!record) fputs(f->key, stream);
        else if (is_text(f)) print_csv_text(stream, text_of(f, value) ? text_of(f, value) : "");
        else if (is_known(f, value)) fprintf(stream, "%.10g", number_of(f, value));
    }
    putc('\n', stream);
}

/* ---- words ---- */

void amp_print_wrapped(FILE *stream, int indent, const char *format, ...)
{
    char text[1200];
    int column = indent;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (const char *word = text; *word; word += strspn(word, " ")) {
        int length = (int)strcspn(word, " ");
        if (column > indent && column + 1 + length > WIDTH) {
            fprintf(stream, "\n%*s", indent, "");
            column = indent;
        }
        column += fprintf(stream, "%s%.*s", column > indent ? " " : "", length, word);
        word += length;
    }
    putc('\n', stream);
}

void amp_append(char *text, size_t size, const char *format, ...)
{
    size_t length = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + length, size - length, format, args);
    va_end(args);
}
