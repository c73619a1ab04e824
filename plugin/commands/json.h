/* Writes JSON (RFC 8259) to a stream. A number that JSON cannot express (inf, NaN) becomes null.
 * amp_json_close closes the object or array that was opened last.
 *
 *     amp_json json = amp_json_begin(stream);
 *     amp_json_object(&json, NULL);              {
 *     amp_json_text(&json, "dtype", "bf16");         "dtype": "bf16",
 *     amp_json_array(&json, "loss");                 "loss": [
 *     amp_json_number(&json, NULL, 1.5);                 1.5
 *     amp_json_close(&json);                         ]
 *     amp_json_close(&json);                     }
 *
 * key is NULL within an array and for the outermost value. Text is UTF-8; invalid bytes become U+FFFD. The
 * output can be embedded in HTML and XML, since "<" and "&" are escaped. */
#pragma once

#include "../files/safe_file.h"

enum { AMP_JSON_DEPTH = 16 };

typedef struct amp_json {
    FILE *stream;
    int depth, filled[AMP_JSON_DEPTH]; /* filled[level]: how many values the level has so far */
    char closing[AMP_JSON_DEPTH];
} amp_json;

amp_json amp_json_begin(FILE *stream);
void amp_json_object(amp_json *, const char *key);
void amp_json_array(amp_json *, const char *key);
void amp_json_close(amp_json *);
void amp_json_text(amp_json *, const char *key, const char *value); /* value NULL: writes null */
void amp_json_number(amp_json *, const char *key, double value);    /* as many digits as a double needs */
void amp_json_integer(amp_json *, const char *key, long long value);
void amp_json_boolean(amp_json *, const char *key, int value);

/* Writes text into HTML or SVG: special characters as entities, and control characters and bytes that are not
 * UTF-8 as U+FFFD. */
void amp_html_text(FILE *, const char *text);
typedef void amp_output_writer(FILE *, const void *record);
/* Writes the output of `write` into HTML or SVG, as amp_html_text does. */
void amp_html_written(FILE *, amp_output_writer *write, const void *record);

/* Whether the file name is "-", which means stdout. name may be NULL. */
int amp_is_stdout(const char *name);

/* A file that is written as a whole or not at all (files/safe_file.h). */
typedef struct amp_output {
    FILE *stream;      /* NULL: no file is written */
    const char *name;  /* belongs to the caller */
    amp_safe_file file;
} amp_output;

/* Opens the stream; "-" is stdout, NULL no file. After AMP_IO_FAILED, amp_output_end need not be called. */
amp_status amp_output_begin(const char *name, amp_output *, amp_error *);
/* status: the result of writing. If it is AMP_OK, replaces the file with the new contents; else leaves the
 * file as it was. Returns status, or the error if replacing fails. */
amp_status amp_output_end(amp_output *, amp_status status, amp_error *);

/* Calls amp_output_begin, `write` and amp_output_end. */
amp_status amp_output_write(const char *name, amp_output_writer *write, const void *record, amp_error *);
