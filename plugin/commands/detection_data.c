#include "detection_data.h"

#include "../amp/cfg_reader.h"
#include "../tensor/half.h"
#include "darknet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_ROOM = 4000 }; /* find_replace works in 4096 bytes and does not look */

static const float THINNEST = .001f; /* fill_truth_detection in data.c drops what is narrower or lower */

/* Makes room for one more in an array that doubles. */
static void *grow(void *array, size_t count, size_t *room, size_t size)
{
    if (count < *room) return array;
    size_t larger = *room ? 2 * *room : 64;
    void *grown = realloc(array, larger * size);
    if (grown) *room = larger;
    return grown;
}

static amp_status add_line(amp_lines *lines, const char *text, size_t length, amp_error *error)
{
    char **grown = grow(lines->line, lines->count, &lines->room, sizeof *grown);
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
        if (length > 0) status = add_line(lines, text, length, error);
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

typedef struct data_keys { char *valid, *names; } data_keys;

static amp_status keep(char **where, const char *value, amp_error *error)
{
    if (*where) return AMP_OK; /* of two, the first counts: option_find in option_list.c */
    *where = strdup(value);
    return *where ? AMP_OK : amp_fail(error, AMP_NO_MEMORY, "no memory for a path");
}

/* A .data file is written as a .cfg is, without sections. */
static amp_status read_keys(const char *data_file, data_keys *keys, amp_error *error)
{
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
        if (item.kind != CFG_OPTION || !item.value) continue;
        if (!strcmp(item.text, "valid")) status = keep(&keys->valid, item.value, error);
        if (!strcmp(item.text, "names")) status = keep(&keys->names, item.value, error);
    }
    cfg_reader_close(reader);
    return status;
}

amp_status amp_detection_data_read(const char *data_file, amp_detection_data *data, amp_error *error)
{
    *data = (amp_detection_data){0};
    data_keys keys = {0};
    amp_status status = read_keys(data_file, &keys, error);
    if (status == AMP_OK && !keys.valid)
        status = amp_fail(error, AMP_BAD_CONFIG, "%s: no `valid = FILE`; it names the list of images to measure on",
                          data_file);
    if (status == AMP_OK)
        status = amp_lines_read(keys.valid, "the list of validation images (`valid` in the .data file)",
                                &data->images, error);
    if (status == AMP_OK && data->images.count == 0)
        status = amp_fail(error, AMP_BAD_CONFIG, "%s: the list of validation images is empty", keys.valid);
    if (status == AMP_OK && keys.names)
        status = amp_lines_read(keys.names, "the class names (`names` in the .data file)", &data->names, error);
    free(keys.valid);
    free(keys.names);
    return status;
}

void amp_detection_data_free(amp_detection_data *data)
{
    amp_lines_free(&data->images);
    amp_lines_free(&data->names);
}

/* As fill_truth_detection in data.c does, or evaluation would look where training did not. label_path: 4096 bytes. */
static void label_path_of(const char *image_path, char *label_path)
{
    static char *const replacements[][2] = {{"images", "labels"}, {"JPEGImages", "labels"}, {"raw", "labels"},
                                            {".jpg", ".txt"}, {".png", ".txt"}, {".JPG", ".txt"}, {".JPEG", ".txt"}};
    char before[4096]; /* find_replace must not read what it writes */
    strcpy(label_path, image_path);
    for (size_t i = 0; i < sizeof replacements / sizeof *replacements; ++i) {
        strcpy(before, label_path);
        find_replace(before, replacements[i][0], replacements[i][1], label_path);
    }
}

static int is_label(const char *line, int *class_id, amp_box *box)
{
    int end = 0;
    if (sscanf(line, "%d %f %f %f %f %n", class_id, &box->x, &box->y, &box->w, &box->h, &end) != 5 || line[end]) return 0;
    return amp_is_finite(box->x) && amp_is_finite(box->y) && amp_is_finite(box->w) && amp_is_finite(box->h);
}

amp_status amp_truths_read(const char *image_path, int image, int classes, amp_truths *truths, amp_error *error)
{
    char path[4096];
    if (strlen(image_path) >= PATH_ROOM)
        return amp_fail(error, AMP_BAD_CONFIG, "%.100s...: an image's path may have %d characters at most", image_path,
                        PATH_ROOM - 1);
    label_path_of(image_path, path);
    FILE *there = fopen(path, "r");
    if (!there && errno == ENOENT) return AMP_OK;
    if (there) fclose(there);

    amp_lines lines = {0};
    amp_status status = amp_lines_read(path, "the labels", &lines, error);
    for (size_t i = 0; status == AMP_OK && i < lines.count; ++i) {
        amp_truth truth = {.image = image};
        if (!is_label(lines.line[i], &truth.class_id, &truth.box)) {
            status = amp_fail(error, AMP_BAD_CONFIG, "%s: label %zu is not `class x y width height`: %.60s", path, i + 1,
                              lines.line[i]);
        } else if (truth.class_id < 0 || truth.class_id >= classes) {
            status = amp_fail(error, AMP_BAD_CONFIG, "%s: label %zu is of class %d, but the network knows 0 to %d", path,
                              i + 1, truth.class_id, classes - 1);
        } else if (truth.box.w < THINNEST || truth.box.h < THINNEST) {
            ++truths->too_thin;
        } else {
            amp_truth *grown = grow(truths->truth, truths->count, &truths->room, sizeof *grown);
            if (!grown) {
                status = amp_fail(error, AMP_NO_MEMORY, "no memory for %zu labels", truths->count + 1);
                break;
            }
            truths->truth = grown;
            truths->truth[truths->count++] = truth;
        }
    }
    amp_lines_free(&lines);
    return status;
}

void amp_truths_free(amp_truths *truths)
{
    free(truths->truth);
    *truths = (amp_truths){0};
}
