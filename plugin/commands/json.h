/* Writing JSON (RFC 8259) to a stream: commas, quotes and escapes are taken care of, and a number that JSON
 * cannot express (inf, NaN) becomes null. Objects and arrays are closed in the order they were opened.
 *
 *     amp_json json = amp_json_begin(stream);
 *     amp_json_object(&json, NULL);              {
 *     amp_json_text(&json, "dtype", "bf16");         "dtype": "bf16",
 *     amp_json_array(&json, "loss");                 "loss": [
 *     amp_json_number(&json, NULL, 1.5);                 1.5
 *     amp_json_close(&json);                         ]
 *     amp_json_close(&json);                     }
 *
 * key is NULL within an array and for the outermost value. Text is UTF-8; bytes that are not become U+FFFD.
 * What is written may stand within HTML and XML: "<" and "&" are escaped. */
#pragma once

#include "../files/safe_file.h"

enum { AMP_JSON_DEPTH = 16 };

typedef struct amp_json {
    FILE *stream;
    int depth, filled[AMP_JSON_DEPTH]; /* per level: something was written already */
    char closing[AMP_JSON_DEPTH];
} amp_json;

amp_json amp_json_begin(FILE *stream);
void amp_json_object(amp_json *, const char *key);
void amp_json_array(amp_json *, const char *key);
void amp_json_close(amp_json *);
void amp_json_text(amp_json *, const char *key, const char *value); /* NULL: null */
void amp_json_number(amp_json *, const char *key, double value);    /* as many digits as a double needs */
void amp_json_integer(amp_json *, const char *key, long long value);
void amp_json_boolean(amp_json *, const char *key, int value);

/* Text within HTML and SVG: what would end it as entities; bytes that are not UTF-8, and control characters,
 * as U+FFFD. */
void amp_html_text(FILE *, const char *text);

/* Whether a file's name means stdout: "-". NULL, for no file, does not. */
int amp_is_stdout(const char *name);

/* A file that is written as a whole or not at all (files/safe_file.h). */
typedef struct amp_output {
    FILE *stream;      /* NULL: there is no file to write */
    const char *name;  /* the caller's */
    amp_safe_file file;
} amp_output;

/* Opens the stream; name "-" is stdout, NULL is no file. AMP_IO_FAILED names the file and the reason;
 * there is nothing to end then. */
amp_status amp_output_begin(const char *name, amp_output *, amp_error *);
/* Puts the file in its place if status, of the work that wrote it, is AMP_OK; else the file stays as it was.
 * Returns status, or the failure to write. */
amp_status amp_output_end(amp_output *, amp_status status, amp_error *);

/* All three: the file is what `write` makes of a record. */
typedef void amp_output_writer(FILE *, const void *record);
amp_status amp_output_write(const char *name, amp_output_writer *write, const void *record, amp_error *);
