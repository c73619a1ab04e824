/* Writes JSON, escapes text for HTML, and replaces files as a whole. */
#include "json.h"

#include "../host/program/failure.h"

#include <errno.h>
#include <float.h>
#include <string.h>

/* ---- text ---- */

/* The length in bytes of the UTF-8 character at `at`; 0 if it is not well-formed (RFC 3629). */
static int utf8_bytes(const char *at)
{
    const unsigned char *text = (const unsigned char *)at;
    static const struct { unsigned char low, high, second_low, second_high; int bytes; } kinds[] = {
        { 0x00, 0x7f, 0, 0, 1 }, { 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 },
        { 0xe1, 0xec, 0x80, 0xbf, 3 }, { 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 },
        { 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 } };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        if (text[0] < kinds[k].low || text[0] > kinds[k].high) continue;
        if (kinds[k].bytes > 1 && (text[1] < kinds[k].second_low || text[1] > kinds[k].second_high)) return 0;
        for (int i = 2; i < kinds[k].bytes; i++) if ((text[i] & 0xc0) != 0x80) return 0;
        return kinds[k].bytes;
    }
    return 0;
}

static void write_quoted(FILE *stream, const char *value)
{
    const unsigned char *text = (const unsigned char *)value;
    putc('"', stream);
    while (*text) {
        int bytes = utf8_bytes((const char *)text);
        if (!bytes) fputs("\xef\xbf\xbd", stream);
        else if (*text == '"' || *text == '\\') fprintf(stream, "\\%c", *text);
        else if (*text < 0x20 || *text == '<' || *text == '&') fprintf(stream, "\\u%04x", *text);
        else fwrite(text, 1, (size_t)bytes, stream);
        text += bytes ? bytes : 1;
    }
    putc('"', stream);
}

void amp_html_text(FILE *stream, const char *text)
{
    static const char special[] = "<>&\"'";
    static const char *const entities[] = { "&lt;", "&gt;", "&amp;", "&quot;", "&#39;" };
    for (int bytes; *text; text += bytes ? bytes : 1) {
        const char *found = strchr(special, *text);
        bytes = utf8_bytes(text);
        int is_control = ((unsigned char)*text < 0x20 && *text != '\n') || *text == 0x7f;
        if (!bytes || is_control) fputs("\xef\xbf\xbd", stream);
        else if (found) fputs(entities[found - special], stream);
        else fwrite(text, 1, (size_t)bytes, stream);
    }
}

void amp_html_written(FILE *stream, amp_output_writer *write, const void *record)
{
    char *text = NULL;
    size_t size;
    FILE *memory = amp_allocated(open_memstream(&text, &size));
    write(memory, record);
    fclose(memory);
    amp_html_text(stream, text);
    free(text);
}

/* ---- values ---- */

amp_json amp_json_begin(FILE *stream) { return (amp_json){ .stream = stream }; }

static void begin_value(amp_json *json, const char *key)
{
    if (json->depth) {
        if (json->filled[json->depth - 1]++) putc(',', json->stream);
        fprintf(json->stream, "\n%*s", json->depth, "");
    }
    if (!key) return;
    write_quoted(json->stream, key);
    fputs(": ", json->stream);
}

static void end_value(amp_json *json) { if (!json->depth) putc('\n', json->stream); }

static void open_level(amp_json *json, const char *key, char opening, char closing)
{
    begin_value(json, key);
    putc(opening, json->stream);
    if (json->depth == AMP_JSON_DEPTH) abort(); /* a bug: the caller nests too deep */
    json->filled[json->depth] = 0;
    json->closing[json->depth++] = closing;
}

void amp_json_object(amp_json *json, const char *key) { open_level(json, key, '{', '}'); }
void amp_json_array(amp_json *json, const char *key) { open_level(json, key, '[', ']'); }

void amp_json_close(amp_json *json)
{
    int level = --json->depth;
    if (json->filled[level]) fprintf(json->stream, "\n%*s", level, "");
    putc(json->closing[level], json->stream);
    end_value(json);
}

void amp_json_text(amp_json *json, const char *key, const char *value)
{
    begin_value(json, key);
    if (value) write_quoted(json->stream, value);
    else fputs("null", json->stream);
    end_value(json);
}

static void write_value(amp_json *json, const char *key, const char *value)
{
    begin_value(json, key);
    fputs(value, json->stream);
    end_value(json);
}

/* Writes 6, 9 or 17 digits: the fewest that are read back as the same number. */
void amp_json_number(amp_json *json, const char *key, double value)
{
    static const int digits[] = { 6, 9, 17 };
    char text[40] = "null";
    for (int i = 0; i < 3 && value >= -DBL_MAX && value <= DBL_MAX; i++) {
        snprintf(text, sizeof text, "%.*g", digits[i], value);
        if (strtod(text, NULL) == value) break;
    }
    write_value(json, key, text);
}

void amp_json_integer(amp_json *json, const char *key, long long value)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", value);
    write_value(json, key, text);
}

void amp_json_boolean(amp_json *json, const char *key, int value)
{
    write_value(json, key, value ? "true" : "false");
}

/* ---- files ---- */

int amp_is_stdout(const char *name) { return name && !strcmp(name, "-"); }

amp_status amp_output_begin(const char *name, amp_output *out, amp_error *error)
{
    *out = (amp_output){ .name = name };
    if (!name) return AMP_OK;
    if (amp_is_stdout(name)) out->stream = stdout;
    else AMP_TRY(amp_safe_file_begin(name, &out->file, error));
    if (!out->stream) out->stream = fopen(out->file.temporary, "w");
    if (out->stream) return AMP_OK;
    amp_fail(error, AMP_IO_FAILED, "cannot write %s: %s", name, strerror(errno));
    amp_safe_file_end(&out->file);
    return AMP_IO_FAILED;
}

amp_status amp_output_end(amp_output *out, amp_status status, amp_error *error)
{
    if (!out->stream) return status;
    int is_file = out->stream != stdout;
    errno = 0;
    int bad = ferror(out->stream) || fflush(out->stream);
    if (is_file) bad |= fclose(out->stream) != 0;
    if (bad && status == AMP_OK)
        status = amp_fail(error, AMP_IO_FAILED, "cannot write %s: %s", out->name,
                          errno ? strerror(errno) : "the disk is full or the program that reads it has "
                                                    "ended");
    if (is_file && status == AMP_OK) status = amp_safe_file_commit(&out->file, error);
    amp_safe_file_end(&out->file);
    return status;
}

amp_status amp_output_write(const char *name, amp_output_writer *write, const void *record, amp_error *error)
{
    amp_output out;
    AMP_TRY(amp_output_begin(name, &out, error));
    if (out.stream) write(out.stream, record);
    return amp_output_end(&out, AMP_OK, error);
}
