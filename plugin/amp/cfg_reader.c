/* The reader of cfg_reader.h: a fixed buffer of one line, so that no file, however large or odd, costs more. */
#include "cfg_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct cfg_reader {
    FILE *stream;
    const char *file;
    unsigned long line;
    char problem[128];
    char text[CFG_LINE_LIMIT + 1];
};

void cfg_printable(char *out, size_t size, const char *text)
{
    size_t length = strlen(text), kept = length;
    if (length >= size) {
        kept = size - 4;
        while (kept > 0 && ((unsigned char)text[kept] & 0xc0) == 0x80) kept--; /* do not cut a UTF-8 character */
    }
    for (size_t i = 0; i < kept; i++) {
        unsigned char c = (unsigned char)text[i];
        out[i] = c < 0x20 || c == 0x7f ? '?' : text[i];
    }
    strcpy(out + kept, kept < length ? "..." : "");
}

/* A long path is known by its end. */
static void printable_path(char *out, size_t size, const char *path)
{
    size_t length = strlen(path);
    if (length < size) {
        cfg_printable(out, size, path);
        return;
    }
    const char *end = path + length - (size - 4);
    while (((unsigned char)*end & 0xc0) == 0x80) end++;
    memcpy(out, "...", 3);
    cfg_printable(out + 3, size - 3, end);
}

amp_status cfg_fail(amp_error *error, cfg_place place, const char *problem, const char *allowed)
{
    char file[300], line[32] = "", section[48] = "", key[48] = "", value[64] = "";
    printable_path(file, sizeof file, place.file);
    if (place.line) snprintf(line, sizeof line, ":%lu", place.line);
    if (place.section) cfg_printable(section, sizeof section, place.section);
    if (place.key) cfg_printable(key, sizeof key, place.key);
    if (place.value) cfg_printable(value, sizeof value, place.value);
    return amp_fail(error, AMP_BAD_CONFIG, "%s%s: %s%s%s%s%s%s%s%s%s", file, line,
                    section, *section && *key ? " " : "", key, place.value ? " = " : "", value,
                    *section || *key ? ": " : "", problem, allowed ? "; allowed: " : "", allowed ? allowed : "");
}

amp_status cfg_reader_open(const char *file, cfg_reader **out, amp_error *error)
{
    *out = NULL;
    cfg_place place = { .file = file };
    struct stat status;
    if (stat(file, &status) != 0) return cfg_fail(error, place, strerror(errno), "a .cfg file");
    if (S_ISDIR(status.st_mode)) return cfg_fail(error, place, strerror(EISDIR), "a .cfg file");
    /* Darknet reads the file again after us: what can be read only once would be empty by then. */
    if (!S_ISREG(status.st_mode))
        return cfg_fail(error, place, "not a regular file, and a .cfg is read more than once",
                        "a .cfg file (write the pipe's output to one first)");
    cfg_reader *reader = malloc(sizeof *reader);
    if (!reader) return amp_fail(error, AMP_NO_MEMORY, "no memory to read %.300s", file);
    reader->stream = fopen(file, "rb");
    reader->file = file;
    reader->line = 0;
    if (!reader->stream) {
        int cause = errno;
        free(reader);
        return cfg_fail(error, place, strerror(cause), "a .cfg file that can be read");
    }
    *out = reader;
    return AMP_OK;
}

void cfg_reader_close(cfg_reader *reader)
{
    if (!reader) return;
    fclose(reader->stream);
    free(reader);
}

static cfg_item broken(cfg_reader *reader, int fatal)
{
    return (cfg_item){ .kind = CFG_BROKEN, .line = reader->line, .text = reader->problem, .fatal = fatal };
}

/* Reads one line into reader->text without its blanks. Returns 0 at the end of the file. The first thing wrong with the
 * line goes to *item; at a NUL byte reading stops, since the file is not text and may be of any size. */
static int read_line(cfg_reader *reader, cfg_item *item)
{
    size_t bytes = 0, kept = 0;
    int c, equals = 0, blank = 0; /* equals: 1 behind the first, 2 within the value; blank: met just before */
    item->kind = CFG_END;
    item->blanks = 0;
    reader->line++;
    while ((c = getc(reader->stream)) != EOF) {
        if (c == '\n') break;
        bytes++;
        if (c == 0) {
            snprintf(reader->problem, sizeof reader->problem, "byte %zu of the line is NUL: this is not a text file",
                     bytes);
            *item = broken(reader, 1);
            return 1;
        }
        if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
            blank = 1;
            continue;
        }
        item->blanks |= blank && equals == 2;
        equals = equals ? 2 : c == '=';
        blank = 0;
        if (item->kind == CFG_END && (c < 0x20 || c == 0x7f)) {
            snprintf(reader->problem, sizeof reader->problem, "byte %zu of the line is the control character 0x%02x",
                     bytes, (unsigned)c);
            *item = broken(reader, 0);
        }
        if (kept < CFG_LINE_LIMIT) reader->text[kept++] = (char)c;
    }
    if (item->kind == CFG_END && bytes > CFG_LINE_LIMIT) {
        snprintf(reader->problem, sizeof reader->problem, "a line of more than %d bytes", CFG_LINE_LIMIT);
        *item = broken(reader, 0);
    }
    reader->text[kept] = '\0';
    return c != EOF || bytes > 0;
}

amp_status cfg_reader_next(cfg_reader *reader, cfg_item *item, amp_error *error)
{
    while (read_line(reader, item)) {
        if (item->kind == CFG_BROKEN) return AMP_OK;
        char *text = reader->text;
        if (text[0] == '\0' || text[0] == '#' || text[0] == ';') continue;
        *item = (cfg_item){ .kind = text[0] == '[' ? CFG_SECTION : CFG_OPTION,
                            .line = reader->line,
                            .text = text,
                            .blanks = item->blanks };
        if (item->kind == CFG_OPTION) {
            char *equals = strchr(text, '=');
            if (equals) {
                *equals = '\0';
                item->value = equals + 1;
            }
        }
        return AMP_OK;
    }
    if (ferror(reader->stream))
        return cfg_fail(error, (cfg_place){ .file = reader->file, .line = reader->line }, strerror(errno), NULL);
    *item = (cfg_item){ .kind = CFG_END, .line = reader->line };
    return AMP_OK;
}
