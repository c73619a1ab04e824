#include "data_file.h"

#include "../amp/cfg_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void *amp_grow(void *array, size_t count, size_t *room, size_t size)
{
    if (count < *room) return array;
    size_t larger = *room ? 2 * *room : 64;
    void *grown = realloc(array, larger * size);
    if (grown) *room = larger;
    return grown;
}

amp_status amp_lines_add(amp_lines *lines, const char *text, size_t length, amp_error *error)
{
    char **grown = amp_grow(lines->line, lines->count, &lines->room, sizeof *grown);
    if (grown) lines->line = grown;
    char *copy = grown ? strndup(text, length) : NULL;
    if (!copy) return amp_fail(error, AMP_NO_MEMORY, "no memory for a list of %zu lines", lines->count);
    lines->line[lines->count++] = copy;
    return AMP_OK;
}

/* Where `text` ends once the blanks at its end are gone. */
static size_t trimmed_length(const char *text)
{
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t\r\n", text[length - 1])) --length;
    return length;
}

amp_status amp_lines_read(const char *path, const char *what, amp_lines *lines, amp_error *error)
{
    FILE *file = fopen(path, "r");
    if (!file) return amp_fail(error, AMP_BAD_CONFIG, "%s: cannot read %s: %s", path, what, strerror(errno));
    char *text = NULL;
    size_t room = 0;
    amp_status status = AMP_OK;
    errno = 0;
    while (status == AMP_OK && getline(&text, &room, file) >= 0) {
        size_t length = trimmed_length(text);
        if (length > 0) status = amp_lines_add(lines, text, length, error);
    }
    if (status == AMP_OK && ferror(file)) /* a folder opens, and fails here */
        status = amp_fail(error, AMP_BAD_CONFIG, "%s: cannot read %s: %s", path, what, strerror(errno));
    free(text);
    fclose(file);
    return status;
}

void amp_lines_free(amp_lines *lines)
{
    for (size_t i = 0; i < lines->count; ++i) free(lines->line[i]);
    free(lines->line);
    *lines = (amp_lines){0};
}

static amp_status keep(amp_data_key *keys, const cfg_item *item, amp_error *error)
{
    for (amp_data_key *k = keys; k->key; ++k) {
        if (strcmp(item->text, k->key) || k->value) continue;
        k->value = strdup(item->value);
        if (!k->value) return amp_fail(error, AMP_NO_MEMORY, "no memory for the .data file");
    }
    return AMP_OK;
}

/* A .data file is written as a .cfg is, without sections. */
amp_status amp_data_keys_read(const char *data_file, amp_data_key *keys, amp_error *error)
{
    for (amp_data_key *k = keys; k->key; ++k) k->value = NULL;
    FILE *file = fopen(data_file, "r");
    if (!file) return amp_fail(error, AMP_BAD_CONFIG, "%s: cannot read the .data file: %s", data_file, strerror(errno));
    fclose(file);
    cfg_reader *reader = NULL;
    cfg_item item = {.kind = CFG_BROKEN};
    AMP_TRY(cfg_reader_open(data_file, &reader, error));
    amp_status status = AMP_OK;
    while (status == AMP_OK) {
        status = cfg_reader_next(reader, &item, error);
        if (status != AMP_OK || item.kind == CFG_END) break;
        if (item.kind == CFG_OPTION && item.value) status = keep(keys, &item, error);
    }
    cfg_reader_close(reader);
    return status;
}

void amp_data_keys_free(amp_data_key *keys)
{
    for (amp_data_key *k = keys; k->key; ++k) {
        free(k->value);
        k->value = NULL;
    }
}

amp_status amp_validation_images_read(const char *data_file, const char *valid, amp_lines *images, amp_error *error)
{
    if (!valid)
        return amp_fail(error, AMP_BAD_CONFIG, "%s: no `valid = FILE`; it names the list of images to measure on", data_file);
    AMP_TRY(amp_lines_read(valid, "the list of validation images (`valid` in the .data file)", images, error));
    if (images->count == 0)
        return amp_fail(error, AMP_BAD_CONFIG, "%s: the list of validation images is empty", valid);
    return AMP_OK;
}
