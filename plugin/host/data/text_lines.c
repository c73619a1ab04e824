/* Reads and keeps lists of lines: see text_lines.h. */
#define _GNU_SOURCE /* vasprintf */
#include "text_lines.h"

#include "../fork.h"
#include "../program/failure.h"

#include <errno.h>
#include <string.h>

void amp_lines_add(amp_lines *lines, const char *format, ...)
{
    char *text;
    va_list args;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0) text = NULL;
    va_end(args);
    lines->line = amp_grow(lines->line, lines->count, &lines->room, sizeof *lines->line);
    lines->line[lines->count++] = amp_allocated(text);
}

/* Reads the file up to its first zero byte. may_have_0=1: accepts a file that contains one. */
static amp_status read_bytes(const char *path, const char *what, int may_have_0, amp_lines *lines,
                             amp_error *error)
{
    size_t room = 0;
    *lines = (amp_lines){ 0 };
    FILE *file = amp_open_to_read(path, what, error);
    if (!file) return AMP_BAD_CONFIG;
    ssize_t size = getdelim(&lines->bytes, &room, 0, file); /* all of it if it is a text file */
    int why = size < 0 && !feof(file) ? errno : 0;
    fclose(file);
    if (why) return amp_fail(error, AMP_BAD_CONFIG, "%.500s: cannot read %s: %s", path, what, strerror(why));
    if (size < 0) { /* an empty file: getdelim may have allocated nothing */
        free(lines->bytes);
        lines->bytes = amp_allocated(calloc(1, 1));
    } else if (!lines->bytes[size - 1] && !may_have_0)
        return amp_fail(error, AMP_BAD_CONFIG, "%.500s: %s is not a text file", path, what);
    return AMP_OK;
}

/* Cuts lines->bytes into lines. trims=1: removes blanks at the ends of lines, and blank lines. */
static void split(amp_lines *lines, int trims)
{
    for (char *at = lines->bytes, *next; *at; at = next) {
        char *end = at + strcspn(at, "\n");
        int is_whole = *end != 0;
        next = end + is_whole;
        *end = 0;
        while (trims && end > at && strchr(" \t\r", end[-1])) *--end = 0;
        if (is_whole && end > at && end[-1] == '\r' && amp_fork_drops_returns()) end[-1] = 0;
        if (trims && !*at) continue;
        lines->line = amp_grow(lines->line, lines->count, &lines->room, sizeof *lines->line);
        lines->line[lines->count++] = at;
    }
}

amp_status amp_lines_read(const char *path, const char *what, amp_lines *lines, amp_error *error)
{
    AMP_TRY(read_bytes(path, what, 1, lines, error));
    split(lines, 1);
    return AMP_OK;
}

amp_status amp_paths_read(const char *path, const char *what, amp_lines *lines, amp_error *error)
{
    AMP_TRY(read_bytes(path, what, 0, lines, error));
    split(lines, 0);
    for (size_t i = 0; i < lines->count; i++)
        if (lines->line[i][strspn(lines->line[i], " \t\r")]) return AMP_OK;
    return amp_fail(error, AMP_BAD_CONFIG, "%.500s: %s is empty", path, what);
}

void amp_lines_free(amp_lines *lines)
{
    if (!lines->bytes)
        for (size_t i = 0; i < lines->count; i++) free(lines->line[i]);
    free(lines->line);
    free(lines->bytes);
    *lines = (amp_lines){0};
}

amp_status amp_validation_images_read(const amp_data_file *data, amp_lines *images, amp_error *error)
{
    if (!data->valid)
        return amp_fail(error, AMP_BAD_CONFIG,
                        "%s: `valid = FILE` is missing; FILE must list the validation images", data->name);
    AMP_TRY(amp_lines_read(data->valid, "the list of validation images (`valid` in the .data file)", images,
                           error));
    if (images->count == 0)
        return amp_fail(error, AMP_BAD_CONFIG, "%s: the list of validation images is empty", data->valid);
    return AMP_OK;
}
