/* Reads and keeps lists of lines: see text_lines.h. */
#define _GNU_SOURCE /* vasprintf */
#include "text_lines.h"

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

amp_status amp_lines_read(const char *path, const char *what, amp_lines *lines, amp_error *error)
{
    FILE *file = amp_open_to_read(path, what, error);
    if (!file) return AMP_BAD_CONFIG;
    char *text = NULL;
    size_t room = 0;
    amp_status status = AMP_OK;
    errno = 0;
    while (getline(&text, &room, file) >= 0) {
        size_t length = strlen(text);
        while (length > 0 && strchr(" \t\r\n", text[length - 1])) text[--length] = 0; /* blanks at its end */
        if (*text) amp_lines_add(lines, "%s", text);
    }
    if (ferror(file))
        status = amp_fail(error, AMP_BAD_CONFIG, "%s: cannot read %s: %s", path, what, strerror(errno));
    free(text);
    fclose(file);
    return status;
}

void amp_lines_free(amp_lines *lines)
{
    for (size_t i = 0; i < lines->count; i++) free(lines->line[i]);
    free(lines->line);
    *lines = (amp_lines){0};
}

amp_status amp_validation_images_read(const amp_data_file *data, amp_lines *images, amp_error *error)
{
    if (!data->valid)
        return amp_fail(error, AMP_BAD_CONFIG,
                        "%s: no `valid = FILE`; it names the list of images to measure on", data->name);
    AMP_TRY(amp_lines_read(data->valid, "the list of validation images (`valid` in the .data file)", images,
                           error));
    if (images->count == 0)
        return amp_fail(error, AMP_BAD_CONFIG, "%s: the list of validation images is empty", data->valid);
    return AMP_OK;
}
